"""The tables of docs/durations.md: `Scheduler` and its rivals by what is known of durations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from gangplan.simulator.metrics import interval

from .durations_rivals import THRESHOLDS
from .durations_traces import CASES, TEST, TUNING
from .found import Found, table

RULES = ("fifo overtake", "fifo easy", "sjf overtake", "sjf easy", "qssf overtake", "qssf easy")
STOPPING = tuple(f"tiresias {name}" for name in THRESHOLDS)
KNOWLEDGE = ("known", "limits", "history", "nothing")
BLIND = ("fifo overtake", *STOPPING)
"""They look at no duration, so that they are run once, where durations are known."""
OURS = ("Scheduler", "Scheduler stops")
"""Without stops and with them."""


def figure(found: Found, case: str, known: str, policy: str, name: str = "mean_jct") -> np.ndarray | None:
    """Return a figure of each test window, none unless all were run."""
    rows = found.of(f"{case}: {'known' if policy in BLIND else known}", policy, name)
    return np.array([rows[w] for w in TEST]) if all(w in rows for w in TEST) else None


def rival(found: Found, case: str, known: str, policies: Sequence[str]) -> str:
    """Return the rival with the least mean JCT on the windows for tuning, the geometric mean over them."""
    means = {}
    for policy in policies:
        rows = found.of(f"{case}: {'known' if policy in BLIND else known}", policy)
        means[policy] = sum(np.log(rows.get(window, np.inf)) for window in TUNING)
    return min(means, key=lambda policy: means[policy])


def rivals(found: Found, case: str, known: str) -> tuple[str, str]:
    """Return the best rival without stops, and of all."""
    return rival(found, case, known, RULES), rival(found, case, known, (*RULES, *STOPPING))


def hindsight(found: Found, case: str, stops: bool, name: str) -> np.ndarray:
    """Return the least figure of each test window that any policy reached, whatever it was told."""
    runs = ((known, policy) for known in KNOWLEDGE for policy in (*RULES, OURS[0], *((*STOPPING, OURS[1]) * stops)))
    return np.min([x for run in runs if (x := figure(found, case, *run, name)) is not None], axis=0)


def ratios(found: Found, known: str, at: int, name: str = "mean_jct") -> np.ndarray | None:
    """Return logarithms of what ours, the clairvoyant and hindsight have over the rival's, (3, traces, windows)."""
    every = []
    for case in CASES:
        theirs = figure(found, case.name, known, rivals(found, case.name, known)[at], name)
        mine = [figure(found, case.name, told, OURS[at], name) for told in (known, "known")]
        if theirs is None or mine[0] is None or mine[1] is None:
            return None
        every.append(np.log([x / theirs for x in (*mine, hindsight(found, case.name, at == 1, name))]))
    return np.array(every).swapaxes(0, 1)


def percent(logs: np.ndarray) -> str:
    """Return the mean of logarithms of ratios as a share, with half its 95% interval; bold if that leaves 0 out."""
    mean, margin = interval(logs)
    text = f"{np.expm1(mean):+.1%}" + ("" if margin is None else f" ± {np.exp(mean) * margin:.1%}")
    return f"**{text}**" if margin is not None and abs(mean) > margin else text


def traces(found: Found) -> str:
    """Return a line a trace, without and with stops: by knowledge mean JCT in hours of the best rival, ours over it."""
    lines = []
    of = {(known, at): ratios(found, known, at) for known in KNOWLEDGE for at in (0, 1)}
    for (i, case), at in product(enumerate(CASES), (0, 1)):
        cells = []
        for known in KNOWLEDGE:
            theirs = figure(found, case.name, known, rivals(found, case.name, known)[at])
            if theirs is not None and (logs := of[known, at]) is not None:
                cells.append(f"{theirs.mean() / 3600:.2f}, {percent(logs[0, i])}")
        if len(cells) == len(KNOWLEDGE):
            lines.append((f"{case.name}, stops" if at else case.name, *cells))
    return table(("trace", *KNOWLEDGE), lines)


def summary(found: Found) -> str:
    """Return a line a knowledge, without and with stops: ours less the best rival in the mean over traces."""
    lines = []
    for at, known in product((0, 1), KNOWLEDGE):
        logs = ratios(found, known, at)
        more = [x for name in ("p95_jct", "mean_wait") if (x := ratios(found, known, at, name)) is not None]
        if logs is None or len(more) < 2:
            continue
        mine, clear, best = logs.mean(axis=(1, 2))
        cells = [percent(logs[0].mean(axis=0)), *(f"{np.expm1(x):+.1%}" for x in (clear, best)), f"{mine / best:.0%}"]
        lines.append((f"{known}, stops" if at else known, *cells, *(percent(x[0].mean(axis=0)) for x in more)))
    head = ("mean JCT", "durations known", "best in hindsight", "of that room", "p95 JCT", "queue delay")
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
            lines.append((case.name, *("" if x is None else f"{x.mean() / 3600:.2f}" for x in of)))
    head = ("trace", "known", "limits", "limits, `price=1800`", "history, `gnn`", "history, `gnn`, `price=600`")
    return table(head, lines)


TABLES = {"durations.md": {"durations": traces, "summary of durations": summary, "other prices": others}}
