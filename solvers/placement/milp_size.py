"""Which placement problems are small enough for the MILP; apart from it, for that imports PuLP."""

from __future__ import annotations

from .prepare import Batch

GOALS = "slowdown", "throughput"
"""What the model knows."""
_LARGEST = 20_000
"""Pairs of jobs, times nodes."""


def suits(batch: Batch) -> bool:
    """Return whether the model has goal and links, and with every pair of jobs on every node is worth building."""
    small = len(batch.jobs) ** 2 * batch.n_nodes <= _LARGEST
    return small and batch.even and batch.problem.goal in GOALS
