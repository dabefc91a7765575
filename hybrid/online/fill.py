"""Start jobs while they fit: in an order, beside a reservation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances.placement import GangJob
from gangplan.instances.verify.start import verify_start
from gangplan.solvers.placement.online.rooms import Kind

from .book import Stint
from .decision import Start
from .guard import Guard
from .job import Request
from .learned import LearnedPlaces
from .line import Shape, Walk
from .reservation import Reservation
from .seats import Seat

if TYPE_CHECKING:
    from .desk import Desk

Nodes = Mapping[int, tuple[int, ...]]
FULL = "it does not fit"
DELAY = "it would delay a job before it"


class Fill:
    """One round of starts.

    Args:
        desk: the state; it is changed.
        guard: asks those that may fail, and notes what went wrong.
        stop: of the machine's clock.
    """

    def __init__(self, desk: Desk, guard: Guard, stop: float = np.inf) -> None:
        self._desk, self._book, self._seats, self._line = desk, desk.book, desk.seats, desk.line
        self._guard, self._note, self._stop = guard, guard.note, stop
        self._held: tuple[GangJob, int] | None = None
        self._reservation: Reservation | None = None
        self.starts: list[Start] = []
        self.waits: dict[str, str] = {}
        self.more = False

    def over(self) -> bool:
        """Return whether the time is up."""
        self.more = self.more or time.perf_counter() >= self._stop
        return self.more

    def one(
        self, name: str, degrees: Sequence[int], tier: str, nodes: Nodes | None = None, *, hold: bool = True
    ) -> bool:
        """Start a waiting job if it may; return whether it did.

        Args:
            name: the job.
            degrees: the numbers of workers to try, the best first.
            tier: who says so.
            nodes: where, if that was said too.
            hold: whether nobody may delay it from now on if it does not fit.
        """
        request, why = self._book.waiting[name], FULL
        for degree in degrees:
            found = self._seat(request, degree, nodes)
            if isinstance(found, str):
                why = found
                if nodes is not None and why != DELAY and hold:
                    self._note(why)
                continue
            self._begin(request, degree, found, tier)
            return True
        if why == FULL and hold and self._held is None:
            self._hold(name)
        self.waits[name] = why
        return False

    def all(self, degrees: Callable[[Request], Sequence[int]], tier: str) -> None:
        """Go through the lines in the order of their keys, and start whoever may."""
        walk = Walk(self._line)
        while (head := walk.next()) and self._book.idle and not self.over():
            shape, name = head
            if self._shut(shape):
                if self._held is None:
                    self._hold(name)
                self.waits.setdefault(name, FULL)
            elif self.one(name, degrees(self._book.waiting[name]), tier):
                walk.again(shape)

    def _shut(self, shape: Shape) -> bool:
        least = self._desk.closed.get(shape.kind)
        return least is not None and not shape.alone and len(shape.degrees) == 1 and shape.degrees[0] >= least

    def _hold(self, name: str) -> None:
        if not self._desk.settings.reserve:
            return
        request = self._book.waiting[name]
        job = self._desk.placed(request, request.job.workers[0])
        self._held = job, job.workers[0]

    def _seat(self, request: Request, degree: int, nodes: Nodes | None) -> Nodes | str:
        """Give a job its seats; return them, or why not."""
        job = self._desk.placed(request, degree)
        if nodes is None and self._seats.room(job).total < job.workers[0]:
            return self._full(job, degree)
        if self._held is not None and self._reservation is None:
            gang, workers = self._held
            self._reservation = Reservation(
                self._seats.room(gang), workers, self._book, self._desk.ends, self._seats.free
            )
        if nodes is None:
            found = self._place(job)
            if found is None:
                return self._full(job, degree)
            nodes = {node: seat.gpus for node, seat in found.items()}
            wrong = self._wrong(request, degree, nodes)
            if wrong:
                self._seats.remove(job.name)
                self._note(f"the placer's seats are refused: {wrong[0]}")
                return wrong[0]
        else:
            wrong = self._wrong(request, degree, nodes)
            if wrong:
                return wrong[0]
            self._seats.put(job, nodes)
        end = self._book.now + request.lasts(degree)
        fixed = request.price is None  # others can be stopped when it is due
        if fixed and self._reservation is not None and not self._reservation.stands(nodes, end):
            self._seats.remove(job.name)
            return DELAY
        return nodes

    def _place(self, job: GangJob) -> Mapping[int, Seat] | None:
        """Seat a gang by the learned policy if there is one, else, or if that fails, by the topology."""
        learned, guard = self._desk.learned, self._guard
        if learned is not None and not guard.out("learned places"):
            budget = 0.5 * (self._stop - time.perf_counter())
            workers = guard.call("learned places", budget, lambda: self._chosen(learned, job))
            if workers is not None:
                found = self._seats.place_by(lambda room, degree: workers, job)
                if found is not None:
                    return found
        return self._seats.place(job)

    def _chosen(self, learned: LearnedPlaces, job: GangJob) -> dict[int, int]:
        """Return node -> workers by the learned policy, checked."""
        room = self._seats.room(job)
        chosen = dict(learned.policy(job)(room, job.workers[0]))
        if sum(chosen.values()) != job.workers[0] or any(w < 1 or w > room.room[node] for node, w in chosen.items()):
            raise ValueError(f"there is no room for {job.name} on {chosen}")
        return chosen

    def _full(self, job: GangJob, degree: int) -> str:
        """Note that such workers did not fit."""
        if not job.apart:
            kind = Kind.workers(job)
            self._desk.closed[kind] = min(self._desk.closed.get(kind, 2**31), degree)
        return FULL

    def _wrong(self, request: Request, degree: int, nodes: Nodes) -> list[str]:
        book = self._book
        return verify_start(book.fleet, book.up, book.holders, book.held(), request.job, degree, nodes)

    def _begin(self, request: Request, degree: int, nodes: Nodes, tier: str) -> None:
        book, name, lasts = self._book, request.name, request.lasts(degree)
        stint = Stint(request, degree, book.now, book.now + lasts, dict(nodes))
        self._line.remove(name)
        self._desk.begin(stint)
        self.starts.append(Start(name, degree, self.named(stint.nodes), tier, lasts))
        self.waits.pop(name, None)

    def named(self, nodes: Nodes) -> dict[str, tuple[int, ...]]:
        """Return GPUs by name of the node."""
        return {self._book.fleet.names[node]: tuple(gpus) for node, gpus in nodes.items()}
