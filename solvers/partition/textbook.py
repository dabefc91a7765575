"""Data of a graph on a cluster as plain models read it: lists by op, device and device type, nothing contracted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, TypeVar

import numpy as np

from gangplan.instances import GraphProblem, precedence
from gangplan.instances.arrays import FloatArray, IntArray

from ..plain import PlainRows, add_up
from ..run import Run
from .sizes import CoverCuts, Sizes, whole

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Textbook:
    """A graph on a cluster: op v, device d, device type t.

    Attributes:
        time: seconds, time[t][v]; infinite where t does not run v.
        nets: (seconds of a transfer, ops that hold or read it, none twice) of outputs, the op that makes it first.
        host: whether each type is a host.
        sizes: whole bytes of ops and of a device of each type, see `sizes`; all 0 where memory is ample.
        limits: bytes of a device of each type, float64 (T,).
        op_of: the index of each op here, int (n,).
        order: (a, b) where a pipeline has a no later than b.
        end_of: the op here of each end of `order`.
        together: (v, w) on one device.
        kind: the type of each device.
        count: number of devices of each type.
        covers: ops that turned out not to fit together.
    """

    time: list[list[float]]
    nets: list[tuple[float, list[int]]]
    host: list[bool]
    sizes: list[Sizes]
    limits: FloatArray
    op_of: IntArray
    order: Sequence[tuple[int, int]] = ()
    end_of: Sequence[int] = ()
    together: Sequence[tuple[int, int]] = ()
    kind: Sequence[int] = ()
    count: Sequence[int] = ()
    covers: CoverCuts = field(default_factory=CoverCuts)

    @classmethod
    def of(cls, problem: GraphProblem) -> Textbook:
        """Lay out `problem`."""
        graph, cluster = problem.graph, problem.cluster
        leader: dict[int, int] = {}
        pairs = [(leader.setdefault(c, v), v) for v, c in enumerate(graph.colocation.tolist()) if c >= 0]
        nets = [(cost, [u]) for u, cost in enumerate(problem.transfer().tolist())]
        for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
            nets[u][1].append(v)
        limits = np.array([np.inf if kind.memory is None else kind.memory for kind in cluster.device_types])
        return cls(
            time=problem.time().tolist(),
            nets=nets,
            order=list(zip(*(ends.tolist() for ends in precedence(graph)), strict=True)),
            end_of=range(graph.n_ops),
            together=[(v, w) for v, w in pairs if v != w],
            kind=cluster.type_of.tolist(),
            count=cluster.counts().tolist(),
            host=[kind.host for kind in cluster.device_types],
            sizes=[whole(graph.memory, limit, graph.n_ops) for limit in limits.tolist()],
            limits=limits,
            op_of=np.arange(graph.n_ops, dtype=np.int32),
        )

    @property
    def ops(self) -> range:
        """All ops."""
        return range(len(self.time[0]))

    @property
    def edges(self) -> list[tuple[int, int]]:
        """All (u, v) where v reads the output of u."""
        return [(u, v) for _, (u, *readers) in self.nets for v in readers]

    @property
    def cost(self) -> list[float]:
        """Seconds of a transfer of each output."""
        return [cost for cost, _ in self.nets]

    @property
    def devices(self) -> range:
        """All devices."""
        return range(len(self.kind))

    @property
    def work(self) -> float:
        """Seconds of all ops, each where it takes longest."""
        return sum(max((row[v] for row in self.time if isfinite(row[v])), default=0.0) for v in self.ops)

    def units(self, model: PlainRows) -> tuple[list[list[Any]], list[Any]]:
        """Return times and costs as numbers of a model, 0 where a type does not run an op."""
        times = [[model.units(x) if isfinite(x) else 0 for x in row] for row in self.time]
        return times, [model.units(x) for x in self.cost]

    def assign(self, model: PlainRows, x: Sequence[Mapping[int, Any]]) -> None:
        """Add (A) every op is on one device, x[v][d], and colocated ops on the same."""
        model.letter("A")
        for row in x:
            model.equal(add_up(row.values()), 1)
        for v, w in self.together:
            for d in x[v]:
                model.equal(x[v][d], x[w][d])

    def hold(self, model: PlainRows, kind: int, here: Sequence[Any], *given: Any, barred: str = "A") -> None:
        """Add (M) that the ops that are here fit on a device of a type, and by letter `barred` that it runs them.

        It need not if one of `given` is 0.
        """
        sizes = self.sizes[kind]
        model.letter(barred)
        for v in self.ops:
            if sizes.barred[v] or not isfinite(self.time[kind][v]):
                model.row(here[v] + sum(given), len(given))
        model.letter("M")
        if sizes.room:
            used = add_up(model.whole(m, sizes.room) * x for m, x in zip(sizes.size.tolist(), here, strict=True))
            model.row(used, model.whole(sizes.room, sizes.room), *given)
        for ops in self.covers.of(float(self.limits[kind])):
            model.row(add_up([*(here[v] for v in ops), *given]), len(ops) - 1 + len(given))

    def kept(self, run: Run, plan: P, by: str) -> P | None:
        """Return a plan if it fits in memory, and learn from it if not."""
        return self.covers.kept(run, plan, self.op_of, by)
