"""Policies on the same workloads, seed by seed: figures of checked schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from time import process_time

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import Scheduler
from gangplan.simulator.engine import simulate as simulate_engine
from gangplan.simulator.metrics import summary
from gangplan.simulator.outcome import Outcome

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
        communication: mean cost of a job, see `Proximity`; of one that was stopped, that of its last run.
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


def evaluate(
    policies: Mapping[str, Policy | Scheduler],
    suite: Suite,
    seeds: Sequence[int],
    *,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Row]:
    """Run every policy on the workload of every seed; schedules are checked.

    Args:
        policies: by name; a scheduler of the engine, which may stop jobs, is always told how long they take.
        suite: cluster and workloads.
        seeds: of the workloads, see `TEST`.
        progress: called with the share of the runs done.
    """
    rows = list[Row]()
    for at, seed in enumerate(seeds):
        work, expected = suite.draw(seed)
        for number, (name, policy) in enumerate(policies.items()):
            if not at:  # what is loaded and compiled at first counts for nothing
                run_policy(policy, suite, work.take(np.arange(min(2, work.n_jobs))))
            outcome, communication, seconds = run_policy(policy, suite, work, expected)
            found = summary(outcome)
            figures = found.mean_jct, found.p95_jct, found.makespan, found.work_rate, communication
            rows.append(Row(name, suite.name, seed, *figures, 1000 * seconds / work.n_jobs))
            progress((at * len(policies) + number + 1) / (len(seeds) * len(policies)))
    return rows


def run_policy(
    policy: Policy | Scheduler, suite: Suite, work: Workload, expected: FloatArray | None = None
) -> tuple[Outcome, float, float]:
    """Return a checked schedule, its communication cost, and the processor time of the policy.

    Args:
        policy: decides.
        suite: the cluster.
        work, expected: what `Suite.draw` makes of a seed.
    """
    jobs, cluster = jobs_of(work, suite.proximity, expected), cluster_of(suite.fleet, suite.proximity)
    begun = process_time()
    if isinstance(policy, Scheduler):
        outcome = simulate_engine(work, suite.fleet, policy, speeds=suite.proximity)
        return outcome, _last_cost(outcome, suite), process_time() - begun
    state = begin(jobs, cluster)
    policy.finish(jobs, cluster, state)
    seconds = process_time() - begun
    outcome = outcome_of(work, suite.fleet, suite.proximity, jobs, cluster, state)
    return outcome, float(state.cost.mean()), seconds


def _last_cost(outcome: Outcome, suite: Suite) -> float:
    """Return the mean communication cost of the jobs' last runs."""
    last = outcome.row_end == outcome.finish[outcome.row_job]
    by_job: dict[int, tuple[list[int], list[int]]] = {}
    columns = (x[last].tolist() for x in (outcome.row_job, outcome.row_node, outcome.row_gpus))
    for job, node, gpus in zip(*columns, strict=True):
        nodes, held = by_job.setdefault(job, ([], []))
        nodes.append(node)
        held.append(gpus)
    return float(np.mean([suite.proximity.cost(suite.fleet, *on) for on in by_job.values()]))
