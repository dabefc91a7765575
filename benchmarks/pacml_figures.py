"""Draw how the PAC-ML policies learned, and how many jobs they block beside rules and bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .ledger import ROOT
from .pacml_curves import CURVES, STAGES
from .pacml_curves import read as read_curves
from .pacml_rows import BOUND, LEARNED, PACML, PLAN, read
from .pacml_suites import CONSTANTS, RULES, SUITES
from .pacml_tables import ALL, PUBLISHED, Found

IMAGES = ROOT / "docs" / "images"
UNITS = ("as-published", "physical")
COLOURS = {"A": "#1b6ca8", "B": "#d1495b", "C": "#2e933c", "D": "#b07d12"}
SIZE = (8.2, 3.6)
RANGE = -4.0, 6.0
"""Points of blocking in the picture of the curves: the untrained network is far above."""


def draw_learning(path: Path = CURVES, picture: Path = IMAGES / "pacml_learning.png") -> None:
    """Write blocking on the validation seeds over minutes, in points above the best of imitation."""
    points = read_curves(path)
    figure, axes = _figure()
    for panel, units in zip(axes, UNITS, strict=True):
        stages = [[x for x in points if (x.run, x.stage) == (units, stage)] for stage in STAGES]
        start = [0.0, max((x.seconds for x in stages[0]), default=0.0) / 60]
        for name in ALL:
            lines = [[x for x in found if x.name == f"{units} {name}"] for found in stages]
            if not lines[0]:
                continue
            zero = (lines[1][0] if lines[1] else lines[0][-1]).value  # PPO begins with the best of imitation
            for k, line in enumerate(lines):
                x, y = [start[k] + p.seconds / 60 for p in line], [100 * (p.value - zero) for p in line]
                panel.plot(
                    x, y, color=COLOURS[name], linewidth=1.6, label=f"{name}: {zero:.3f} at 0" if not k else None
                )
        if stages[1]:
            panel.axvline(start[1], color="#888888", linestyle=":", linewidth=1.2)
            panel.text(start[1], 0.02, " PPO", transform=panel.get_xaxis_transform(), fontsize=8)
        panel.set_ylim(*RANGE)
        panel.set_title(units, fontsize=10)
        panel.set_xlabel("minutes of training, labels not included")
        if stages[0]:
            panel.legend(frameon=False, fontsize=8, loc="upper right")
    axes[0].set_ylabel("blocked, points above imitation's best")
    _save(figure, picture)


def draw_training(path: Path = CURVES, picture: Path = IMAGES / "pacml_training.png") -> None:
    """Write loss of imitation and jobs accepted under PPO, over updates, a line each of the units."""
    points = read_curves(path)
    figure, axes = _figure()
    for panel, stage, name in zip(axes, STAGES, ("loss", "accepted"), strict=True):
        for units, colour in zip(UNITS, (COLOURS["A"], COLOURS["B"]), strict=True):
            line = [x for x in points if (x.run, x.stage, x.name) == (units, stage, name)]
            panel.plot([p.update for p in line], [p.value for p in line], color=colour, linewidth=1.4, label=units)
        panel.set_xlabel("updates")
    axes[0].set_ylabel("imitation: loss")
    axes[1].set_ylabel("PPO: share accepted while exploring")
    axes[1].legend(frameon=False, fontsize=8)
    _save(figure, picture)


def draw_blocking(path: Path = PACML, picture: Path = IMAGES / "pacml_blocking.png") -> None:
    """Write blocking on the test seeds, a group of bars a distribution, with the LP bound as a line below each."""
    found = Found(read(path))
    figure, axes = _figure()
    for panel, units in zip(axes, UNITS, strict=True):
        cell = next(x for x in SUITES["main"] if x.units == units)
        for i, d in enumerate(ALL):
            best = [found.best(cell, policies, d) for policies in (CONSTANTS, RULES)]
            names = (("best constant", best[0]), ("best rule with a block", best[1]), ("learned", LEARNED))
            names += (("knows all arrivals: plan found", PLAN),)
            for k, (label, name) in enumerate(names):
                spread = found.spread(cell, name, d) if name else None
                if spread is not None:
                    colour = ("#b9b9b9", "#7fa8c9", "#1b6ca8", "#e0c68a")[k]
                    bar = {"color": colour, "yerr": spread.margin or 0.0, "capsize": 1.5, "error_kw": {"lw": 0.8}}
                    panel.bar(i + 0.2 * (k - 1.5), spread.mean, 0.19, label=label if i == 0 else None, **bar)
            spread = found.spread(cell, BOUND, d)
            if spread is not None:
                label = "LP bound" if i == 0 else None
                panel.hlines(spread.mean, i - 0.42, i + 0.42, color="#d1495b", linewidth=1.4, label=label)
            if units == "as-published":
                label = "PAC-ML, published" if i == 0 else None
                value = next(iter(PUBLISHED.values()))[i]
                panel.hlines(value, i - 0.42, i + 0.42, color="black", linestyle="--", linewidth=1.1, label=label)
        panel.set_xticks(range(len(ALL)), list(ALL))
        panel.set_title(units, fontsize=10)
    axes[0].set_ylabel("blocked, test seeds")
    _save(figure, picture, axes[0].get_legend_handles_labels())


def _figure() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=SIZE, dpi=110)
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25)
        panel.set_axisbelow(True)
    return figure, axes


def _save(figure: Any, picture: Path, legend: Any = None) -> None:
    import matplotlib.pyplot as plt

    figure.tight_layout(rect=(0, 0.1 if legend else 0, 1, 1))
    if legend:
        figure.legend(*legend, loc="lower center", ncols=3, frameon=False, fontsize=7)
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture, metadata={"Software": None})
    plt.close(figure)
    print(f"{picture.name} drawn")
