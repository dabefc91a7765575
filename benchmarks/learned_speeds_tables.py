"""The table and the picture of learned speeds: docs/tried/measured.md and docs/scheduler.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.plot.scene import Axis, Key, Lines, Mark, Panel, Scene
from gangplan.simulator.metrics import interval

from .found import Found, table
from .rows import ROOT
from .study import Tables

PICTURE = ROOT / "docs" / "images" / "learned_speeds.png"
GROUNDS, RULES = ("shared", "pairs", "links"), ("tetris", "lif", "lb")
JOBS = 5000
WINDOWS = tuple(f"window_{i}" for i in range(10))
"""Figures: of a tenth of the jobs each."""
CHANGE = len(WINDOWS) // 2
PICTURED = ("never forgets",)
"""Policies in the picture alone."""
STYLE = {
    "without": ("#555555", "line"),
    "learned": ("#d62728", "line"),
    "never forgets": ("#e69f00", "dash"),
    "best rule": ("#1f77b4", "dash"),
    "oracle": ("#2ca02c", "dash"),
}


def windows(found: Found, ground: str) -> dict[str, FloatArray]:
    """Return of each policy the minutes of each window, (seeds, windows).

    ``best rule`` is the classic rule with the least mean over all.
    """
    made = {}
    for policy in found.policies(ground):
        jct = np.array([list(found.of(ground, policy, name).values()) for name in WINDOWS])
        made[policy] = jct.T / 60
    rules = [made.pop(name) for name in RULES if name in made]
    if rules:
        made["best rule"] = min(rules, key=lambda minutes: float(minutes.mean()))
    return {name: made[name] for name in STYLE if name in made}


def learned(results: Found) -> str:
    """Return a line for each ground and policy: mean JCT, and differences from `without`, paired."""
    lines = []
    for ground in GROUNDS:
        found = windows(results, ground)
        for policy, minutes in found.items():
            if policy in (*PICTURED, "without", "best rule"):
                continue
            cells = [f"{minutes.mean():.1f}"]
            for span in (slice(0, CHANGE), slice(CHANGE, None)):
                apart = minutes[:, span].mean(axis=1) / found["without"][:, span].mean(axis=1) - 1
                mean, margin = interval(apart)
                cells.append(f"{mean:+.1%}" + ("" if margin is None else f" ± {margin:.1%}"))
            lines.append((f"`{ground}`", policy, *cells))
    return table(("ground", "policy", "mean JCT, min", "before", "after the change"), lines)


TABLES: Tables = {"learned": learned}


def draw(results: Found, picture: Path = PICTURE) -> None:
    """Draw mean JCT by window, with the change marked."""
    panels, keys = list[Panel](), [Key(policy, (colour,), look) for policy, (colour, look) in STYLE.items()]
    for ground in GROUNDS:
        found = {policy: minutes.mean(axis=0) for policy, minutes in windows(results, ground).items()}
        jobs = JOBS / len(WINDOWS) * (0.5 + np.arange(len(WINDOWS)))
        low, high = (0.9 * min(map(min, found.values())), 1.3 * max(found["without"])) if found else (0.0, 1.0)
        marks: list[Mark] = [Lines([[(JOBS / 2, low), (JOBS / 2, high)]], "#999999", dash=True)]
        for policy, minutes in found.items():
            colour, look = STYLE[policy]
            marks.append(Lines([np.stack([jobs, minutes], axis=1)], colour, 1.6, look == "dash", name=policy))
        x, y = Axis(0, JOBS, "job", grid=True), Axis(low, high, "minutes" * (not panels), grid=True)
        panels.append(Panel(ground, x, y, marks, keys, 0.95 + 4.1 * len(panels), 3.4, heading=ground))
    Scene("Mean JCT of 500 jobs", "the truth changes at the middle", [panels]).save(picture)
