"""Pictures of a report, SVG made by matplotlib: profiles and curves over time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from io import StringIO
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray

from .rows import Row
from .statistics import Results, curve, grouped, profile

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666")
"""Okabe and Ito's, which the colour-blind tell apart; `auto` is black."""


def profiles(results: Results, deadline: float) -> str:
    """Draw the share of the instances solved within a gap, a panel an objective."""
    within = np.concatenate([[0.0], np.geomspace(1e-5, 1.0, 120)])

    def draw(axes: Any, rows: Sequence[Row], style: dict[str, Any]) -> None:
        axes.step(within, 100 * profile(results, rows, within + 1e-9), where="post", **style)

    def dress(axes: Any) -> None:
        axes.set_xscale("symlog", linthresh=1e-4, linscale=0.5)
        axes.set_xticks([0, 1e-3, 1e-2, 0.1, 1], ["0", ".1%", "1%", "10%", "100%"])
        axes.set(xlim=(0, 1), ylim=(0, 102), xlabel="gap to the best known plan", ylabel="solves within it, %")

    return _panels(results.at(deadline), draw, dress)


def anytime(results: Results, deadline: float) -> str:
    """Draw the mean gap over the time of the solve, a panel an objective."""
    times: FloatArray = np.geomspace(1e-3, deadline, 120)

    def draw(axes: Any, rows: Sequence[Row], style: dict[str, Any]) -> None:
        axes.step(times, curve(results, rows, times), where="post", **style)

    def dress(axes: Any) -> None:
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=1e-3)
        axes.set_yticks([0, 1e-3, 1e-2, 0.1, 1], ["0", ".1%", "1%", "10%", "100%"])
        axes.set(xlim=(1e-3, deadline), ylim=(0, 1.3), xlabel="seconds", ylabel="mean gap")

    return _panels(results.at(deadline), draw, dress)


def _panels(rows: Sequence[Row], draw: Callable[..., None], dress: Callable[[Any], None]) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    by_objective = grouped(rows, lambda row: row.topic)
    high = (len(by_objective) + 1) // 2
    with matplotlib.rc_context({"svg.hashsalt": "gapbench", "font.size": 11, "svg.fonttype": "none"}):
        figure = Figure(figsize=(9.0, 3.4 * high + 0.2))
        for i, (objective, own) in enumerate(by_objective.items()):
            axes = figure.add_subplot(high, 2 if len(by_objective) > 1 else 1, i + 1)
            others = iter(_COLOURS * 4)
            for method, mine in grouped(own, lambda row: row.method).items():
                best = method == "auto"
                style = {"color": "black" if best else next(others), "linewidth": 2.4 if best else 1.5}
                draw(axes, mine, {**style, "label": method, "zorder": 3 if best else 2})
            dress(axes)
            axes.set_title(objective, fontsize=12)
            axes.grid(alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
            axes.legend(frameon=False, fontsize=9)
        figure.tight_layout()
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def inline(svg: str, name: str, words: str) -> str:
    """Return a picture for a page: as wide as there is room, its ids its own, with words for who cannot see it."""
    svg = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    head = '<svg \\1 xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img"'
    return re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', f'{head} aria-label="{words}">', svg, count=1)
