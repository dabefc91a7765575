"""Draw the primal integral: the mean gap that each method is left with after so many seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .hybrid import SINGLE
from .hybrid_rows import CSV, HybridRow, read
from .hybrid_tables import gap, optima
from .ledger import ROOT

PICTURE = ROOT / "docs" / "images" / "primal_integral.png"
FROM, DEADLINE = 1e-3, 1.0


def curve(rows: Sequence[HybridRow], best: dict[tuple[object, ...], float], times: Sequence[float]) -> list[float]:
    """Return the mean gap at each of `times` of solves with one deadline; 1 where there is no plan yet."""
    total = np.zeros(len(times))
    for row in rows:
        steps = row.incumbents
        for i, second in enumerate(times):
            value = next((v for t, v in reversed(steps) if t <= second), None)
            total[i] += gap(value, best[row.instance])
    return (total / max(len(rows), 1)).tolist()  # type: ignore[no-any-return]


def draw(path: Path = CSV, picture: Path = PICTURE) -> None:
    """Write the picture: a panel a problem, a line a method; the number is the area below it in linear time."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = read(path)
    best = optima(rows)
    times = np.geomspace(FROM, DEADLINE, 60)
    figure, panels = plt.subplots(2, 2, figsize=(9.6, 6.8), dpi=110)
    for axes, problem in zip(panels.flat, SINGLE, strict=True):
        for i, method in enumerate(("auto", *SINGLE[problem])):
            found = {
                row.instance: row
                for row in rows
                if row.problem == problem and row.method == method and row.deadline == DEADLINE and row.instance in best
            }
            alone = {row.instance for row in rows if row.method != "auto" and row.problem == problem}
            mine = [row for key, row in found.items() if key in alone]
            if not mine:
                continue
            values = curve(mine, best, times)
            integral = float(np.trapezoid(values, times))
            style = (
                {"color": "black", "linewidth": 2.4} if method == "auto" else {"color": f"C{i - 1}", "linewidth": 1.2}
            )
            axes.step(times, values, where="post", label=f"{method} ({integral:.3f})", **style)
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=1e-3)
        axes.set_ylim(0, 1.2)
        axes.set_title(problem, fontsize=10)
        axes.set_xlabel("seconds")
        axes.set_ylabel("mean gap (1: no plan)")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=7, title="method (primal integral, s)", title_fontsize=7)
    figure.tight_layout()
    figure.savefig(picture, metadata={"Software": None})
    plt.close(figure)
    print(f"{picture.name} drawn")
