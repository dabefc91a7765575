"""What all methods for schedules share: options of jobs as arrays, costs in one form, times from the first release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.instances.cluster import RampTopology
from gangplan.instances.schedule import (
    Capacity,
    NodePool,
    Pool,
    SchedulePlan,
    ScheduleProblem,
    holds,
    ramp_blocks,
    total,
)
from gangplan.instances.verify.schedule import clock_cost, first_release, is_late
from gangplan.instances.verify.verdict import TOLERANCE, time_slack

from ..run import Run

Ints = NDArray[Any]
"""Whole numbers of any width."""
POOL, NODES, RAMP = 0, 1, 2
LEFT_OUT, EARLIEST, CHEAPEST = -1, -2, -3
"""Instead of an option: the job does not run; it takes whichever ends first, or costs least."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedJobs:
    """A schedule problem of n jobs with o options in all, as seen from its first release.

    The goal is `constant` plus, for jobs that run, the sum of slope times completion (or the last completion of all, if
    `makespan`), plus the prices of those left out; `clock_cost` of the problem comes on top, see `relative`.

    Attributes:
        kind: of the capacity, `POOL`, `NODES` or `RAMP`.
        nodes, per: nodes and GPUs of each; a pool is one node; a RAMP server is a node of one GPU.
        size: of each block of RAMP, ascending, int64 (b,).
        block_first, server: where its servers begin in `server`, int64 (b + 1,).
        first: int64 (n + 1,), where the options of each job begin; larger degrees later. An option that does not fit,
            is late on an idle cluster, or is no faster than a smaller one is not here.
        gpus, menu: int64 (o,), degree of an option and its place on the job's menu.
        seconds, owner: its duration, float64 (o,), and its job, int64 (o,).
        due: float64 (o,), when it is over at the latest, as late as the verifier lets it be; inf without a deadline.
        release, deadline, slope, price: float64 (n,); the deadline is that of the option with the latest; a job that
            must run has the price inf. Times are seconds from `zero` on.
        zero: seconds on the clock of the problem at which those here begin.
        tick: seconds that a time on that clock may be off by: what the verifier lets pass, and one more last place.
    """

    problem: ScheduleProblem
    kind: int
    nodes: int
    per: int
    size: Ints
    block_first: Ints
    server: Ints
    first: Ints
    gpus: Ints
    menu: Ints
    seconds: FloatArray
    owner: Ints
    due: FloatArray
    release: FloatArray
    deadline: FloatArray
    slope: FloatArray
    price: FloatArray
    constant: float
    makespan: bool
    zero: float = 0.0
    tick: float = 0.0

    @property
    def n(self) -> int:
        """How many jobs there are."""
        return len(self.release)

    @property
    def total(self) -> int:
        """GPUs in all."""
        return self.nodes * self.per

    def options(self, j: int) -> range:
        """Return the options of job j."""
        return range(int(self.first[j]), int(self.first[j + 1]))

    def least(self, values: FloatArray, none: float = 0.0) -> FloatArray:
        """Return the least of `values`, one an option, of each job, float64 (n,); `none` of a job without options."""
        found, some = np.full(self.n, none), np.diff(self.first) > 0
        if some.any():
            found[some] = np.minimum.reduceat(values, self.first[:-1][some])
        return found

    def first_least(self, values: FloatArray, none: int) -> Ints:
        """Return the option of each job with the least of `values`, the first of equals, int64 (n,); `none` if none."""
        found, some = np.full(self.n, none), np.diff(self.first) > 0
        if some.any():
            order = np.lexsort((values, self.owner))
            found[some] = order[self.first[:-1][some]]
        return found

    @property
    def horizon(self) -> float:
        """When all jobs have run one after the other, at their slowest."""
        return float(self.release.max()) - float(self.least(-self.seconds).sum())

    def plan(self, option: Ints, start: FloatArray, rows: Ints) -> SchedulePlan:
        """Return the plan, with starts on the clock of the problem; `rows` are (job, node, GPUs), (3, r)."""
        runs = option >= 0
        degree = np.full(self.n, -1)
        degree[runs] = self.menu[option[runs]]
        names = tuple(job.name for job in self.problem.jobs)
        return SchedulePlan(names, degree, np.where(runs, start + self.zero, 0.0), *np.asarray(rows, dtype=np.int32))

    def cost(self, plan: SchedulePlan) -> float:
        """Return what a plan from `zero` on costs, to more places than the difference of two large sums has."""
        runs = plan.degree >= 0
        chosen = zip(self.problem.jobs, plan.degree.tolist(), strict=True)
        finish = (plan.start + [job.durations[d] if d >= 0 else 0.0 for job, d in chosen])[runs]
        last = finish.max(initial=0.0) if self.makespan else self.slope[runs] @ finish
        return float(self.price[~runs].sum()) + float(last)

    def slack(self, value: float) -> float:
        """Return how much less than `value`, a bound on schedules on time, a plan that the verifier accepts may cost.

        It lets a run of p seconds start `off` = 1e-9 p + tick early, and overlap others by as much. Count starts from
        `zero`, and send the k-th start s, from 0 on, before which some job runs for B(s) seconds, to

            T(s) = s + eta + 2 k tick + 1e-9 / (1 - 1e-9) B(s)    or    T(s) = (s + eta) / (1 - 1e-9 - tick / min p)

        with eta the largest `off`: T(s) is not before the release. Where the verifier saw two runs one after the other,
        the later start is p - off or more behind, all of which the earlier one runs, so that T puts p or more between
        them: 2 tick + 1e-9 / (1 - 1e-9) (p - off) is no less than off. So there is a schedule without slack, and
        completions c have become T(c) at most. The sum of slope times c is the goal less `constant`, or less where jobs
        are left out. Runs that alone cost more than `value` are in no plan below it. Deadlines are not met by what is
        stretched: `due` has their slack, for a job alone.
        """
        if not (gain := self._gain):
            return 0.0
        sums = max(0.0, value - self.constant)
        slope = 1.0 if self.makespan else self.slope[self.owner]
        alone = slope * (self.seconds * (1 - 1e-6) - self.tick)
        may = (self.seconds > 0) & (alone <= sums - np.minimum(self.price, 0.0).sum())
        longest = np.zeros(self.n)
        np.maximum.at(longest, self.owner[may], self.seconds[may])
        busy = 2 * gain * self.n * self.tick + TOLERANCE * min(sums, gain * float(longest.sum()))
        stretched = sums * (TOLERANCE + self.tick / self.seconds[may].min(initial=np.inf))
        early = gain * (TOLERANCE * longest.max(initial=0.0) + self.tick)
        rounded = 2 * np.spacing(clock_cost(self.problem)) + 4 * np.spacing(abs(value))
        return float((1 + 1e-6) * (early + min(busy, stretched)) + rounded)

    @property
    def rounding(self) -> float:
        """Most of `slack` that is not a share of seconds."""
        return self._gain * (1 + 2 * self.n) * self.tick + 6 * float(np.spacing(clock_cost(self.problem)))

    @property
    def _gain(self) -> float:
        """What a second more of all completions costs."""
        return 1.0 if self.makespan else float(self.slope.sum())

    def starts(self, plan: SchedulePlan) -> FloatArray:
        """Return the starts of a plan in seconds from `zero` on, 0 where a job is left out, float64 (n,)."""
        return np.where(plan.degree >= 0, np.maximum(plan.start - self.zero, 0.0), 0.0)


