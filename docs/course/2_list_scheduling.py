# %% [markdown]
# # 2. List scheduling and its worst case
#
# A list scheduler starts the next job of a list whenever a GPU is free; that is how most clusters work. You write one,
# prove that it is never worse than twice the optimum, and build the jobs on which it is that bad.
#
# **Time**: 50 minutes. **Before**: notebook 1. **Needs** the library and NumPy.

# %%
import heapq
from itertools import pairwise, permutations

import numpy as np

import gangplan
from gangplan import teach


def problem_of(seconds, gpus, goal="makespan", weights=None):
    """Return jobs of one GPU each on a cluster of so many GPUs."""
    weights = [1.0] * len(seconds) if weights is None else weights
    rows = enumerate(zip(seconds, weights, strict=True))
    jobs = tuple(gangplan.MoldableJob(f"job{i}", (1,), (float(p),), weight=float(w)) for i, (p, w) in rows)
    return gangplan.ScheduleProblem(jobs, gangplan.Pool(gpus), goal)


def plan_of(starts):
    """Return the plan that starts the jobs at these seconds."""
    return gangplan.SchedulePlan(tuple(f"job{i}" for i in range(len(starts))), [0] * len(starts), list(starts))


def show(seconds, gpus, starts):
    """Draw the jobs over time."""
    return gangplan.plot(problem_of(seconds, gpus), plan_of(starts), panel="jobs")


# %% [markdown]
# ## The rule
#
# Jobs of one GPU each wait in a list. Whenever a GPU is free, the first job of the list starts on it. The **makespan**
# $C_{\max}$ is when the last job ends. In the three fields of the textbooks this is $P\,||\,C_{\max}$: parallel equal
# machines, no further conditions, the makespan.
#
# **2.1** Write `starts_of(seconds, gpus)`: the start of each job, in the order of the list. *Hint*: keep the times at
# which GPUs get free in a heap.


# %% exercise="2.1"
def starts_of(seconds, gpus): ...


# %% check="2.1"
@teach.Check("return a list of starts, one for each job")
def _(check):
    assert check.ask(starts_of, [2, 3], 1) is not None, "return a list of starts"
    assert list(starts_of([2, 3], 1)) == [0, 2], "on one GPU the second job waits for the first"
    assert list(starts_of([2, 3, 1], 2)) == [0, 0, 2], "the third job starts on the GPU that is free first"
    check.against(
        starts_of,
        lambda seconds, gpus: [*teach.list_scheduling(problem_of(seconds, gpus))][-1].plan.start.tolist(),
        (
            ((check.rng.integers(4, 120, n) / 4).tolist(), int(gpus))
            for n, gpus in ((9, 3), (9, 2), (9, 4), (9, 1), (2, 4), *check.rng.integers(2, 9, (5, 2)))
        ),
        "the first job of the list that waits starts on the GPU that is free first, at that moment",
    )


# %% [markdown]
# The library's `lists` tries several such lists and keeps the best. Here is one of them, drawn, for eight other jobs.

# %%
seconds = [3, 2, 6, 7, 1, 4, 2, 3]
result = gangplan.solve(problem_of(seconds, 3), time_limit=5, method="lists")
print(result.objective)
show(seconds, 3, result.plan.start)

# %% [markdown]
# ## How good can it be?
#
# Two bounds hold for every schedule, whatever makes it. The longest job takes its time. All GPUs together do all work.
#
# **2.2** Write `bound(seconds, gpus)`, the greater of the two.


# %% exercise="2.2"
def bound(seconds, gpus): ...


# %% check="2.2"
@teach.Check("return a number")
def _(check):
    assert check.ask(bound, [4, 1, 1], 3) is not None, "return a number"
    assert bound([4, 1, 1], 3) == 4, "no schedule ends before its longest job"
    assert bound([2, 2, 2], 2) == 3, "six seconds of work on two GPUs take three at least"

    def cut(end, gpus):
        """Return jobs that fill so many GPUs up to `end` exactly, in any order."""
        times = (np.sort(check.rng.uniform(0, end, 2)) for _ in range(gpus))
        jobs = [float(p) for row in times for p in np.diff([0, *row, end])]
        return check.rng.permutation(jobs).tolist()

    known = {}  # of jobs their optimum: they were cut out of full GPUs, or beside one job that is longer than all work
    for _ in range(20):
        gpus, end = int(check.rng.integers(2, 6)), float(check.rng.uniform(3, 9))
        known[tuple(cut(end, gpus)), gpus] = end
        known[(*cut(end * check.rng.uniform(0.2, 0.9), gpus - 1), end), gpus] = end
    draws = [(list(seconds), gpus) for seconds, gpus in known]
    check.against(bound, lambda seconds, gpus: known[tuple(seconds), gpus], draws, "so early these jobs can be over")


