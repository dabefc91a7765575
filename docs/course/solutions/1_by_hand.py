# %% [markdown]
# # Solutions to notebook 1

# %% exercise="1.1"
answer = sum(SECONDS.values())

# %% [markdown]
# B runs beside C and D. E does not wait for B, whose output is there at 7, before D ends.

# %% exercise="1.2"
answer = {"A": (0, 0), "B": (1, 3), "C": (0, 2), "D": (0, 6), "E": (0, 8)}


# %% exercise="1.3"
def earliest(device, order, transfer):
    start, free = {}, [0.0, 0.0]
    for op in order:
        inputs = [edge[0] for edge in EDGES if edge[1] == op]
        ready = [start[i] + SECONDS[i] + transfer * (device[i] != device[op]) for i in inputs]
        start[op] = max([free[device[op]], *ready])
        free[device[op]] = start[op] + SECONDS[op]
    return start


# %% [markdown]
# For this job the order of B, C and D makes no difference to the best, so a program that tries one order passes too.


# %% exercise="1.4"
def best_makespan(transfer):
    best = float("inf")
    for gpus in product((0, 1), repeat=5):
        device = dict(zip(OPS, gpus, strict=True))
        for middle in permutations("BCD"):
            start, free = {}, [0.0, 0.0]
            for op in ("A", *middle, "E"):
                inputs = [edge[0] for edge in EDGES if edge[1] == op]
                ready = [start[i] + SECONDS[i] + transfer * (device[i] != device[op]) for i in inputs]
                start[op] = max([free[device[op]], *ready])
                free[device[op]] = start[op] + SECONDS[op]
            best = min(best, start["E"] + SECONDS["E"])
    return best


# %% exercise="1.5"
answer = [0, 2, 4]

# %% [markdown]
# Let a transfer take t seconds. A, B and D on one GPU, C and E on the other: E waits for an output that is sent at 7,
# so that the plan is over after 9 + t. That is 13 for t = 4. With D alone on the other GPU, the path through D crosses
# twice and takes 6 + 2 t, which is 13 for t = 3.5 already.

# %% exercise="1.6"
answer = 4.0
