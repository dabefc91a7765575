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
FAR = 3.0
"""Times the mean until a job is done: by then others have come, and it goes otherwise than it was played."""
_SAME = 1e-9
"""Of two sums of equal seconds, by how much one may be off."""


class Lookahead:
    """Chooses an order for each decision: that by which the jobs that are there are done soonest, near seconds first.

    One step: the next decision chooses anew (rollouts of Bertsekas and Castanon, Journal of Heuristics 1999). A job
    that is done in t seconds costs T (1 - exp(-t / T)), with T `FAR` times the mean of t: those who come before then
    are not played, and change most what is far.

    Args:
        orders: the exponents.
        usual: the one of them that is taken without a rollout, or where none is better.
    """

    def __init__(self, orders: tuple[float, ...], usual: float) -> None:
        self.orders, self.usual = orders, usual
        self.order = usual
        self.found: tuple[float, ...] = ()
        """Mean seconds by order, far ones cut, of the last decision; none if it was not looked ahead."""
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
        ends = []
        for order in self.orders:
            began = time.perf_counter()
            ends.append(_play(*state, desk.settings.reserve, order))
            self.took = max(0.9 * self.took, time.perf_counter() - began)
        far = FAR * max(1e-9, min(float(end.mean()) for end in ends))
        self.found = found = tuple(float(far * -np.expm1(-end / far).mean()) for end in ends)
        least = min(found) * (1 + _SAME)
        best = min(range(len(found)), key=lambda i: (max(found[i], least), self.orders[i] != self.usual))
        self.order = desk.line.order = self.orders[best]

    def candidates(self) -> tuple[Candidate, ...]:
        """Return the orders with the mean time until the jobs are done, seconds, far ones cut."""
        rows, best = [], min(self.found, default=0.0)
        for order, found in zip(self.orders, self.found, strict=False):
            why = "" if order == self.order else f"{found / best - 1:+.2%}" if best else "no better"
            rows.append(Candidate(f"seconds left x GPUs^{order:g}, the least first", found, why))
        return tuple(rows)


def _play(*state: Any) -> np.ndarray:
    """Play through; importing what compiles takes longer than most imports."""
    from .rollout import rollout

    found: np.ndarray = rollout(*state)
    return found