# %% [markdown]
# ## Never worse than twice the optimum
#
# Let job $l$ end last, and start at $s$. Until $s$ no GPU was idle, or $l$ would have started there. So $m$ GPUs did
# at least $m\,s$ seconds of work, all of it by other jobs: $m\,s \le \sum_j p_j - p_l$. Therefore
#
# $$
# C_{\max} = s + p_l \le \frac{1}{m} \sum_j p_j + \left( 1 - \frac{1}{m} \right) p_l
# \le \left( 2 - \frac{1}{m} \right) \mathrm{OPT},
# $$
#
# because both bounds of 2.2 are at most the optimum OPT (Graham 1966). The proof uses nothing of the order of the list:
# it holds for the worst one.


# %%
def ratio(seconds, gpus, list_makespan):
    """Return the makespan of a list over the optimum, which `solve` proves."""
    result = gangplan.solve(problem_of(seconds, gpus), time_limit=10)
    assert result.status == "OPTIMAL", "too hard to solve: take fewer jobs, of whole seconds"
    return list_makespan / result.objective


def list_makespan(seconds, gpus):
    """Return when the jobs of a list are over, by the rule."""
    free = [0.0] * gpus
    for p in seconds:
        heapq.heappush(free, heapq.heappop(free) + p)
    return max(free)


# %% [markdown]
# **2.3** Is the factor really that large? Find a list for 3 GPUs whose makespan is $5/3$ of the optimum: the seconds of
# at most ten jobs. *Hint*: in the proof all GPUs are busy until the longest job starts, and no bound has slack.

# %% exercise="2.3"
answer = [1, 1, 1]


# %% check="2.3"
@teach.Check("give a list of seconds")
def _(check):
    seconds = [check.number(p, f"job {i} of {answer}") for i, p in enumerate(answer)]
    assert 1 <= len(seconds) <= 10 and min(seconds) > 0, "one to ten jobs of positive seconds"
    found = ratio(seconds, 3, list_makespan(seconds, 3))
    assert found > 5 / 3 - 1e-6, f"the list takes {found:.3f} times the optimum, and 5/3 is possible"


# %% [markdown]
# ## Long jobs first
#
# The bad list has its long job at the end. So sort: **longest processing time first**, LPT. Graham (1969) proved that
# it takes at most $4/3 - 1/(3m)$ times the optimum.
#
# **2.4** Write `longest_first(seconds)`: the seconds in that order.


# %% exercise="2.4"
def longest_first(seconds): ...


# %% check="2.4"
@teach.Check("return a list of seconds")
def _(check):
    assert check.ask(longest_first, [1, 3, 2]) is not None, "return a list"
    assert list(longest_first([1, 3, 2])) == [3, 2, 1], "the longest job first"
    for _ in range(20):
        trial = [*map(float, check.rng.integers(5, 120, 8) / 4), 30.0, 30.0]
        found = list(check.ask(longest_first, list(trial)))
        falls = all(before >= after for before, after in pairwise(found))
        assert falls, f"{found}: a longer job comes after a shorter one"
        assert sorted(found) == sorted(trial), f"of the jobs {trial} you return {found}: each as often as it is there"


# %% [markdown]
# What is typical? Of 300 draws of ten jobs on three GPUs, how far is each rule from the bound of 2.2? Point at a
# bar.

# %%
rng = np.random.default_rng(1)
ratios = {"as drawn": [], "longest first": []}
for _ in range(300):
    draw = rng.integers(1, 20, 10).tolist()
    least = max(*draw, sum(draw) / 3)
    ratios["as drawn"].append(list_makespan(draw, 3) / least)
    ratios["longest first"].append(list_makespan(sorted(draw, reverse=True), 3) / least)
print({name: f"mean {np.mean(x):.3f}, worst {np.max(x):.3f}" for name, x in ratios.items()})

# %%
from gangplan.plot.scene import Axis, Boxes, Key, Panel, Scene

edges = np.arange(1.0, max(map(max, ratios.values())) + 0.02, 0.02)
bars, colours = [], ("#e69f00", "#0072b2")
for shift, colour, x in zip((0.0, 0.01), colours, ratios.values(), strict=True):
    count, _ = np.histogram(x, edges)
    at = np.stack([edges[:-1] + shift, 0 * count, 0 * count + 0.01, count], axis=1)
    bars.append(Boxes(at, colour, [f"{n} draws from {low:.2f}" for n, low in zip(count, edges, strict=False)]))
