"""What there is, as arrays: what a rollout starts from, kept as jobs come and go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .book import Stint
from .kept import Rule

if TYPE_CHECKING:
    from .desk import Desk

MOST = 512
"""Waiting jobs that a scene shows."""


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A state as arrays: see `rollout`.

    Attributes:
        now: seconds.
        free: GPUs of each node that nobody holds, int64 (m,), 0 where it is down.
        size: GPUs of the largest node.
        end, node, gpus, kind: of each part of a running job on one node: its expected end, where, how many, its class.
        need, lasts, length, key: of the first waiting jobs: GPUs, seconds, class, place in the order.
    """

    now: float
    free: np.ndarray
    size: int
    end: np.ndarray
    node: np.ndarray
    gpus: np.ndarray
    kind: np.ndarray
    need: np.ndarray
    lasts: np.ndarray
    length: np.ndarray
    key: np.ndarray


class Parts:
    """The parts of running jobs on nodes, in arrays without gaps.

    Args:
        rule: the classes of jobs.
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._times = np.zeros((3, 256))
        self._counts = np.zeros((5, 256), dtype=np.int64)
        self.names: list[tuple[str, int]] = []
        self._at: dict[tuple[str, int], int] = {}
        self.stoppable = 0
        """Parts of jobs that may be stopped."""

    def add(self, stint: Stint) -> None:
        """Note a job that starts."""
        kind, price = self._rule.of(stint.end - stint.since), stint.request.price
        self.stoppable += 0 if price is None else len(stint.nodes)
        wide = stint.gpus
        for i, (node, gpus) in enumerate(stint.nodes.items()):
            at = len(self.names)
            if at == self._times.shape[1]:
                self._times = np.concatenate([self._times, self._times], axis=1)
                self._counts = np.concatenate([self._counts, self._counts], axis=1)
            self._times[:, at] = stint.end, stint.since, np.inf if price is None else price
            self._counts[:, at] = node, len(gpus), kind, wide, 0 if i else 1
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

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return (end, node, GPUs, class) of each part."""
        n = len(self.names)
        node, gpus, kind = self._counts[:3, :n].copy()
        return self._times[0, :n].copy(), node, gpus, kind

    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """Return views: (end, start, price, infinite for jobs that may not be stopped), float64 (3, parts), and (node,
        GPUs, class, GPUs of the whole job, whether it is the job's first part), int64 (5, parts)."""
        n = len(self.names)
        return self._times[:, :n], self._counts[:, :n]


def scene(desk: Desk) -> Scene:
    """Return what there is, as arrays."""
    first = [desk.book.waiting[name] for name in desk.line.first(MOST)]
    lasts = np.array([request.seconds[-1] for request in first], dtype=float)
    need = np.array([request.gpus(request.job.workers[-1]) for request in first], dtype=np.int64)
    key = np.array([desk.line.key(request.name) for request in first], dtype=float)
    length = np.searchsorted(np.array(desk.settings.lengths), lasts, "right")
    return Scene(desk.book.now, desk.seats.free.copy(), desk.size, *desk.parts.arrays(), need, lasts, length, key)
