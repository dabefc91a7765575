"""What there is, as arrays: what a rollout starts from, kept as jobs come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .book import Stint

if TYPE_CHECKING:
    from .desk import Desk

MOST = 128
"""Jobs that a scene shows."""
Scene = tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""GPUs; of each job the seconds left, GPUs, price and whether it runs: see `rollout`."""


class Parts:
    """The parts of running jobs on nodes, in arrays without gaps."""

    def __init__(self) -> None:
        self._times = np.zeros((3, 256))
        self._counts = np.zeros((4, 256), dtype=np.int64)
        self.names: list[tuple[str, int]] = []
        self._at: dict[tuple[str, int], int] = {}
        self.stoppable = 0
        """Parts of jobs that may be stopped."""

    def add(self, stint: Stint) -> None:
        """Note a job that starts."""
        price = stint.request.price
        self.stoppable += 0 if price is None else len(stint.nodes)
        wide = stint.gpus
        for i, (node, gpus) in enumerate(stint.nodes.items()):
            at = len(self.names)
            if at == self._times.shape[1]:
                self._times = np.concatenate([self._times, self._times], axis=1)
                self._counts = np.concatenate([self._counts, self._counts], axis=1)
            self._times[:, at] = stint.end, stint.since, np.inf if price is None else price
            self._counts[:, at] = node, len(gpus), wide, 0 if i else 1
            self._at[stint.request.name, node] = at
            self.names.append((stint.request.name, node))

    def remove(self, stint: Stint) -> None:
        """Note a job that stops: the last part takes the place of each of its own."""
        self.stoppable -= 0 if stint.request.price is None else len(stint.nodes)
        for node in stint.nodes:
            at = self._at.pop((stint.request.name, node))
            last, n = self.names.pop(), len(self.names)
            if at < n:
                self.names[at], self._at[last] = last, at
                self._times[:, at], self._counts[:, at] = self._times[:, n], self._counts[:, n]

    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """Return views on all parts: times and counts.

        Times are the end, the start, and the price, infinite for jobs that may not be stopped, float64 (3, parts);
        counts the node, the GPUs, those of the whole job, and whether it is the job's first part, int64 (4, parts).
        """
        n = len(self.names)
        return self._times[:, :n], self._counts[:, :n]


def scene(desk: Desk) -> Scene:
    """Return the first jobs that wait, and of those that run as many as there are places, the first to end."""
    wait = [desk.book.waiting[name] for name in desk.line.first(MOST)]
    degrees = [desk.degrees(request)[0] for request in wait]
    (end, since, price), (_, _, wide, head) = desk.parts.table()
    left = np.where(end > desk.book.now, end - desk.book.now, desk.book.now - since)
    shown = np.flatnonzero(head)
    if len(shown) > MOST - len(wait):
        shown = shown[np.argsort(left[shown], kind="stable")[: MOST - len(wait)]]
    gpus = desk.book.idle + int(wide[shown].sum())
    costs = [np.inf if request.price is None else request.price for request in wait]
    lasts = [request.lasts(degree) for request, degree in zip(wait, degrees, strict=True)]
    need = [desk.holds(request, degree) for request, degree in zip(wait, degrees, strict=True)]
    return (
        gpus,
        np.concatenate([left[shown], np.array(lasts, dtype=float)]),
        np.concatenate([wide[shown], np.array(need, dtype=np.int64)]),
        np.concatenate([price[shown], np.array(costs, dtype=float)]),
        np.arange(len(shown) + len(wait)) < len(shown),
    )
