# %% exercise="9.1"
def johnson(jobs):
    first = [j for j, (a, b) in enumerate(jobs) if a < b]
    last = [j for j, (a, b) in enumerate(jobs) if a >= b]
    return sorted(first, key=lambda j: jobs[j][0]) + sorted(last, key=lambda j: -jobs[j][1])


# %% exercise="9.2"
def worst(seconds, due):
    end, found = 0, -np.inf
    for d, p in sorted(zip(due, seconds, strict=True)):
        end += p
        found = max(found, end - d)
    return found


# %% exercise="9.3"
def on_time(seconds, due):
    taken, end = [], 0
    for j in sorted(range(len(due)), key=lambda j: due[j]):
        taken.append(j)
        end += seconds[j]
        if end > due[j]:
            longest = max(taken, key=lambda i: seconds[i])
            taken.remove(longest)
            end -= seconds[longest]
    return taken


# %% exercise="9.4"
def most(seconds, values, due):
    worth = {0: 0}  # by the seconds of the jobs that are on time
    for d, p, w in sorted(zip(due, seconds, values, strict=True)):
        for t, value in list(worth.items()):
            if t + p <= d:
                worth[t + p] = max(worth.get(t + p, 0), value + w)
    return max(worth.values())


# %% exercise="9.5"
def as_gangs(numbers):
    triples = len(numbers) // 3
    return sum(numbers) // triples, [(x, 1) for x in numbers], triples


# %% exercise="9.6"
def bad(gpus):
    short = gpus * (gpus - 1)
    return [1] * short + [gpus], [k % (gpus - 1) for k in range(short)] + [gpus - 1]


# %% exercise="9.7"
def adversary(placed):
    if len(placed) < 2:
        return 1
    return 2 if len(placed) == 2 and placed[0][1] != placed[1][1] else None
