"""One gang at a time on a cluster that runs: the learned policy beside `Placer`'s own, for a scheduler.

    gangs = LearnedGang(fleet, speeds)           # reads the weights that come with the package
    workers = gangs.choose(room, degree, job)    # room: solvers.placement.online.rooms.Room; node -> workers
    gangs.note(job, {node: (workers, servers)})  # it runs there now
    gangs.forget(job.name)                       # it has ended

`gangs.policy(job)` is a `GangPolicy`, to be called with (room, degree) like those of
`gangplan.solvers.placement.online.gangs`.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet, GangJob, PlacementProblem, SpeedModel
from gangplan.instances.placement.rate import best_rate
from gangplan.solvers.placement.online.gangs import GangPolicy
from gangplan.solvers.placement.online.rooms import Room

from .board import Board, Gang
from .candidates import Turn, Workers, candidates
from .features import Ahead, Place, Scene, features
from .head import Context, pool
from .policy import PlacementPolicy

RECENT = 64
"""Jobs that came last: what is to come is taken to be like them where nothing else is said."""
KINDS = 4096
"""Kinds of jobs whose vectors are kept."""
NODES = 16
"""Of the fleet that a job's vector is made on."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The places that were looked at for a gang, the best first.

    Attributes:
        workers: of each, node -> workers.
        score: larger is better, float64 (C,).
        price: what each costs the cluster at once, in weighted slowdowns, float64 (C,).
    """

    workers: list[Workers]
    score: FloatArray
    price: FloatArray


class LearnedGang:
    """Chooses the nodes of gangs that come and go.

    It keeps who is where (`note`, `forget`); room and idle GPUs are those of the `Room` it is given. A decision takes
    no random number. What the network makes of the nodes is worked out once, when this is made.

    Args:
        fleet: the nodes, empty at first.
        speeds: which models run how fast beside which.
        policy: weights; by default those that come with the package.

    Raises:
        InstanceError: if the weights are missing or broken.
        ImportError: if torch is not installed.
    """

    def __init__(self, fleet: Fleet, speeds: SpeedModel, policy: PlacementPolicy | None = None) -> None:
        if policy is None:
            from .shipped import shipped_policy

            policy = shipped_policy()
        self.policy_used, self.fleet, self.speeds = policy, fleet, speeds
        self.board = Board(fleet, speeds)
        self._index = {name: k for k, name in enumerate(speeds.models)}
        self._some = _part(fleet, NODES)
        self._nodes: FloatArray | None = None
        self._jobs: OrderedDict[GangJob, tuple[Gang, FloatArray]] = OrderedDict()
        self._at: dict[str, tuple[int, ...]] = {}
        self._recent: deque[tuple[int, float, float]] = deque(maxlen=RECENT)

    def choose(self, room: Room, degree: int, job: GangJob, waiting: Sequence[GangJob] = ()) -> Workers:
        """Return node -> workers for a gang of `degree` workers, no more than the room has in all.

        Args:
            room: of its workers, see `Room`; what it has no room for is never chosen.
            degree: one of ``job.workers``.
            job: the gang.
            waiting: the jobs behind it in the queue, if the scheduler knows them; by default what is to come is taken
                to be like the jobs that came last.
        """
        return self.scored(room, degree, job, waiting).workers[0]

    def policy(self, job: GangJob) -> GangPolicy:
        """Return `choose` for a job, in the form of `GANG_POLICIES`."""
        return lambda room, degree: self.choose(room, degree, job)

    def scored(self, room: Room, degree: int, job: GangJob, waiting: Sequence[GangJob] = ()) -> Scored:
        """Return all places that were looked at with their scores, the best first; see `choose`."""
        gang, vector = self._known(job)
        free = room.nodes.free[0].astype(float)
        ahead = self._ahead(waiting)
        cost = ahead.cost(self.board)
        found = candidates(Turn(self.board, gang, degree, room.room, free, cost))
        places = [_place(workers, job.servers) for workers in found]
        weights = [weight for _, weight, _ in self._recent]
        unit = float(np.mean([*weights, gang.weight])) or 1.0
        scene = Scene(self.board, gang, job.value is not None, job.workers[-1], free, ahead, cost, unit)
        x, price = features(scene, places)
        context = self._context(job)
        place = np.repeat(np.arange(len(found)), [len(workers) for workers in found]).astype(np.int32)
        node = np.array([n for workers in found for n in workers], dtype=np.int32)
        score = self.policy_used.head(x, vector, pool(context, place, node, len(found)))
        if not np.isfinite(score).all():
            raise FloatingPointError("the network's scores are not finite")
        order = np.argsort(-score, kind="stable")
        return Scored([found[i] for i in order], score[order], price[order])

    def note(self, job: GangJob, rows: Mapping[int, tuple[int, int]]) -> None:
        """Enter a gang that runs: node -> (workers, servers)."""
        gang, _ = self._known(job)
        table = np.array([(node, w, p) for node, (w, p) in rows.items()], dtype=np.int64)
        self.board.add(job.name, gang, table[:, 0], table[:, 1], table[:, 2] if job.servers else None)
        self._at[job.name] = tuple(rows)
        self._recent.append((gang.model, gang.weight, job.workers[0] * job.worker.gpu))

    def forget(self, name: str) -> None:
        """Take a gang off that has ended; nothing happens if it is not known."""
        nodes = self._at.pop(name, None)
        if nodes is not None:
            self.board.remove(name, np.array(nodes, dtype=np.int64))

    def _known(self, job: GangJob) -> tuple[Gang, FloatArray]:
        """Return what of the job decides its cost, and its vector: both kept for jobs that are alike."""
        kind = replace(job, name="job", apart=(), requires=())
        if kind in self._jobs:
            self._jobs.move_to_end(kind)
            return self._jobs[kind]
        best = float(best_rate(PlacementProblem(self.fleet, (kind,), self.speeds))[0])
        gang = Gang(self._index[job.model], job.weight, best, job.collective, job.worker.grants)
        vector = self._made(PlacementProblem(self._some, (kind,), self.speeds)).jobs[0]
        self._jobs[kind] = gang, vector
        if len(self._jobs) > KINDS:
            self._jobs.popitem(last=False)
        return gang, vector

    def _context(self, job: GangJob) -> FloatArray:
        if self._nodes is None:
            kind = replace(job, name="job", apart=(), requires=())
            self._nodes = self._made(PlacementProblem(self.fleet, (kind,), self.speeds)).nodes
        return self._nodes

    def _made(self, problem: PlacementProblem) -> Context:
        return self.policy_used.context(problem)

    def _ahead(self, waiting: Sequence[GangJob]) -> Ahead:
        known = [
            (self._index[x.model], x.weight, x.workers[0] * x.worker.gpu) for x in waiting if x.model in self._index
        ]
        found = known or list(self._recent)
        kinds = len(self._index)
        if not found:
            return Ahead(0, np.zeros(kinds), np.zeros(kinds), 0.0, np.zeros(0), 1)
        model = np.array([k for k, _, _ in found])
        weight = np.array([w for _, w, _ in found])
        sizes = np.sort(np.array([g for _, _, g in found]))
        count = np.bincount(model, minlength=kinds).astype(float)
        worth = np.bincount(model, weights=weight, minlength=kinds) / np.maximum(count, 1)
        return Ahead(len(found), count / len(found), worth, float(sizes.sum()), sizes, len(found) + 1)


def _place(workers: Workers, servers: int) -> Place:
    """Return a place; parameter servers are thought of beside the workers, in equal parts as far as that goes."""
    nodes = np.array(list(workers), dtype=np.int64)
    count = np.array(list(workers.values()), dtype=np.int64)
    if not servers:
        return Place(nodes, count)
    beside = np.diff(np.round(np.cumsum(count) * servers / count.sum()).astype(np.int64), prepend=0)
    return Place(nodes, count, beside)


def _part(fleet: Fleet, count: int) -> Fleet:
    """Return the first nodes of a fleet with GPUs, one of each kind among them: enough to tell what a job is like."""
    with_gpus = np.flatnonzero(fleet.gpus > 0)
    _, first = np.unique(fleet.gpu_type[with_gpus], return_index=True)
    kept = np.unique(np.concatenate([with_gpus[:count], with_gpus[first]]))
    group = np.stack([np.unique(row[kept], return_inverse=True)[1].ravel() for row in fleet.topology.group]).astype(
        np.int32
    )
    return replace(
        fleet,
        names=tuple(fleet.names[i] for i in kept.tolist()),
        gpu_type=fleet.gpu_type[kept],
        gpus=fleet.gpus[kept],
        cpu=fleet.cpu[kept],
        memory=fleet.memory[kept],
        link=fleet.link[kept],
        topology=replace(fleet.topology, group=group),
        labelled=fleet.labelled[:, kept],
        usable=np.asarray(fleet.usable)[kept],
    )
