"""The tables of docs/durations.md: `Scheduler` and its rivals by what is known of durations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .durations_rivals import THRESHOLDS
from .durations_traces import CASES
from .found import Found, table

RULES = ("fifo overtake", "fifo easy", "sjf overtake", "sjf easy", "qssf overtake", "qssf easy")
STOPPING = tuple(f"tiresias {name}" for name in THRESHOLDS)
KNOWLEDGE = ("known", "limits", "history", "nothing")
NAMES = ("best rival", "`Scheduler`", "Tiresias or that", "with `price=600`")
BLIND = ("fifo overtake", *STOPPING)
"""They look at no duration, so that they are run once, where durations are known."""
TEST = (1,)


def figure(found: Found, case: str, known: str, policy: str, name: str = "mean_jct") -> float | None:
    """Return a figure, the mean over the test windows, none unless all were run."""
    rows = found.of(f"{case}: {'known' if policy in BLIND else known}", policy, name)
    return float(np.mean([rows[w] for w in TEST])) if all(w in rows for w in TEST) else None


def rival(found: Found, case: str, known: str, policies: Sequence[str]) -> str:
    """Return the rival that is best on the window for tuning."""
    rows = {p: found.of(f"{case}: {'known' if p in BLIND else known}", p).get(0, np.inf) for p in policies}
    return min(rows, key=lambda policy: rows[policy])


def pairs(found: Found, case: str, known: str, name: str = "mean_jct") -> list[tuple[str, float | None, float | None]]:
    """Return without stops and with them the best rival, its figure and that of `Scheduler`."""
    chosen = [rival(found, case, known, RULES), rival(found, case, known, (*RULES, *STOPPING))]
    ours = ("Scheduler", "Scheduler stops")
    return [
        (best, figure(found, case, known, best, name), figure(found, case, known, mine, name))
        for best, mine in zip(chosen, ours, strict=True)
    ]


def traces(found: Found) -> str:
    """Return a line a trace and knowledge: mean JCT in hours."""
    lines = []
    for case in CASES:
        for known in KNOWLEDGE:
            cells = []
            for best, theirs, mine in pairs(found, case.name, known):
                if theirs is not None and mine is not None:
                    cells += [f"{theirs / 3600:.2f} ({best})", f"{mine / 3600:.2f} ({mine / theirs - 1:+.1%})"]
            if len(cells) == 4:
                lines.append((case.name, known, *cells))
    return table(("trace", "durations", *NAMES), lines)


def summary(found: Found) -> str:
    """Return a line a knowledge: less or more than the best rival, the geometric mean over traces, and the worst."""
    lines = []
    for known in KNOWLEDGE:
        cells = []
        for name in ("mean_jct", "p95_jct", "mean_wait"):
            for at in (0, 1):
                each = (pairs(found, case.name, known, name)[at] for case in CASES)
                ratios = [mine / theirs for _, theirs, mine in each if theirs and mine]
                if ratios:
                    cells.append(f"{np.exp(np.log(ratios).mean()) - 1:+.1%} ({max(ratios) - 1:+.0%})")
        lines += [(known, *cells)] if len(cells) == 6 else []
    head = [f"{what}{end}" for what in ("mean JCT", "p95 JCT", "queue delay") for end in ("", ", stops")]
    return table(("durations", *head), lines)


def others(found: Found) -> str:
    """Return with limits at a price of half an hour, and with the network where only history is known, mean JCT."""
    lines = []
    for case in CASES:
        of = [
            figure(found, case.name, known, policy)
            for known, policy in (
                ("known", "Scheduler"),
                ("limits", "Scheduler"),
                ("limits", "Scheduler stops 1800"),
                ("history", "gnn"),
                ("history", "gnn stops"),
            )
        ]
        if any(x is not None for x in of):
            lines.append((case.name, *("" if x is None else f"{x / 3600:.2f}" for x in of)))
    head = ("trace", "known", "limits", "limits, `price=1800`", "history, `gnn`", "history, `gnn`, `price=600`")
    return table(head, lines)


TABLES = {"durations.md": {"durations": traces, "summary of durations": summary, "other prices": others}}
