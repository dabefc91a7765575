# %% [markdown]
# # 9. Five classics: rules that are best, and problems that have none
#
# Some problems have a rule that is optimal, others a recursion that is fast as long as the numbers are small, and
# others neither. And who does not know what comes next pays for that, whatever the rule.
# You write Johnson's rule, the rules of Jackson and Moore, a dynamic programme, a reduction that shows why gangs are
# hard, and an adversary of online schedulers.
#
# **Time**: 60 minutes. **Before**: notebooks 2 and 3. **Needs** the library and NumPy.

# %%
import tempfile
from itertools import combinations, permutations, product
from pathlib import Path

import numpy as np
from ortools.sat.python import cp_model
from scipy.optimize import Bounds, LinearConstraint, milp

import gangplan
from gangplan import teach

# %% [markdown]
# ## Two machines in a row: Johnson
#
# Every job first loads its data over the one link, for $a_j$ seconds, and then trains on the one GPU, for $b_j$. The
# link and the GPU take one job at a time, in the same order. When is the last one done? A textbook writes
# $F2\,||\,C_{\max}$.


# %%
def end_of(jobs, order):
    """Return when the last of the jobs (a, b) is trained."""
    link = gpu = 0
    for j in order:
        link += jobs[j][0]
        gpu = max(gpu, link) + jobs[j][1]
    return gpu


JOBS = [(4, 3), (1, 2), (5, 6), (3, 1), (6, 2)]
print({end_of(JOBS, order) for order in permutations(range(5))})

# %% [markdown]
# At first the GPU waits for data, and at the end the link has nothing to do. So jobs that load fast go first, and jobs
# that train fast go last. Johnson (1954) proved that this is best: of two neighbours $i$ should be before $j$ if
# $\min(a_i, b_j) \le \min(a_j, b_i)$, since a swap of such two makes nothing earlier.
# (Ties make that no order to sort by.)
#
# **9.1** Write `johnson(jobs)`: the numbers of the jobs in a best order. First come the jobs with $a_j < b_j$, the
# least $a_j$ first; then the others, the *greatest* $b_j$ first.


# %% exercise="9.1"
def johnson(jobs): ...


# %% check="9.1"
@teach.Check("return the numbers of the jobs in order, like [1, 0]")
def _(check):
    order = check.ask(johnson, [(2, 1), (1, 2)])
    assert order is not None, "return the numbers of the jobs in order"
    assert [*order] == [1, 0], "the job that loads in 1 s and trains for 2 goes before the other"
    for n in check.rng.permutation([1, 2, 3, 4, *[5] * 90, 6, 6, 6]).tolist():
        jobs = [(int(a), int(b)) for a, b in check.rng.integers(1, check.rng.choice([4, 12]), (n, 2))]
        order = [int(j) for j in check.ask(johnson, list(jobs))]
        assert sorted(order) == list(range(n)), f"{jobs}: {order} has not each of the jobs 0 to {n - 1} once"
        found, best = end_of(jobs, order), min(end_of(jobs, x) for x in permutations(range(n)))
        assert found == best, f"{jobs}: your order {order} is over after {found} s, the best after {best} s"


# %% [markdown]
# The library knows such shops as step problems; it proves the same, without the rule:

# %%
with tempfile.TemporaryDirectory() as folder:
    shop = Path(folder, "shop.txt")
    shop.write_text("5 2\n" + "\n".join(f"0 {a} 1 {b}" for a, b in JOBS) + "\n")
    result = gangplan.solve(teach.read_jobshop(shop), time_limit=20, method="cpsat", workers=1)
print(result)

# %% [markdown]
# ## Due dates: Jackson and Moore
#
# Now one GPU, and a due date $d_j$ for each job; all are there from the start. A job that ends at $C_j$ is
# $C_j - d_j$ *late*, below 0 if it is early. Jackson (1955): the earliest due date first makes the greatest lateness
# least. Take two neighbours in the wrong order and swap them: the one that now ends last of the two is due later than
# the other, and ends when that did.


# %%
def late(seconds, due, order):
    """Return the greatest lateness of an order."""
    ends = np.cumsum([seconds[j] for j in order])
    return float(max(end - due[j] for end, j in zip(ends, order, strict=True)))


