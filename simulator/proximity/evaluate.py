"""Policies on the same workloads, seed by seed: figures of checked schedules, and paired differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from time import process_time

import numpy as np

from gangplan.instances import InstanceError

from ..metrics import interval, summary
from .arrays import begin, cluster_of, jobs_of
from .simulate import Policy, outcome_of
from .suites import Suite


@dataclass(frozen=True, slots=True)
class Row:
    """One policy on one workload.

    Attributes:
        policy, workload: names, of the policy and of the suite.
        seed: of the workload.
        mean_jct, p95_jct: of finish minus submission, seconds.
        makespan: the last finish, seconds.
        throughput: GPU seconds of work done a second, from the first submission to the last finish.
        communication: mean cost of a job, see `Proximity`.
        ms_per_decision: processor time that the policy took, over the jobs: each is started by a decision.
    """

    policy: str
    workload: str
    seed: int
    mean_jct: float
    p95_jct: float
    makespan: float
    throughput: float
    communication: float
    ms_per_decision: float


FIGURES = tuple(x.name for x in fields(Row))[3:]


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure of one policy less that of another, over the workloads that both ran.

    Attributes:
        seeds: how many workloads.
        mean: of the differences.
        margin: half the width of the 95% interval of the mean, by Student's t; None of one seed.
        base: mean of the other policy's figure.
    """

    seeds: int
    mean: float
    margin: float | None
    base: float

    @property
    def significant(self) -> bool:
        """Whether 0 is outside of the interval."""
        return self.margin is not None and abs(self.mean) > self.margin


def evaluate(
    policies: Mapping[str, Policy],
    suite: Suite,
    seeds: Sequence[int],
    *,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Row]:
    """Run every policy on the workload of every seed; schedules are checked.

    Args:
        policies: by name.
        suite: cluster and workloads.
        seeds: of the workloads, see `TEST`.
        progress: called with the share of the runs done.
    """
    cluster, rows = cluster_of(suite.fleet, suite.proximity), list[Row]()
    for at, seed in enumerate(seeds):
        work, expected = suite.draw(seed)
        jobs = jobs_of(work, suite.proximity, expected)
        for number, (name, policy) in enumerate(policies.items()):
            if not at:  # what is loaded and compiled at first counts for nothing
                few = jobs_of(work.take(np.arange(min(2, work.n_jobs))), suite.proximity)
                policy.finish(few, cluster, begin(few, cluster))
            state, clock = begin(jobs, cluster), process_time()
            policy.finish(jobs, cluster, state)
            seconds = process_time() - clock
            outcome = outcome_of(work, suite.fleet, suite.proximity, jobs, cluster, state)
            found = summary(outcome)
            figures = found.mean_jct, found.p95_jct, found.makespan, found.work_rate, float(state.cost.mean())
            rows.append(Row(name, suite.name, seed, *figures, 1000 * seconds / work.n_jobs))
            progress((at * len(policies) + number + 1) / (len(seeds) * len(policies)))
    return rows


def paired(rows: Sequence[Row], a: str, b: str, figure: str = "mean_jct") -> Difference:
    """Return a figure of policy `a` less that of `b`, of workloads with a row of each.

    Raises:
        InstanceError: if there is no such workload, or no such figure.
    """
    if figure not in FIGURES:
        raise InstanceError("figure", f"{figure!r} is not one of {', '.join(FIGURES)}")
    of = {(row.policy, row.workload, row.seed): float(getattr(row, figure)) for row in rows}
    pairs = [(value, of[b, suite, seed]) for (p, suite, seed), value in of.items() if p == a and (b, suite, seed) in of]
    if not pairs:
        raise InstanceError("rows", f"have no workload that both {a!r} and {b!r} ran")
    first, second = np.array(pairs).T
    mean, margin = interval(first - second)
    return Difference(len(pairs), mean, margin, float(second.mean()))
