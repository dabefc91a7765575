"""Who is stopped for whom: the jobs with the least work left run, and a stop must be worth its price.

The running jobs that may be stopped and the waiting ones are put into one order, GPU seconds left (Smith, Naval
Research Logistics 1956, for jobs that may be interrupted; SRSF with Gu et al., NSDI 2019), what a stop costs counted
against it. As many of the first as have room together are to run. Who of them waits is given room: what is free, else
what running jobs hold that are not among them, else a node that is cleared of jobs that go on elsewhere, so that no
gang waits for room that is there but scattered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances.verify.stop import Exchange, verify_stop

from .book import Stint
from .clearing import Clearing
from .decision import Candidate, Stop
from .job import Request

if TYPE_CHECKING:
    from .desk import Desk
    from .fill import Fill

TIER = "stops"
MOST = 512
"""Waiting jobs for which others may be stopped, the first in order."""


class Stopping:
    """One round of stops.

    Args:
        desk: the state; it is changed.
        fill: the round of starts that it is part of.
    """

    def __init__(self, desk: Desk, fill: Fill) -> None:
        self._desk, self._fill = desk, fill
        self.stops: list[Stop] = []
        self._refused: list[Candidate] = []
        self._was: dict[str, Stint] = {}

    def run(self) -> None:
        """Stop jobs, and start those for whom they are stopped."""
        desk, book, line = self._desk, self._desk.book, self._desk.line
        first = [book.waiting[name] for name in line.first(MOST)]
        running = self._running = Clearing(desk)
        if not first or not running.movable.any():
            return
        if not book.idle and min(line.key(request.name) for request in first) >= running.key.max():
            return
        chosen = self._chosen(first)
        moved: list[str] = []
        for request in sorted(chosen, key=lambda r: -desk.holds(r, desk.degrees(r)[0])):
            if self._fill.over():
                return
            if not self._fill.one(request.name, self._desk.degrees(request), TIER, hold=False):
                moved += self._make_room(request, moves=True)
        for name in moved:
            if name in book.waiting and not self._fill.one(name, (self._was[name].degree,), TIER, hold=False):
                self._make_room(book.waiting[name], moves=False)

    @property
    def told(self) -> tuple[Candidate, ...]:
        """The stops in words, with the seconds that each had left, and those that were refused."""
        return tuple(Candidate(f"{stop.job} gives way to {stop.other}", stop.left) for stop in self.stops) + tuple(
            self._refused
        )

    def _chosen(self, first: Sequence[Request]) -> list[Request]:
        """Return the waiting jobs that are to run, and mark the running ones that are to go on."""
        desk, running = self._desk, self._running
        fixed, heads = running.head & ~running.movable, np.flatnonzero(running.head & running.movable)
        room = desk.book.gpus - int(running.wide[fixed].sum())
        need = np.array([desk.holds(r, desk.degrees(r)[0]) for r in first])
        keys = np.concatenate([running.key[heads], [desk.line.key(r.name) for r in first]])
        wide = np.concatenate([running.wide[heads], need])
        order = np.argsort(keys, kind="stable")
        together = int(np.searchsorted(np.cumsum(wide[order]), room, "right"))  # so many of the first fit together
        taken = [*order[:together].tolist()]
        room -= int(wide[taken].sum())
        for i in order[together:].tolist():
            if not room:
                break
            if wide[i] <= room:
                taken.append(i)
                room -= int(wide[i])
        chosen = [first[i - len(heads)] for i in taken if i >= len(heads)]
        goes_on = set(taken)
        for i, part in enumerate(heads.tolist()):
            if i not in goes_on:
                running.off(desk.book.running[running.name(part)])
        return chosen

    def _make_room(self, request: Request, moves: bool) -> list[str]:
        """Start a job where others are stopped for it; return those that are to go on elsewhere."""
        desk, degree = self._desk, self._desk.degrees(request)[0]
        job = desk.placed(request, degree)
        room = self._running.find(job, desk.line.key(request.name), moves)
        if room is None:
            return []
        stints = [desk.book.running[name] for name in (*room.stopped, *room.moved)]
        exchanges = [self._exchange(stint, request, degree, stint.request.name in room.moved) for stint in stints]
        wrong = [words for exchange in exchanges for words in verify_stop(exchange, desk.book.running, desk.line.order)]
        if wrong:
            words = f"{room.stopped + room.moved} give way to {request.name}"
            self._refused.append(Candidate(words, request.lasts(degree), wrong[0]))
            return []
        for stint in stints:
            desk.stop(stint.request.name)
        where = {node: tuple(desk.seats.idle(node)[:count]) for node, count in room.nodes.items()}
        if not self._fill.one(request.name, (degree,), TIER, where, hold=False):
            for stint in stints:
                desk.resume(stint)
            return []
        names = {stint.request.name: stint for stint in stints}
        self._was.update(names)
        for stint, exchange in zip(stints, exchanges, strict=True):
            self._running.leave(stint)
            self.stops.append(
                Stop(
                    stint.request.name,
                    self._fill.named(stint.nodes),
                    request.name,
                    exchange.left,
                    exchange.price or 0.0,
                )
            )
        return room.moved

    def _exchange(self, stint: Stint, request: Request, degree: int, moved: bool) -> Exchange:
        left = stint.left(self._desk.book.now)
        return Exchange(
            stint.request.name, stint.request.price, left, stint.gpus,
            request.name, request.lasts(degree), request.gpus(degree), moved,
        )  # fmt: skip