def prepare(problem: ScheduleProblem) -> PreparedJobs:
    """Bring `problem` to the form that methods work on."""
    jobs, n, zero = problem.jobs, len(problem.jobs), first_release(problem)
    release = np.array([job.release for job in jobs], dtype=float)
    due = np.array([np.inf if job.deadline is None else float(job.deadline) for job in jobs])
    due = np.minimum(due, np.inf if problem.horizon is None else problem.horizon)
    values = [problem.price(j) for j in range(n)]
    price = np.array([np.inf if value is None else value for value in values], dtype=float)
    slope, constant = np.zeros(n), 0.0
    if problem.goal == "weighted_completion":
        slope = np.array([job.weight for job in jobs], dtype=float)
        price = price - slope * zero
    elif problem.goal == "mean_jct":
        slope = np.full(n, 1.0 / n)
        price = (price + (release - zero)) / n
        constant = -float((release - zero).sum()) / n
    # who costs less when left out at once is late whenever it runs
    gpus, menu, seconds, late, kept = _options(problem, release - zero, np.where(price < 0, -np.inf, due), zero)
    first = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    p = PreparedJobs(
        problem,
        *_cluster(problem.capacity, sorted(set(gpus[kept].tolist()))),
        first,
        gpus[kept],
        menu[kept],
        seconds[kept],
        np.repeat(np.arange(n), np.diff(first)),
        late[kept],
        release - zero,
        np.where(np.isfinite(due), late.max(axis=1, where=kept, initial=-np.inf), np.inf),
        slope,
        np.maximum(price, 0.0),  # who is never worth running is paid for by `clock_cost`
        constant,
        problem.goal == "makespan",
        zero,
    )
    return replace(p, tick=5 * float(np.spacing(zero + p.horizon)))


