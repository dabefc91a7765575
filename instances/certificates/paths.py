"""Bounds by order: paths of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import inf
from typing import Any, ClassVar

from ..errors import InstanceError
from .document import Certificate
from .exact import SLACK, exact


@dataclass(frozen=True, slots=True)
class PathCertificate(Certificate):
    """The ops of a path run one after the other, each no faster than its fastest device.

    Attributes:
        ops: of a path, each the source of an edge to the next; a graph has no cycle, so none is there twice.
    """

    objectives: ClassVar[tuple[str, ...]] = ("latency", "step")

    ops: tuple[int, ...]

    def bound(self, problem: Any) -> Fraction | float:
        """Return the seconds of the path, `inf` if no device runs one of its ops; each start may be a little early."""
        graph, present = problem.graph, problem.cluster.counts().tolist()
        edges = set(zip(graph.source.tolist(), graph.target.tolist(), strict=True))
        for i, (u, v) in enumerate(pairwise(self.ops)):
            if (u, v) not in edges:
                raise InstanceError(f"ops[{i + 1}]", f"no edge goes from op {u} to op {v}")
        if self.ops and not 0 <= self.ops[0] < graph.n_ops:
            raise InstanceError("ops[0]", f"{self.ops[0]} is none of the {graph.n_ops} ops")
        rows = [row for row, count in zip(exact(problem.time()), present, strict=True) if count]
        seconds = sum((min(row[v] for row in rows) for v in self.ops), Fraction(0))
        return seconds if seconds == inf else seconds / (1 + early(problem, len(self.ops)))


def early(problem: Any, ops: int) -> Fraction:
    """Return the share of a makespan by which ops in a row, and transfers with contention, may be early in all."""
    return (ops + 1) * SLACK * (2 if getattr(problem, "contention", False) else 1)
