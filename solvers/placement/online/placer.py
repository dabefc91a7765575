"""Gangs placed one at a time on a cluster that runs and whose nodes fail: each at once, whole, and none rebuilt."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_choice
from gangplan.instances.placement import Fleet, GangJob, PlacementPlan, PlacementProblem, SpeedModel

from ...nodes import most_workers
from ..policies import GANG_POLICIES, GangPolicy, serve
from .capacity import Capacity, Kind, NodeCapacity, demanded
from .state import MOST, ChangeLog, Long

ANY_MODEL = "any"
"""The model of all jobs, where models make no difference."""
KINDS = 256
"""Kinds of worker whose room is kept; the one kept longest goes first."""


@dataclass(frozen=True, slots=True)
class NodeAllocation:
    """What a job has on one node: numbers of workers and servers, and its GPUs, as many for each worker as it asks."""

    workers: int
    servers: int
    gpus: tuple[int, ...]


class Placer(NodeCapacity):
    """A cluster on which gangs come and go.

    For each kind of worker it keeps how many of them each node, each rack and each part above could take. A decision
    looks again only at the nodes that changed since the last one for its kind, and then into few racks. A node that is
    down has nothing free, so no kind of worker has room there.

    Args:
        fleet: the nodes, empty at first; those that are not usable are down.
        speeds: which models run on which GPUs; by default all jobs are of `ANY_MODEL`, which runs on all alike.

    Attributes:
        running: the jobs that run, by name, with what they hold on each node.
    """

    def __init__(self, fleet: Fleet, speeds: SpeedModel | None, policy: str = "topology") -> None:
        require_choice(policy, "policy", GANG_POLICIES)
        if speeds is None:
            one, same = np.ones(1), np.ones((len(fleet.gpu_types), 1))
            speeds = SpeedModel((ANY_MODEL,), fleet.gpu_types, same, one, one, 0 * one[None], 0 * one[None])
        self._fleet, self._policy = fleet, GANG_POLICIES[policy]
        super().__init__(replace(fleet, usable=np.ones(fleet.n_nodes, dtype=bool)), speeds)
        self._idle = [list(range(count)) for count in fleet.gpus.tolist()]
        self._down: dict[int, tuple[list[int], Long]] = {}
        self._capacities: dict[Kind, tuple[Capacity, int]] = {}
        self._log = ChangeLog()
        self._jobs: dict[str, GangJob] = {}
        self._avoided: defaultdict[str, set[str]] = defaultdict(set)
        self.running: dict[str, Mapping[int, NodeAllocation]] = {}
        for node in np.flatnonzero(~np.asarray(fleet.usable)).tolist():
            self.fail(node)

    def fail(self, node: int) -> None:
        """Take out a node on which nobody is."""
        gpus = self._idle[node]
        self._down[node] = gpus, self.close(node, gpus, self.whole[:, node])
        self.guarded[node] = True

    def repair(self, node: int) -> None:
        """Bring a node back."""
        self.open(node, *self._down.pop(node))
        self.guarded[node] = False

    def close(self, node: int, gpus: Collection[int], amounts: Long) -> Long:
        """Have idle GPUs of a node and such amounts, as far as it has them, be nobody's; return the amounts."""
        less = np.minimum(self.vacant[:, node], amounts)
        self.vacant[:, node] -= less
        self._idle[node] = [gpu for gpu in self._idle[node] if gpu not in gpus]
        self._log.note([node])
        return np.asarray(less)

    def open(self, node: int, gpus: Collection[int], amounts: Long) -> None:
        """Take back what `close` did."""
        self.vacant[:, node] += amounts
        self._idle[node] = sorted([*self._idle[node], *gpus])
        self._log.note([node])

    def most_on(self, kind: Kind, *, up: bool = True) -> Long:
        """Return how many such workers each node takes if it is empty, int64 (m,); 0 if `up` and it is down."""
        most = np.where(self.allowed(kind), kind.most, 0)
        if up:
            most[list(self._down)] = 0
        return most_workers(self.whole, kind.need, most)

    def part(self, kind: Kind) -> Long | None:
        """Return the part of the fleet of each node, one of which has a gang whole, int64 (m,); `None` if any may."""
        return None if kind.shared is None else self.parts(kind.shared).part

    def domain(self, kind: Kind) -> Long:
        """Return the same, one part for all nodes if any may."""
        part = self.part(kind)
        return np.zeros(len(self.free), np.int64) if part is None else part

    def idle(self, node: int) -> list[int]:
        """Return the GPUs of a node that nobody holds."""
        return list(self._idle[node])

    def room(self, job: GangJob) -> Capacity:
        """Return the room for the workers of a job now."""
        return self._room(Kind.workers(job), self.blocked(job))

    def fits(self, job: GangJob) -> bool:
        """Return whether the least workers of a job have room now."""
        return self.room(job).total >= job.workers[0]

    def against(self, job: GangJob) -> set[str]:
        """Return the running jobs with which a job shares no node."""
        return {name for name in (*job.apart, *self._avoided.get(job.name, ())) if name in self.running}

    def blocked(self, job: GangJob) -> list[int]:
        """Return the nodes of these jobs."""
        return sorted({node for name in self.against(job) for node in self.running[name]})

    def uses(self, name: str) -> tuple[list[int], Long]:
        """Return the nodes of a running job, and what it uses of each, int64 (4, nodes)."""
        return list(self.running[name]), self._used(self._jobs[name], self.running[name])

    def place(
        self, job: GangJob, room: Capacity | None = None, policy: GangPolicy | None = None
    ) -> Mapping[int, NodeAllocation] | None:
        """Place a job with as many workers as it may have and fit; return what it holds, `None` if it fits nowhere.

        Args:
            room: for its workers, where that is less than all there is.
            policy: by which it is placed, by default that of the placer.

        Raises:
            InstanceError: if a job of its name runs, its workers share GPUs, its model has no speed, or the fleet lacks
                one of its labels.
        """
        if job.name in self._jobs:
            raise InstanceError("job.name", f"{job.name!r} runs already")
        if 0 < job.worker.gpu < 1:
            raise InstanceError("job.worker.gpu", f"{job.worker.gpu!r} is a share; `State` takes tasks that share GPUs")
        blocked, policy = self.blocked(job), policy or self._policy
        room = self._room(Kind.workers(job), blocked) if room is None else room
        total = room.total
        for degree in reversed(job.workers):
            if degree > total:
                continue
            workers = policy(room.chosen(degree), degree)
            servers = self._servers(job, workers, blocked) if job.servers else {}
            if servers is not None:
                seats = {
                    node: NodeAllocation(w, servers.get(node, 0), tuple(self._idle[node][: job.worker.grants * w]))
                    for node, w in ((node, workers.get(node, 0)) for node in sorted({*workers, *servers}))
                }
                return self._take(job, seats, policy.__name__)
        return None

    def put(self, job: GangJob, nodes: Mapping[int, Sequence[int]]) -> bool:
        """Place a gang whose GPUs are known and idle; return whether cores, memory and NIC suffice."""
        need = max(1, job.worker.grants)
        seats = {
            node: NodeAllocation(len(gpus) // need, 0, tuple(gpus) if job.worker.gpu else ())
            for node, gpus in sorted(nodes.items())
        }
        job = replace(job, workers=(sum(seat.workers for seat in seats.values()),))
        if (self._used(job, seats) > self.vacant[:, list(seats)]).any():
            return False
        self._take(job, seats, "put")
        return True

    def remove(self, name: str) -> None:
        """Take a job off its nodes."""
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
        """Return what runs as a problem and its plan, for `gangplan.verify`."""
        jobs = tuple(
            replace(job, apart=tuple(name for name in job.apart if name in self._jobs)) for job in self._jobs.values()
        )
        rows = [(j, node, part) for j, job in enumerate(jobs) for node, part in self.running[job.name].items()]
        grants = [(r, gpu) for r, (_, _, part) in enumerate(rows) for gpu in part.gpus]
        table = np.array([(j, node, part.workers, part.servers) for j, node, part in rows], dtype=np.int32)
        held = np.array(grants, dtype=np.int32).reshape(-1, 2)
        plan = PlacementPlan(tuple(job.name for job in jobs), *table.T, *held.T)
        return PlacementProblem(self._fleet, jobs, self.speeds, goal=goal), plan

    def _room(self, kind: Kind, blocked: list[int]) -> Capacity:
        room, read = self._capacities.get(kind, (None, -1))
        changed = self._log.since(read)
        if room is None or changed is None:
            while len(self._capacities) >= KINDS:
                del self._capacities[next(iter(self._capacities))]
            room = Capacity(self, kind)
        elif len(changed):
            room.renew(changed)
        self._capacities[kind] = room, self._log.end
        return room.without(np.array(blocked, dtype=np.int64)) if blocked else room

    def _servers(self, job: GangJob, workers: dict[int, int], blocked: list[int]) -> dict[int, int] | None:
        """Return node -> parameter servers, see `serve`."""
        room = self._room(Kind.servers(job), blocked)
        worker, server, most = Kind.workers(job).need, room.kind.need, dict[int, int]()
        for node, w in workers.items():
            left = zip(self.vacant[:, node].tolist(), worker, server, strict=True)
            most[node] = min([job.servers, *((has - w * of_worker) // need for has, of_worker, need in left if need)])
        return serve(workers, job.servers, most, lambda: room.without(np.array(sorted(workers), dtype=np.int64)))

    def _take(self, job: GangJob, allocation: Mapping[int, NodeAllocation], by: str) -> Mapping[int, NodeAllocation]:
        used = self._used(job, allocation)
        placed = sum(part.workers for part in allocation.values()), sum(part.servers for part in allocation.values())
        whole = placed[0] in job.workers and placed[1] == job.servers
        held = all(len(part.gpus) == job.worker.grants * part.workers for part in allocation.values())
        if not (whole and held and (used <= self.vacant[:, list(allocation)]).all()):
            raise AssertionError(f"{by} proposed nodes for {job.name} that do not fit: {allocation}")
        for node, part in allocation.items():
            self._idle[node] = [gpu for gpu in self._idle[node] if gpu not in part.gpus]
        self._change(job, allocation, -used)
        self._jobs[job.name], self.running[job.name] = job, allocation
        for other in job.apart:
            self._avoided[other].add(job.name)
        return allocation

    def _used(self, job: GangJob, allocation: Mapping[int, NodeAllocation]) -> Long:
        """Return what the job uses of each of its nodes, in the units of `NodeCapacity.vacant`, int64 (4, nodes).

        Rounded once a node, so that it is the same whether the gang is counted by workers or by bundles of them.
        """
        tasks = np.array([(part.workers, part.servers) for part in allocation.values()], dtype=np.int64)
        exact = np.array([demanded(job.worker), demanded(job.server)])
        return np.asarray(np.ceil(np.minimum(tasks @ exact, MOST) - 1e-3).astype(np.int64).T)

    def _change(self, job: GangJob, allocation: Mapping[int, NodeAllocation], more: Long) -> None:
        where, comes = list(allocation), job.name not in self._jobs
        self.vacant[:, where] += more
        self.taken[where] += 1 if comes else -1
        if job.whole_nodes:
            self.guarded[where] = comes
        self._log.note(where)
