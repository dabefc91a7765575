# %% [markdown]
# # 1. One job on two GPUs, by hand
#
# A plan says where and when each op of a network runs; a verifier says whether it holds and what it costs. You make a
# plan by hand, find the best one by trying all, and prove how good a plan can be at most.
#
# **Time**: 45 minutes. **Before**: Python and a first course on algorithms. **Needs** the library and NumPy.

# %%
from itertools import permutations, product

import numpy as np

import gangplan
from gangplan import teach

OPS = "ABCDE"
SECONDS = {"A": 2.0, "B": 3.0, "C": 4.0, "D": 2.0, "E": 2.0}
EDGES = ["AB", "AC", "AD", "BE", "CE", "DE"]


def job(transfer=1.0):
    """Return the job on two GPUs; an output takes `transfer` seconds to the other GPU."""
    nothing = np.zeros(len(OPS))
    source, target = ([OPS.index(edge[end]) for edge in EDGES] for end in (0, 1))
    graph = gangplan.OpGraph(
        tuple(OPS),
        ("gpu",),
        [[SECONDS[op] for op in OPS]],
        memory=nothing,
        parameter_bytes=nothing,
        activation_bytes=nothing,
        source=source,
        target=target,
        edge_bytes=[transfer] * len(EDGES),
    )
    cluster = gangplan.Cluster.flat((gangplan.DeviceType("gpu"), 2), bandwidth=1.0)
    return gangplan.StepProblem(graph, cluster)


problem = job()
print(problem)

# %% [markdown]
# ## The job
#
# Op A comes first. B, C and D need its output; E needs theirs:
#
#          B (3 s)
#        /         \
#     A ── C (4 s) ── E (2 s)
#    (2 s) \       /
#          D (2 s)
#
# A GPU runs one op at a time. An output that is needed on the other GPU arrives there one second after its op has
# ended. The **makespan** is the time at which the last op ends, and we want it short.
#
# **1.1** How many seconds does the job take on one GPU?

# %% exercise="1.1"
answer = None


# %% check="1.1"
@teach.Check()
def _(check):
    assert answer is not None, "the GPU runs all five ops, one after the other"
    why = "no output crosses to another GPU: add up the seconds of the ops"
    assert check.number(answer) == 13, why


# %% [markdown]
# ## A plan by hand
#
# A plan gives each op a GPU, 0 or 1, and a start in seconds. `gangplan.verify` checks it without any solver and returns
# the makespan, or what is wrong. Here all ops are on GPU 0, and D starts too early:


# %%
def plan_of(where):
    """Return a plan: of each op its GPU and its start."""
    device, start = zip(*(where[op] for op in OPS), strict=True)
    return gangplan.StepPlan(tuple(OPS), list(device), list(start))


verdict = gangplan.verify(problem, plan_of({"A": (0, 0), "B": (0, 2), "C": (0, 5), "D": (0, 8), "E": (0, 11)}))
print(verdict.ok, verdict.violations)

# %% [markdown]
# A picture of the same with D at 9: point at a box to see its numbers. Its title calls the objective `step`; *the unit
# of the file* is the second here. Dark boxes make a chain that decides the end.

# %%
one_gpu = plan_of({"A": (0, 0), "B": (0, 2), "C": (0, 5), "D": (0, 9), "E": (0, 11)})
gangplan.plot(problem, one_gpu)

# %% [markdown]
# **1.2** Find a plan on two GPUs that is over after 10 seconds. Draw it on paper first: two rows, time to the right.
# Remember the second that an output travels.

# %% exercise="1.2"
answer = {"A": (0, 0), "B": (0, 2), "C": (0, 5), "D": (0, 9), "E": (0, 11)}


# %% check="1.2"
@teach.Check('each op has a GPU and a start, like {"A": (0, 0), "B": (1, 3), ...}')
def _(check):
    assert isinstance(answer, dict) and set(answer) == set(OPS), "give each of the ops A to E a GPU and a start"
    verdict = gangplan.verify(problem, plan_of(answer))
    assert verdict.ok, f"the verifier says: {verdict.violations[0]}"
    assert verdict.objective <= 10, f"it holds, and is over after {verdict.objective:g} s: which op can run beside C?"


