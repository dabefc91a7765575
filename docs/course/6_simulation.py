# %% [markdown]
# # 6. Simulation and queueing, and honest baselines
#
# A simulator says how long jobs would take under a policy, before a real cluster is asked. That is worth something
# only if the simulator is right, the comparison is fair and the noise is known.
# You check this library's simulator against queueing theory, see what backfilling does for gangs, and learn four ways
# in which a comparison of schedulers goes wrong.
#
# **Time**: 50 minutes. **Before**: notebook 2. **Needs** the library and NumPy.

# %%
from types import SimpleNamespace

import numpy as np
from scipy.stats import ttest_rel

from gangplan import teach
from gangplan.instances.generators.jobs import arrivals
from gangplan.instances.workload import Workload
from gangplan.simulator.metrics import compare, interval, summary
from gangplan.simulator.trace import simulate

# %% [markdown]
# A *workload* is a list of jobs: when each is submitted, how many GPUs it asks for, how long it runs. `simulate` runs
# it under a policy, and checks the schedule that comes out: nobody starts early, no GPU is given out twice.
#
# ## Is the simulator right?
#
# Take jobs of one GPU that arrive at random (a Poisson process: the times between arrivals are exponential and
# independent) and have exponential durations, on $c$ GPUs, first come first served. That is the queue M/M/c, and
# Erlang knew its mean wait in 1917.
# With $\rho$ the load (busy share of the GPUs), $a = c \rho$ and $s$ the mean duration:
#
# $$ P(\text{wait}) = \frac{\frac{a^c}{c! (1 - \rho)}}{\sum_{k < c} \frac{a^k}{k!} + \frac{a^c}{c! (1 - \rho)}},
# \qquad W = \frac{s}{c (1 - \rho)} P(\text{wait}) . $$
#
# What follows ± is here and below half the width of a 95% interval over the seeds.


# %%
def queue(servers, load, seed, jobs=10_000, **more):
    """Simulate jobs of one GPU and 100 s on average."""
    return simulate(arrivals(jobs, load * servers / 100.0, seed, mean=100.0, **more), nodes=1, gpus=servers)


def waits(servers, load, seeds=20, **more):
    """Return the mean wait of each seed, s."""
    return np.array([summary(queue(servers, load, seed, **more)).mean_wait for seed in range(seeds)])


simulated = {servers: interval(waits(servers, 0.8)) for servers in (1, 4, 16)}
for servers, (mean, margin) in simulated.items():
    print(f"{servers:>2} GPUs, load 80%: mean wait {mean:.1f} ± {margin:.1f} s")

# %% [markdown]
# **6.1** Write the mean wait.
# *Hint*: for one GPU it is $s \rho / (1 - \rho)$. Check that first. `math.factorial` is there.


# %% exercise="6.1"
def erlang_wait(servers, load, seconds):
    # your code
    ...


# %% check="6.1"
@teach.Check("return the mean wait in seconds")
def _(check):
    found = check.ask(erlang_wait, 1, 0.5, 100.0)
    assert found is not None, "return the mean wait in seconds"
    assert abs(found - 100) < 1e-9, "one GPU, half busy: the mean wait is the mean duration"
    assert abs(erlang_wait(2, 0.5, 100.0) - 100 / 3) < 1e-9, "two GPUs at half load: a third of the mean duration"

    def balanced(servers, load, seconds):
        """Return the mean wait from the chain of states: so many jobs there, one more or one less at a time."""
        jobs = np.arange(3000)
        odds = np.cumprod(np.where(jobs > 0, servers * load / np.clip(jobs, 1, servers), 1.0))
        queue = (odds * np.maximum(jobs - servers, 0)).sum() / odds.sum()
        return float(queue * seconds / (servers * load))  # Little: jobs that wait, over jobs that arrive in a second

    draws = [
        (int(n), float(check.rng.uniform(0.2, 0.95)), float(check.rng.uniform(1, 500))) for n in (1, 2, 3, 5, 9, 20)
    ]
    check.against(erlang_wait, balanced, draws, "so it is in equilibrium", close=1e-5)
    for servers, (mean, margin) in simulated.items():
        theory = erlang_wait(servers, 0.8, 100.0)
        told = f"{servers} GPUs: theory {theory:.1f} s, simulated {mean:.1f} ± {margin:.1f}"
        assert abs(mean - theory) < 2 * margin, told