print(late([2, 3], [5, 3], (0, 1)), late([2, 3], [5, 3], (1, 0)))

# %% [markdown]
# **9.2** Write `worst(seconds, due)`: the least that the greatest lateness can be.


# %% exercise="9.2"
def worst(seconds, due): ...


# %% check="9.2"
@teach.Check("return a number of seconds")
def _(check):
    found = check.ask(worst, [2, 3], [9, 9])
    assert found is not None, "return a number"
    assert np.isclose(found, -4), "both are done after 5 s, 4 s before they are due: that is a lateness of -4"
    assert np.isclose(worst([2, 3], [5, 3]), 0), "the second job first: it ends at 3, the other one at 5"

    def least(seconds, due):
        return min(late(seconds, due, order) for order in permutations(range(len(seconds))))

    for n in check.rng.permutation([1, 2, 3, 4, *[5] * 20, 6, 6]).tolist():
        draw = check.rng.uniform(1, 9, n).round(1).tolist(), check.rng.uniform(1, 3 * n, n).round(1).tolist()
        check.against(worst, least, [draw], "the greatest lateness of the best of all orders")


# %% [markdown]
# Users rarely ask how late the latest job is; they ask whether their own was on time. How many jobs can be? Moore
# (1968), in the words of Hodgson: take the jobs by due date. If one would be late, drop the *longest* of those taken
# so far, itself included. Whoever is dropped runs at the end, or never.
#
# **9.3** Write `on_time(seconds, due)`: the numbers of as many jobs as can be on time together.


# %% exercise="9.3"
def on_time(seconds, due): ...


# %% check="9.3"
@teach.Check("return the numbers of jobs, like {0, 2}")
def _(check):
    def fits(seconds, due, jobs):
        order = sorted(jobs, key=lambda j: due[j])
        return not order or late(seconds, due, order) <= 1e-9

    found = check.ask(on_time, [4, 1, 2], [4, 4, 4])
    assert found is not None, "return the numbers of jobs"
    assert {*found} == {1, 2}, "beside job 0 nobody is on time: drop it, the longest, and 1 and 2 are"
    for n in check.rng.permutation([1, 2, 3, *[6] * 12, 7, 7]).tolist():
        seconds, due = check.rng.integers(1, 19, n).tolist(), check.rng.integers(1, 1 + 7 * n, n).tolist()
        found = [int(j) for j in check.ask(on_time, list(seconds), list(due))]
        told = f"seconds {seconds}, due {due}: the jobs {sorted(found)}"
        assert len({*found}) == len(found) and {*found} <= {*range(n)}, f"{told} are not each one of 0 to {n - 1}"
        assert fits(seconds, due, found), f"{told} are not all on time, not even by due date"
        most = max(k for k in range(n + 1) if any(fits(seconds, due, x) for x in combinations(range(n), k)))
        assert len(found) == most, f"{told} are on time, and {most} jobs can be"


# %% [markdown]
# In the library a due date is strict: a job is done by its `deadline`, or it is turned away, which costs its `value`.


# %%
def dated(seconds, due, value):
    """Return jobs of one GPU that are done on time or turned away."""
    rows = enumerate(zip(seconds, due, value, strict=True))
    jobs = (
        gangplan.MoldableJob(f"job{j}", (1,), (float(p),), deadline=float(d), value=float(w)) for j, (p, d, w) in rows
    )
    return gangplan.ScheduleProblem(tuple(jobs), gangplan.Pool(1), "blocked")


print(gangplan.solve(dated([4, 1, 2], [4, 4, 4], [1, 1, 1]), time_limit=10))