keys = [Key(name, (colour,)) for name, colour in zip(ratios, colours, strict=True)]
across, up = Axis(1.0, edges[-1], "makespan / bound"), Axis(0, 1.05 * max(x.at[:, 3].max() for x in bars), "draws")
Scene("Two rules", "300 draws of ten jobs on three GPUs", [[Panel("ratios", across, up, bars, keys)]])

# %% [markdown]
# **2.5** LPT has a worst case too. Find jobs for 2 GPUs on which it takes $7/6$ of the optimum, the most there is for
# two. *Hint*: five jobs of 2 or 3 seconds.

# %% exercise="2.5"
answer = [1, 1]


# %% check="2.5"
@teach.Check("give a list of seconds")
def _(check):
    seconds = [check.number(p, f"job {i} of {answer}") for i, p in enumerate(answer)]
    assert 1 <= len(seconds) <= 10 and min(seconds) > 0, "one to ten jobs of positive seconds"
    found = ratio(seconds, 2, list_makespan(sorted(seconds, reverse=True), 2))
    assert found > 7 / 6 - 1e-6, f"here LPT takes {found:.3f} times the optimum, and 7/6 is possible"


# %% [markdown]
# ## Another goal, another list
#
# Users mind when *their* job is done. The **weighted completion** $\sum_j w_j C_j$ adds the completion of each job,
# times its weight. On one GPU an order is best if no two neighbours gain by a swap. Let $j$ start at $t$ and $k$
# follow: they cost $w_j (t + p_j) + w_k (t + p_j + p_k)$, and the other way round
# $w_k (t + p_k) + w_j (t + p_k + p_j)$.
#
# **2.6** Which order is best? Write `order(seconds, weights)`: the numbers of the jobs, the first to run first.


# %% exercise="2.6"
def order(seconds, weights): ...


# %% check="2.6"
@teach.Check("return the numbers of the jobs in order, like [1, 0]")
def _(check):
    assert check.ask(order, [1, 2], [1, 1]) is not None, "return the numbers of the jobs in order"
    assert list(order([3, 1], [1, 1])) == [1, 0], "with equal weights the shorter job goes first"
    assert list(order([3, 1], [9, 1])) == [0, 1], "three seconds of weight 9 go before one second of weight 1"

    def weighted(p, w, jobs):
        """Return the weighted completion of jobs one after the other."""
        return float(np.dot(np.array(w)[list(jobs)], np.cumsum(np.array(p)[list(jobs)])))

    for _ in range(12):
        p, w = check.rng.uniform(1, 9, (2, 6)).round(2).tolist()
        first = [int(j) for j in check.ask(order, list(p), list(w))]
        assert sorted(first) == list(range(6)), f"{first}: each of the jobs 0 to 5 once"
        found, best = weighted(p, w, first), min(weighted(p, w, jobs) for jobs in permutations(range(6)))
        assert found <= best + 1e-6, f"seconds {p}, weights {w}: your order costs {found:.2f}, the best {best:.2f}"


# %% [markdown]
# ## Jobs that may take several GPUs
#
# A **moldable** job chooses its GPUs when it starts, and more GPUs make it faster by less than their number. Then a
# list has to choose too, and the greedy choice, as many GPUs as make the job itself end first, wastes work:

# %%
jobs = tuple(gangplan.MoldableJob(f"job{i}", (1, 4), (8.0, 5.0)) for i in range(4))
moldable = gangplan.ScheduleProblem(jobs, gangplan.Pool(4), "makespan")
greedy = gangplan.SchedulePlan(tuple(x.name for x in jobs), [1] * 4, [0.0, 5.0, 10.0, 15.0])
print("greedy", gangplan.verify(moldable, greedy).objective, "best", gangplan.solve(moldable, time_limit=5).objective)
gangplan.plot(moldable, greedy, panel="jobs")

# %% [markdown]
# ## What you know now
#
# - A worst case has two halves: a proof for all inputs, and an input that attains it.
# - Sorting cuts the worst loss to a third, from $1 - \frac{1}{m}$ of the optimum to $\frac{1}{3} (1 - \frac{1}{m})$.
# - Some list is optimal for any given jobs, but to find it is hard: $P2\,||\,C_{\max}$ is NP-hard already.
# - A rule is good for a goal, not by itself.
# - The ratio to a *bound* is what you can compute when the optimum is out of reach; it is never too kind.
#
# In the homework jobs are rigid or moldable, and you write lists of your own. To compare with at home:
# `list(gangplan.teach.list_scheduling(problem, order))[-1].plan` is the plan of an order, the names of all jobs, and
# `gangplan.teach.list_cost(problem)` is a function that says what an order costs, in microseconds.
#
# Next: notebook 3 writes such problems down for solvers.