def _options(
    problem: ScheduleProblem, release: FloatArray, due: FloatArray, zero: float
) -> tuple[Ints, Ints, FloatArray, FloatArray, NDArray[np.bool_]]:
    """Return (degree, place on the menu, seconds, due, whether an option) of what is on the menus, (n, k) each."""
    jobs, most = problem.jobs, max(len(job.degrees) for job in problem.jobs)
    shape = len(jobs), most
    there = np.arange(most) < np.array([len(job.degrees) for job in jobs])[:, None]
    gpus, seconds = np.zeros(shape, dtype=np.int64), np.full(shape, np.inf)
    # a degree may be more than 64 bits hold
    most_gpus = total(problem.capacity) + 1
    gpus[there] = [min(degree, most_gpus) for job in jobs for degree in job.degrees]
    seconds[there] = [duration for job in jobs for duration in job.durations]
    fitting = [d for d in np.unique(gpus[there]).tolist() if d < most_gpus and holds(problem.capacity, d)]
    # of the places that the verifier allows, two are for the rounding of starts
    late = np.broadcast_to(due[:, None] - zero, shape).copy()
    timed = there & np.isfinite(late)
    alone, at = release[:, None] + seconds, np.broadcast_to(due[:, None], shape)[timed]
    late[timed] += time_slack(seconds[timed], at, places=2)
    # a start at the release is not rounded
    prompt = ~is_late((release + zero)[:, None] + seconds, due[:, None], seconds)[timed]
    late[timed] = np.where(prompt, np.maximum(late[timed], alone[timed]), late[timed])
    kept = there & np.isin(gpus, fitting) & (alone <= late)
    if not isinstance(problem.capacity, RampTopology):
        # on RAMP a smaller block need not be part of a larger one
        best = np.full(len(jobs), np.inf)
        for k in range(most):
            kept[:, k] &= seconds[:, k] < best
            best = np.where(kept[:, k], seconds[:, k], best)
    return gpus, np.broadcast_to(np.arange(most), shape), seconds, late, kept


def _cluster(capacity: Capacity, degrees: list[int]) -> tuple[int, int, int, Ints, Ints, Ints]:
    """Return kind, nodes and GPUs of each, and the blocks of some degrees: sizes, where they begin, servers."""
    none = np.zeros(0, dtype=np.int64)
    if isinstance(capacity, Pool):
        return POOL, 1, capacity.gpus, none, np.zeros(1, dtype=np.int64), none
    if isinstance(capacity, NodePool):
        return NODES, capacity.nodes, capacity.gpus, none, np.zeros(1, dtype=np.int64), none
    known = [ramp_blocks(capacity, d) for d in degrees]
    size = np.repeat(np.array(degrees, dtype=np.int64), [len(blocks) for blocks in known])
    server = np.concatenate([none, *(blocks.ravel() for blocks in known)])
    return RAMP, capacity.n_devices, 1, size, np.concatenate([[0], np.cumsum(size)]).astype(np.int64), server


class ShiftedRun(Run):
    """A run as methods see it: its plan starts at `PreparedJobs.zero`, its objective and bound are less `clock_cost`.

    All else is the run's own. Plans are offered as they are, with the starts that `PreparedJobs.plan` gives them.
    Bounds are proved of schedules without slack: they are lowered by `PreparedJobs.slack`.
    """

    __slots__ = ("_p", "_run", "_seen")

    def __init__(self, run: Run, p: PreparedJobs) -> None:
        self.__dict__ = run.__dict__
        self._run, self._p = run, p
        self._seen: tuple[Any, Any, float | None] = (None, None, None)

    @property
    def plan(self) -> Any:
        """The best plan known, from `PreparedJobs.zero` on."""
        return self._look()[0]

    @property
    def objective(self) -> float | None:  # type: ignore[override]
        """What it costs."""
        return self._look()[1]

    @property
    def bound(self) -> float | None:  # type: ignore[override]
        """What any plan costs."""
        return None if self._run.bound is None else self._run.bound - self._run.zero

    @property
    def gap(self) -> float | None:
        """As the run has it."""
        return self._run.gap

    def offer(self, plan: Any, by: str) -> bool:
        """See `Run.offer`."""
        return self._run.offer(plan, by)

    def raise_bound(self, value: float, by: str) -> None:
        """Record a bound on the goal of the prepared problem, less what the verifier lets pass."""
        self._run.raise_bound(self._run.zero + value - self._p.slack(value), by)

    def _look(self) -> tuple[Any, float | None]:
        run, p = self._run, self._p
        if not p.zero:
            return run.plan, run.objective
        if run.plan is not self._seen[0]:
            plan = None if run.plan is None else replace(run.plan, start=p.starts(run.plan))
            self._seen = run.plan, plan, p.cost(plan) if plan is not None and run.zero else run.objective
        return self._seen[1:]
