"""The figures of docs/learned-placement.md: ``python -m benchmarks.learned_placement_figures``; needs matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances.generators.families import seed_of
from gangplan.instances.generators.gangs import gangs
from gangplan.learned.placement.decode import Decoder
from gangplan.learned.placement.features import AT
from gangplan.learned.placement.shipped import shipped_policy
from gangplan.solvers.placement.prepare import Batch

from .learned_placement_tables import transfer
from .learned_rows import csv_of, read
from .ledger import ROOT

IMAGES = ROOT / "docs" / "images"
_LINES = {"learned": "C0", "learned (16)": "C1", "greedy": "C2", "local search": "C4", "best heuristic": "C3"}


def draw_sizes() -> None:
    """Draw the gap to the bound against the number of nodes."""
    import matplotlib.pyplot as plt

    found = transfer(read(csv_of("placement")))
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for method, colour in _LINES.items():
        sizes = sorted(found[method])
        means = [100 * float(np.mean(found[method][n])) for n in sizes]
        axes.plot(sizes, means, "o-", color=colour, label=method)
    axes.set(xscale="log", xlabel="nodes", ylabel="gap to the bound, %", ylim=(0, None))
    axes.axvspan(8, 16, color="0.9")
    axes.text(11, 0.98 * axes.get_ylim()[1], "labelled", ha="center", va="top", fontsize=8, color="0.4")
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(IMAGES / "learned_placement_sizes.png", dpi=110)
    plt.close(figure)


def draw_scores() -> None:
    """Draw what a gang would cost on each node at once, and what the network says, half way through a batch."""
    import matplotlib.pyplot as plt

    problem = gangs(jobs=44, racks=4, nodes=8, gpus=8, load=0.85, seed=seed_of("test", 7003))
    policy = shipped_policy()
    decoder = Decoder(policy, Batch(problem))
    builder, order = decoder.builder, decoder.order()
    for j in order:
        decision = builder.decide(j)
        assert decision is not None
        room = builder.state.room(j)
        degree = problem.jobs[j].workers[-1]
        nodes = np.flatnonzero(room >= degree).tolist()
        if not problem.jobs[j].servers and degree in (2, 3, 4) and 6 < len(nodes) < 14:
            break
        builder.place(j, decision.rows[int(np.argmax(decoder.scores(decision)))])
    judged = builder.judged(j, [{n: (degree, 0)} for n in nodes])
    # equal nodes have equal ranks here; in a decision there is one of each sort
    price = np.round(judged.price, 9)
    judged.x[:, AT["rank"]] = (price[None] < price[:, None]).mean(axis=1)
    scores = decoder.scores(judged)
    job = problem.jobs[j]
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.4), layout="constrained")
    least = np.argmin(judged.price)
    _cells(axes[0], builder, nodes, -judged.price, f"cost at once: {job.model}, {degree} workers", int(least))
    _cells(axes[1], builder, nodes, scores, "score", int(np.argmax(scores)))
    figure.savefig(IMAGES / "learned_placement_scores.png", dpi=110)
    plt.close(figure)


def _cells(axes: Any, builder: Any, nodes: list[int], values: np.ndarray, title: str, best: int) -> None:  # type: ignore[type-arg]
    import matplotlib as mpl

    rack = builder.board.group[1]
    names = [job.model[:6] for job in builder.batch.jobs]
    low, high = float(values.min()), float(values.max())
    colours = mpl.colormaps["viridis"]
    for node in range(builder.batch.n_nodes):
        row, column = int(rack[node]), int(np.count_nonzero(rack[:node] == rack[node]))
        at = nodes.index(node) if node in nodes else -1
        share = (values[at] - low) / max(high - low, 1e-9)
        colour = colours(share) if at >= 0 else "0.92"
        edge = "red" if at == best and at >= 0 else "white"
        axes.add_patch(mpl.patches.Rectangle((column, -row), 0.94, 0.9, facecolor=colour, edgecolor=edge, linewidth=2))
        there = "\n".join(f"{builder.state.rows[i][node][0]} {names[i]}" for i in list(builder.state.at[node])[:3])
        ink = "white" if at >= 0 and share < 0.6 else "black"
        axes.text(column + 0.47, -row + 0.45, there, ha="center", va="center", fontsize=5, color=ink)
    axes.set(xlim=(-0.1, max(np.bincount(rack)) + 0.1), ylim=(-int(rack.max()) - 0.1, 1.0), xticks=[], yticks=[])
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("a row is a rack, a square a node with the gangs on it; grey: no room; red: the choice", fontsize=7)


if __name__ == "__main__":
    draw_sizes()
    draw_scores()
