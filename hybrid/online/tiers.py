"""The tiers above the heuristic: the lookahead, and a learned order or a policy of the user's own."""

from __future__ import annotations

import time
from typing import Any

from .book import Stint
from .desk import Desk
from .fill import Fill
from .guard import Guard
from .job import Request
from .learned import LearnedOrder, LearnedPlaces
from .lookahead import Lookahead
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
        self._desk, self._guard, self._policy = desk, guard, policy
        mine, settings = not isinstance(policy, str), desk.settings
        self.own: Any = policy if mine else None
        self.name = "policy" if mine else "learned"
        plain = policy in ("heuristic", "learned") if isinstance(policy, str) else False
        self.ahead = None if plain or len(settings.shares) == 1 else Lookahead(settings.shares, settings.history)
        self._loaded = mine or policy == "heuristic"
        fleet, speeds = desk.book.fleet, desk.speeds
        if not self._loaded and speeds is not None:
            desk.learned = guard.load("learned places", lambda: LearnedPlaces(fleet, speeds))
        if policy == "learned":
            self._load()

    def expect(self, request: Request) -> None:
        """Note a job that was submitted; weights are read now, and not when a decision is due."""
        degree = request.job.workers[-1]
        if self.ahead is not None:
            self.ahead.saw(request.serial, request.submit, request.gpus(degree), request.lasts(degree))
        if not self._loaded and len(request.job.workers) > 1:
            self._load()

    def ended(self, stint: Stint) -> None:
        """Note how long a job ran."""
        if self.ahead is not None:
            now = self._desk.book.now
            self.ahead.ended(stint.request.serial, stint.gpus, stint.request.done / stint.gpus + stint.ran(now))

    @property
    def share(self) -> float:
        """What the longest jobs may hold now."""
        return self.ahead.share if self.ahead is not None else self._desk.settings.shares[0]

    @property
    def usual(self) -> str:
        """The tier that those are put down to who start in the usual order."""
        return "lookahead" if self.ahead is not None and self.ahead.rounds else "heuristic"

    def look(self, stop: float) -> None:
        """Take the steps of the lookahead that there is time for."""
        ahead, desk = self.ahead, self._desk
        for _ in range(desk.settings.rollouts):
            if ahead is None or not ahead.ready:
                return
            if time.perf_counter() + 1.5 * ahead.took > stop:
                ahead.shorten()
            elif ahead.step(desk.kept.rule, desk.book.gpus, desk.size, desk.settings.order):
                desk.kept.aim(ahead.share, desk.book.gpus)

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

    def _load(self) -> None:
        """Read the weights of the learned order; without them it is left out, with a note of why."""
        self._loaded = True

        def order() -> LearnedOrder:
            found = LearnedOrder(choices=self._policy == "hybrid")
            found.load()
            return found

        self.own = self._guard.load("learned order", order)
