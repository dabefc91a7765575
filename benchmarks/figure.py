"""Draw how many published graphs each method proves within how many seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .ledger import LEDGER, ROOT, Rows, read
from .suites import PUBLISHED
from .tables import COMPARED

PICTURE = ROOT / "docs" / "images" / "time_to_proof.png"
STYLE = {
    "auto": ("#0072b2", False, "auto (pipeline)"),
    "cpsat": ("#d55e00", False, "cpsat"),
    "plain_cpsat": ("#d55e00", True, "plain CP-SAT"),
    "milp": ("#009e73", False, "milp"),
    "plain_milp": ("#009e73", True, "plain MILP"),
}
"""Colour, whether dashed, and name of each method."""
FROM = 5e-3


def profile(rows: Rows, method: str) -> list[float]:
    """Return the seconds at which `method` proved another graph, ascending."""
    found = [rows.find("rivals", f"msr/{name}", method=method) for name in PUBLISHED]
    return sorted(row.seconds for row in found if row is not None and row.status == "OPTIMAL")


def draw(ledger: Path = LEDGER, picture: Path = PICTURE) -> None:
    """Write the picture, from the rows of the suite `rivals`."""
    from gangplan.plot.scene import Axis, Key, Lines, Panel, Scene
    from gangplan.plot.simulation import steps, ticks

    rows = Rows(read(ledger))
    found = rows.of("rivals")
    if not found:
        raise SystemExit(f"{ledger} has no row of the suite rivals: python -m benchmarks run rivals --ledger {ledger}")
    limit = max(row.time_limit for row in found)
    marks, keys = [], []
    for method in COMPARED:
        colour, dash, label = STYLE[method]
        times = np.array([FROM, *profile(rows, method), limit])
        proved = np.minimum(np.arange(len(times)), len(times) - 2).astype(float)
        marks.append(Lines([steps(times, proved)], colour, 1.8, dash, name=label))
        keys.append(Key(label, (colour,), "dash" if dash else "line"))
    seconds = f"time to the proof, model building included (limit {limit:g} s, {found[0].workers} threads)"
    x = Axis(FROM, limit, seconds, ticks(FROM, limit), log=True, grid=True)
    y = Axis(0, len(PUBLISHED) + 0.3, f"graphs proved, of {len(PUBLISHED)}", grid=True)
    title, subtitle = "Graphs proved within a time", "the published graphs of the suite rivals, by method"
    picture.parent.mkdir(exist_ok=True)
    Scene(title, subtitle, [[Panel("proofs", x, y, marks, keys, height=3.2)]]).save(picture)
    print(f"{picture} drawn")
