"""Gangs placed one at a time on a cluster that runs: each at once, whole, and none rebuilt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob, PlacementPlan, PlacementProblem, SpeedModel

from ..policies import GANG_POLICIES, around
from .capacity import Capacity, Kind, Nodes, demanded
from .slots import MOST, Long

LOG = 50_000
"""Changes of nodes that are remembered; who has not read that far looks at every node again."""
KINDS = 256
"""Kinds of worker whose room is kept; the one kept longest goes first."""


@dataclass(frozen=True, slots=True)
class NodeAllocation:
    """What a job has on one node: numbers of workers and servers, and its GPUs, as many for each worker as it asks."""

    workers: int
    servers: int
    gpus: tuple[int, ...]


class Placer:
    """A cluster on which gangs come and go.

    For each kind of worker it keeps how many of them each node, each rack and each part above could take. A decision
    looks again only at the nodes that changed since the last one for its kind, and then into few racks.

    Args:
        fleet: the nodes, empty at first.
        speeds: which models run on which GPUs.
        policy: one of `GANG_POLICIES`.

    Attributes:
        running: the jobs that run, by name, with what they hold on each node.

    Raises:
        InstanceError: if there is no policy of that name, or a GPU type of the fleet has no speeds.
    """

    def __init__(self, fleet: Fleet, speeds: SpeedModel, policy: str = "topology") -> None:
        if policy not in GANG_POLICIES:
            raise InstanceError("policy", f"{policy!r} is not one of {', '.join(GANG_POLICIES)}")
        self._policy = GANG_POLICIES[policy]
        self._nodes = Nodes(fleet, speeds)
        self._idle = [list(range(count)) for count in fleet.gpus.tolist()]
        self._capacities: dict[Kind, tuple[Capacity, int]] = {}
        self._log: list[int] = []
        self._forgotten = 0
        self._jobs: dict[str, GangJob] = {}
        self._avoided: defaultdict[str, set[str]] = defaultdict(set)
        self.running: dict[str, Mapping[int, NodeAllocation]] = {}

    def place(self, job: GangJob, room: Capacity | None = None) -> Mapping[int, NodeAllocation] | None:
        """Place a job with as many workers as it may have and fit; return what it holds, `None` if it fits nowhere.

        Args:
            job: the gang.
            room: for its workers, where that is less than all there is.

        Raises:
            InstanceError: if a job of its name runs, its workers share GPUs, its model has no speed, or the fleet lacks
                one of its labels.
        """
        if job.name in self._jobs:
            raise InstanceError("job.name", f"{job.name!r} runs already")
        if 0 < job.worker.gpu < 1:
            raise InstanceError("job.worker.gpu", f"{job.worker.gpu!r} is a share; `State` takes tasks that share GPUs")
        blocked = self._blocked(job)
        room = self._room(Kind.workers(job), blocked) if room is None else room
        total = room.total
        for degree in reversed(job.workers):
            if degree > total:
                continue
            workers = self._policy(room, degree)
            servers = self._servers(job, workers, blocked) if job.servers else {}
            if servers is not None:
                return self._take(job, workers, servers)
        return None

    def remove(self, name: str) -> None:
        """Take a job off its nodes.

        Raises:
            InstanceError: if no job of that name runs.
        """
        if name not in self._jobs:
            raise InstanceError("job", f"{name!r} does not run")
        job, allocation = self._jobs[name], self.running[name]
        for node, part in allocation.items():
            self._idle[node] = sorted([*self._idle[node], *part.gpus])
        self._change(job, allocation, self._used(job, allocation))
        del self._jobs[name], self.running[name]
        for other in job.apart:
            self._avoided[other].discard(name)

    def batch(self, goal: str = "slowdown") -> tuple[PlacementProblem, PlacementPlan]:
        """Return what runs as a problem and its plan, for `gangplan.verify`.

        Raises:
            InstanceError: if nothing runs.
        """
        jobs = tuple(
            replace(job, apart=tuple(name for name in job.apart if name in self._jobs)) for job in self._jobs.values()
        )
        rows = [(j, node, part) for j, job in enumerate(jobs) for node, part in self.running[job.name].items()]
        grants = [(r, gpu) for r, (_, _, part) in enumerate(rows) for gpu in part.gpus]
        table = np.array([(j, node, part.workers, part.servers) for j, node, part in rows], dtype=np.int32)
        plan = PlacementPlan(
            tuple(job.name for job in jobs),
            table[:, 0],
            table[:, 1],
            table[:, 2],
            table[:, 3],
            grant_row=np.array([r for r, _ in grants], dtype=np.int32),
            grant_gpu=np.array([gpu for _, gpu in grants], dtype=np.int32),
        )
        return PlacementProblem(self._nodes.fleet, jobs, self._nodes.speeds, goal=goal), plan

    def _blocked(self, job: GangJob) -> list[int]:
        """Return the nodes of running jobs that may share none with it."""
        others = {*job.apart, *self._avoided.get(job.name, ())}
        return sorted({node for name in others for node in self.running.get(name, ())})

    def _room(self, kind: Kind, blocked: list[int]) -> Capacity:
        """Return the room for a kind of worker now."""
        end = self._forgotten + len(self._log)
        room, read = self._capacities.get(kind, (None, 0))
        if room is None or read < self._forgotten:
            while len(self._capacities) >= KINDS:
                del self._capacities[next(iter(self._capacities))]
            room = Capacity(self._nodes, kind)
        elif read < end:
            room.renew(np.unique(np.array(self._log[read - self._forgotten :], dtype=np.int64)))
        self._capacities[kind] = room, end
        return room.without(np.array(blocked, dtype=np.int64)) if blocked else room

    def _servers(self, job: GangJob, workers: dict[int, int], blocked: list[int]) -> dict[int, int] | None:
        """Return node -> servers: beside the workers, evenly as room allows, then near; `None` if they do not fit."""
        room = self._room(Kind.servers(job), blocked)
        worker, server = Kind.workers(job).need, room.kind.need
        count, able = dict.fromkeys(workers, 0), []
        for node, w in workers.items():
            left = zip(self._nodes.free[:, node].tolist(), worker, server, strict=True)
            most = min([job.servers, *((has - w * of_worker) // need for has, of_worker, need in left if need)])
            if most:
                able.append((1 / w, node, most))
        heapify(able)
        rest = job.servers
        while able and rest:
            _, node, most = heappop(able)
            count[node] += 1
            rest -= 1
            if count[node] < most:
                heappush(able, ((count[node] + 1) / workers[node], node, most))
        if rest:
            elsewhere = room.without(np.array(sorted(workers), dtype=np.int64))
            if elsewhere.total < rest:
                return None
            fullest = max(workers, key=lambda node: (workers[node], -node))
            count |= around(elsewhere, fullest, rest)
        return count

    def _take(self, job: GangJob, workers: dict[int, int], servers: dict[int, int]) -> Mapping[int, NodeAllocation]:
        """Give the job its nodes, once it is sure of each of its nodes that they fit."""
        need = job.worker.grants
        allocation = {
            node: NodeAllocation(w, servers.get(node, 0), tuple(self._idle[node][: need * w]))
            for node, w in ((node, workers.get(node, 0)) for node in sorted({*workers, *servers}))
        }
        used = self._used(job, allocation)
        placed = sum(part.workers for part in allocation.values()), sum(part.servers for part in allocation.values())
        whole = placed[0] in job.workers and placed[1] == job.servers
        held = all(len(part.gpus) == need * part.workers for part in allocation.values())
        if not (whole and held and (used <= self._nodes.free[:, list(allocation)]).all()):
            raise AssertionError(f"{self._policy.__name__} proposed nodes for {job.name} that do not fit: {allocation}")
        for node, part in allocation.items():
            del self._idle[node][: len(part.gpus)]
        self._change(job, allocation, -used)
        self._jobs[job.name], self.running[job.name] = job, allocation
        for other in job.apart:
            self._avoided[other].add(job.name)
        return allocation

    def _used(self, job: GangJob, allocation: Mapping[int, NodeAllocation]) -> Long:
        """Return what the job uses of each of its nodes, in the units of `Nodes.free`, int64 (4, nodes).

        Rounded once a node, so that it is the same whether the gang is counted by workers or by bundles of them.
        """
        tasks = np.array([(part.workers, part.servers) for part in allocation.values()], dtype=np.int64)
        exact = np.array([demanded(job.worker), demanded(job.server)])
        return np.ceil(np.minimum(tasks @ exact, MOST) - 1e-3).astype(np.int64).T

    def _change(self, job: GangJob, allocation: Mapping[int, NodeAllocation], more: Long) -> None:
        """Note that `more` is free on the nodes of a job that comes, or goes."""
        nodes, where = self._nodes, list(allocation)
        nodes.free[:, where] += more
        nodes.taken[where] += 1 if job.name not in self._jobs else -1
        if job.whole_nodes:
            nodes.guarded[where] = job.name not in self._jobs
        self._log += where
        if len(self._log) > LOG:
            forgotten = len(self._log) - LOG // 2
            del self._log[:forgotten]
            self._forgotten += forgotten
