# %% exercise="3.1"
def size(ops, edges, gpus):
    """Return (columns x, rows A, rows L, rows K)."""
    return ops * gpus, ops, gpus, 2 * edges * gpus


# %% exercise="3.2"
def bound_of(weights, times):
    """Return the bound that weights of GPUs prove; times[d][v] are seconds of op v on GPU d."""
    ops = range(len(times[0]))
    return sum(min(w * row[v] for w, row in zip(weights, times, strict=True)) for v in ops)


# %% exercise="3.3"
def copies(used, gpus):
    """Return how many ways there are to name the GPUs of a plan."""
    from math import perm

    return perm(gpus, used)  # the first group has all to choose from, the next one fewer


# %% exercise="3.4"
def my_rows(programme):
    """Return rows that put op0 on gpu0."""
    names = [column.name for column in programme.columns]
    return [teach.Row("mine", 1.0, None, {names.index("x[op0,gpu0]"): 1.0})]


# %% exercise="3.5"
cover = {0, 1, 2}


# %% exercise="3.6"
def read_log(log):
    """Return (best, bound, gap) of the last line that has them."""
    last = [line for line in log.splitlines() if "best:" in line][-1]
    best = float(last.split("best:")[1].split()[0])
    bound = float(last.split("next:[")[1].split(",")[0])
    return best, bound, (best - bound) / best
