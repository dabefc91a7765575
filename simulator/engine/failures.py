"""Nodes that go down and come up again: as listed, or at random."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import check_fields, limited


@dataclass(frozen=True, slots=True)
class Outages:
    """When nodes are down.

    Attributes:
        listed: (node, down, up), seconds; a node that is down for good comes up at infinity.
        mtbf: mean seconds that a node is up, exponential, from the first submission on; no random failure if it is
            `None`.
        mttr: mean seconds that it is then down, exponential.
    """

    listed: tuple[tuple[int, float, float], ...] = ()
    mtbf: float | None = limited(None, positive=True)
    mttr: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "listed", tuple(sorted((n, float(a), float(b)) for n, a, b in self.listed)))
        check_fields(self)
        if self.mtbf is not None and self.listed:
            raise InstanceError("mtbf", f"{self.mtbf!r} is given, and so is a list of failures")
        before: tuple[int, float, float] | None = None
        for i, (node, down, up) in enumerate(self.listed):
            if not 0 <= down < up:
                raise InstanceError(f"listed[{i}]", f"node {node} goes down at {down!r} and comes up at {up!r}")
            if before is not None and before[0] == node and down < before[2]:
                raise InstanceError(f"listed[{i}]", f"node {node} goes down at {down!r}, while it is down")
            before = (node, down, up)

    def __bool__(self) -> bool:
        return bool(self.listed) or self.mtbf is not None


class Clock:
    """The failures and repairs of m nodes in the order of their times; of one instant, repairs first.

    Random ones begin at `start`: before the first job of a trace in Unix time nodes would fail for decades.
    """

    def __init__(self, outages: Outages, nodes: int, start: float) -> None:
        self._outages, self._rng = outages, np.random.default_rng(outages.seed)
        self._next: list[tuple[float, int, int]] = []  # time, 1 if it goes down, node
        self._ups: dict[int, list[tuple[float, float]]] = {}
        for i, (node, down, up) in enumerate(outages.listed):
            if not 0 <= node < nodes:
                raise InstanceError(f"listed[{i}]", f"{node!r} is not one of the {nodes} nodes")
            self._ups.setdefault(node, []).append((down, up))
        if outages.mtbf is not None:
            times = self._rng.exponential(outages.mtbf, nodes).tolist()
            self._next = [(start + time, 1, node) for node, time in enumerate(times)]
        else:
            self._next = [(downs[0][0], 1, node) for node, downs in self._ups.items()]
        heapq.heapify(self._next)

    @property
    def time(self) -> float:
        """When the next node fails or is repaired, infinite if none does."""
        return self._next[0][0] if self._next else np.inf

    def pop(self) -> tuple[int, bool]:
        """Return the node that fails or is repaired next, and whether it fails."""
        time, down, node = heapq.heappop(self._next)
        if self._outages.mtbf is not None:
            mean = self._outages.mttr if down else self._outages.mtbf
            then = time + self._rng.exponential(mean)
            # an outage may take no time; what is up stays so for a moment, or time would stand still
            heapq.heappush(self._next, (then if down else max(then, np.nextafter(time, np.inf)), 1 - down, node))
        elif down:
            heapq.heappush(self._next, (self._ups[node].pop(0)[1], 0, node))
        elif self._ups[node]:
            heapq.heappush(self._next, (self._ups[node][0][0], 1, node))
        return node, bool(down)