# %%
varied = {  # for 6.2, durations of three kinds: v, and the mean wait that is simulated
    name: (variation, interval(waits(1, 0.7, duration=name, spread=1.0)))
    for name, variation in (("fixed", 0.0), ("exponential", 1.0), ("lognormal", np.e - 1))
}

# %% [markdown]
# The same load, and the mean wait falls with the number of GPUs. Two clusters of the same load are not equally hard.
#
# Each run begins with an empty cluster, so its first jobs wait less than they would later. That bias shrinks with the
# length of the run. It is one reason why two studies differ.
#
# ## Durations that vary
#
# Training jobs are not exponential: most are short, some run for days. For one GPU and *any* distribution of
# durations Pollaczek and Khinchine have the mean wait. With $v$ the variance of the durations over their mean
# squared,
#
# $$ W = \frac{\rho}{1 - \rho} \cdot \frac{1 + v}{2} \cdot s . $$
#
# **6.2** Write it. Then say in `worse` how many times as long the mean wait is with log-normal durations of spread
# $\sigma = 1.5$ as with equal ones, at the same load.
# *Hint*: for log-normal durations $v = e^{\sigma^2} - 1$.


# %% exercise="6.2"
def general_wait(load, seconds, variation):
    # your code
    ...


worse = None


# %% check="6.2"
@teach.Check("return the mean wait in seconds, and put a number in `worse`")
def _(check):
    found = check.ask(general_wait, 0.5, 100.0, 1.0)
    assert found is not None, "return the mean wait in seconds"
    assert abs(found - 100) < 1e-9, "exponential durations have v = 1: the formula of M/M/1 comes out"
    for _ in range(12):  # two durations: half the mean square over the mean is left of the job that runs
        load, share = check.rng.uniform(0.1, 0.9), 1 - 10 ** -check.rng.uniform(0.1, 3)
        both = np.array([1.0, float(check.rng.uniform(2, 200))])
        mean, square = ((both**k * [share, 1 - share]).sum() for k in (1, 2))
        told = general_wait, lambda *_, x=load / (1 - load) * square / (2 * mean): x
        check.against(*told, [(float(load), float(mean), float(square / mean**2 - 1))], "so with two durations")
    for name, (variation, (mean, margin)) in varied.items():
        theory = general_wait(0.7, 100.0, variation)
        print(f"{name:<12} theory {theory:.0f} s, simulated {mean:.0f} ± {margin:.0f}")
        told = f"{name}: theory says {theory:.1f} s, the simulator {mean:.1f} ± {margin:.1f}"
        assert abs(mean - theory) < 2 * margin, told
    assert worse is not None, "put a number in `worse`"
    told = "the load and the mean cancel: what is left is (1 + v) / (1 + 0)"
    assert abs(check.number(worse, "`worse`") - np.exp(1.5**2)) < 0.1, told


# %% [markdown]
# The simulator agrees with theory where theory has an answer. That is how far trust goes: for gangs on nodes there is
# no formula, and the check of each schedule has to do.
#
# ## Load
#
# The wait grows like $1 / (1 - \rho)$. A policy looks useless at low load, since nobody waits, and miraculous near
# 100%. Always say at which load a figure was measured.

# %%
loads = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
curve = [interval(waits(4, load, seeds=10)) for load in loads]
for load, (mean, margin) in zip(loads, curve, strict=True):
    print(f"load {load:.0%}: mean wait {mean:7.1f} ± {margin:.1f} s")

# %%
from gangplan.plot.scene import Axis, Dots, Lines, Panel, Scene

at = np.array([(load, mean) for load, (mean, _) in zip(loads, curve, strict=True)])
bars = [[(x, mean - margin), (x, mean + margin)] for x, (mean, margin) in zip(loads, curve, strict=True)]
axes = Axis(0.25, 1.0, "load"), Axis(0, 1.05 * max(high for _, (_, high) in bars), "mean wait, s", grid=True)
panel = Panel("waits", *axes, [Lines([at], "#0072b2"), Lines(bars, "#0072b2"), Dots(at, "#0072b2")])
Scene("M/M/4", "mean wait and 95% interval of 10 seeds", [[panel]])

