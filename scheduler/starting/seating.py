"""Where gangs go: beside the room and the limits that are kept for jobs that wait, before windows close their nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from gangplan.instances.placement import GangJob
from gangplan.solvers.placement.online.capacity import Capacity, Kind
from gangplan.solvers.placement.online.placer import NodeAllocation

from ..policies.policy import Watchdog
from ..queueing.accounts import ROOT
from ..queueing.queue import QueueWalk
from ..queueing.request import Request
from ..state import SchedulerState, Trial
from ..stopping.running_jobs import Nodes
from .bundles import EmptyNodes
from .gpu_types import below_zero, best_type
from .reservations import Reservation, covered, reserve

FREE = -1
"""Stands for what is free and no queue's own, as an account that jobs take of."""


@dataclass(slots=True)
class HeldUp:
    """A waiting job that others may not delay.

    `strict`: nor those that can be stopped; `ground`: nodes for it; `borrows`: it would take its guarantee over.
    """

    gang: GangJob
    strict: bool
    ground: EmptyNodes
    borrows: bool
    reservation: Reservation | None = None


class Protection:
    """Keep room and limits for jobs that wait.

    Attributes:
        held: the jobs that others may not delay, in the order in which they are held.
        limits: accounts, and for which job that is due what they may hold more is kept.
    """

    def __init__(self, state: SchedulerState) -> None:
        self._state = state
        self.held: list[HeldUp] = []
        self.limits: dict[int, str] = {}
        self._first: dict[int | str, Request] | None = None  # see `_first_due`
        self._keepers: set[str] = set()  # jobs that are due, for which others were kept from starting

    def due(self) -> None:
        """Keep limits for those that are due from now on."""
        self._first = self._first_due() if self._first is None else self._first

    def started(self, name: str) -> None:
        """Hold the next that is due if this job, or one that has come to borrow, was the one that is not delayed."""
        if any(held.strict and (held.gang.name == name or self._turned(held)) for held in self.held):
            self._hold_next()

    def taken_back(self, due: Mapping[str, float]) -> None:
        """Hold jobs whose starts were taken back, and which are due then, as before; look at all else anew."""
        at = next((i for i, held in enumerate(self.held) if held.strict and held.gang.name in due), len(self.held))
        # those due later are held once it starts
        self.held = [held for i, held in enumerate(self.held) if i <= at or not held.strict]
        if self._first is not None and any(time <= self._state.now for time in due.values()):
            self._first = self._first_due()
        self.renew()

    def hold(self, request: Request, strict: bool = False) -> None:
        """Let nobody delay a job from now on, unless all its nodes are some other's that is held alike, or are too few.

        Nor if nodes are closed for good, without which it never fits.
        """
        degree, state = request.job.workers[0], self._state
        if not (self.needless(request, strict) or self.later(request, degree)):
            ground, borrows = state.ground(request, degree), state.borrows(request)
            self.held.append(HeldUp(state.placed(request, degree), strict, ground, borrows))

    def _hold_next(self) -> None:
        """Let nobody delay the first that is due, now that the one before it started, or borrows."""
        head = QueueWalk(self._state.due, self._state.due.ripe(self._state.now)).next()
        request = self._state.waiting[head[1]] if head else None
        if request and request.due <= self._state.now:
            self.hold(request, strict=True)

    def holds(self, name: str) -> bool:
        """Return whether nobody may delay a job while it waits."""
        return any(held.gang.name == name for held in self.held)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Let those that are held within be delayed afterwards."""
        before = len(self.held)
        yield
        self.held = [*self.held[:before], *(held for held in self.held[before:] if held.strict)]

    def needless(self, request: Request, strict: bool) -> bool:
        """Return whether a job needs no room that nobody else keeps, or never has it."""
        state = self._state
        if request.name in state.notices.claims or not (strict or state.settings.reserve):
            return True
        held = [x for x in self.held if x.gang.name in state.waiting and x.strict >= strict]
        most = state.borrows(request)  # who borrows by now goes after who does not
        others = [x.ground for x in held if state.borrows(state.waiting[x.gang.name]) <= most]
        ground = state.ground(request, request.job.workers[0])
        if any(other.number == ground.number for other in others):
            return True
        theirs = np.logical_or.reduce([np.zeros_like(ground.nodes), *(other.nodes for other in others)])
        return not (ground.nodes & ~theirs).any() or self._never(request)

    def _never(self, request: Request) -> bool:
        """Return whether a job never has room, whoever ends."""
        state, degree = self._state, request.job.workers[0]
        gang, ground = state.placed(request, degree), state.ground(request, degree)
        if ground.total < gang.workers[0]:
            return True
        shut = state.calendar.closed(request, state.now, np.inf)  # at one time or another: most often few nodes
        lost = int(ground.most[shut].sum())
        return ground.total - lost < gang.workers[0] and reserve(state, gang).time == np.inf

    def _turned(self, held: HeldUp) -> bool:
        """Return whether a job has come to borrow since it was held: those within their guarantees go before it."""
        request = self._state.waiting.get(held.gang.name)
        turned = request is not None and not held.borrows and self._state.borrows(request)
        held.borrows |= turned
        return turned

    def renew(self) -> None:
        """Look at reservations anew when they are next asked for: jobs stopped or were put back."""
        for held in self.held:
            held.reservation = None

    def reservations(self, request: Request) -> list[Reservation]:
        """Return the reservations that a job must let stand: the strict ones if it can be stopped when they are due.

        Those held after it itself are behind it: were they to stand too, each could wait for the other. So are those
        that would borrow by now, if it would not, and are not due.
        """
        found, waiting, owed = [], self._state.waiting, not self._state.borrows(request)
        for held in self.held:
            if held.gang.name == request.name:
                break
            if not (held.strict or not request.lends):
                continue
            if held.gang.name in waiting:
                if owed and not held.strict and self._state.borrows(waiting[held.gang.name]):
                    held.reservation = None  # found anew behind it
                    continue
                if held.reservation is None:
                    promises = self._state.promises if held.strict else None
                    held.reservation = reserve(self._state, held.gang, promises)
                found.append(held.reservation)
        return found

    def keep(self, request: Request) -> None:
        """Keep what a queue may hold more, or what all may borrow, for a job that is due and which this limit keeps.

        Not if it keeps it even when nobody else runs, as when nodes are down.
        """
        accounts, asks = self._state.accounts, self._state.asks(request, request.job.workers[0])
        if accounts.over_limit(request.terms, asks) is None and accounts.never(request.terms, asks) is None:
            leaf = accounts.leaf(request.terms)
            for number in accounts.capped(leaf, asks) or ((ROOT,) if accounts.borrows(leaf, asks) else (ROOT, FREE)):
                self.limits.setdefault(number, request.name)

    def _first_due(self) -> dict[int | str, Request]:
        """Return the first due jobs of users, and of accounts that cover them once others of theirs have ended.

        Not those that no account covers, whoever runs, nor those that never have room: others go before them.
        """
        state, accounts, first = self._state, self._state.accounts, dict[int | str, Request]()
        ripe = state.due.ripe(state.now) if accounts.bounded else ()
        for request in sorted((state.waiting[state.due.head(x)] for x in ripe), key=state.place):
            terms, asks = request.terms, state.asks(request, request.job.workers[0])
            way = reversed(accounts.all[accounts.leaf(terms)].above)
            last = next((x for x in way if accounts.within(x, np.subtract(asks, accounts.all[x].used).tolist())), ROOT)
            new: set[int | str] = {last, terms.user} if last or not state.sharing.queues else set()
            new -= first.keys()
            never = new and accounts.over_limit(terms, asks) and accounts.never(terms, asks)
            if new and not (never or request.name in state.notices.claims or self._never(request)):
                first |= dict.fromkeys(new, request)
        return first

    def later(self, request: Request, degree: int) -> bool:
        """Return whether what a job would take of a limit, or of a guarantee, is kept for another one that is due.

        Who ends before the other one would have that, or then would fit, may use it.
        """
        state, kept = self._state, self.limits
        if self._first and not all(other.name in state.waiting for other in self._first.values()):
            self._first = self._first_due()
        if not ((first := self._first or {}) or kept):
            return False
        accounts, asks = state.accounts, state.asks(request, degree)
        leaf, lasts = accounts.leaf(request.terms), request.longest * max(1.0, request.left)
        end = state.now + request.pays + lasts
        for key in first.keys() & {request.terms.user, *accounts.all[leaf].above}:
            other, until = first[key], state.now
            if state.place(request) <= state.place(other):
                continue
            both = np.add(asks, state.asks(other, other.job.workers[0])).tolist()
            if isinstance(key, str):
                fine = not accounts.over_limit(request.terms, both, 2)
            elif not (fine := accounts.within(key, both) or accounts.owed(leaf, accounts.leaf(other.terms), asks)):
                until = covered(state, key, other)
            if not fine and end > until:
                self.reservations(request)  # promises when the other one fits
                if until > state.now or end > state.promises.get(other.name, until):
                    self._keepers.add(other.name)
                    return True
        takes = [*accounts.all[leaf].above, *([ROOT] if accounts.borrows(leaf, asks) else [])]
        takes += [] if accounts.owns(leaf, asks) else [FREE]
        keepers = {kept[number] for number in takes if number in kept} - {request.name}
        self._keepers |= keepers
        return bool(keepers)

    def released(self) -> bool:
        """Return whether jobs for which others were kept from starting have started since this was last asked."""
        gone = {name for name in self._keepers if name not in self._state.waiting}
        if gone:
            self._keepers -= gone
            self.limits = {number: name for number, name in self.limits.items() if name not in gone}
        return bool(gone)


FULL = "it does not fit"
DELAY = "it would delay a job before it"
CLOSER = "it waits for closer GPUs"
WINDOW = "nodes are closed to it before it would end"


class Seating:
    """Where gangs go.

    Args:
        state: its placer is changed, nothing else.
        watchdog: notes seats of the placer that are refused.
        trial: knows who stopped in this decision.
        kept: what is kept for those that wait.
    """

    def __init__(self, state: SchedulerState, watchdog: Watchdog, trial: Trial, kept: Protection) -> None:
        self._state, self._watchdog, self._trial, self._kept = state, watchdog, trial, kept
        self.far: tuple[Request, int, float]  # who last waited for closer GPUs, and how slow it would have been

    def seat(self, request: Request, degree: int, nodes: Nodes | None, hopeful: bool) -> Nodes | str:
        """Give a job its seats; return them, or why not. If it is `hopeful` it may wait for closer GPUs."""
        state, placer, kept = self._state, self._state.placer, self._kept.held
        if nodes is None and not placer.fits(state.placed(request, degree)):
            return self.full(request, degree)
        reservations = self._kept.reservations(request) if kept else []
        with state.trial() as trial:
            if nodes is None:
                if (why := self._place(request, degree, reservations, trial)) is not None:
                    return why
                nodes = self._taken(request)
            if (why := self._check(request, degree, nodes, trial)) is not None:
                return why
            slower = state.slower(request, degree, seats := self._taken(request))
            end = state.now + request.lasts(degree, slower)
            late = not self._stand(reservations, request.job, end)
            shut = self._barred(request, seats, end)
            if shut or late or (hopeful and state.rule and state.hopes(request, degree, slower)):
                self.far = request, degree, slower
                return WINDOW if shut else DELAY if late else CLOSER
            trial.keep()
        for held in kept:
            if held.reservation is not None:
                held.reservation.note(request.job, *placer.uses(request.job.name), end)
        return seats

    def _taken(self, request: Request) -> Nodes:
        """Return the GPUs of a gang that is seated."""
        seated = self._state.placer.running[request.job.name]
        if not request.job.worker.gpu:
            return {node: below_zero(self._state.holders[node], seat.workers) for node, seat in seated.items()}
        return {node: seat.gpus for node, seat in seated.items()}

    def _end(self, request: Request, degree: int) -> float:
        """Return when a gang that is seated ends."""
        slower = self._state.slower(request, degree, self._taken(request))
        return self._state.now + request.lasts(degree, slower)

    def _place(self, request: Request, degree: int, reservations: list[Reservation], trial: Trial) -> str | None:
        """Seat a gang where it fits and no reservation minds; return why not, if so, and have it taken back."""
        state, placer, job = self._state, self._state.placer, self._state.placed(request, degree)
        closes = state.calendar.windows or state.notices.rooms
        open_ = self._open(request, degree, state.now + state.lasts(request, degree)) if closes else None
        if self._choose(request, degree, open_, trial) is None:
            return self.full(request, degree) if open_ is None else WINDOW
        if not (closes or reservations):
            return None
        end = self._end(request, degree)
        if self._barred(request, self._taken(request), end):  # its place is slow, so that a window comes before its end
            trial.back()
            if self._choose(request, degree, self._open(request, degree, np.inf), trial) is None:
                return WINDOW
            end = self._end(request, degree)
        if not self._stand(reservations, job, end):
            end = end if state.places is None and not request.types else np.inf  # elsewhere it may take longer
            trial.back()
            room = self._open(request, degree, end) or placer.room(job)
            for reservation in reservations:
                room = reservation.beside(job, room, end)
            if room.total < job.workers[0] or self._choose(request, degree, room, trial) is None:
                return DELAY
        return None

    def _check(self, request: Request, degree: int, nodes: Nodes, trial: Trial) -> str | None:
        """Seat a gang on these GPUs, on which the trial may have it already; return why not, if so.

        Of workers that it does not need, in its last bundle, it keeps those with which it has whole nodes.
        """
        state, name = self._state, request.job.name
        mine = name in state.placer.running
        seats = state.trimmed(request, degree, nodes) if mine else nodes
        wrong = state.wrong(request, degree, seats)
        if less := seats is not nodes:
            trial.back()
        if not wrong and (less or not mine) and not trial.put(request, seats):
            wrong = [f"{name}: cores, memory or NIC are too few, counted in whole millionths"]
        if wrong and mine:
            self._watchdog.note(f"the placer's seats are refused: {wrong[0]}")
        return wrong[0] if wrong else None

    def _stand(self, reservations: list[Reservation], job: GangJob, end: float) -> bool:
        """Return whether reservations stand if a gang, which is seated, runs to `end`."""
        return not reservations or all(x.stands(job, *self._state.placer.uses(job.name), end) for x in reservations)

    def _barred(self, request: Request, nodes: Nodes, end: float) -> bool:
        """Return whether a window closes one of these nodes to a job before it ends."""
        closes = self._state.calendar.windows or self._state.notices.rooms
        return bool(closes) and not nodes.keys().isdisjoint(self._closed(request, end).tolist())

    def _closed(self, request: Request, end: float) -> np.ndarray:
        """Return the nodes closed to a job by a claim, or by a window before it ends if others stop last."""
        state = self._state
        shut = state.calendar.closed(request, state.now, end + state.delay(self._trial.halted.values()))
        apart = state.notices.apart(request.job)
        return np.union1d(shut, apart).astype(np.int64) if apart else shut

    def _open(self, request: Request, degree: int, end: float) -> Capacity | None:
        """Return the room that windows leave a job which runs to `end`, `None` if they leave it all."""
        state, shut = self._state, self._closed(request, end)
        return state.placer.room(state.placed(request, degree)).without(shut) if len(shut) else None

    def _choose(
        self, request: Request, degree: int, room: Capacity | None, trial: Trial
    ) -> Mapping[int, NodeAllocation] | None:
        """Place a gang where jobs mind it least if speeds were learned or are known, else by the topology.

        Where places differ, it gets the closest GPUs.
        """
        state, job = self._state, self._state.placed(request, degree)
        if not job.worker.gpu:
            return trial.place(job, room)
        if state.learned is not None and state.learned.ready:
            gpus, busy = min(request.gpus(degree), state.size), 1 - state.idle / max(1, state.gpus)
            policy = state.learned.policy(request.job.model, gpus, request.lasts(degree), busy)
            return trial.place(job, room, policy)
        if state.interference is not None:
            return trial.place(job, room, state.interference.policy(job))
        if state.places is not None:
            room = best_type(state, request, degree, room) if request.types else room
            return trial.place(job, room, state.places.closest)
        return trial.place(job, room)

    def full(self, request: Request, degree: int) -> str:
        """Note that such workers did not fit."""
        job, closed = self._state.placed(request, degree), self._state.closed
        if not self._state.placer.against(job):
            kind, count = Kind.workers(job), job.workers[0]
            closed[kind] = min(closed.get(kind, count), count)
        return FULL
