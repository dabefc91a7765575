"""When a gang fits if nobody else starts, and which room others must leave it (EASY; Lifka, JSSPP 1995)."""

from __future__ import annotations

from itertools import chain, islice, pairwise
from math import inf

import numpy as np

from gangplan.instances.placement import GangJob
from gangplan.solvers.placement.online.capacity import Capacity, Kind

from ..queueing.accounts import ROOT
from ..queueing.request import Request
from ..state import SchedulerState

Ints = np.ndarray


class Reservation:
    """The time at which a gang fits if nobody else starts, with all that each node has free by then.

    GPUs, cores, memory and NIC are looked at, labels and types, who wants to be alone or apart. A job that runs longer
    than expected is taken to run as long again.

    Args:
        state: what runs.
        gang: as the placer sees it.
        promises: the earliest times that were found for gangs, by name; this one is entered.
        shut: nodes that it may not use.
        since: seconds before which it does not start.

    Attributes:
        time: when it fits, infinite if it never does; no later than was promised.
        ends: the jobs that end until then, by their ends.
    """

    def __init__(
        self,
        state: SchedulerState,
        gang: GangJob,
        promises: dict[str, float] | None = None,
        shut: Ints | None = None,
        since: float | None = None,
    ) -> None:
        placer, self._gang, self._kind = state.placer, gang, Kind.workers(gang)
        need = self._kind.need
        self._rows = [i for i, amount in enumerate(need) if amount]
        self._need = np.array([need[i] for i in self._rows])[:, None]
        self._free = placer.vacant[self._rows]
        self._taken, self._guarded = placer.taken.copy(), placer.guarded
        self._most = np.where(state.bundles.ground(gang).nodes, self._kind.most, 0)
        self._room = placer.room(gang).room.copy()
        if shut is not None:
            self._most[shut] = self._room[shut] = 0
        self._part, self._workers = placer.part(self._kind), gang.workers[0]
        self._spare = self._left()
        self._against = placer.against(gang)
        self._beside = np.zeros(len(self._room), dtype=np.int64)  # of those against it, how many are on each node
        for name in self._against:
            self._beside[list(state.running[name].nodes)] += 1
        if kept := state.notices.kept:  # as if it were free: others let it stand all the more
            for node, amounts in kept.items():
                self._free[:, node] += amounts[self._rows]
            self._renew(np.array([*kept]))
        self._running, table = state.running, state.running.table()
        self._uses, self._node = table.used, table.node
        self.ends: list[str] = []
        waits = since is not None and since > state.now
        self.time = self._find(state, since if waits else None) if waits or self._spare < 0 else state.now
        if self._part is not None and self._spare >= 0:  # from now on it is about the part that has most room then
            other = self._part != int(np.bincount(self._part, self._room).argmax())
            self._most[other], self._room[other], self._part = 0, 0, None
        if promises is not None and self.time < np.inf:
            self.time = promises[gang.name] = min(self.time, promises.get(gang.name, np.inf))

    def _find(self, state: SchedulerState, since: float | None) -> float:
        """Return the time: ever larger groups of jobs end until the gang fits, then the last group is halved."""
        ends, count = state.running.ends(state.now), 4
        if since is not None:
            all_ = [*ends]
            before = [end for end in all_ if end[0] <= since]
            if before:
                self._end(before)
            self.ends += [name for _, name in before]
            if self._spare >= 0:
                return since
            ends = islice(all_, len(before), None)
        while group := list(islice(ends, count)):
            self._end(group)
            if self._spare >= 0:
                few, many = 0, len(group)  # so many do not suffice; so many do, and have ended
                while many - few > 1:
                    half = (few + many) // 2
                    self._end(group[half:many], -1)
                    if self._spare >= 0:
                        many = half
                    else:
                        self._end(group[half:many])
                        few = half
                time = group[many - 1][0]
                at_once = [end for end in group[many:] if end[0] <= time]
                self._end(at_once)
                self.ends += [name for _, name in (*group[:many], *at_once)]
                return time
            self.ends += [name for _, name in group]
            count *= 2
        return float(np.inf)

    def _end(self, group: list[tuple[float, str]], sign: int = 1) -> None:
        """Have jobs end, or run on if the sign is -1."""
        rows = list(chain.from_iterable(self._running.rows(name) for _, name in group))
        nodes = self._node[rows]
        for free, row in zip(self._free, self._rows, strict=True):
            np.add.at(free, nodes, sign * self._uses[row, rows])
        np.add.at(self._taken, nodes, -sign)
        for _, name in group:
            if name in self._against:
                self._beside[list(self._running[name].nodes)] -= sign
        self._renew(np.unique(nodes))

    def _left(self) -> int:
        """Return the room that is left beside the gang, of one part if it has to be in one."""
        room = self._room.sum() if self._part is None else np.bincount(self._part, self._room).max()
        return int(room) - self._workers

    def _renew(self, nodes: Ints) -> None:
        self._room[nodes] = self._later(nodes, self._free[:, nodes], self._taken[nodes])
        self._spare = self._left()

    def _later(self, nodes: Ints, free: Ints, taken: Ints) -> Ints:
        """Return how many workers nodes take then, with so much free and so many jobs there."""
        room = np.minimum(self._most[nodes], np.maximum(free // self._need, 0).min(axis=0))
        shut = (taken > 0) & (self._guarded[nodes] | self._kind.alone) | (self._beside[nodes] > 0)
        return np.where(shut, 0, room)

    def _lost(self, job: GangJob, nodes: Ints, used: Ints) -> Ints:
        """Return how many workers fewer each node takes then if a job uses so much of it, int64 (n,)."""
        left = self._later(nodes, self._free[:, nodes] - used[self._rows], self._taken[nodes] + 1)
        if job.whole_nodes or job.name in self._gang.apart or self._gang.name in job.apart:
            left = np.zeros_like(left)
        return np.asarray(self._room[nodes] - left)

    def stands(self, job: GangJob, nodes: list[int], used: Ints, end: float) -> bool:
        """Return whether it stands if a job with these seats runs to `end`."""
        return end <= self.time or int(self._lost(job, np.array(nodes), used).sum()) <= self._spare

    def note(self, job: GangJob, nodes: list[int], used: Ints, end: float) -> None:
        """Note that a job with these seats runs to `end`."""
        if end > self.time:
            at = np.array(nodes)
            lost = self._lost(job, at, used)
            self._free[:, at] -= used[self._rows]
            self._taken[at] += 1
            self._room[at] -= lost
            self._spare -= int(lost.sum())

    def beside(self, job: GangJob, room: Capacity, end: float) -> Capacity:
        """Return the room that a job which runs to `end` may take: seats anywhere in it let the reservation stand.

        Nodes are given whole as long as what the gang can do without lasts, those that it loses least for first; of the
        others there is what the gang leaves over.
        """
        if end <= self.time:
            return room
        nodes, workers = np.flatnonzero(room.room), job.workers[0]
        need = np.array(Kind.workers(job).need)[:, None]
        wide = np.minimum(room.room[nodes], workers)
        lost = self._lost(job, nodes, need * wide)
        if workers == 1:
            open_ = lost <= self._spare
        else:
            order = np.argsort(lost / wide, kind="stable")
            open_ = np.zeros(len(nodes), dtype=bool)
            open_[order] = np.cumsum(lost[order]) <= self._spare
        rest = self._free[:, nodes] - self._room[nodes] * self._need
        asks = need[self._rows]
        over = np.where(asks > 0, rest // np.maximum(asks, 1), wide).min(axis=0)
        alone = self._lost(job, nodes, 0 * need) > 0
        kept = np.where(alone, 0, np.clip(over, 0, wide))
        return room.with_room(nodes[~open_], kept[~open_])


def reserve(state: SchedulerState, gang: GangJob, promises: dict[str, float] | None = None) -> Reservation:
    """Return when a waiting gang fits if nobody else starts, on nodes that are open to it until it ends.

    From one end of a window to the next, nodes only close: those that are closed at the time that was found are left
    out, until the time stands.
    """
    request, calendar = state.waiting.get(gang.name), state.calendar
    if request is None or not calendar.windows:
        return Reservation(state, gang, promises)
    lasts, best = state.lasts(request, request.job.workers[0]), None
    ends = sorted({x.end for x in calendar.bars(request, state.now, inf) if x.end < inf})
    for since, until in pairwise((state.now, *ends, inf)):
        shut = np.zeros(0, dtype=np.int64)
        closed = calendar.closed(request, since, since + lasts)
        while True:
            shut = np.union1d(shut, closed)
            found = Reservation(state, gang, None, shut, since)
            closed = calendar.closed(request, found.time, found.time + lasts) if found.time < inf else shut
            if np.isin(closed, shut).all():
                break
        best = found if best is None or found.time < best.time else best
        if found.time < until:
            break
    assert best is not None, "there is one interval at least"
    if promises is not None and best.time < inf:
        best.time = promises[gang.name] = min(best.time, promises.get(gang.name, inf))
    return best


def covered(state: SchedulerState, number: int, request: Request) -> float:
    """Return when an account covers a waiting job if nobody starts but who is owed it; infinite if it never does."""
    accounts, asks = state.accounts, state.asks(request, request.job.workers[0])
    leaf, time, ends = accounts.leaf(request.terms), state.now, state.running.ends(state.now)
    while time < inf and not accounts.within(number, asks):
        time, name = next(ends, (inf, ""))
        other = accounts.leaf(state.running[name].request.terms) if name else ROOT
        if number in accounts.all[other].above and not accounts.owed(other, leaf):
            asks = tuple(np.subtract(asks, state.used(name)).tolist())
    return time
