"""Draw how many jobs the PAC-ML policies block beside rules and bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gangplan.plot.scene import Axis, Boxes, Key, Lines, Mark, Panel, Scene

from .found import Found
from .pacml_suites import BOUND, CONSTANTS, LEARNED, PLAN, RULES, SUITES
from .pacml_tables import ALL, PUBLISHED, best, spread
from .rows import ROOT

PICTURE = ROOT / "docs" / "images" / "pacml_blocking.png"


def draw_blocking(found: Found, picture: Path = PICTURE) -> None:
    """Write blocking on the test seeds, a group of bars a distribution, with the LP bound as a line below each."""
    rows = list[list[Panel]]()
    for cell in SUITES["main"]:
        marks, keys, most = list[Mark](), dict[str, Key](), 0.0
        for i, d in enumerate(ALL):
            constant, rule = (best(found, cell, policies, d) for policies in (CONSTANTS, RULES))
            bars = (
                ("best constant", constant, "#b9b9b9"), ("best rule with a block", rule, "#7fa8c9"),
                ("learned", LEARNED, "#1b6ca8"), ("knows all arrivals: plan found", PLAN, "#e0c68a"),
            )  # fmt: skip
            for k, (label, name, colour) in enumerate(bars):
                rate = spread(found, cell, name, d) if name else None
                if rate is not None:
                    left, margin = i + 0.2 * (k - 1.5) - 0.095, rate.margin or 0.0
                    keys[label] = Key(label, (colour,))
                    marks.append(Boxes(np.array([[left, 0.0, 0.19, rate.mean]]), colour))
                    marks.append(Lines([[(left + 0.095, rate.mean + end * margin) for end in (-1, 1)]], width=0.8))
                    most = max(most, rate.mean + margin)
            lines = [("LP bound", x.mean, "line", "#d1495b")] if (x := spread(found, cell, BOUND, d)) else []
            if cell.units == "as-published":
                lines.append(("PAC-ML, published", next(iter(PUBLISHED.values()))[i], "dash", "#000000"))
            for label, height, look, colour in lines:
                keys[label] = Key(label, (colour,), look)
                marks.append(Lines([[(i - 0.42, height), (i + 0.42, height)]], colour, 1.3, look == "dash"))
                most = max(most, height)
        x = Axis(-0.6, len(ALL) - 0.4, "distribution", list(enumerate(ALL)))
        y = Axis(0, 1.05 * most, "blocked, test seeds", grid=True)
        rows.append([Panel(cell.units, x, y, marks, list(keys.values()), heading=cell.units, height=2.0)])
    Scene("PAC-ML", "jobs blocked", rows).save(picture)
    print(f"{picture.name} drawn")