# %% [markdown]
# ## Gangs
#
# A job of several GPUs starts only if all are free at once: a *gang*. Now the first of the queue may not fit while
# others do. Three disciplines:
#
# - `head`: while the first does not fit, nobody starts;
# - `overtake`: whoever fits starts, in the order of the queue;
# - `easy`: whoever fits starts, unless that would delay the first one (backfilling with one reservation, as EASY has
#   it).
#
# **6.3** Four GPUs, first come first served. Work out by hand when each job starts, in the order a, b, c, d.
#
# | job | submitted at | GPUs | seconds |
# |---|---|---|---|
# | a | 0 | 3 | 10 |
# | b | 1 | 4 | 5 |
# | c | 2 | 1 | 5 |
# | d | 3 | 1 | 20 |
#
# *Hint*: draw four rows, one a GPU. With `easy`, b has a reservation at 10; which of c and d is done by then?

# %% exercise="6.3"
starts = {"head": None, "overtake": None, "easy": None}


# %% check="6.3"
@teach.Check("four numbers for each discipline, one for each of a, b, c, d")
def _(check):
    four = Workload(("a", "b", "c", "d"), [0.0, 1.0, 2.0, 3.0], [3, 4, 1, 1], [10.0, 5.0, 5.0, 20.0])
    assert isinstance(starts, dict), "a dict with four numbers for each discipline"
    for discipline in ("head", "overtake", "easy"):
        told = starts.get(discipline)
        assert told is not None and len(told) == 4, f"four numbers for {discipline}, one for each of a, b, c, d"
        true = simulate(four, nodes=1, gpus=4, discipline=discipline).start.tolist()
        wrong = [job for job, x, y in zip("abcd", told, true, strict=True) if x != y]
        assert not wrong, f"{discipline}: look again at {', '.join(wrong)}; who holds how many GPUs when they start?"


# %% [markdown]
# `overtake` keeps the GPUs busy, and lets small jobs pass b again and again. `easy` fills the hole in front of b, and
# b still starts at 10. For that it has to know how long c and d run. Keep this in mind.
#
# Who is first in the queue is another choice: the first that came (`fifo`), the shortest job (`sjf`), that of the
# fewest GPUs (`smallest`), or of the least seconds times GPUs (`least_work`).
# On a cluster of 4 nodes of 8 GPUs, with log-normal durations (most jobs are short, a few very long), at a load of
# 80%:

# %%
SIZES, MEAN_GPUS = "1:6,2:2,4:1,8:1", 2.2
TEST = range(20)


def workload(seed, load=0.8, jobs=800):
    """Return jobs that ask for so much of 32 GPUs."""
    rate = load * 32 / MEAN_GPUS / 3600.0
    return arrivals(jobs, rate, seed, gpus=SIZES, duration="lognormal", mean=3600.0, spread=1.5)


def run(jobs, policy="fifo", discipline="overtake", order=None):
    """Return the schedule of jobs under a policy, each within a node."""
    return simulate(jobs, 4, 8, policy=policy, discipline=discipline, consolidate=True, order=order)


found = {
    f"{policy} {discipline}": [summary(run(workload(seed), policy, discipline)) for seed in TEST]
    for policy, discipline in (
        ("fifo", "head"), ("fifo", "overtake"), ("fifo", "easy"), ("sjf", "head"), ("sjf", "overtake"), ("sjf", "easy"),
        ("smallest", "overtake"), ("least_work", "overtake"),
    )
}  # fmt: skip
for row in compare(found, ["mean_jct"]):
    apart = (
        "" if row.difference is None else f"; {row.difference:+7.0f} ± {row.difference_margin:.0f} against the first"
    )
    print(f"{row.policy:<20} mean JCT {row.mean:6.0f} ± {row.margin:.0f} s{apart}")

