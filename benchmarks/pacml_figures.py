"""Draw how many jobs the PAC-ML policies block beside rules and bounds."""

from __future__ import annotations

from pathlib import Path

from .found import Found
from .pacml_suites import BOUND, CONSTANTS, LEARNED, PLAN, RULES, SUITES
from .pacml_tables import ALL, PUBLISHED, best, spread
from .rows import ROOT

PICTURE = ROOT / "docs" / "images" / "pacml_blocking.png"


def draw_blocking(found: Found, picture: Path = PICTURE) -> None:
    """Write blocking on the test seeds, a group of bars a distribution, with the LP bound as a line below each."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.2, 3.6), dpi=110)
    for panel, cell in zip(axes, SUITES["main"], strict=True):
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25)
        panel.set_axisbelow(True)
        for i, d in enumerate(ALL):
            constant, rule = (best(found, cell, policies, d) for policies in (CONSTANTS, RULES))
            bars = (
                ("best constant", constant, "#b9b9b9"), ("best rule with a block", rule, "#7fa8c9"),
                ("learned", LEARNED, "#1b6ca8"), ("knows all arrivals: plan found", PLAN, "#e0c68a"),
            )  # fmt: skip
            for k, (label, name, colour) in enumerate(bars):
                rate = spread(found, cell, name, d) if name else None
                if rate is not None:
                    bar = {"color": colour, "yerr": rate.margin or 0.0, "capsize": 1.5, "error_kw": {"lw": 0.8}}
                    panel.bar(i + 0.2 * (k - 1.5), rate.mean, 0.19, label=label if i == 0 else None, **bar)
            lines = [("LP bound", x.mean, "-", "#d1495b")] if (x := spread(found, cell, BOUND, d)) else []
            if cell.units == "as-published":
                lines.append(("PAC-ML, published", next(iter(PUBLISHED.values()))[i], "--", "black"))
            for label, height, style, colour in lines:
                words = label if i == 0 else None
                panel.hlines(height, i - 0.42, i + 0.42, color=colour, linestyle=style, linewidth=1.3, label=words)
        panel.set_xticks(range(len(ALL)), list(ALL))
        panel.set_title(cell.units, fontsize=10)
    axes[0].set_ylabel("blocked, test seeds")
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=3, frameon=False, fontsize=7)
    figure.savefig(picture, metadata={"Software": None})
    plt.close(figure)
    print(f"{picture.name} drawn")
