"""Two pictures: gaps against size from the rows, and what the network looks at in one graph from the weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .learned import WEIGHTS
from .learned_rows import LearnedRow, csv_of, read
from .ledger import ROOT

SIZES, SALIENCY = (ROOT / "docs" / "images" / f"learned_throughput_{name}.png" for name in ("sizes", "saliency"))
_BARS = 10
"""Features that are shown."""
STYLE = {
    "learned (16)": ("#1b6ca8", "-", "learned, 16 samples"),
    "learned": ("#1b6ca8", "--", "learned, greedy"),
    "random (16)": ("#2e933c", "-", "16 random orders, same decoder"),
    "decoder": ("#2e933c", "--", "PipeDream's order, same decoder"),
    "pipedream": ("#d1495b", "-", "PipeDream"),
    "local_search": ("#edae49", "-", "local search, 2 s"),
}


def draw_sizes(rows: Sequence[LearnedRow] | None = None, picture: Path = SIZES) -> None:
    """Draw the mean gap to the bound against the number of ops."""
    plt = _plt()
    found = [x for x in (read(csv_of("throughput")) if rows is None else rows) if x.set == "sizes"]
    figure, axes = plt.subplots(figsize=(6.4, 3.6), dpi=110)
    for method, (colour, dash, label) in STYLE.items():
        line = [
            (size, [x.gap for x in found if x.size == size and x.method == method])
            for size in sorted({x.size for x in found})
        ]
        line = [(size, gaps) for size, gaps in line if gaps]
        if line:
            x, y = [size for size, _ in line], [100 * float(np.mean(gaps)) for _, gaps in line]
            axes.plot(x, y, color=colour, linestyle=dash, marker="o", markersize=3, label=label)
    axes.set_xscale("log")
    axes.set_xlabel("ops at most")
    axes.set_ylabel("mean gap to the bound, %")
    axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8)
    _save(figure, picture)


def draw_saliency(weights: Path = WEIGHTS, picture: Path = SALIENCY) -> None:
    """Draw the scores of one head on a graph, and what speaks for the score that is farthest from the mean."""

    from gangplan.instances.generators.families import make, seed_of
    from gangplan.learned.gnn import collate
    from gangplan.learned.throughput.decode import decoder
    from gangplan.learned.throughput.encode import encode
    from gangplan.learned.throughput.policy import ThroughputPolicy

    plt = _plt()
    policy = ThroughputPolicy.load(weights / "throughput")
    problem: Any = make("throughput", "layered", seed_of("test", 24), 100)
    made = decoder(problem)
    assert made is not None
    encoding = encode(made, messages=policy.network.messages)
    batch = collate([encoding])
    given = batch.nodes["groups"].requires_grad_()
    scores = policy.network(batch)
    head = int(np.argmin([d.load if (d := made.decode(row)) else np.inf for row in scores.detach().double().numpy().T]))
    scores = scores - scores.mean(dim=0)  # only differences count
    chosen = int(scores[:, head].abs().argmax())
    scores[chosen, head].backward()
    worth = (given.grad * given.detach())[chosen].numpy()
    depth = np.rint(encoding.nodes["groups"][:, encoding.columns["groups"].index("depth")] * 1000).astype(int)
    x = np.unique(depth, return_inverse=True)[1]
    y = np.zeros(len(x))
    for column in np.unique(x):
        here = np.flatnonzero(x == column)
        y[here] = np.arange(len(here)) - (len(here) - 1) / 2
    figure, both = plt.subplots(1, 2, figsize=(9.2, 3.8), dpi=110)
    at = scores[:, head].detach().numpy()
    most = float(np.abs(at).max())
    axes = both[0]
    for a, b in made.q.edges:
        axes.plot([x[a], x[b]], [y[a], y[b]], color="0.8", linewidth=0.6, zorder=1)
    size = 28 + 60 * made.q.work / made.q.work.max()
    dots = axes.scatter(x, y, c=at, s=size, zorder=2, cmap="coolwarm", vmin=-most, vmax=most)
    axes.scatter(x[chosen], y[chosen], s=170, facecolors="none", edgecolors="black", zorder=3)
    axes.set_title("score: later (red) or earlier (blue)\nthan in PipeDream's order", fontsize=9)
    axes.axis("off")
    figure.colorbar(dots, ax=axes, fraction=0.04)
    first = np.argsort(-np.abs(worth))[:_BARS][::-1]
    names = [encoding.columns["groups"][i] for i in first]
    both[1].barh(names, worth[first], color=["C3" if worth[i] > 0 else "C0" for i in first])
    both[1].set_title("what speaks for the score of the outlined group\n(gradient times input)", fontsize=9)
    both[1].tick_params(labelsize=8)
    _save(figure, picture)


def _plt() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _save(figure: Any, picture: Path) -> None:
    figure.tight_layout()
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture, metadata={"Software": None})
    print(f"{picture.name} drawn")


if __name__ == "__main__":
    draw_sizes()
    draw_saliency()
