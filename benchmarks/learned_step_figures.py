"""The pictures of docs/learned-step.md: gap against size, and what the network looks at.

Run as ``python -m benchmarks.learned_step_figures``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances.generators.families import make, seed_of
from gangplan.learned.step.features import Case
from gangplan.learned.step.play import search
from gangplan.solvers.partition.step.model import prepare

from .learned import WEIGHTS
from .learned_rows import csv_of, read
from .learned_step_rivals import policy
from .learned_step_tables import transfer
from .ledger import ROOT

IMAGES = ROOT / "docs" / "images"
_LINES = {"learned": "C0-o", "learned (16)": "C0--o", "best heuristic": "C1-s", "book (16)": "C2--^", "heft": "C3-v"}

_BARS = 10


def sizes(path: Path = IMAGES / "learned_step_sizes.png") -> None:
    """Draw the mean gap to the bound against the size of the graph."""
    import matplotlib.pyplot as plt

    found = transfer(read(csv_of("step")))
    figure, axes = plt.subplots(figsize=(6, 3.6))
    for method, style in _LINES.items():
        size = sorted(found[method])
        axes.plot(size, [100 * np.mean(found[method][x]) for x in size], style, label=method)
    axes.set(xscale="log", xlabel="ops at most", ylabel="mean gap to the bound, %", ylim=(0, None))
    axes.legend(frameon=False)
    _save(figure, path)


def saliency(case: Case, weights: Path) -> Any:
    """Return how much each feature of the problem speaks for the first choice against the others, float64 (f,)."""
    from gangplan.learned.gnn import collate

    batch = collate([case.encoding])
    x = batch.nodes["problem"].requires_grad_()
    score = policy(weights).network(batch)[0]
    (score.max() - score.mean()).backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    return (x.grad * x.detach())[0].double().numpy()


def attention(weights: Path = WEIGHTS / "step.safetensors", path: Path = IMAGES / "learned_step_saliency.png") -> None:
    """Draw the plans of HEFT and of the policy, and between them what speaks for the choice.

    It is the instance on which the first choice gains most over HEFT, of the first forty for validation.
    """
    import matplotlib.pyplot as plt

    chosen = policy(weights)
    cases: list[Case] = [
        chosen.case(prepare(make("step", ("series_parallel", "fork_join")[i % 2], seed_of("validation", i), 60)))  # type: ignore[arg-type]
        for i in range(40)
    ]
    pairs = [(case, case.heft, list(search(case, chosen.settings_of(case)[:1]))[-1]) for case in cases]
    case, before, after = max(((c, b, f) for c, b, f in pairs if b is not None), key=lambda x: x[1][0] / x[2][0])
    figure, axes = plt.subplots(3, 1, figsize=(9, 7.5), height_ratios=(1, 2.2, 1))
    length = max(before[0], after[0])
    _gantt(axes[0], case, before, length, "HEFT")
    _gantt(axes[2], case, after, length, "learned, first choice")
    _bars(axes[1], case, saliency(case, weights))
    _save(figure, path)


def _gantt(axes: Any, case: Case, found: Any, length: float, name: str) -> None:
    device = found[1][case.p.group_of]
    took = case.arrays.seconds[device, np.arange(case.p.n)]
    colours = np.where(case.p.problem.graph.backward, "C1", "C0")
    axes.barh(device, took / length, left=found[2] / length, color=colours, edgecolor="white", linewidth=0.4)
    axes.set(xlim=(0, 1), yticks=range(case.p.n_devices), ylabel="device", title=f"{name}: {found[0] / length:.2f}")


def _bars(axes: Any, case: Case, worth: Any) -> None:
    most = np.argsort(-np.abs(worth))[:_BARS][::-1]
    names = case.encoding.columns["problem"]
    axes.barh([names[i] for i in most], worth[most], color=["C2" if worth[i] > 0 else "C3" for i in most])
    axes.set(xlabel="gradient times input: what speaks for the first choice against the mean of all", ylabel="feature")


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    sizes()
    attention()