# %% [markdown]
# JCT is the job completion time, from submission to the end. Look at the first two rows. A paper that compares its
# scheduler with `fifo head` has won before it begins: the discipline alone makes most of the difference.
# Even its size means little. The GPUs that `fifo head` leaves empty before a gang are more than the fifth that this
# load leaves over, so its queue grows as long as jobs arrive, and its mean says how long the run was: with 1,600 jobs
# it is about twice that of 800, while the other two of `fifo` stay where they are. Try `jobs=1600` in `workload`.
#
# ## One seed lies

# %%
jct = {name: np.array([x.mean_jct for x in runs]) for name, runs in found.items()}

# %% [markdown]
# **6.4** `a` and `b` are the mean JCTs of two policies, seed by seed. Return three things: the mean of the difference
# `a - b`, half the width of its 95% interval, and the list of seeds whose difference has the other sign than the
# mean.
# The interval is by Student's t: $t \cdot s / \sqrt{n}$, $s$ being the standard deviation with $n - 1$ in the
# denominator.
# *Hint*: `scipy.stats.t.ppf(0.975, n - 1)`.


# %% exercise="6.4"
def paired(a, b):
    # your code
    ...


# %% check="6.4"
@teach.Check("return a mean, half the width, and a list of seeds")
def _(check):
    answer = check.ask(paired, np.array([1.0, 2.0, 6.0]), np.array([2.0, 1.0, 1.0]))
    assert answer is not None and len(answer) == 3, "return a mean, half the width, and a list of seeds"
    assert abs(answer[0] - 5 / 3) < 1e-9, "the mean of a - b is (-1 + 1 + 5) / 3"
    half = interval(np.array([-1.0, 1.0, 5.0]))[1]
    assert abs(answer[1] - half) < 1e-6, "t for n - 1 degrees of freedom, s with n - 1"
    assert list(answer[2]) == [0], "only seed 0 says that b is worse than a: the list is [0]"
    answer = paired(np.array([1.0, 1.0, 1.0, 5.0, 1.0]), np.array([3.0, 2.0, 0.0, 9.0, 0.5]))
    assert list(answer[2]) == [2, 4], "the mean is below 0 here: seeds 2 and 4, above 0, say the opposite"

    def by_scipy(a, b):
        low, high = ttest_rel(a, b).confidence_interval(0.95)
        middle = (low + high) / 2
        return middle, (high - low) / 2, np.flatnonzero(np.sign(a - b) == -np.sign(middle)).tolist()

    for n in check.rng.integers(3, 30, 12).tolist():
        both = check.rng.lognormal(1, 0.5, (2, n)) + check.rng.uniform(-0.5, 0.5, (2, 1))
        check.against(paired, by_scipy, [(both[0], both[1])], "mean, half the width, and seeds, says scipy.stats")
    for a, b in (
        ("sjf overtake", "least_work overtake"),
        ("fifo easy", "fifo overtake"),
        ("fifo overtake", "fifo head"),
    ):
        mean, margin, liars = paired(jct[a], jct[b])
        print(f"{a} less {b}: {mean:+.0f} ± {margin:.0f} s; seeds that say the opposite: {sorted(map(int, liars))}")


# %% [markdown]
# Whoever ran one seed may have run one of these. Whoever tried seeds until the result looked right has run one of
# these for certain.
#
# Pairing matters too. Every policy sees the same jobs in the same seed, so that hard seeds are hard for all:

# %%
a, b = jct["sjf overtake"], jct["fifo overtake"]
print(f"apart: {interval(a)[0]:.0f} ± {interval(a)[1]:.0f} and {interval(b)[0]:.0f} ± {interval(b)[1]:.0f} s")
print("paired: {:+.0f} ± {:.0f} s".format(*interval(a - b)))

# %% [markdown]
# ## A tuned simple rule is the rival
#
# Order jobs by seconds times GPUs to the power $x$. With $x = 0$ that is SJF, with $x = 1$ least work first. One
# number: easy to tune. A new scheduler with a hundred tuned numbers has to be compared with a rule that was tuned as
# well.
#
# The seeds for tuning are not those of the test. Who tunes on the test seeds reports luck.


# %%
def cost(x, seed):
    """Return the mean JCT of the order seconds times GPUs to the power x."""
    jobs = workload(seed)
    return summary(run(jobs, order=jobs.duration * jobs.gpus.astype(float) ** x)).mean_jct


