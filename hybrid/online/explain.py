"""Why a decision is as it is."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gangplan.instances.arrays import FloatArray

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
        amounts: what the lookahead had found of each amount by then.
        waits: why jobs wait.
    """

    number: int
    tier: str
    changes: int
    starts: tuple[str, ...]
    scores: list[tuple[str, float]]
    amounts: tuple[Candidate, ...]
    waits: dict[str, str]
    scorer: str = "learned"
    notes: tuple[str, ...] = field(default=())


def explain(record: Record, desk: Desk) -> Explanation:
    """Put a record into an explanation."""
    found: dict[str, tuple[Candidate, ...]] = {}
    if record.amounts:
        found["lookahead"] = record.amounts
    if record.scores:
        rows = []
        for action, score in record.scores[:SHOWN]:
            name = action.rsplit(" on ", 1)[0]
            why = "" if name in record.starts else record.waits.get(name, "it was not its turn")
            rows.append(Candidate(action, score, why))
        found[record.scorer] = tuple(rows)
    objective = bound = None
    if record.changes == desk.changes and desk.book.waiting:
        objective, bound = _worth(scene(desk), desk.kept.rule.caps(desk.kept.share, desk.book.gpus), desk.book.gpus)
    waits = dict(list(record.waits.items())[:SHOWN])
    return Explanation(record.number, record.tier, found, waits, objective, bound, record.notes)


def _worth(seen: Scene, caps: list[int], gpus: int) -> tuple[float, float]:
    """Return the mean time that the jobs which are shown still have to be there, simulated, and a bound on it.

    The bound squashes all work on one machine as fast as all GPUs together, the least work first, and no job is done
    before it has run (the relaxations of `mean_jct_bound`); what runs is known.
    """
    from .rollout import rollout

    n = len(seen.need)
    arrive = np.full(n, seen.now)
    jobs = (arrive, seen.need, seen.lasts, seen.length.astype(np.int64), seen.key)
    parts = (seen.end, seen.node, seen.gpus, seen.kind)
    total = rollout(seen.now, seen.free, seen.size, *parts, n, *jobs, np.array(caps, dtype=np.int64), n)
    left: FloatArray = np.maximum(seen.end - seen.now, 0.0)
    work = np.concatenate([seen.need * seen.lasts, seen.gpus * left]) / max(1, gpus)
    squashed = float(np.cumsum(np.sort(work)).sum()) - float(left.sum())  # of what runs at least as much is known
    return total / n, max(float(seen.lasts.mean()), squashed / n)
