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
        self._end = np.zeros(256)
        self._rest = np.zeros((3, 256), dtype=np.int64)
        self._names: list[tuple[str, int]] = []
        self._at: dict[tuple[str, int], int] = {}

    def add(self, stint: Stint) -> None:
        """Note a job that starts."""
        kind = self._rule.of(stint.end - stint.since)
        for node, gpus in stint.nodes.items():
            at = len(self._names)
            if at == len(self._end):
                self._end = np.resize(self._end, 2 * at)
                self._rest = np.concatenate([self._rest, self._rest], axis=1)
            self._end[at], self._rest[:, at] = stint.end, (node, len(gpus), kind)
            self._at[stint.request.name, node] = at
            self._names.append((stint.request.name, node))

    def remove(self, stint: Stint) -> None:
        """Note a job that stops: the last part takes the place of each of its own."""
        for node in stint.nodes:
            at = self._at.pop((stint.request.name, node))
            last = self._names.pop()
            if at < len(self._names):
                self._names[at], self._at[last] = last, at
                self._end[at], self._rest[:, at] = self._end[len(self._names)], self._rest[:, len(self._names)]

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return (end, node, GPUs, class) of each part."""
        n = len(self._names)
        node, gpus, kind = self._rest[:, :n].copy()
        return self._end[:n].copy(), node, gpus, kind


def scene(desk: Desk) -> Scene:
    """Return what there is, as arrays."""
    first = [desk.book.waiting[name] for name in desk.line.first(MOST)]
    lasts = np.array([request.seconds[-1] for request in first], dtype=float)
    need = np.array([request.gpus(request.job.workers[-1]) for request in first], dtype=np.int64)
    key = np.array([desk.line.key(request.name) for request in first], dtype=float)
    length = np.searchsorted(np.array(desk.settings.lengths), lasts, "right")
    return Scene(desk.book.now, desk.seats.free.copy(), desk.size, *desk.parts.arrays(), need, lasts, length, key)
