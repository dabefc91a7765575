"""The passes of a layout that are drawn take as long as the verifier says, and none before what it needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.instances import verify
from gangplan.instances.layout import LayoutPlan, LayoutProblem, Transformer, gpu_pool
from gangplan.plot.layout import first_passes, frontier_scene
from gangplan.plot.scene import Dots
from gangplan.solvers.layout.frontier import Point

MODEL = Transformer("small", 14, 2048, 16, 8, 128, 32000, 8192)


def layout(blocks: list[int], stages: int, **more: int) -> LayoutPlan:
    """Return a layout of so many stages."""
    none = [0] * stages
    return LayoutPlan(none, [1] * stages, blocks, none, none, **more)  # type: ignore[arg-type]


CASES = [([4] * 4, 4, 6), ([16], 1, 3), ([2] * 8, 4, 8), ([4] * 4, 2, 4)]


@pytest.mark.parametrize(("blocks", "stages", "batch"), CASES)
def test_passes(blocks: list[int], stages: int, batch: int) -> None:
    """The order is one that the verifier takes, and ends when 1F1B of equal stages does."""
    problem = LayoutProblem(MODEL, (gpu_pool("H100", 1),), batch, 2048)
    plan = layout(blocks, stages, virtual=len(blocks) // stages)
    verdict = verify(problem, plan)
    verdict = replace(verdict, seconds=np.ones_like(verdict.seconds))  # stages that take equally long
    found = first_passes(problem, plan, verdict)
    assert found.problem.micro_batches == batch and found.problem.stages == len(blocks) and not found.told
    each = 8 / batch  # seconds of a micro-batch on a stage
    assert found.seconds == pytest.approx((batch + (stages - 1) / plan.virtual) * each)


def test_zero_bubble() -> None:
    """Backward passes that are cut in two are drawn as ZB-H1, which idles for a third of what 1F1B does."""
    problem = LayoutProblem(MODEL, (gpu_pool("H100", 1),), 8, 2048, zero_bubble=True)
    plan = replace(layout([4] * 4, 4), zero_bubble=True)
    verdict = verify(problem, plan)
    parts = np.zeros_like(verdict.seconds)
    parts[:2] = [[8.0], [16.0]]
    found = first_passes(problem, plan, replace(verdict, seconds=parts))
    assert found.problem.split and found.seconds == pytest.approx(8 * 3 + 3)


def test_bounds_for_less_memory_are_of_the_largest_pool() -> None:
    """A bound for half of the memory stands at half of what the GPUs with most of it have."""
    pools = gpu_pool("H100", 1, memory=80e9), gpu_pool("A100", 1, memory=40e9)
    problem, plan = LayoutProblem(MODEL, pools, 8, 2048), layout([4] * 4, 4)
    (panel,) = frontier_scene(problem, [Point(0.5, 2.0, 1.0, plan, 20e9), Point(1.0, 1.0, 0.5, plan, 60e9)]).panels
    (bounds,) = [x for x in panel.marks if isinstance(x, Dots) and x.shape == "|"]
    assert bounds.at[:, 0].tolist() == pytest.approx([40.0, 80.0])


def test_only_the_first_are_shown() -> None:
    """Of many micro-batches the first are drawn."""
    problem = LayoutProblem(MODEL, (gpu_pool("H100", 1),), 64, 2048)
    plan = layout([4] * 4, 4)
    found = first_passes(problem, plan, verify(problem, plan))
    assert (found.problem.micro_batches, found.told) == (8, "the first 8 of 64 micro-batches")
