"""Schedules: scores of jobs correct the order in which a list scheduler places them, and the price of their GPUs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.run import never

from .recipe import kernels_of, recipe_of, solve_with
from .task import Candidate, Lesson, Task

if TYPE_CHECKING:
    from gangplan.solvers.schedule.prepare import Prepared

    from ..graph.compiled import Graph
    from ..graph.schema import Schema

_JOB = ("quick", "long", "narrow", "wide", "work", "share", "worth", "leaves", "release", "slack", "choice", "place")
_WHOLE = ("crowd", "node", "makespan", "even", "load", "widest", "optional", "due", "spread")
_WAIT = 0.25
"""Share of the jobs that wait for a GPU-second: its price without a correction, see `classic.PRICES`."""
_LATER = 0.1
"""How much later a job may end than the bound of the makespan, as a logarithm, for a second score of 1."""


class Lists:
    """List schedules, see `gangplan.learned.offline.task.Decoder`."""

    def __init__(self, p: Prepared, stopped: Callable[[], bool] = never) -> None:
        from gangplan.instances.verify.schedule import clock_cost
        from gangplan.solvers.schedule.bounds import area, best_end
        from gangplan.solvers.schedule.decode import Decoder

        self.p, self.decoder, self.stopped = p, Decoder(p), stopped
        self.cost, self.keys, self.price = clock_cost(p.problem), keys(p), max(1.0, _WAIT * p.n)
        self.end = best_end(p, area(p))[0] if p.makespan else 0.0

    def decode(self, choice: Any) -> Candidate | None:
        """Place the jobs by their keys, each where it costs least at its price, or may end by the makespan's bound."""
        from gangplan.solvers.schedule.classic import allotment

        p, scores = self.p, np.broadcast_to(choice, (self.p.n, 2))
        second, wish = np.clip(scores[:, 1], -6.0, 6.0)[p.owner], None
        price = self.price * np.exp(second) / max(p.total, 1)
        penalty = price * p.gpus * p.seconds * p.slope.mean()
        if p.makespan:  # whoever adds least to it now takes too many GPUs
            wish = allotment(p, self.end * np.exp(_LATER * second))
        elif not p.slope.any():  # no price is worth a job
            value = p.seconds * (1 + price * p.gpus)
            penalty = value * 0.5 * p.price[p.price > 0].min(initial=1.0) / max(value.max(initial=0.0), 1e-300)
        return self._candidate(self.keys + scores[:, 0], wish, penalty)

    def join(self, candidates: list[Candidate]) -> Candidate | None:
        """Place them in the order of the mean of starts of the best half, at the degrees of the best."""
        best = sorted(candidates, key=lambda x: x.value)[: max(1, len(candidates) // 2)]
        ranks = [np.argsort(np.argsort(np.where(x.made[0] < 0, np.inf, x.made[1]), kind="stable")) for x in best]
        return self._candidate(np.mean(ranks, axis=0), best[0].made[0])

    def _candidate(self, order: FloatArray, wish: Any, penalty: Any = None) -> Candidate | None:
        d = self.decoder
        value = d.decode(np.argsort(order, kind="stable"), wish, penalty, self.stopped)
        made = d.made.option.copy(), d.made.start.copy(), d.made.rows[:, : d.used].copy()
        return Candidate(value + self.cost, made) if np.isfinite(value) else None

    def plan(self, candidate: Candidate) -> Any:
        """Return its plan."""
        return self.p.plan(*candidate.made)

    def lesson(self, plan: Any) -> Lesson:
        """Return the order of starts, and between which prices each job takes the degree of the plan."""
        from gangplan.solvers.schedule.decode import list_of

        p = self.p
        order, wish = list_of(p, plan.degree, plan.start)
        low, high = np.full(p.n, -np.inf), np.full(p.n, np.inf)
        for j in np.flatnonzero((wish >= 0) & (p.slope > 0)):
            o, others = wish[j], np.arange(p.first[j], p.first[j + 1])
            more = (p.gpus[others] * p.seconds[others] - p.gpus[o] * p.seconds[o]) * self.price * p.slope.mean()
            with np.errstate(divide="ignore", invalid="ignore"):
                at = np.log((p.seconds[o] - p.seconds[others]) * p.slope[j] * p.total / more)
            low[j], high[j] = at[more > 0].max(initial=-np.inf), at[more < 0].min(initial=np.inf)
        return Lesson(np.argsort(order), self.keys, low, high)


def keys(p: Prepared) -> FloatArray:
    """Return the keys of the classic order, of mean 0 and deviation 1, (n,).

    It is Smith's, work by weight, or for the makespan the widest first, of these the longest, as `classic.dual` has it.
    """
    from gangplan.solvers.schedule.bounds import area, best_end
    from gangplan.solvers.schedule.classic import allotment

    from .graphs import standard

    if not p.makespan:
        work, slope = p.least(p.gpus * p.seconds), np.maximum(p.slope, 1e-12 * p.slope.max() or 1.0)
        return standard(np.log(np.maximum(work, 1e-300) / slope))
    wish = np.maximum(allotment(p, best_end(p, area(p))[0]), -1)
    seconds, gpus = (np.append(x, 0.0)[wish] for x in (p.seconds, p.gpus))  # of who is left out, the last
    return standard(np.argsort(np.lexsort((-seconds, -gpus))).astype(float))


def figures(p: Prepared) -> FloatArray:
    """Return what is told of each job, without units, float64 (n, figures)."""
    least, fast = p.first_least(p.gpus * p.seconds, -1), p.first_least(p.seconds, -1)
    gpus, seconds = np.append(p.gpus, 0.0), np.append(p.seconds, 0.0)  # of who has no option, the last
    work, total = gpus[least] * seconds[least], max(p.total, 1)
    mean, even = max(float(seconds[least].mean()), 1e-300), max(float(work.mean()), 1e-300)
    span = max(p.n * even / total, float(p.release.max()))
    worth = p.slope / max(float(p.slope.mean()), 1e-300)
    price = np.where(np.isfinite(p.price), p.price, 0.0) / max(float(p.slope.mean()) * span, 1e-300)
    slack = np.where(np.isfinite(p.deadline), p.deadline - p.release - seconds[fast], span) / span
    rows = (
        np.log1p(seconds[fast] / mean), np.log1p(seconds[least] / mean), gpus[least] / total, gpus[fast] / total,
        np.log(1e-3 + work / even), work / total / span, np.log(1e-3 + worth), np.minimum(price, 4.0),
        p.release / span, np.minimum(slack, 4.0), np.log1p(np.diff(p.first)), keys(p),
    )  # fmt: skip
    return np.stack(rows, axis=1)


def graph(p: Prepared) -> Graph:
    """Return the graph of a schedule problem: jobs, those next to each other by release and by work, and the whole."""
    from .graphs import assemble, chain

    rows, every, whole = figures(p), np.arange(p.n), np.zeros(p.n, np.int64)
    span = max(float(p.release.max()), 1e-300)
    load = float(p.least(p.gpus * p.seconds).sum()) / max(p.total, 1) / span
    about = (
        np.log(p.n / max(p.total, 1)), p.per / max(p.total, 1), float(p.makespan),
        float(p.slope.any() and np.ptp(p.slope) == 0), min(load, 10.0), rows[:, 3].max(),
        float(np.isfinite(p.price).mean()), float(np.isfinite(p.deadline).mean()), float(rows[:, 4].std()),
    )  # fmt: skip
    (before, after), (small, large) = chain(p.release), chain(rows[:, 4])
    ends = (before, after), (after, before), (small, large), (large, small), (every, whole), (whole, every)
    return assemble(schema(1), (rows, np.array([about])), [(*x, None) for x in ends])


def schema(outputs: int) -> Schema:
    """Return what these graphs are made of, with so many scores for each job."""
    from ..graph.schema import Schema

    names = ("comes before", "comes after", "is smaller than", "is larger than")
    relations = *(("job", name, "job") for name in names), ("job", "fills", "whole"), ("whole", "tells", "job")
    return Schema({"job": _JOB, "whole": _WHOLE}, relations, "job", outputs)


TASK = Task(
    "offline-schedule", "schedule", (1, 1), schema, graph, Lists,
    (("dual", 0.2), ("lists", 0.2), ("local_search", 0.3), ("starts", 0.4), ("cpsat", 1.0)),
)  # fmt: skip
RECIPE = recipe_of(TASK, "the order in which a list scheduler places jobs, and the price of their GPUs")
gnn, kernels = partial(solve_with, TASK), partial(kernels_of, "schedule", "lists")
