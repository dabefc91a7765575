"""Placement: scores of gangs say when each is inserted, and beside which others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.run import never

from ..graph.compiled import Graph
from ..graph.schema import Schema
from .graphs import assemble, chain, standard
from .policy import solve_with
from .task import DecodedPlan, OfflineTask, PlanLesson, affinity

if TYPE_CHECKING:
    from gangplan.solvers.placement.prepare import PreparedBatch

_GANG = (
    *("workers", "gpus", "nodes", "part", "inside", "rest", "weight", "value", "traffic", "overlap", "suffers"),
    *("harms", "choice", "runs", "place", "ring", "tree", "hierarchical", "ps"),
)
_MODEL = ("gangs", "gpus", "suffers", "harms")
_WHOLE = ("gangs", "nodes", "gpus", "racks", "load", "slower", "optional", "runs", "harm")
_PASSES = 2
"""Times that each gang is put back by itself in the end."""
_TRIES = 4
"""Orders that are tried where a gang finds no place: then it goes first."""
_VECTORS = 4
"""Numbers of each of the two vectors of a gang that say beside whom it stands."""
_NEAREST = -0.12
"""What gangs that belong together slow each other down at least, as insertion has it."""


class Insertion:
    """Gangs inserted one after the other, see `gangplan.learned.offline.task.ScoreDecoder`."""

    def __init__(self, batch: PreparedBatch, stopped: Callable[[], bool] = never) -> None:
        from gangplan.solvers.placement.build import start
        from gangplan.solvers.placement.ruin_recreate.engine import RuinRecreate

        self.batch, self.true, self.engine = batch, RuinRecreate(batch), RuinRecreate(batch, stopped)
        self.running, self.keys, self.alike = start(batch).rows, keys(batch), alike(batch)

    def decode(self, choice: Any) -> DecodedPlan | None:
        """Put each gang where the batch costs least if kinds of gangs slow others less the more they belong together.

        Then each is put back by itself at what it truly costs.
        """
        scores, speeds = np.broadcast_to(choice, (len(self.keys), 1 + 2 * _VECTORS)), self.batch.problem.speeds
        odds = affinity(_means(self.alike, scores[:, 1:]))
        of = self.batch.model[np.unique(self.alike, return_index=True)[1]]
        host, gpu = speeds.host[np.ix_(of, of)], speeds.gpu[np.ix_(of, of)]
        less = np.maximum(host - speeds.host.mean() * odds, np.minimum(host, _NEAREST)) - host
        self.engine.given.suppose(self.alike, host + less, gpu + less)
        order = np.argsort(self.keys + scores[:, 0], kind="stable").tolist()
        queue = [j for j in order if not self.running[j]]
        for _ in range(_TRIES):
            rows, cost = self.engine.insert(self.running, queue)
            failed = self.engine.failed
            if failed is None:
                if not np.isfinite(cost):
                    return None
                rows, cost = self.true.improve(rows, _PASSES * len(rows))
                return DecodedPlan(cost, rows)
            queue.remove(failed)
            queue.insert(0, failed)
        return None

    def join(self, candidates: list[DecodedPlan]) -> DecodedPlan | None:
        """Return none: placements have no common one."""
        return None

    def plan(self, candidate: DecodedPlan) -> Any:
        """Return its plan."""
        from gangplan.solvers.placement.gpu_assignment import plan_of

        return plan_of(self.batch, candidate.made)

    def lesson(self, plan: Any) -> PlanLesson:
        """Return who shares nodes, of gangs that are alike the mean, and as the last those on more nodes than needed.

        They fill what others leave; all others keep the classic order.
        """
        from gangplan.solvers.placement.gpu_assignment import rows_of

        b, fleet = self.batch, self.batch.problem.fleet
        on = np.zeros((len(self.keys), b.n_nodes))
        for j, rows in enumerate(rows_of(b, plan)):
            on[j, [node for node, (workers, _) in rows.items() if workers]] = 1
        gpus = np.array([job.workers[-1] for job in b.jobs]) * b.each * b.share
        least = np.ceil(gpus / max(int(fleet.gpus.max()), 1))
        rank = np.argsort(np.lexsort((self.keys, on.sum(axis=1) > np.maximum(least, 1))))
        share = (on @ on.T > 0).astype(float)
        np.fill_diagonal(share, 0)
        count, kinds = np.bincount(self.alike), self.alike
        pairs = np.outer(count, count) - np.diag(count)
        mean = _means(kinds, _means(kinds, share).T) * np.outer(count, count) / np.maximum(pairs, 1)
        return PlanLesson(rank, self.keys, mean[np.ix_(kinds, kinds)])


def _means(kinds: NDArray[np.int64], rows: FloatArray) -> FloatArray:
    count = np.bincount(kinds)
    made = np.zeros((len(count), rows.shape[1]))
    np.add.at(made, kinds, rows)
    return made / count[:, None]


def alike(batch: PreparedBatch) -> NDArray[np.int64]:
    """Return the kind of each gang, (J,): its model, and its workers within a factor of two."""
    octave = np.log2([job.workers[-1] for job in batch.jobs]).astype(np.int64)
    kinds: NDArray[np.int64] = np.unique(batch.model.astype(np.int64) * 64 + octave, return_inverse=True)[1]
    return kinds.ravel()


def _decoder(batch: PreparedBatch, stopped: Callable[[], bool] = never) -> Insertion | None:
    made = Insertion(batch, stopped)
    return made if all(made.running[j] for j in batch.pinned) else None


def keys(batch: PreparedBatch) -> FloatArray:
    """Return the keys of the order of local search: the least choice first, the largest, of mean 0, (J,)."""
    from gangplan.solvers.placement.build import order_of

    return standard(np.argsort(order_of(batch)).astype(float))


def graph(batch: PreparedBatch) -> Graph:
    """Return the graph of a batch: gangs, models, of which some slow others down, and the whole."""
    from gangplan.instances.placement.job import COLLECTIVES

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
        np.log(workers), np.log1p(gpus), np.log(1e-3 + gpus / node), gpus / total, gpus <= node,
        np.mod(gpus, node) / node, np.log(1e-3 + b.weight), np.minimum(value, 8.0) / 8,
        np.log1p(b.gradient / b.bandwidth[0] / alone),
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
    relations = (
        ("model", "runs as", "gang"), ("gang", "is of", "model"), ("model", "slows", "model"),
        ("gang", "comes before", "gang"), ("gang", "comes after", "gang"), ("gang", "fills", "whole"),
        ("whole", "tells", "gang"),
    )  # fmt: skip
    return Schema({"gang": _GANG, "model": _MODEL, "whole": _WHOLE}, relations, "gang", outputs)


TASK = OfflineTask(
    "offline-placement", "placement", (1, 2 * _VECTORS), schema, graph, _decoder,
    (("local_search", 0.4), ("patterns", 0.5), ("cpsat", 1.0)),
)  # fmt: skip
gnn = partial(solve_with, TASK)
