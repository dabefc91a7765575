"""The tables of docs/durations.md: `Scheduler` and its rivals by what is known of durations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from gangplan.simulator.metrics import interval

from .durations_rivals import THRESHOLDS
from .durations_traces import CASES, LAST, TEST, TUNING
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


def summary(found: Found) -> str:
    """Return a line a knowledge, without and with stops: ours less the best rival in the mean over traces."""
    lines = []
    for at, known in product((0, 1), KNOWLEDGE):
        logs = ratios(found, known, at)
        late = ratios(found, known, at, "p95_jct")
        if logs is None or late is None:
            continue
        mine, _, best = logs.mean(axis=(1, 2))
        cells = [percent(logs[0].mean(axis=0)), f"{np.expm1(best):+.1%}", f"{mine / best:.0%}"]
        more = percent(late[0].mean(axis=0)), last(found, known, at)
        lines.append((f"{known}, stops" if at else known, *cells, *more))
    head = ("mean JCT", "best in hindsight", "of that room", "p95 JCT", "sixth window")
    return table(("durations", *head), lines)


def last(found: Found, known: str, at: int) -> str:
    """Return ours over the rival's mean JCT on the last window, over traces."""
    every = []
    for case in CASES:
        chosen = rivals(found, case.name, known)[at]
        told = "known" if chosen in BLIND else known
        every.append([found.of(f"{case.name}: {x}", y).get(LAST) for x, y in ((known, OURS[at]), (told, chosen))])
    if any(None in pair for pair in every):
        return ""
    mine, theirs = np.array(every, dtype=float).T
    return percent(np.log(mine / theirs))


TABLES = {"durations.md": {"summary of durations": summary}}
