"""The tier that looks ahead: by which order jobs go now, by playing what is there through with each."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from .decision import Candidate
from .scene import scene

if TYPE_CHECKING:
    from .desk import Desk

ORDERS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Exponents of GPUs in the order of jobs: the shortest first with 0, the least work first with 1."""


class Lookahead:
    """Chooses an order for each decision: that with the least mean time until the jobs that are there are done.

    One step: the next decision chooses anew. As far as durations are known and nobody else comes, that is never worse
    than to keep to the best of the orders (Bertsekas and Castanon, Journal of Heuristics 1999).

    Args:
        orders: the exponents.
        usual: the one of them that is taken without a rollout, or where none is better.
    """

    def __init__(self, orders: tuple[float, ...], usual: float) -> None:
        self.orders, self.usual = orders, usual
        self.order = usual
        self.found: tuple[float, ...] = ()
        """Sums of seconds by order, of the last decision; none if it was not looked ahead."""
        self.count = 0
        self.took = 0.0
        """Seconds that the longest rollout lately took."""
        one = np.ones(1)
        _play(1, one, one.astype(np.int64), one, one.astype(bool), True, 1.0)  # compiled before a deadline

    def choose(self, desk: Desk, stop: float) -> None:
        """Find the order for a decision, if there is time until `stop` of the machine's clock."""
        self.order, self.found = self.usual, ()
        desk.line.order = self.usual
        if (
            not desk.book.waiting
            or not desk.parts.stoppable
            or time.perf_counter() + 1.5 * len(self.orders) * self.took > stop
        ):
            self.took *= 0.9
            return
        state = scene(desk)
        self.count = len(state[1])
        found = []
        for order in self.orders:
            began = time.perf_counter()
            found.append(_play(*state, desk.settings.reserve, order))
            self.took = max(0.9 * self.took, time.perf_counter() - began)
        self.found = tuple(found)
        best = min(range(len(found)), key=lambda i: (found[i], self.orders[i] != self.usual))
        self.order = desk.line.order = self.orders[best]

    def candidates(self) -> tuple[Candidate, ...]:
        """Return the orders with the mean time until the jobs are done, seconds."""
        rows, best = [], min(self.found, default=0.0)
        for order, found in zip(self.orders, self.found, strict=False):
            why = "" if order == self.order else f"{found / best - 1:+.2%}" if best else "no better"
            rows.append(Candidate(f"seconds left x GPUs^{order:g}, the least first", found / self.count, why))
        return tuple(rows)


def _play(*state: Any) -> float:
    """Play through; importing what compiles takes longer than most imports."""
    from .rollout import rollout

    return float(rollout(*state))
