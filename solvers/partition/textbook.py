"""Data of a graph on a cluster as plain models read it: lists by op, device and device type, nothing contracted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import floor, isfinite
from typing import Any

import numpy as np

from gangplan.instances import GraphProblem, precedence
from gangplan.instances.arrays import FloatArray

from ..plain import CAP
from ..run import Run
from .sizes import Covers, whole


@dataclass(frozen=True, slots=True)
class Textbook:
    """A graph on a cluster: op v, device d, device type t.

    Attributes:
        time: seconds, time[t][v]; infinite where t does not run v.
        cost: seconds of a transfer of each op's output.
        order: (a, b) where a pipeline has a no later than b.
        together: (v, w) on one device.
        count, host: number of devices of each type, and whether it is a host.
        barred: barred[t], ops that type t cannot run or hold.
        size, room: whole bytes size[t][v] of ops and room[t] of a device, see `sizes`; all 0 where memory is ample.
        limits: bytes of a device of each type, float64 (T,).
        covers: ops that turned out not to fit together.
    """

    time: list[list[float]]
    cost: list[float]
    edges: list[tuple[int, int]]
    order: list[tuple[int, int]]
    together: list[tuple[int, int]]
    kind: list[int]
    count: list[int]
    host: list[bool]
    barred: list[set[int]]
    size: list[list[int]]
    room: list[int]
    limits: FloatArray
    covers: Covers = field(default_factory=Covers)

    @classmethod
    def of(cls, problem: GraphProblem) -> Textbook:
        """Lay out `problem`."""
        graph, cluster, time = problem.graph, problem.cluster, problem.time()
        leader: dict[int, int] = {}
        pairs = [(leader.setdefault(c, v), v) for v, c in enumerate(graph.colocation.tolist()) if c >= 0]
        limits = np.array([np.inf if kind.memory is None else kind.memory for kind in cluster.device_types])
        sizes = [whole(graph.memory, limit, graph.n_ops) for limit in limits.tolist()]
        return cls(
            time=time.tolist(),
            cost=problem.transfer().tolist(),
            edges=list(zip(graph.source.tolist(), graph.target.tolist(), strict=True)),
            order=list(zip(*(ends.tolist() for ends in precedence(graph)), strict=True)),
            together=[(v, w) for v, w in pairs if v != w],
            kind=cluster.type_of.tolist(),
            count=cluster.counts().tolist(),
            host=[kind.host for kind in cluster.device_types],
            barred=[
                set(np.flatnonzero(~np.isfinite(row) | s.barred).tolist()) for row, s in zip(time, sizes, strict=True)
            ],
            size=[s.size.tolist() for s in sizes],
            room=[s.room for s in sizes],
            limits=limits,
        )

    @property
    def ops(self) -> range:
        """All ops."""
        return range(len(self.cost))

    @property
    def devices(self) -> range:
        """All devices."""
        return range(len(self.kind))

    @property
    def work(self) -> float:
        """Seconds of all ops, each where it takes longest."""
        return sum(max((row[v] for row in self.time if isfinite(row[v])), default=0.0) for v in self.ops)

    def seconds(self, unit: float) -> tuple[list[list[float]], list[float]]:
        """Return times and costs in units, 0 where a type does not run an op."""
        times = [[min(x / unit, CAP) if isfinite(x) else 0.0 for x in row] for row in self.time]
        return times, [min(x / unit, CAP) for x in self.cost]

    def ticks(self, unit: float, ticks: int) -> tuple[list[list[int]], list[int]]:
        """Return times and costs in `ticks` a unit, rounded down, so that what is proved of them holds."""
        times, costs = self.seconds(unit)
        return [[floor(x * ticks) for x in row] for row in times], [floor(x * ticks) for x in costs]

    def apart(self, kind: int) -> Iterator[tuple[int, ...]]:
        """Yield ops that do not all go together on a device of a type, though their rounded sizes do."""
        return self.covers.of(float(self.limits[kind]))

    def accepts(self, run: Run, plan: Any, by: str) -> bool:
        """Return whether a plan fits in memory, and learn from it if not."""
        return self.covers.accepts(run, plan, np.arange(len(self.ops)), by)
