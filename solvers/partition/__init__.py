"""Partition: which device runs which op of one job, a folder an objective."""

from __future__ import annotations

from ..run import Run


def offer_draft(run: Run, prepared: object = None) -> None:
    """Offer a plan from a few sums, see `gangplan.solvers.partition.draft`, which most solves do without."""
    from .draft import draft

    draft(run)
