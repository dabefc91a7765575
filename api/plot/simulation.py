"""Pictures of simulated schedules: completion times, who holds what when, how full the nodes are; as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gangplan.simulator.metrics import Metrics, means_of_groups, period, summary, waiting_jobs
from gangplan.simulator.trace import Outcome

from .layout import FloatArray, IntArray
from .simulation_classes import Classes, classify
from .simulation_heat import Heat, down, heat
from .simulation_lanes import Lanes, lanes
from .simulation_time import distribution, unit, words

MOST_ROWS, MOST_LANES = 2000, 400
"""Beyond these a job is too small to see, and GPUs in use are drawn in place of jobs."""
SPANS = 600
"""Of time, of each of which figures are means."""


@dataclass(frozen=True, slots=True)
class Run:
    """One schedule.

    Attributes:
        name: of the policy.
        outcome: the schedule.
        metrics: its figures.
        kind: the class of each job, int (n,).
        lanes: jobs as boxes, None if there are too many.
        stack: GPUs in use by class, float (classes, SPANS).
        there: GPUs that are not down, float (SPANS,).
        waiting: jobs that wait, float (SPANS,).
        heat: None if GPUs were only counted.
        curve: completion times and shares of jobs, see `distribution`; empty if no job ran.
    """

    name: str
    outcome: Outcome
    metrics: Metrics
    kind: IntArray
    lanes: Lanes | None
    stack: FloatArray
    there: FloatArray
    waiting: FloatArray
    heat: Heat | None
    curve: tuple[FloatArray, FloatArray]

    @property
    def heading(self) -> str:
        """How good the policy is, in words."""
        m = self.metrics
        parts = [
            self.name,
            f"mean JCT {words(m.mean_jct)}",
            f"p99 {words(m.p99_jct)}",
            f"mean wait {words(m.mean_wait)}",
        ]
        parts += [f"utilisation {m.utilisation:.1%}"]
        if m.blocking_rate:
            parts.append(f"{m.blocking_rate:.1%} rejected")
        if m.interruptions:
            parts.append(f"{m.interruptions:.2g} interruptions a job")
        return " · ".join(parts)


@dataclass(frozen=True, slots=True)
class SimulationPicture:
    """Schedules of one workload, ready to draw; times in the unit of the axis, from the first submission on.

    Attributes:
        title, subtitle: what it is.
        first, factor: seconds of the first submission, and in the unit of the axis.
        axis: what the axis of time says.
        edges: of the spans of time, float (SPANS + 1,), the same for all.
        classes: of jobs.
        runs: the schedules.
    """

    title: str
    subtitle: str
    first: float
    factor: float
    axis: str
    edges: FloatArray
    classes: Classes
    runs: tuple[Run, ...]

    def time(self, seconds: FloatArray) -> FloatArray:
        """Return times on the axis."""
        return (seconds - self.first) / self.factor

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the most of an axis that all completion times are within, seconds."""
        some = [run.curve[0] for run in self.runs if len(run.curve[0])]
        low, high = (min(x[0] for x in some), max(x[-1] for x in some)) if some else (1.0, 1.0)
        return float(low) / 1.1, float(max(high, low * 5)) * 1.1

    def line(self, run: Run) -> tuple[FloatArray, FloatArray]:
        """Return the corners of a run's curve, from the least to the most of that axis."""
        x, y = run.curve
        low, high = self.reach
        return np.array([low, *x, high]), np.array([0.0, *y, y.max(initial=0.0)])


def compose_simulation(outcomes: Mapping[str, Outcome], *, name: str = "") -> SimulationPicture:
    """Lay out schedules of one workload on one axis of time.

    Args:
        outcomes: at least one, by the name of its policy.
        name: of the trace, for the title.
    """
    one = next(iter(outcomes.values()))
    first = min(period(outcome)[0] for outcome in outcomes.values())
    last = max(period(outcome)[1] for outcome in outcomes.values())
    last = last if last > first else first + 1.0
    factor, unit_name = unit(last - first)
    classes = classify(one.workload)
    edges = np.linspace(first, last, SPANS + 1)
    room = one.room.tolist()
    alike = f"{len(room):,} {'node' if len(room) == 1 else 'nodes'} of {room[0]} GPUs"
    cluster = alike if len(set(room)) == 1 else f"{len(room):,} nodes, {one.n_gpus:,} GPUs"
    return SimulationPicture(
        title=f"{name + ': ' if name else ''}{one.workload.n_jobs:,} jobs on {cluster}",
        subtitle=" · ".join(
            [
                f"{words(last - first)} from the first submission to the last finish",
                *(["GPUs only counted"] if (one.row_node < 0).any() else []),
            ]
        ),
        first=first,
        factor=factor,
        axis=f"time since the first submission, {unit_name}",
        edges=(edges - first) / factor,
        classes=classes,
        runs=tuple(_run(policy, outcome, classes, edges) for policy, outcome in outcomes.items()),
    )


def _run(policy: str, outcome: Outcome, classes: Classes, edges: FloatArray) -> Run:
    kind = classes.of(outcome.workload)
    counted = bool((outcome.row_node < 0).any())
    small = len(outcome.row_job) <= MOST_ROWS and outcome.n_gpus <= MOST_LANES
    amount = outcome.row_gpus * outcome.row_share
    time = (outcome.row_start, outcome.row_end, edges)
    return Run(
        name=policy,
        outcome=outcome,
        metrics=summary(outcome),
        kind=kind,
        lanes=lanes(outcome) if small else None,
        stack=means_of_groups(kind[outcome.row_job], len(classes.names), amount, *time),
        there=outcome.n_gpus - down(outcome, np.zeros(len(outcome.room), dtype=np.int64), edges)[0],
        waiting=waiting_jobs(outcome).means(edges),
        heat=None if counted else heat(outcome, amount, edges),
        curve=distribution((outcome.finish - outcome.workload.submit)[outcome.admitted]),
    )
