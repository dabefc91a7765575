"""Loads of stages under change, one group at a time."""

from __future__ import annotations

from .quotient import Quotient


class Loads:
    """The static part: which nets touch which groups."""

    def __init__(self, q: Quotient) -> None:
        self.q = q
        self.time = q.time.tolist()
        self.memory = q.memory.tolist()
        self.cost = [cost for _, cost in q.nets]
        self.size = [len(pins) for pins, _ in q.nets]
        self.touching: list[list[int]] = [[] for _ in range(q.n_groups)]
        for e, (pins, _) in enumerate(q.nets):
            for g in pins:
                self.touching[g].append(e)

    def stage(self, t: int) -> StageLoad:
        """Return an empty stage on a device of type t."""
        return StageLoad(self, t)


class StageLoad:
    """One device: its compute, transfers and memory as groups come and go."""

    def __init__(self, loads: Loads, t: int) -> None:
        self.loads = loads
        self.t = t
        self.host = bool(loads.q.host[t])
        self.compute = 0.0
        self.transfer = 0.0
        self.memory = 0.0
        self.pins: dict[int, int] = {}

    @property
    def load(self) -> float:
        """Seconds the device is busy."""
        return self.compute + self.transfer

    def add(self, g: int) -> None:
        """Put group g on the device."""
        self._move(g, 1)

    def remove(self, g: int) -> None:
        """Take group g off the device."""
        self._move(g, -1)

    def after(self, g: int, sign: int) -> float:
        """Return what the load would be with g added (`sign` 1) or removed (-1)."""
        change: float = sign * self.loads.time[self.t][g]
        if not self.host:
            for e in self.loads.touching[g]:
                change += self._toll(e, self.pins.get(e, 0) + sign) - self._toll(e, self.pins.get(e, 0))
        return self.load + change

    def _move(self, g: int, sign: int) -> None:
        self.compute += sign * self.loads.time[self.t][g]
        self.memory += sign * self.loads.memory[g]
        for e in self.loads.touching[g]:
            had = self.pins.get(e, 0)
            self.pins[e] = had + sign
            if not self.host:
                self.transfer += self._toll(e, had + sign) - self._toll(e, had)

    def _toll(self, e: int, pins: int) -> float:
        return float(self.loads.cost[e]) if 0 < pins < self.loads.size[e] else 0.0
