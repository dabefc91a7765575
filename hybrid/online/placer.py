"""Where gangs go on a cluster whose nodes fail: the placer of gangs, with nodes that can be taken out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gangplan.instances.placement import Fleet, GangJob, SpeedModel
from gangplan.solvers.placement.online.capacity import Capacity, Kind
from gangplan.solvers.placement.online.placer import LOG, NodeAllocation, Placer
from gangplan.solvers.placement.policies import GangPolicy, topology

ANY_MODEL = "any"
"""The model of all jobs, where models make no difference."""


class FailingPlacer(Placer):
    """A `Placer` whose nodes fail and come back.

    A node that is down has nothing free, so no kind of worker has room there: the kept sums of its rack and of the
    parts above are updated like those of any node that changed.

    Args:
        fleet: the nodes; those that are not usable are down at first.
        speeds: see `Placer`; by default all jobs are of one model that runs on all GPUs alike.
    """

    def __init__(self, fleet: Fleet, speeds: SpeedModel | None) -> None:
        if speeds is None:
            one = np.ones(1)
            same = np.ones((len(fleet.gpu_types), 1))
            speeds = SpeedModel((ANY_MODEL,), fleet.gpu_types, same, one, one, 0 * one[None], 0 * one[None])
        super().__init__(replace(fleet, usable=np.ones(fleet.n_nodes, dtype=bool)), speeds, "topology")
        self._whole = self._nodes.free.copy()
        self._down: dict[int, tuple[np.ndarray, list[int]]] = {}
        assert fleet.usable is not None
        for node in np.flatnonzero(~fleet.usable).tolist():
            self.fail(node)

    @property
    def free(self) -> np.ndarray:
        """Idle GPUs of each node, 0 where it is down, int64 (m,); a view."""
        free: np.ndarray = self._nodes.free[0]
        return free

    @property
    def vacant(self) -> np.ndarray:
        """What is left of each node in the units of `Kind.need`, int64 (4, m); a view."""
        return self._nodes.free

    @property
    def taken(self) -> np.ndarray:
        """Jobs on each node, int64 (m,); a view."""
        return self._nodes.taken

    @property
    def guarded(self) -> np.ndarray:
        """Which nodes are down, or of a job that wants them for itself, bool (m,); a view."""
        return self._nodes.guarded

    def fail(self, node: int) -> None:
        """Take out a node on which nobody is."""
        self._down[node] = self._nodes.free[:, node].copy(), self._idle[node]
        self._nodes.free[:, node] = 0
        self._nodes.guarded[node] = True
        self._idle[node] = []
        self._changed(node)

    def repair(self, node: int) -> None:
        """Bring a node back."""
        self._nodes.free[:, node], self._idle[node] = self._down.pop(node)
        self._nodes.guarded[node] = False
        self._changed(node)

    def most_on(self, job: GangJob, *, up: bool = True) -> np.ndarray:
        """Return how many of a job's workers each node takes if it is empty, int64 (m,); 0 if `up` and it is down."""
        kind = Kind.workers(job)
        room = np.where(self._nodes.allowed(kind), kind.most, 0)
        if up:
            room[list(self._down)] = 0
        for whole, need in zip(self._whole, kind.need, strict=True):
            if need:
                room = np.minimum(room, whole // need)
        return room

    def idle(self, node: int) -> list[int]:
        """Return the GPUs of a node that nobody holds."""
        return list(self._idle[node])

    def room(self, job: GangJob) -> Capacity:
        """Return the room for the workers of a job now."""
        return self._room(Kind.workers(job), self._blocked(job))

    def fits(self, job: GangJob) -> bool:
        """Return whether the least workers of a job have room now."""
        return self.room(job).total >= job.workers[0]

    def against(self, job: GangJob) -> set[str]:
        """Return the running jobs with which a job shares no node."""
        return {name for name in (*job.apart, *self._avoided.get(job.name, ())) if name in self.running}

    def blocked(self, job: GangJob) -> list[int]:
        """Return the nodes of these jobs."""
        return self._blocked(job)

    def uses(self, name: str) -> tuple[list[int], np.ndarray]:
        """Return the nodes of a running job, and what it uses of each, int64 (4, nodes)."""
        return list(self.running[name]), self._used(self._jobs[name], self.running[name])

    def put(self, job: GangJob, nodes: Mapping[int, Sequence[int]]) -> bool:
        """Place a gang whose GPUs are known and idle; return whether cores, memory and NIC suffice."""
        need = max(1, job.worker.grants)
        workers = {node: len(gpus) // need for node, gpus in sorted(nodes.items())}
        job = replace(job, workers=(sum(workers.values()),))
        seats = {node: NodeAllocation(count, 0, ()) for node, count in workers.items()}
        if (self._used(job, seats) > self._nodes.free[:, list(seats)]).any():
            return False
        for node, gpus in nodes.items():
            self._idle[node] = [*gpus, *(gpu for gpu in self._idle[node] if gpu not in gpus)]  # taken from the front
        self._take(job, workers, {})
        for node in nodes:
            self._idle[node].sort()
        return True

    def place_by(
        self, policy: GangPolicy, job: GangJob, room: Capacity | None = None
    ) -> Mapping[int, NodeAllocation] | None:
        """Place a job by a policy other than the topology's."""
        self._policy = policy
        try:
            return self.place(job, room)
        finally:
            self._policy = topology

    def _changed(self, node: int) -> None:
        self._log.append(node)
        if len(self._log) > LOG:
            forgotten = len(self._log) - LOG // 2
            del self._log[:forgotten]
            self._forgotten += forgotten