# %% [markdown]
# **6.5** `cost(x, seed)` is the mean JCT of the rule on one seed. Return the best `x` of `choices`, by the mean over
# the seeds `tuning`. Ask for no other seed.
# *Hint*: `min(choices, key=...)`.


# %% exercise="6.5"
def tune(cost, choices, tuning):
    # your code
    ...


# %% check="6.5"
@teach.Check("return one of the choices")
def _(check):
    costs, asked = {0.0: (0, 3, 3), 0.5: (1, 0, 4), 1.0: (3, 3, 1)}, set()  # of each choice, on seeds 100, 101 and 102

    def recorded(x, seed):
        asked.add(seed)
        return costs[x][seed - 100] if seed in (100, 101, 102) else 0

    best = check.ask(tune, recorded, (0.0, 0.5, 1.0), (100, 101, 102))
    assert best is not None, "return one of the choices"
    others = list(asked - {100, 101, 102})[:5]
    told = "which are not of `tuning`; whoever tunes on the test seeds reports luck"
    assert not others, f"you asked for {others}, {told}"
    assert asked == {100, 101, 102}, f"of the three seeds of `tuning` only {sorted(asked)} were asked"
    assert best in costs, f"return one of the choices, not its place or its cost: {best}"
    assert best == 0.5, f"the mean cost of 0.5 over the seeds is least, not that of {best}: {costs}"
    for _ in range(12):
        choices = tuple(sorted(check.rng.uniform(0, 2, int(check.rng.integers(2, 7))).round(3).tolist()))
        seeds = range(int(check.rng.integers(30, 90)), 97)
        table = {x: check.rng.lognormal(0, 1, len(seeds)).tolist() for x in choices}

        def shown(x, seed, table=table, seeds=seeds):
            assert seed in seeds, f"you asked for seed {seed}, {told}"
            return table[x][seeds.index(seed)]

        best = check.ask(tune, shown, choices, seeds)
        right = min(choices, key=lambda x: sum(table[x]))
        assert best == right, f"of other costs {right} has the least mean, not {best}"
    best = tune(cost, (0.0, 0.25, 0.5, 0.75, 1.0), range(100, 110))
    mean, margin = interval(np.array([cost(best, seed) for seed in TEST]) - jct["sjf overtake"])
    print(f"x = {best}, on test seeds: {mean:+.0f} ± {margin:.0f} s against SJF")


# %% [markdown]
# On these workloads the tuned rule is not told apart from SJF: what was best on ten seeds need not gain anything on
# others. You know only because the seeds of the test are others.
#
# This library holds its own `Scheduler` to such rivals, tuned on another part of each trace. If it may stop jobs and
# go on with them later, its mean JCT is 3 to 10% below the best of them. If not, it is level with them, and [the page
# says so](../durations.md#on-traces).
#
# ## Hidden durations
#
# SJF needs to know how long jobs run. Few clusters do: a user's limit is far too long, or there is none. A policy
# that uses what nobody knows is *clairvoyant*. That is fine for a bound, and no fair rival for a policy that does not
# peek.
#
# It is not always plain who peeks. Here is a test: what a policy decided up to some moment must not change if the
# jobs that are not done by then turn out to run longer.

# %%
crowded = [workload(seed, load=3.0, jobs=150) for seed in range(8)]
suspects = [(policy, discipline) for policy in ("fifo", "smallest", "sjf") for discipline in ("overtake", "easy")]

# %% [markdown]
# **6.6** Return whether a policy peeks. `go(jobs)` returns its schedule, with `start` and `finish` of each job. Run
# it once; make every job that is not done by `moment` longer, each by its own random factor; run it again; compare
# the starts up to `moment`.
# *Hint*: `dataclasses.replace(jobs, duration=...)`, and `np.random.default_rng(0).uniform(1, 10, jobs.n_jobs)`. Why
# not the same factor for all?


# %% exercise="6.6"
def peeks(go, jobs, moment):
    # your code
    ...