# %% [markdown]
# ## From an order to starts
#
# Starts need no invention. Once each op has a GPU, and the ops have an order, take them in that order: each starts as
# soon as its GPU is free and all its inputs are there. An op comes after those whose outputs it needs.
#
# **1.3** Write `earliest(device, order, transfer)`. `device` gives the GPU of each op, like `{"A": 0, "B": 1, ...}`,
# `order` is a text like `"ABCDE"`, and `transfer` the seconds that an output travels. Return the start of each op as a
# dict like `{"A": 0, "B": 3, ...}`. `SECONDS` and `EDGES` are in the first cell.


# %% exercise="1.3"
def earliest(device, order, transfer): ...


# %% check="1.3"
@teach.Check('return a dict of starts, like {"A": 0, "B": 3, ...}')
def _(check):
    on_one = check.ask(earliest, dict.fromkeys(OPS, 0), "ABCDE", 1.0)
    assert isinstance(on_one, dict), "return a dict of starts"
    alone = {"A": 0, "B": 2, "C": 5, "D": 9, "E": 11}
    assert on_one == alone, "on one GPU each op starts when the one before it ends"
    split = check.ask(earliest, {"A": 0, "B": 1, "C": 0, "D": 0, "E": 0}, "ABCDE", 1.0)
    assert split["B"] == 3, "B waits a second for the output of A, on the other GPU"
    assert split["C"] == 2, "C need not wait for B, which is on another GPU"
    assert split == {"A": 0, "B": 3, "C": 2, "D": 6, "E": 8}, (
        "D waits for C on its GPU, E for D; B's output is there at 7"
    )
    for _ in range(30):  # the verifier is the referee: the plan holds, and no op alone could start any earlier
        device = {op: int(check.rng.integers(2)) for op in OPS}
        order, transfer = "".join(("A", *check.rng.permutation(list("BCD")), "E")), float(check.rng.uniform(0, 5))
        told = f"GPUs {list(device.values())} of ABCDE, order {order}, transfer {transfer:.3f} s"
        found, trial = check.ask(earliest, dict(device), order, transfer), job(transfer)
        assert isinstance(found, dict) and set(found) == set(OPS), f"{told}: each op has a start"
        starts = {op: check.number(found[op], f"{told}: the start of {op}") for op in OPS}
        ok = [gangplan.verify(trial, plan_of({op: (device[op], starts[op]) for op in OPS})).ok]
        assert ok[0], f"{told}: some op starts before its GPU is free or an input is there: {found}"
        for gpu in (0, 1):
            mine = [starts[op] for op in order if device[op] == gpu]
            assert mine == sorted(mine), f"{told}: GPU {gpu} runs its ops in another order: {found}"
        for op in OPS:
            sooner = starts | {op: starts[op] - 1e-4}
            late = sooner[op] >= 0 and gangplan.verify(trial, plan_of({x: (device[x], sooner[x]) for x in OPS})).ok
            assert not late, f"{told}: {op} could start before {starts[op]:.3f}"


# %% [markdown]
# ## All plans
#
# Five ops on two GPUs can be placed in $2^5$ ways, and B, C and D can be ordered in $3!$ ways: these are all plans that
# we need. In any other plan some op starts later than it could, and that makes no makespan shorter.
#
# **1.4** Return the smallest makespan of all plans, for a given transfer time. It may be easier to write the starts
# anew than to use your answer to 1.3; `product` and `permutations` are imported.


# %% exercise="1.4"
def best_makespan(transfer): ...


# %% check="1.4"
@teach.Check("return the smallest makespan, a number")
def _(check):
    assert check.ask(best_makespan, 1.0) is not None, "return the smallest makespan"
    assert best_makespan(1.0) <= 10, "exercise 1.2 has a plan of 10 s: some placement or order was left out"
    assert best_makespan(1.0) == 10, "no plan is that short: does an input from the other GPU arrive in time?"
    assert best_makespan(0.0) == 9, "without transfers 9 s are possible"
    assert best_makespan(100.0) == 13, "if transfers are slow, one GPU is best"
    assert best_makespan(3.5) == 12.5, "with transfers of 3.5 s, 12.5 s are possible: may A and E be on different GPUs?"
    check.against(
        best_makespan,
        lambda transfer: gangplan.solve(job(transfer), time_limit=60, method="cpsat", workers=1).objective,
        ((round(float(check.rng.uniform(k, k + 0.5)), 3),) for k in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)),
        "are all 32 placements tried, with every order of B, C and D?",
    )


