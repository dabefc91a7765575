"""Moves of running jobs that make room: a rack or a node with nobody on it, or a place for a gang.

A job that moves stops, and goes on at once elsewhere; that costs its price times its GPUs. Whoever moves has left its
nodes, so no moves cost less than the cheapest eviction (`cheapest_eviction`) that makes the same room: a bound for any
number of jobs. Jobs of that set are placed on what is left, the largest first; if all have a place, no moves cost less.
Where not, and the cluster is small, CP-SAT says who moves where, moves that make way for moves included.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import GangJob
from gangplan.solvers.placement.online.capacity import Capacity
from gangplan.solvers.placement.online.state import Long
from gangplan.solvers.run import OPTIMAL_GAP

from ..queueing.admission import check_new
from ..queueing.request import Request
from ..state import SchedulerState, Trial
from ..stopping.leaving import Leaving
from ..stopping.running_jobs import Nodes, RunningJob
from .migration import Move, Moves, closed, in_order, limited, movable

TRIES = 16
"""Maximum number of sets of jobs whose places are looked for before CP-SAT is asked."""
SMALL = 4000
"""Maximum of movable jobs times nodes for which CP-SAT is asked: such a model takes a second."""
Counts = Mapping[int, int]
"""Workers, or bundles of them, by node."""


@dataclass(frozen=True, slots=True)
class _WantedRoom:
    """Say what is to be free: all of one group of nodes, or a place for a gang in one.

    Attributes:
        group: of each node, -1 if it is in none, int64 (m,).
        names: of the groups.
        gang: as the placer sees it, `None` if the whole group is to be free.
        name: of the gang, or "".
    """

    group: Long
    names: Sequence[str]
    gang: GangJob | None
    name: str

    @classmethod
    def of(cls, state: SchedulerState, domain: object, gang: object) -> _WantedRoom:
        """Return what a user asks for."""
        fleet, m = state.fleet, state.fleet.n_nodes
        if domain is None and gang is None:
            raise InstanceError("domain", "is None, and so is gang: say what is to be free")
        levels, group, names = [level.name for level in fleet.topology.levels], np.zeros(m, np.int64), ["the cluster"]
        if isinstance(domain, str) and (level := domain.split(" ")[0]) in levels and domain not in fleet.names:
            group = fleet.topology.group[levels.index(level)].astype(np.int64)
            names = [f"{level} {i}" for i in range(int(group.max()) + 1)]
            if domain not in (level, *names):
                raise InstanceError("domain", f"{domain!r} is none of {names[0]} to {names[-1]}")
            if domain != level:
                group, names = np.where(group == names.index(domain), 0, -1), [domain]
        elif domain is not None:
            some: list[Any] = [*domain] if isinstance(domain, list | tuple | set | frozenset) else [domain]
            nodes = sorted({state.node(node) for node in some})
            group = np.where(np.isin(np.arange(m), nodes), 0, -1)
            names = [", ".join(fleet.names[node] for node in nodes)]
        if gang is None:
            return cls(np.where(state.up, group, -1), names, None, "")
        if isinstance(gang, str):
            state.find(gang, "waits")
            request = state.later.request(state, gang)
        elif isinstance(gang, GangJob):
            zeros = (0.0,) * len(gang.workers)
            request = Request(gang, state.now, zeros, True, state.settings.together, state.serial)
            check_new(state, request)
        else:
            raise InstanceError("gang", f"{gang!r} is neither a GangJob nor the name of a job that waits")
        degree = request.job.workers[0]
        group[state.shut(request, degree)] = -1
        return cls(group, names, state.placed(request, degree), request.name)


def defragment(
    state: SchedulerState, domain: object, gang: object, worth: float | None, seconds: float
) -> Moves | None:
    """Return the cheapest moves that make room, `None` if there are none, or none that cost less than it is worth."""
    until, room = time.perf_counter() + seconds, _WantedRoom.of(state, domain, gang)
    search = _MoveSearch(state, room, sorted(state.running.values(), key=lambda job: job.request.serial), until)
    search.evict()
    if not search.proved:
        search.exact()
    best = search.best
    if best is None or (worth is not None and best.cost > worth):
        return None
    return replace(best, bound=min(search.bound, best.cost))


class _MoveSearch:
    """Search for moves; `best` are the cheapest known, and `bound` is a lower bound on their cost."""

    def __init__(self, state: SchedulerState, room: _WantedRoom, jobs: Sequence[RunningJob], until: float) -> None:
        self._state, self._room, self._jobs, self._until = state, room, jobs, until
        now, stay = state.now, limited(state)
        prices = ((x.request.price or 0.0) * x.gpus if movable(x, now) and x.name not in stay else np.inf for x in jobs)
        self._cost: FloatArray = np.fromiter(prices, float, len(jobs))
        self.best: Moves | None = None
        self.bound = 0.0

    @property
    def proved(self) -> bool:
        """Whether no moves can cost less than the best."""
        return self.best is not None and self.bound >= self.best.cost * (1 - OPTIMAL_GAP)

    def evict(self) -> None:
        """Look for the cheapest sets that leave, and for places of those."""
        for i, (bound, leave, group) in enumerate(self._sets()):
            self.bound = bound if not i else self.bound
            if self.best is not None and bound >= self.best.cost:
                break
            self._offer(leave, group, {})
            if self.proved or time.perf_counter() >= self._until:
                break

    def _sets(self) -> Iterator[tuple[float, list[int], int]]:
        """Yield a lower bound on the cost, jobs that leave room once they have left, and the group: the cheapest first.

        If a set for a gang has no place elsewhere, the next one is without its dearest job.
        """
        room = self._room
        if room.gang is None:
            at: dict[int, list[int]] = {g: [] for g in np.unique(room.group[room.group >= 0]).tolist()}
            for j, job in enumerate(self._jobs):
                for g in {int(room.group[node]) for node in job.nodes} & {*at}:
                    at[g].append(j)
            price = {g: float(self._cost[js].sum()) for g, js in at.items()}
            for g in sorted(at, key=lambda g: (price[g], g))[:TRIES]:
                if np.isfinite(price[g]):
                    yield price[g], at[g], g
            return
        cost, leaving = self._cost.copy(), Leaving(self._state, room.gang, domain=room.group)
        for _ in range(TRIES):
            found = leaving.cheapest(cost, (self._until - time.perf_counter()) / 2)
            if found is None:
                return
            yield found.bound, list(found.jobs), leaving.where(found.jobs)[0]
            if not found.jobs:
                return
            cost[max(found.jobs, key=cost.__getitem__)] = np.inf

    def _offer(self, leave: Sequence[int], group: int, counts: Mapping[str, Counts]) -> None:
        """Note moves of these jobs if all have a place, and an order; `counts` say where, if that is known."""
        state, room, jobs = self._state, self._room, {self._jobs[j].name: self._jobs[j] for j in leave}
        cost = float(self._cost[list(leave)].sum())
        if self.best is not None and cost >= self.best.cost:
            return
        if (places := self._places(list(jobs.values()), group, counts)) is None:
            return
        seats = places.pop("", {})
        if (replay := in_order(state, places)) is None:
            return
        if room.gang is None:
            seats = {n: tuple(range(int(state.fleet.gpus[n]))) for n in np.flatnonzero(room.group == group).tolist()}
        if any(gpu in replay[1][n] for n, gpus in seats.items() for gpu in gpus):
            return  # who is told to stop, or claims seats, is there
        moves = []
        for job in (jobs[name] for name in replay[0]):
            price = (job.request.price or 0.0) * job.gpus
            moves.append(Move(job.name, job.degree, state.named(job.nodes), state.named(places[job.name]), price))
        self.best = Moves(tuple(moves), cost, 0.0, room.names[group], room.name, state.named(seats))

    def _places(self, jobs: Sequence[RunningJob], group: int, counts: Mapping[str, Counts]) -> dict[str, Nodes] | None:
        """Return GPUs of the gang, under the name "", and of each job; `None` if one has no place."""
        state, room, places = self._state, self._room, dict[str, Nodes]()
        outside, late = np.flatnonzero(room.group != group), state.delay(jobs)
        with state.trial() as trial:
            trial.unseat(jobs)
            if room.gang is not None:
                if (seats := self._put(room.gang, outside, counts.get(""), trial)) is None:
                    return None
                places[""] = seats
            inside = np.flatnonzero(room.group == group) if room.gang is None else outside[:0]
            for job in sorted(jobs, key=lambda x: (-x.gpus, x.request.serial)):
                gang = state.placed(job.request, job.degree)
                never = np.union1d(inside, closed(state, job, state.now, late))
                if (seats := self._put(gang, never, counts.get(job.name), trial)) is None:
                    return None
                places[job.name] = state.trimmed(job.request, job.degree, seats)
                if {*closed(state, job, state.now, late, seats)} & seats.keys():
                    return None
        return places

    def _put(self, gang: GangJob, never: Long, counts: Counts | None, trial: Trial) -> Nodes | None:
        """Place a gang for now, not on some nodes; return its GPUs, `None` if it has no place."""
        places = self._state.places
        room: Capacity = self._state.placer.room(gang).without(never)
        policy = None if places is None else places.closest
        if counts is not None:
            policy = lambda room, degree: dict(counts)  # noqa: E731
            if any(count > room.room[node] for node, count in counts.items()):
                return None
        seats = trial.place(gang, room, policy)
        return None if seats is None else {node: seat.gpus for node, seat in seats.items()}

    def exact(self) -> None:
        """Have CP-SAT say who moves where, if the cluster is small."""
        movable, seconds = np.flatnonzero(np.isfinite(self._cost)).tolist(), self._until - time.perf_counter()
        if seconds <= 0 or not movable or len(movable) * self._state.fleet.n_nodes > SMALL:
            return
        from .relocation import Relocation

        below = np.inf if self.best is None else self.best.cost
        model = Relocation(self._state, self._room.group, self._room.gang, self._jobs, movable)
        bound, answer = model.solve(self._cost, below, seconds)
        self.bound = max(self.bound, bound)
        if answer is not None:
            self._offer(*answer)
