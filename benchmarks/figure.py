"""Draw how many published graphs each method proves within how many seconds."""

from __future__ import annotations

from pathlib import Path

from .ledger import LEDGER, ROOT, Rows, read
from .suites import PUBLISHED
from .tables import COMPARED

PICTURE = ROOT / "docs" / "images" / "time_to_proof.png"
STYLE = {
    "auto": ("#1b6ca8", "-", "auto (pipeline)"),
    "cpsat": ("#d1495b", "-", "cpsat"),
    "plain_cpsat": ("#d1495b", "--", "plain CP-SAT"),
    "milp": ("#2e933c", "-", "milp"),
    "plain_milp": ("#2e933c", "--", "plain MILP"),
}


def profile(rows: Rows, method: str) -> list[float]:
    """Return the seconds at which `method` proved another graph, ascending."""
    found = [rows.find("rivals", f"msr/{name}", method=method) for name in PUBLISHED]
    return sorted(row.seconds for row in found if row is not None and row.status == "OPTIMAL")


def draw(ledger: Path = LEDGER, picture: Path = PICTURE) -> None:
    """Write the picture, from the rows of the suite `rivals`."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = Rows(read(ledger))
    found = rows.of("rivals")
    limit = max(row.time_limit for row in found)
    figure, axes = plt.subplots(figsize=(6.4, 3.4), dpi=110)
    for method in COMPARED:
        colour, dash, label = STYLE[method]
        times = profile(rows, method)
        x = [5e-3, *times, limit]
        y = [0, *range(1, len(times) + 1), len(times)]
        axes.step(x, y, where="post", color=colour, linestyle=dash, linewidth=1.8, label=label)
    axes.set_xscale("log")
    axes.set_xlim(5e-3, limit)
    axes.set_ylim(0, len(PUBLISHED) + 0.3)
    axes.set_xlabel(f"seconds, model building included (limit {limit:g} s, {found[0].workers} threads)")
    axes.set_ylabel(f"graphs proved, of {len(PUBLISHED)}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture, metadata={"Software": None})
    plt.close(figure)
    print(f"{picture.name} drawn")
