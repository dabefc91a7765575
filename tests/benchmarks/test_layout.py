"""The study `layout`: ranks, and the words of its tables."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from benchmarks import layout
from benchmarks.found import Found
from benchmarks.rows import Row, Task
from gangplan.instances.layout.models import MODELS
from gangplan.instances.layout.pool import gpu_pool
from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.verify.layout import verify_layout
from gangplan.solvers.layout.space import Space
from gangplan.solvers.layout.split import split


def test_rank_counts_all() -> None:
    """The rank of a layout is how many take less, and one: those that a bound left out were no better."""
    problem = LayoutProblem(MODELS["llama-3-8b"], (gpu_pool("H100", 1, 4),), 4, 4096)
    plan = LayoutPlan(*np.array([[0, 0], [2, 2], [17, 17], [0, 0], [0, 0]]))
    found = layout.rank(problem, plan)
    space = Space(problem)
    every = [x for c in space.combinations() for _, x in space.families(c, inf)]
    plans = [best for x in every if (best := split(space, x)[0]) is not None]
    seconds = np.array([verify_layout(problem, x).objective for x in plans])
    own = verify_layout(problem, split(space, layout.family(plan))[0]).objective
    assert found["own"] == pytest.approx(own) and found["best"] == pytest.approx(seconds.min())
    assert found["rank"] == 1 + (seconds < own * (1 - 1e-9)).sum() and found["cut"] == 0
    assert found["near"] == (seconds <= layout.NEAR * seconds.min()).sum()
    assert sum(found[name] for name in layout._SAVED) == pytest.approx(own - seconds.min())


def test_tables() -> None:
    """Errors are in per cent, two runs are left out of the mean of memory, and the other layouts are summed up."""
    runs = {
        "clariden_N1_plan_config_N1": (2.0, 2.2, 1.8, 1e9, 1.1e9),
        "mit_N2_plan_config_N2": (2.0, 1.8, 1.8, 1e9, 3e9),
    }
    names = "measured", "seconds", "held_out", "measured_bytes", "bytes"
    rows = [Row(Task("OPT-350", x, 0), dict(zip(names, figures, strict=True))) for x, figures in runs.items()]
    lines = layout.errors(Found(rows, lambda row: row.task[:2]), "OPT-350").splitlines()
    assert lines[2] == "| clariden_N1 N1 | 2 | +10% | -10% | 1.0 GB | +10% |"
    assert lines[-1] == "| mean of errors |  | 10.0% | 10.0% |  | 10.0% |"
    saved = dict.fromkeys(layout._SAVED, 0.0) | {"less bubble": 0.5}
    figures = {"measured": 5.0, "seconds": 6.0, "rank": 3.0, "layouts": 1000.0, "near": 4.0, "cut": 1.0, "own": 6.0,
               "best": 5.7, **dict.fromkeys(layout._DEGREES, 1.0), "TP": 2.0, **saved}  # fmt: skip
    rows = [Row(Task("tuned", "GB300 x, bf16", 0), figures), Row(Task("tuned", "B200 y, fp8", 13), figures)]
    table, words = layout.published(Found(rows, lambda row: row.task[:2])).split("\n\n")
    line = "5 | +20% | at least 3 | at least 4 of 1,000 | TP 2, MBS 1, ZeRO 1 | 5% | bubble 8% |"
    assert table.splitlines()[2:] == [f"| GB300 x, bf16 | {line}", f"| B200 y, fp8 (apart) | {line}"]
    assert words == "Of those neither fitted nor apart: 20% in the median, 20% at worst."


def test_what_decides_nothing_is_counted() -> None:
    """A run within 5% has no line, but is in the means; nor has a layout 10% off, if the best is hardly ahead."""
    names = "measured", "seconds", "held_out", "measured_bytes", "bytes"
    runs = {"a": (2.0, 2.08, 1.92, 1e9, 1e9), "b": (2.0, 2.0, 2.0, 1e9, 1.08e9)}
    rows = [Row(Task("OPT-350", x, 0), dict(zip(names, figures, strict=True))) for x, figures in runs.items()]
    *_, line, mean, _, words = layout.errors(Found(rows, lambda row: row.task[:2]), "OPT-350").splitlines()
    assert line.startswith("| b |") and mean == "| mean of errors |  | 2.0% | 2.0% |  | 4.0% |"
    assert words == "Of 1 others all figures are within 5%."
    none = dict.fromkeys((*layout._DEGREES, *layout._SAVED, "cut"), 0.0) | {"layouts": 9.0, "near": 1.0, "own": 6.0}
    tuned = [
        Row(Task("tuned", name, seed), {"measured": 6.0, "seconds": 6.0 * off, "rank": 2.0, "best": best, **none})
        for seed, (name, off, best) in enumerate([("x", 1.09, 5.8), ("y", 1.11, 5.8), ("z", 1.0, 5.6)])
    ]
    table, words = layout.published(Found(tuned, lambda row: row.task[:2])).split("\n\n")
    assert [line[:4] for line in table.splitlines()[2:]] == ["| y ", "| z "]
    assert words.startswith(
        "1 others are at most 10% off, and the best at most 5% ahead. Of those neither fitted nor apart:"
    )