# %% [markdown]
# ## Values: a dynamic programme
#
# If jobs are worth $w_j$, to drop the longest is no longer right, and no such rule is known: with one due date for all
# this is the knapsack problem, which is NP-hard. But whole seconds that are not too many allow a *dynamic programme*
# (Lawler and Moore 1969). Take the jobs by due date. Let $V_j(t)$ be the most that the first $j$ of them can be worth
# if those that are on time take $t$ seconds in all. The next job is dropped, or ends at $t$, if that is no later than
# it is due:
#
# $$ V_j(t) = \max \big( V_{j - 1}(t),\ V_{j - 1}(t - p_j) + w_j \ \text{if}\ p_j \le t \le d_j \big) . $$
#
# A table of jobs times seconds, instead of $2^n$ sets: fast if the numbers are small, and only then. That is called
# *pseudo-polynomial*.
#
# **9.4** Write `most(seconds, values, due)`: the most that jobs on time can be worth. Seconds and due dates are whole.
# The check has 30 jobs: too many for $2^{30}$ sets.


# %% exercise="9.4"
def most(seconds, values, due): ...


# %% check="9.4"
@teach.Check("return a number")
def _(check):
    found = check.ask(most, [3, 2], [5, 4], [3, 3])
    assert found is not None, "return what the jobs on time are worth"
    assert found == 5, "only one of the two is done after 3 s: the first is worth 5"
    assert most([3, 2], [5, 4], [3, 5]) == 9, "the first ends at 3, the second at 5: both are on time"

    def by_milp(seconds, values, due):
        """Return the same by an integer programme: what is chosen of the first jobs fits before the last of them."""
        order = np.argsort(due, kind="stable")
        rows = LinearConstraint(np.tril(np.ones((len(due), 1)) * np.array(seconds)[order]), ub=np.array(due)[order])
        worth = -np.array(values, dtype=float)[order]
        return -milp(worth, integrality=np.ones(len(due)), bounds=Bounds(0, 1), constraints=rows).fun

    for n in check.rng.permutation([1, 2, 4, 6, 9, 12, 30]).tolist():
        seconds, values = check.rng.integers(1, 12, (2, n)).tolist()
        due = check.rng.integers(1, 2 + 4 * n, n).tolist()
        check.against(most, by_milp, [(seconds, values, due)], "so much an integer programme finds")


# %% [markdown]
# ## Why gangs are hard
#
# No rule and no such table is known for gangs. To show that none will be found, *reduce* a problem that is known to be
# hard: turn each of its questions into one of gangs with the same answer.
#
# **3-PARTITION**: given $3m$ whole numbers between $B/4$ and $B/2$ that add up to $m B$, can they be parted into $m$
# triples that add up to $B$ each? This is NP-complete even if the numbers are written in unary (Garey and Johnson
# 1975): it stays hard if all numbers are small, and so does what it is reduced to.
#
# **9.5** Write `as_gangs(numbers)`: return `(gpus, gangs, deadline)`, a gang for each number, `(GPUs, seconds)`, such
# that all gangs can be done by the deadline if and only if the numbers can be parted. *Hint*: let each triple fill the
# cluster for one second. Only whole numbers may come out, none of them large. Do not find out whether the numbers can
# be parted: the gang of a number may depend on it, $m$ and $B$ alone, the cluster and the deadline on $m$ and $B$.


# %% exercise="9.5"
def as_gangs(numbers): ...


