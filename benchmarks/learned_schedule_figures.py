"""The pictures of docs/learned-schedule.md: gap against size, and what the policy does with one job among others."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem
from gangplan.learned.schedule.builder import Builder
from gangplan.learned.schedule.policy import shipped
from gangplan.solvers.schedule.prepare import prepare

from .learned_schedule import read
from .learned_schedule_tables import SIZES, of
from .ledger import ROOT

IMAGES = ROOT / "docs" / "images"
_LINES = {"learned": "learned, greedy", "learned (16)": "learned, 16 schedules", "lists": "best of 18 lists"}


def sizes(path: Path = IMAGES / "learned-schedule-sizes.png") -> None:
    """Draw the mean gap to the bound against the number of jobs."""
    import matplotlib.pyplot as plt

    rows, (figure, axes) = read(), plt.subplots(figsize=(6, 3.5))
    for method, label in _LINES.items():
        gap = [np.mean([x.gap for x in of(rows, set="sizes", size=n, method=method)]) for n in SIZES]
        axes.plot(SIZES, 100 * np.array(gap), marker="o", label=label)
    axes.set(xscale="log", xlabel="jobs at most", ylabel="gap to the LP bound, %", ylim=(0, None))
    axes.legend()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def one_job(path: Path = IMAGES / "learned-schedule-job.png") -> None:
    """Draw, for one job among eight that wait for 8 GPUs, its place in the order of starts and its degree.

    Its weight and its work are varied; the others have weights of 1 to 8 and 4 hours on one GPU.
    """
    import matplotlib.pyplot as plt

    weights, hours = np.arange(1, 11), np.array([0.5, 1, 2, 4, 8, 16, 32])
    place, degree = np.zeros((len(weights), len(hours))), np.zeros((len(weights), len(hours)))
    for a, weight in enumerate(weights):
        for b, work in enumerate(hours):
            place[a, b], degree[a, b] = _planned(float(weight), 3600.0 * float(work))
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    about = (("place in the order of starts", place, "viridis_r"), ("GPUs", np.log2(degree), "cividis"))
    for axes, (title, values, colours) in zip(panels, about, strict=True):
        drawn = axes.imshow(values, origin="lower", aspect="auto", cmap=colours)
        axes.set(title=title, xlabel="hours on one GPU", ylabel="weight")
        axes.set_xticks(range(len(hours)), [f"{h:g}" for h in hours])
        axes.set_yticks(range(len(weights)), [str(w) for w in weights])
        bar = figure.colorbar(drawn, ax=axes)
        if title == "GPUs":
            bar.set_ticks([0, 1, 2, 3], labels=["1", "2", "4", "8"])
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _planned(weight: float, work: float) -> tuple[int, int]:
    """Return the place in the order of starts and the GPUs that a job gets."""
    jobs = [_job("it", weight, work), *(_job(f"job{i}", i + 1.0, 4 * 3600.0) for i in range(8))]
    builder = Builder(prepare(ScheduleProblem(tuple(jobs), Pool(8))))
    builder.build(shipped().nets([builder])[0])
    return int((builder.start < builder.start[0]).sum()) + 1, int(builder.p.gpus[builder.option[0]])


def _job(name: str, weight: float, work: float) -> MoldableJob:
    degrees = (1, 2, 4, 8)
    return MoldableJob(name, degrees, tuple(work * (1 + 0.08 * (d - 1)) / d for d in degrees), 0.0, weight)


if __name__ == "__main__":
    sizes()
    one_job()
