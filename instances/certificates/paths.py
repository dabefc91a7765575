"""Bounds by order: paths of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, ClassVar

from ..errors import InstanceError
from .classes import as_fractions
from .document import Certificate
from .exact import SLACK, indices


def fastest(problem: Any) -> list[Fraction] | None:
    """Return the seconds of each op on the devices that are fastest for it; `None` if none runs one of them."""
    present = problem.cluster.counts().tolist()
    rows = [row for row, count in zip(as_fractions(problem.time()), present, strict=True) if count]
    least = [min(own) for own in zip(*rows, strict=True)]
    return None if inf in least else [Fraction(x) for x in least]


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
        """Return the seconds of the path, `inf` if no device runs some op; each start may be a little early."""
        graph = problem.graph
        indices(self.ops, graph.n_ops, "ops")
        edges = set(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
        for i, pair in enumerate(zip(self.ops, self.ops[1:], strict=False)):
            if pair not in edges:
                raise InstanceError(f"ops[{i + 1}]", f"no edge goes from op {pair[0]} to op {pair[1]}")
        seconds = fastest(problem)
        if seconds is None:
            return inf
        return sum((seconds[v] for v in self.ops), Fraction(0)) / (1 + (len(self.ops) + 1) * SLACK)