# %% check="6.6"
@teach.Check("return True or False")
def _(check):
    def one_by_one(key):
        """Return what runs jobs on one GPU: of those there, always the one of the least key."""

        def go(jobs):
            start, wait, now = np.zeros(jobs.n_jobs), set(range(jobs.n_jobs)), 0.0
            while wait:
                now = max(now, min(jobs.submit[j] for j in wait))
                first = min((j for j in wait if jobs.submit[j] <= now), key=lambda j: (key(jobs, j), j))
                start[first] = now
                now += jobs.duration[first]
                wait.remove(first)
            return SimpleNamespace(start=start, finish=start + jobs.duration)

        return go

    assert check.ask(peeks, run, crowded[0], 3600.0) is not None, "return True or False"
    caught, some = {}, [workload(int(seed), load=3.0, jobs=40) for seed in check.rng.integers(1000, 10**6, 4)]
    luck = check.rng.random(40)
    for name, key, right in (
        ("first come", lambda jobs, j: jobs.submit[j], False), ("by lot", lambda jobs, j: luck[j], False),
        ("shortest", lambda jobs, j: jobs.duration[j], True), ("longest", lambda jobs, j: -jobs.duration[j], True),
    ):  # fmt: skip
        go, q = one_by_one(key), check.rng.uniform(0.3, 0.7)
        found = [bool(check.ask(peeks, go, jobs, float(np.quantile(go(jobs).start, q)))) for jobs in some]
        told = "it peeks: jobs that are not done, running ones too, need a factor each" if right else "it does not peek"
        assert any(found) == right, f"jobs one by one, {name} first: {told}"
    for suspect in suspects:
        moments = (float(np.median(jobs.submit)) for jobs in crowded)
        caught[suspect] = any(
            peeks(lambda x, s=suspect: run(x, *s), y, t) for y, t in zip(crowded, moments, strict=True)
        )
        print(*suspect, "peeks" if caught[suspect] else "does not peek")
    told = "FIFO asks for nothing: do you compare starts after the moment, or make jobs longer that are done by then?"
    assert not caught["fifo", "overtake"], told
    assert not caught["smallest", "overtake"], "the number of GPUs is known: only durations may change"
    told = "each job that is not done needs a factor of its own, running ones too; with one for all the order stays"
    assert caught["sjf", "overtake"], f"SJF peeks: {told}"
    assert caught["fifo", "easy"], (
        "EASY peeks: whether a job is done before a reservation is a question of its duration"
    )


# %% [markdown]
# (`smallest easy` goes unnoticed: where the smallest job does not fit, nobody does, and there is nothing to fill.)
# The order of `fifo easy` asks for nothing, and its backfilling asks for everything. In a real cluster EASY believes
# users' limits.
#
# What do wrong durations cost? Let the order be by limits: durations times a random factor, whose logarithm has a
# deviation of so much.

# %%
print(f"{'FIFO, which asks for nothing':<34}{interval(jct['fifo overtake'])[0]:6.0f} s")
for deviation in (0.0, 0.5, 1.0, 2.0, 4.0):
    values = []
    for seed in TEST:
        jobs, rng = workload(seed), np.random.default_rng(seed)
        limits = jobs.duration * rng.lognormal(1.0, deviation, jobs.n_jobs)
        values.append(summary(run(jobs, order=limits)).mean_jct)
    mean, margin = interval(np.array(values) - jct["fifo overtake"])
    print(f"SJF by limits, deviation {deviation:<9}{np.mean(values):6.0f} s, {mean:+.0f} ± {margin:.0f} against that")

# %% [markdown]
# That all limits are too long by the same factor costs nothing, since the order stays. What hurts is that they
# differ. In the last row the limits are hardly more than noise, and SJF is no better than first come, first served.
# Whoever is told true durations in a simulator never sees that row.
# `gangplan simulate --estimates limits` plays this for a trace of your own, backfilling included.
#
# ## Five questions to a comparison of schedulers
#
# 1. Was the simulator checked against something that it did not come from?
# 2. At which load, on how many GPUs, and with which durations? Does the queue of each policy settle?
# 3. How many seeds, and is 0 outside the interval of the paired difference?
# 4. Was the simple rule tuned as well, on other seeds than the test's, and may it backfill?
# 5. What does each policy know, and would it be known?
