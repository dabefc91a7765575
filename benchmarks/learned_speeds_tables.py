"""The table and the picture of learned speeds: docs/tried/measured.md and docs/scheduler.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gangplan.instances.arrays import FloatArray
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
    "without": ("#555555", "-"),
    "learned": ("#d62728", "-"),
    "never forgets": ("#d62728", ":"),
    "best rule": ("#1f77b4", "--"),
    "oracle": ("#2ca02c", "--"),
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
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, plots = plt.subplots(1, len(GROUNDS), figsize=(10.0, 3.2), dpi=110)
    for axes, ground in zip(plots, GROUNDS, strict=True):
        found = windows(results, ground)
        for policy, minutes in found.items():
            colour, line = STYLE[policy]
            jobs = JOBS / len(WINDOWS) * (0.5 + np.arange(minutes.shape[1]))
            axes.plot(jobs, minutes.mean(axis=0), line, color=colour, label=policy, linewidth=1.6)
        if found:
            axes.set_ylim(
                0.9 * min(x.mean(axis=0).min() for x in found.values()), 1.3 * found["without"].mean(axis=0).max()
            )
        axes.axvline(JOBS // 2, color="grey", linestyle=":", linewidth=1)
        axes.set_title(ground, fontsize=10)
        axes.set_xlabel("job")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    plots[0].set_ylabel("mean JCT of 500 jobs, minutes")
    plots[-1].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(picture)
    plt.close(figure)
