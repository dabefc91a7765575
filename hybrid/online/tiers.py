"""The tiers above the heuristic: the lookahead, and a learned order or a policy of the user's own."""

from __future__ import annotations

import time
from typing import Any

from .desk import Desk
from .fill import Fill
from .guard import Guard
from .job import Request
from .learned import LearnedOrder, LearnedPlaces
from .lookahead import ORDERS, Lookahead
from .policy import AHEAD, View, proposals

_POLICY = 0.5
"""Of the time that is left, what a policy may take."""


class Tiers:
    """Who is asked before the heuristic.

    Args:
        desk: the state.
        guard: asks those that may fail.
        policy: see `Scheduler`.

    Attributes:
        ahead: the lookahead, `None` without.
        own: the learned order or the user's policy, `None` without.
        name: of that tier.
    """

    def __init__(self, desk: Desk, guard: Guard, policy: Any) -> None:
        self._desk, self._guard = desk, guard
        mine = not isinstance(policy, str)
        self.own: Any = policy if mine else None
        self.name = "policy" if mine else "learned"
        self.ahead: Lookahead | None = None
        fleet, speeds = desk.book.fleet, desk.speeds
        if policy in ("hybrid", "learned") and speeds is not None:
            desk.learned = guard.load("learned places", lambda: LearnedPlaces(fleet, speeds))
        if policy == "learned":
            self.own = guard.load("learned order", _order)

    def expect(self, request: Request) -> None:
        """Note a job that was submitted; what is slow to load is loaded now, and not when a decision is due."""
        settings = self._desk.settings
        if self.ahead is None and settings.ahead and request.price is not None:
            self.ahead = Lookahead(ORDERS, settings.order)

    @property
    def usual(self) -> str:
        """The tier that those are put down to who start in the usual order."""
        return "lookahead" if self.ahead is not None and self.ahead.found else "heuristic"

    def look(self, stop: float) -> None:
        """Look ahead if there is time."""
        if self.ahead is not None:
            self.ahead.choose(self._desk, stop)

    def ask(self, fill: Fill, end: float) -> list[tuple[str, float]]:
        """Have the learned order, or the user's policy, start jobs; return its scores."""
        policy = self.own
        if policy is None or self._guard.out(self.name):
            return []
        view = View(self._desk.book, self._desk.line.first(AHEAD), self._desk.seats.free)
        budget = _POLICY * (end - time.perf_counter())
        found = self._guard.call(self.name, budget, lambda: proposals(policy, view))
        if found is None:
            return []
        for name, degree, nodes in found[0]:
            if fill.over():
                break
            request = self._desk.book.waiting.get(name)
            if request is not None and degree not in request.job.workers:
                words = f"{name}: {degree} is not one of its numbers of workers, {request.job.workers}"
                self._guard.note(f"{self.name}: {words}")
            elif request is not None:
                fill.one(name, (degree,), self.name, nodes)
            elif name not in {start.job for start in fill.starts}:
                self._guard.note(f"{self.name} would start {name!r}, which does not wait")
        return found[1]


def _order() -> LearnedOrder:
    """Return the learned order with its weights read."""
    found = LearnedOrder()
    found.load()
    return found
