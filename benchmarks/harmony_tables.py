"""Who is compared on Harmony's ground, and the tables of docs/harmony.md."""

from __future__ import annotations

from gangplan.systems.interference.cases import CASES, DATA_CASES, OF_AGENTS

from .found import Found, number, percent, table
from .study import NOT_RUN, Tables

GROUND = tuple(name for name in (*CASES, *DATA_CASES) if name not in OF_AGENTS)
RULES = ("lif", "tetris", "lb", "lif-near", "tetris-near", "lb-near", "best", "first")
PUBLISHED = ("lif-published", "tetris-published", "lb-published")
ORACLES = ("oracle-patient", "oracle-consolidated", "oracle-joint", "oracle-joint-patient")
HARMONY, OURS = "harmony", "colocate"
FULL = "harmony-ppo"
"""Taught by Tetris without `near`, then 50 updates of PPO on rewards of the `sequence` model: what ablations change."""
ABLATIONS = (
    *("harmony-2019", "harmony-no-model", "harmony-no-exploration", "harmony-no-replay", "harmony-pressure"),
    *("harmony-near-ppo", "harmony-near-ppo-long"),
)
POLICIES = (*RULES, *PUBLISHED, "alone", "alone-joint", *ORACLES, HARMONY, FULL, *ABLATIONS, OURS)


def summary(found: Found) -> str:
    """Return a line a case: the best rule, and how far from it others are, with shares of the room."""
    lines = []
    for case in GROUND:
        best, oracle = found.best(case, RULES), found.best(case, ORACLES)
        if best is None:
            continue
        cells = [percent(found.apart(case, p, best)) for p in (HARMONY, OURS, "alone")]
        ahead = percent(found.apart(case, OURS, HARMONY))
        room = found.room(case, OURS, RULES, oracle)
        lines.append((f"`{case}`", f"`{best}` {_minutes(found, case, best)}", *cells, ahead, room))
    head = (
        "mean JCT",
        "best rule, min",
        "Harmony",
        "ours",
        "speeds alone",
        "ours less Harmony",
        "our room",
    )
    return table(head, lines) if lines else NOT_RUN


def _minutes(found: Found, case: str, policy: str) -> str:
    value = found.mean(case, policy)
    return "" if value is None else number(value / 60)


TABLES: Tables = {"summary": summary}
