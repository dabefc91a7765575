"""Why a decision is as it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .decision import Candidate, Explanation
from .desk import Desk
from .scene import Scene, scene

SHOWN = 16
"""Candidates and waiting jobs that are named."""


@dataclass(slots=True)
class Record:
    """What is remembered of a decision.

    Attributes:
        number, tier, notes: its own.
        changes: events before and by it: only while there is no other, objective and bound can be told.
        starts: names of the jobs that it started.
        scores: of a learned tier or a policy, the best first.
        orders: what the lookahead found of each order.
        stops: jobs that were stopped, and for whom.
        waits: why jobs wait.
    """

    number: int
    tier: str
    changes: int
    starts: tuple[str, ...]
    scores: list[tuple[str, float]]
    orders: tuple[Candidate, ...]
    stops: tuple[Candidate, ...]
    waits: dict[str, str]
    scorer: str = "learned"
    notes: tuple[str, ...] = field(default=())


def explain(record: Record, desk: Desk) -> Explanation:
    """Put a record into an explanation."""
    found: dict[str, tuple[Candidate, ...]] = {}
    if record.orders:
        found["lookahead"] = record.orders
    if record.stops:
        found["stops"] = record.stops[:SHOWN]
    if record.scores:
        rows = []
        for action, score in record.scores[:SHOWN]:
            name = action.rsplit(" on ", 1)[0]
            why = "" if name in record.starts else record.waits.get(name, "it was not its turn")
            rows.append(Candidate(action, score, why))
        found[record.scorer] = tuple(rows)
    objective = bound = None
    if record.changes == desk.changes and desk.book.waiting:
        objective, bound = _worth(scene(desk), desk.settings.reserve, desk.line.order)
    waits = dict(list(record.waits.items())[:SHOWN])
    return Explanation(record.number, record.tier, found, waits, objective, bound, record.notes)


def _worth(seen: Scene, reserve: bool, order: float) -> tuple[float, float]:
    """Return the mean time that the jobs which are shown still have to be there, simulated, and a bound on it.

    The bound squashes all work on one machine as fast as all GPUs together, the least work first, and no job is done
    before it has run (the relaxations of `mean_jct_bound`).
    """
    from .rollout import rollout

    gpus, left, need, _, _ = seen
    squashed = np.cumsum(np.sort(need * left)) / max(1, gpus)
    return float(rollout(*seen, reserve, order).mean()), max(float(left.mean()), float(squashed.mean()))
