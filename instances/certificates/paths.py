"""Bounds by order: paths of a graph, and work that has to be done between the heads and the tails of its ops."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar

from ..errors import InstanceError
from .classes import as_fractions
from .document import Certificate
from .exact import SLACK, indices, not_negative, of_length


def fastest(problem: Any) -> list[Fraction]:
    """Return the seconds of each op on the devices that are fastest for it; `InstanceError` if none runs it."""
    present = problem.cluster.counts().tolist()
    rows = [row for row, count in zip(as_fractions(problem.time()), present, strict=True) if count]
    least = [min(own) for own in zip(*rows, strict=True)]
    if inf in least:
        raise InstanceError("graph.time", f"op {problem.graph.names[least.index(inf)]} runs on no device")
    return [Fraction(x) for x in least]


@dataclass(frozen=True, slots=True)
class Path(Certificate):
    """The ops of a path run one after the other, each no faster than its fastest device.

    Attributes:
        ops: of a path, each the source of an edge to the next.
    """

    argument: ClassVar[str] = "path"
    objectives: ClassVar[tuple[str, ...]] = ("latency", "step")

    ops: tuple[int, ...]

    def bound(self, problem: Any) -> Fraction | float:
        """Return the seconds of the path; starts in a step may be early by as much as the verifier allows, each."""
        graph = problem.graph
        indices(self.ops, graph.n_ops, "ops")
        edges = set(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
        for i, pair in enumerate(zip(self.ops, self.ops[1:], strict=False)):
            if pair not in edges:
                raise InstanceError(f"ops[{i + 1}]", f"no edge goes from op {pair[0]} to op {pair[1]}")
        seconds = fastest(problem)
        return sum((seconds[v] for v in self.ops), Fraction(0)) / (1 + (len(self.ops) + 1) * SLACK)


@dataclass(frozen=True, slots=True)
class Energy(Certificate):
    """Ops that cannot start before h, and that leave t behind, share all devices between (energetic reasoning).

    With a weight y_k of a second on a device of type k, the makespan is at least

        h + t + sum over those ops of min over k of y_k p[k] / sum n_k y_k

    where the head of an op, its least start, and its tail, the least time from its end to the end of all, are those of
    the longest paths of fastest times (Baptiste, Le Pape, Nuijten 2001).

    Attributes:
        head, tail: h and t, seconds.
        seconds: y_k of each device type of the cluster.
    """

    argument: ClassVar[str] = "energy"
    objectives: ClassVar[tuple[str, ...]] = ("step",)

    head: Fraction
    tail: Fraction
    seconds: tuple[Fraction, ...]

    def bound(self, problem: Any) -> Fraction | float:
        """Return the seconds; each start may be early by as much as the verifier allows."""
        count = problem.cluster.counts().tolist()
        of_length(self.seconds, len(count), "seconds")
        not_negative((*self.seconds, self.head, self.tail), "seconds, head, tail")
        devices = sum((n * y for n, y in zip(count, self.seconds, strict=True)), Fraction(0))
        if not devices:
            raise InstanceError("seconds", "no device has a weight")
        heads, steps = _longest(problem, forward=True)
        tails, _ = _longest(problem, forward=False)
        rows = as_fractions(problem.time())
        inside = [v for v in range(problem.graph.n_ops) if heads[v] >= self.head and tails[v] >= self.tail]
        if not inside:
            raise InstanceError("head", "no op has such a head and such a tail")
        work = Fraction(0)
        for v in inside:
            own = ((y, row[v]) for y, row, n in zip(self.seconds, rows, count, strict=True) if n and row[v] != inf)
            work += min(y * Fraction(p) for y, p in own)
        early = 2 * (max(steps) + 1) + len(inside) * max(self.seconds) / devices
        return (self.head + self.tail + work / devices) / (1 + early * SLACK)


def _longest(problem: Any, *, forward: bool) -> tuple[list[Fraction], list[int]]:
    """Return the longest path before each op, seconds, and the most ops on any path before it."""
    graph, seconds = problem.graph, fastest(problem)
    pairs = list(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
    before: list[list[int]] = [[] for _ in seconds]
    for u, v in pairs:
        before[v if forward else u].append(u if forward else v)
    order = graph.topological_order().tolist()
    longest, steps = [Fraction(0)] * len(seconds), [0] * len(seconds)
    for v in order if forward else reversed(order):
        for u in before[v]:
            longest[v] = max(longest[v], longest[u] + seconds[u])
            steps[v] = max(steps[v], steps[u] + 1)
    return longest, steps
