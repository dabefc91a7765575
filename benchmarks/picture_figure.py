"""Draw docs/images/picture.svg: time of a decision and quality by size; and the tables of docs/picture.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.plot.scene import Axis, Dots, Key, Lines, Panel, Scene, Words
from gangplan.simulator.metrics import interval

from .found import Found, number, table
from .rows import ROOT
from .study import Tables

PICTURE = ROOT / "docs" / "images" / "picture.svg"
SHOWN = {
    "fcfs+head+closest": ("first come", "#7f7f7f"),
    "patient": ("rule: patient", "#222222"),
    "gnn": ("network", "#1f77b4"),
    "gnn-imitation": ("network without RL", "#2ca02c"),
    "rollout": ("search: rollouts", "#ff7f0e"),
    "exact": ("exact futures", "#d62728"),
    "oracle": ("knows all arrivals", "#9467bd"),
}
SIZES = ("8", "32", "256", "1,024", "10,240")
DEADLINES = (0.02, 1.0)
"""Seconds: of `Scheduler`, and of a patient user."""
TAUGHT = "teachers, 16"
FASTEST, SLOWEST = 1e-6, 20.0
"""Ends of the axis of time, seconds."""
TOP = 1.2
"""End of the axis of ratios; who is above stands at it with a figure."""


def ratios(found: Found, case: str, policy: str) -> FloatArray:
    """Return a policy's mean JCT over the best that is known, by seed."""
    runs = {other: found.of(case, other) for other in SHOWN}
    best = {seed: min(x[seed] for x in runs.values() if seed in x) for seed in runs["patient"]}
    return np.array([mean / best[seed] for seed, mean in runs[policy].items()])


def sizes(found: Found) -> str:
    """Return by policy and size how far the mean JCT is above the best known, and the time of a decision."""
    lines = []
    for policy, (words, _) in SHOWN.items():
        cells = []
        for case in SIZES:
            seconds = found.mean(case, policy, "seconds")
            far = ratios(found, case, policy) - 1
            mean, margin = interval(100 * far) if len(far) else (0.0, None)
            quality = "" if not len(far) else f"{mean:.1f}% ± {margin or 0:.1f}, "
            cells.append("" if seconds is None else quality + _told(seconds))
        lines.append((words, *cells))
    return table(("mean JCT above the best known, time of a decision", *(f"{x} GPUs" for x in SIZES)), lines)


def _told(seconds: float) -> str:
    unit, name = next((u, n) for u, n in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")) if seconds >= u or n == "µs")
    return f"{number(float(f'{seconds / unit:.2g}'))} {name}"


TABLES: Tables = {"picture": sizes}


def draw(found: Found, picture: Path = PICTURE) -> None:
    """Write the picture."""
    panels = [_panel(found, case, i) for i, case in enumerate(SIZES)]
    keys = [Key(words, (colour,), "D" if policy == "oracle" else "box") for policy, (words, colour) in SHOWN.items()]
    legend = Panel("keys", Axis(0, 1), Axis(0, 1), [], keys, height=0.01, below=0.0, bare=True)
    words = "processor time per job; 95% intervals; dashed: 20 ms and 1 s; x: only timed; top: off scale"
    Scene("Who answers how well in which time, from 8 to 10,240 GPUs", words, [[legend], panels]).save(picture)
    print(f"{picture} drawn")


def _panel(found: Found, case: str, i: int) -> Panel:
    marks = list[Lines | Dots | Words]()
    marks += [Lines([[(x, 1.0), (x, TOP)]], "#aaaaaa", 0.8, dash=True) for x in DEADLINES]
    for policy, (_, colour) in SHOWN.items():
        seconds, far = found.mean(case, policy, "seconds"), ratios(found, case, policy)
        if seconds is None:
            continue
        mean, margin = interval(far) if len(far) else (TOP, 0.0)
        at, half = min(mean, TOP), margin or 0.0
        if mean < TOP:
            marks.append(Lines([[(seconds, max(mean - half, 1.0)), (seconds, min(mean + half, TOP))]], colour, 1.4))
        elif len(far):
            marks.append(Words(np.array([[seconds * 2.2, TOP - 0.004]]), [f"{mean:.1f}"], colour=colour, align="left"))
        shape = "x" if not len(far) else "D" if policy == "oracle" else "o"
        size, edge = (11.0 if policy == "gnn" else 7.0), ("white" if len(far) else colour)
        marks.append(Dots(np.array([[seconds, at]]), colour, size, shape, edge))
    ticks = [(10.0**k, words) for k, words in ((-6, "1 µs"), (-4, "0.1 ms"), (-2, "10 ms"), (0, "1 s"))]
    at = [(v, f"{v:.2f}" if i == 0 else "") for v in np.arange(1.0, TOP, 0.05).tolist()]
    y = Axis(0.99, TOP + 0.01, "mean JCT / best known" if i == 0 else "", at, grid=True)
    x = Axis(FASTEST, SLOWEST, "time of a decision", ticks, log=True)
    return Panel("size", x, y, marks, heading=f"{case} GPUs", left=0.95 + 2.4 * i, width=2.1, height=3.2)