# %% [markdown]
# The library finds the same, and says that it is proved:

# %%
result = gangplan.solve(problem, time_limit=10)
print(result)
gangplan.plot(problem, result)

# %% [markdown]
# ## A bound
#
# All plans cannot be tried for a network of a thousand ops. A **bound** is a value that no plan is below, and it needs
# an argument instead of a search. Two arguments for this job:
#
# - *work*: two GPUs share 13 seconds of work, so one of them is busy for at least 6.5;
# - *path*: the ops of a path of the graph run one after the other, wherever they are.
#
# The checker `gangplan.verify_bound` takes the argument as a document, a dict, and computes with exact numbers. It
# takes off some billionths, because the verifier allows for rounding. Here is the first argument, called `shares`: a
# second of a GPU has weight 1, a byte of its memory weight 0.

# %%
work = {"argument": "shares", "seconds": ["1"], "bytes": ["0"]}
print(float(gangplan.verify_bound(problem, work)))

# %% [markdown]
# **1.5** Give the path that proves most, as a list of the numbers of its ops: A is 0, B is 1, and so on.

# %% exercise="1.5"
answer = []


# %% check="1.5"
@teach.Check("give a list of numbers of ops, like [0, 1]")
def _(check):
    path = [int(op) for op in answer]
    assert path == [*answer], f"{answer}: give whole numbers"
    try:
        bound = float(gangplan.verify_bound(problem, {"argument": "path", "ops": path}))
    except gangplan.InstanceError as error:
        raise AssertionError(f"the checker refuses the path: {error}") from None
    assert bound > 0, "an empty path proves nothing"
    assert bound > 7.9, f"this path takes {bound:.3f} s, and another one takes longer"


# %% [markdown]
# The best plan takes 10 seconds, and the path proves 8. The **gap** of that plan to this bound is
# $(10 - 8) / 10 = 20\%$, although the plan is the best there is: the argument forgets that transfers take time and that
# B and D need a GPU too. A better argument, `together`, goes through which ops share a GPU and which of them is first:
# no way is shorter than a *threshold*. `certify=True` asks for a **certificate**, the document of such an argument:

# %%
result = gangplan.solve(problem, time_limit=10, certify=True)
print(result.certificate)
print(float(gangplan.verify_bound(problem, result.certificate)), result.standing)

# %% [markdown]
# ## When is a second GPU worth it?
#
# **1.6** For short transfers two GPUs are faster, for long ones one is as good. From how many seconds of transfer on is
# one GPU as good as two? Look for plans in which no path from A to E crosses more than once, or try numbers with your
# answer to 1.4. The check solves two problems, in a second or two.

# %% exercise="1.6"
answer = None


# %% check="1.6"
@teach.Check()
def _(check):
    assert answer is not None, "a number of seconds"
    seconds = check.number(answer)
    assert seconds > 0.01, "without transfers two GPUs need 9 s, and one needs 13"
    just_there, just_below = (
        gangplan.solve(job(x), time_limit=60, method="cpsat", workers=1).objective for x in (seconds, seconds - 0.01)
    )
    assert just_there > 13 - 1e-6, f"with transfers of {seconds} s two GPUs need {just_there:.2f} s"
    assert just_below < 13 - 1e-6, "one GPU is as good for shorter transfers already"


# %% [markdown]
# ## What you know now
#
# - A plan is data; a verifier that knows no solver says what it costs.
# - The best of all plans is an **optimum**; a bound is an argument about all plans at once.
# - A plan and a bound together say how much better anything could be: the gap.
# - Splitting a job pays if the work moved is worth more than the transfers.
#
# Next: notebook 2 schedules many jobs, by a list, and asks how bad that can be.
