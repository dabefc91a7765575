# %% [markdown]
# Solutions of notebook 5, local search and large neighbourhoods.


# %% exercise="5.1"
def swaps(order):
    found = []
    for i, j in combinations(range(len(order)), 2):
        new = list(order)
        new[i], new[j] = new[j], new[i]
        found.append(new)
    return found


# %% exercise="5.2"
def descend(order, cost, neighbours):
    while True:
        best = min(neighbours(order), key=cost)
        if cost(best) >= cost(order):
            return order
        order = best


# %% exercise="5.3"
def insertions(order):
    found = set()
    for i, job in enumerate(order):
        rest = order[:i] + order[i + 1 :]
        found |= {(*rest[:k], job, *rest[k:]) for k in range(len(order))}
    return [list(new) for new in found - {tuple(order)}]


def count(n):
    return (n - 1) ** 2


# %% exercise="5.4"
def accept(more, temperature, u):
    return more <= 0 or u < np.exp(-more / temperature)


# %% exercise="5.5"
smallest, which = next(
    (k, gone)
    for k in range(1, 7)
    for gone in combinations(range(6), k)
    if min(map(slowdowns, around(greedy, set(gone)))) < slowdowns(greedy)
)


# %% exercise="5.6"
def large(placement, rounds, size, seed):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        gone = set(rng.choice(len(placement), size, replace=False).tolist())
        best = min(around(placement, gone), key=slowdowns)
        if slowdowns(best) <= slowdowns(placement):
            placement = best
    return placement