# %% check="9.5"
@teach.Check("return (gpus, gangs, deadline), each gang as (GPUs, seconds), in whole numbers")
def _(check):
    def parts(numbers, total):
        """Return whether the numbers can be parted into triples of a total."""
        if not numbers:
            return True
        first, *rest = numbers
        pairs = (x for x in combinations(range(len(rest)), 2) if first + rest[x[0]] + rest[x[1]] == total)
        return any(parts([y for k, y in enumerate(rest) if k not in x], total) for x in pairs)

    def in_time(gpus, gangs, deadline):
        """Return whether gangs can be done by a deadline, as CP-SAT says."""
        model = cp_model.CpModel()
        starts = [model.new_int_var(0, deadline - p, "") for _, p in gangs]
        spans = [model.new_fixed_size_interval_var(s, p, "") for s, (_, p) in zip(starts, gangs, strict=True)]
        model.add_cumulative(spans, [size for size, _ in gangs], gpus)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers, solver.parameters.max_time_in_seconds = 1, 20
        answer = solver.solve(model)
        assert answer != cp_model.UNKNOWN, "nobody knows after 20 s whether your gangs are done in time: ask for less"
        return answer != cp_model.INFEASIBLE

    assert check.ask(as_gangs, [5, 5, 5]) is not None, "return (gpus, gangs, deadline)"
    wanted = dict.fromkeys(product((2, 3), (True, False)), 3)
    totals, rooms, as_given, by_size = {m: int(check.rng.integers(30, 60)) for m in (2, 3)}, {}, {}, {}
    while any(wanted.values()):
        m = int(check.rng.integers(2, 4))
        total = totals[m]
        numbers = check.rng.integers(total // 4 + 1, (total - 1) // 2 + 1, 3 * m).tolist()
        if check.rng.random() < 0.5:  # make triples: what is missing is the third
            numbers = [
                x for k in range(m) for x in (*numbers[2 * k : 2 * k + 2], total - sum(numbers[2 * k : 2 * k + 2]))
            ]
        numbers[-1] = m * total - sum(numbers[:-1])
        small = all(total < 4 * x and 2 * x < total for x in numbers)
        if not small or not wanted[m, right := parts(numbers, total)]:
            continue
        wanted[m, right] -= 1
        given = check.rng.permutation(numbers).tolist()
        gpus, gangs, deadline = check.ask(as_gangs, list(given))
        gangs, told = [tuple(gang) for gang in gangs], f"numbers {given}, {m} triples of {total} each"
        sizes = [gpus, deadline, *(x for gang in gangs for x in gang)]
        whole = all(isinstance(x, (int, np.integer)) and 0 < x <= 20 * m * total for x in sizes)
        assert whole, f"{told}: whole numbers above 0 and not large, not {gpus}, {gangs}, {deadline}"
        assert len(gangs) == 3 * m and all(len(gang) == 2 for gang in gangs), (
            f"{told}: a gang for each, (GPUs, seconds)"
        )
        same = rooms.setdefault(m, (gpus, deadline)) == (gpus, deadline)
        for gang_of, pairs in ((as_given, (given, gangs)), (by_size, (sorted(given), sorted(gangs)))):
            gang_of[None] = gang_of.get(None, True) and all(
                gang_of.setdefault((m, x), gang) == gang for x, gang in zip(*pairs, strict=True)
            )
        assert same and (as_given[None] or by_size[None]), (
            f"{told}: {gpus} GPUs, {gangs}, {deadline} s are not what other numbers of this m and B came to: a gang "
            "may depend on its number, m and B alone, and GPUs and deadline on m and B"
        )
        fit = all(size <= gpus and p <= deadline for size, p in gangs)
        done = fit and in_time(int(gpus), [(int(size), int(p)) for size, p in gangs], int(deadline))
        words = f"gangs {gangs} on {gpus} GPUs {'can' if done else 'cannot'} be done by {deadline}"
        assert done == right, f"{told}, which {'can' if right else 'cannot'} be parted: {words}"


# %% [markdown]
# Whoever schedules gangs fast and optimally therefore decides 3-PARTITION fast, and with it all problems in NP. That is
# why `solve` searches, and why its certificates may be long. It says nothing against solving *your* instance: most are
# not made of triples.
#
# ## Not knowing what comes
#
# An *online* rule places each job as it comes and never moves it. It is $c$-*competitive* if it takes at most $c$ times
# what would be best with hindsight. Notebook 2 proved that a list scheduler is $(2 - 1/m)$-competitive on $m$ GPUs.
# Not better: for any $m$ there are jobs on which it takes exactly that.


# %%
def greedy(loads, seconds):
    """Return the GPU that is free first: the list scheduler."""
    return int(np.argmin(loads))


def placed_by(rule, seconds, gpus):
    """Return how long each GPU is busy if a rule places the jobs as they come."""
    loads = np.zeros(gpus)
    for p in seconds:
        loads[rule(loads, p)] += p
    return loads


print(placed_by(greedy, [1, 1, 1, 1, 1, 1, 3], 3))

# %% [markdown]
# **9.6** Write `bad(gpus)`: return the seconds of jobs in the order in which they come, and of each the GPU where it
# is in a good plan, such that the list scheduler takes $2 - 1/m$ times as long as that plan. *Hint*: many jobs of one
# second, then one that is as long as the good plan.


# %% exercise="9.6"
def bad(gpus): ...


# %% check="9.6"
@teach.Check("return two lists: seconds, and GPUs from 0 on")
def _(check):
    assert check.ask(bad, 2) is not None, "return seconds, and GPUs of a good plan"
    for gpus in check.rng.permutation(range(2, 9)).tolist():
        seconds, place = (list(x) for x in check.ask(bad, gpus))
        told = f"{gpus} GPUs, jobs of {seconds} s"
        assert 0 < len(seconds) == len(place) <= 1000, f"{told}: a GPU for each of at most 1000 jobs"
        seconds = [check.number(p, "the seconds of a job") for p in seconds]
        assert min(seconds) > 0 and {*place} <= {*range(gpus)}, f"{told}: seconds above 0, GPUs 0 to {gpus - 1}"
        good = np.bincount([int(x) for x in place], seconds, gpus).max()
        found, asked = placed_by(greedy, seconds, gpus).max() / good, 2 - 1 / gpus
        assert found > asked - 1e-9, f"{told}: the list takes {found:.4f} times your plan, and {asked:.4f} is possible"


# %% [markdown]
# Is there a cleverer rule? On two GPUs there is none: every rule, whatever it computes, can be made to take $3/2$ of
# the optimum, by an *adversary* who sees what it does and goes on accordingly. Two jobs of a second come first. Either
# they share a GPU, or they do not.
#
# **9.7** Write `adversary(placed)`: `placed` has the jobs so far, `(seconds, GPU)`, the GPU being 0 or 1 as the rule
# chose. Return the seconds of the next job, or `None` to stop. Against every rule the end must be at least $3/2$ of the
# optimum, after ten jobs at most.


# %% exercise="9.7"
def adversary(placed): ...


# %% check="9.7"
@teach.Check("return seconds, or None")
def _(check):
    lot, share, long = check.rng, float(check.rng.uniform(0.1, 0.9)), float(check.rng.uniform(0.5, 3))
    rules = {
        "free first": greedy,
        "always GPU 1": lambda loads, p: 1,
        "in turn": lambda loads, p: int(loads[0] > loads[1] or loads.sum() == 0),
        "by lot": lambda loads, p: int(lot.integers(2)),
        "long ones to GPU 1": lambda loads, p: int(p > long),
        "GPU 0 has its share": lambda loads, p: int(loads[0] + p > share * (loads.sum() + p)),
        "the busier one": lambda loads, p: int(np.argmax(loads)),
        "GPU 1 if that is no later": lambda loads, p: int(loads[1] + p <= max(loads[0] + p, loads[1])),
    }
    for name, rule in list(rules.items()) + [("by lot", rules["by lot"])] * 20:
        loads, placed = np.zeros(2), []
        while (seconds := check.ask(adversary, list(placed))) is not None:
            seconds = check.number(seconds, f"against {name}: the seconds of a job")
            assert seconds > 0 and len(placed) < 10, f"against {name}: at most ten jobs of positive seconds"
            gpu = rule(loads, seconds)
            loads[gpu] += seconds
            placed.append((seconds, gpu))
        assert placed, f"against {name}: no job comes at all"
        times = [p for p, _ in placed]
        best = min(max(sum(p * s for p, s in zip(times, side, strict=True)) for side in (x, [1 - y for y in x]))
                   for x in product((0, 1), repeat=len(times)))  # fmt: skip
        told = f"against {name}: (seconds, GPU) {placed} end at {loads.max():g}, and {best:g} was possible"
        assert loads.max() >= 1.5 * best - 1e-9, f"{told}: a ratio of {loads.max() / best:.3f}"


# %% [markdown]
# So on two GPUs the list scheduler is the best online rule there is: it is $3/2$-competitive, and nobody is better. A
# bound on *all* algorithms comes from an adversary, as a bound on all plans comes from prices.
#
# ## What to take home
#
# 1. An exchange of neighbours proves a rule, if there is one: Johnson, Jackson, Smith (notebook 2).
# 2. A dynamic programme replaces sets by sums. It is fast while the sums are small.
# 3. A reduction shows what cannot be hoped for. It is about the worst instance.
# 4. Competitive ratios say what it costs not to know. They too are about the worst that may come.
