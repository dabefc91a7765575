"""Placement: scores of gangs correct the order in which they are inserted, and how much what each loses counts."""

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
    from gangplan.solvers.placement.prepare import Batch

    from ..graph.compiled import Graph
    from ..graph.schema import Schema

_GANG = (
    *("workers", "gpus", "part", "inside", "rest", "weight", "value", "traffic", "overlap", "suffers", "harms"),
    *("choice", "runs", "place", "ring", "tree", "hierarchical", "ps"),
)
_MODEL = ("gangs", "gpus", "suffers", "harms")
_WHOLE = ("gangs", "nodes", "gpus", "racks", "load", "slower", "optional", "runs", "harm")
_PASSES = 2
"""Times that each gang is put back by itself in the end."""
_TRIES = 4
"""Orders that are tried where a gang finds no place: then it goes first."""
_NARROW = 2.0
"""A second score is within this: gangs weigh up to e times so much more or less."""


class Insertion:
    """Gangs inserted one after the other, see `gangplan.learned.offline.task.Decoder`."""

    def __init__(self, batch: Batch, stopped: Callable[[], bool] = never) -> None:
        from gangplan.solvers.placement.build import start
        from gangplan.solvers.placement.ruin_recreate.engine import RuinRecreate

        self.batch, self.true, self.engine = batch, RuinRecreate(batch), RuinRecreate(batch, stopped)
        self.running, self.keys = start(batch).rows, keys(batch)

    def decode(self, choice: Any) -> Candidate | None:
        """Put each gang where the batch costs least, the losses of each being counted by its second score."""
        scores, true = np.broadcast_to(choice, (len(self.keys), 2)), self.true.given
        much = np.exp(np.clip(scores[:, 1], -_NARROW, _NARROW))
        self.engine.given = true._replace(weight=true.weight * much, floor=np.minimum(true.floor * much, true.value))
        order = np.argsort(self.keys + scores[:, 0], kind="stable").tolist()
        queue = [j for j in order if not self.running[j]]
        for _ in range(_TRIES):
            rows, cost = self.engine.insert(self.running, queue)
            failed = self.engine.failed
            if failed is None:
                if not np.isfinite(cost):
                    return None
                rows, cost = self.true.improve(rows, _PASSES * len(rows))
                return Candidate(cost, rows)
            queue.remove(failed)
            queue.insert(0, failed)
        return None

    def join(self, candidates: list[Candidate]) -> Candidate | None:
        """Return none: placements have no common one."""
        return None

    def plan(self, candidate: Candidate) -> Any:
        """Return its plan."""
        from gangplan.solvers.placement.gpu_assignment import plan_of

        return plan_of(self.batch, candidate.made)

    def lesson(self, plan: Any) -> Lesson:
        """Return those first who lose least, as a share of what they cost at least: the others have yielded."""
        from gangplan.solvers.placement.gpu_assignment import rows_of
        from gangplan.solvers.placement.state import PlacementState

        state = PlacementState(self.batch)
        state.restore(rows_of(self.batch, plan))
        state.settle()
        placed, floor = np.array([bool(x) for x in state.rows]), np.maximum(self.true.given.floor, 1e-300)
        rank = np.lexsort((self.keys, np.where(placed, np.round(np.array(state.cost) / floor, 6), np.inf)))
        no = np.full(len(rank), np.inf)
        return Lesson(np.argsort(rank), self.keys, -no, no)


def _decoder(batch: Batch, stopped: Callable[[], bool] = never) -> Insertion | None:
    made = Insertion(batch, stopped)
    return made if all(made.running[j] for j in batch.pinned) else None


def keys(batch: Batch) -> FloatArray:
    """Return the keys of the order of local search: the least choice first, the largest, of mean 0, (J,)."""
    from gangplan.solvers.placement.build import order_of

    from .graphs import standard

    return standard(np.argsort(order_of(batch)).astype(float))


def graph(batch: Batch) -> Graph:
    """Return the graph of a batch: gangs, models, of which some slow others down, and the whole."""
    from gangplan.instances.placement.job import COLLECTIVES

    from .graphs import assemble, chain

    b, fleet, speeds, jobs = batch, batch.problem.fleet, batch.problem.speeds, batch.jobs
    usable = np.asarray(fleet.usable) & (fleet.gpus > 0)
    total, node = max(int(fleet.gpus[usable].sum()), 1), max(int(fleet.gpus[usable].max(initial=0)), 1)
    workers = np.array([job.workers[-1] for job in jobs])
    gpus = workers * b.each * b.share
    of, models = b.model.astype(np.int64), len(speeds.models)
    count, held = np.bincount(of, minlength=models), np.bincount(of, gpus, models)
    mix = held / max(float(held.sum()), 1e-300)
    suffers, harms = speeds.host @ mix, mix @ speeds.host
    alone = b.alone.min(axis=1)
    alone = np.where(np.isfinite(alone), alone, 1.0)
    value = np.array([8.0 if job.value is None else job.value / max(job.weight, 1e-9) for job in jobs])
    way = np.array([COLLECTIVES.index(job.collective) for job in jobs])
    running = np.isin(np.arange(len(jobs)), [*b.pinned, *b.standing]).astype(float)
    rows = (
        np.log(workers), np.log1p(gpus), gpus / total, gpus <= node, np.mod(gpus, node) / node,
        np.log(1e-3 + b.weight), np.minimum(value, 8.0) / 8, np.log1p(b.gradient / b.bandwidth[0] / alone),
        b.overlap, suffers[of], harms[of], b.allowed[:, b.kind].mean(axis=1), running, keys(b),
        *(way == k for k in range(len(COLLECTIVES))),
    )  # fmt: skip
    kinds = count / len(jobs), mix, suffers, harms
    about = (
        np.log1p(len(jobs)) / 5, np.log1p(b.n_nodes) / 5, np.log1p(node) / 2, np.log1p(int(b.group[1].max())) / 5,
        float(gpus.sum()) / total, np.log(b.bandwidth[0] / b.bandwidth[-1]), float((value < 8.0).mean()),
        float(running.mean()), float(mix @ suffers),
    )  # fmt: skip
    every, whole, (first, last) = np.arange(len(jobs)), np.zeros(len(jobs), np.int64), chain(keys(b))
    victim, cause = np.divmod(np.arange(models**2), models)
    parts = (
        (of, every, np.ones(len(jobs))), (every, of, None), (cause, victim, (speeds.host * mix).ravel()),
        (first, last, None), (last, first, None), (every, whole, None), (whole, every, None),
    )  # fmt: skip
    return assemble(schema(1), [np.stack(rows, axis=1), np.stack(kinds, axis=1), np.array([about])], parts)


def schema(outputs: int) -> Schema:
    """Return what these graphs are made of, with so many scores for each gang."""
    from ..graph.schema import Schema

    relations = (
        ("model", "runs as", "gang"), ("gang", "is of", "model"), ("model", "slows", "model"),
        ("gang", "comes before", "gang"), ("gang", "comes after", "gang"), ("gang", "fills", "whole"),
        ("whole", "tells", "gang"),
    )  # fmt: skip
    return Schema({"gang": _GANG, "model": _MODEL, "whole": _WHOLE}, relations, "gang", outputs)


TASK = Task(
    "offline-placement", "placement", (1, 1), schema, graph, _decoder,
    (("local_search", 0.4), ("patterns", 0.5), ("cpsat", 1.0)),
)  # fmt: skip
RECIPE = recipe_of(TASK, "the order in which gangs are placed, and how much what each loses counts")
gnn, kernels = partial(solve_with, TASK), partial(kernels_of, "placement", "local_search")
