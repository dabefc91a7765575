"""The passes of a layout that are drawn take as long as the verifier says, and none before what it needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.instances import verify
from gangplan.instances.layout import LayoutPlan, LayoutProblem, Transformer, gpu_pool
from gangplan.instances.timeline.layout import passes

MODEL = Transformer("small", 14, 2048, 16, 8, 128, 32000, 8192)


def layout(blocks: list[int], stages: int, **more: int) -> LayoutPlan:
    """Return a layout of so many stages."""
    none = [0] * stages
    return LayoutPlan(none, [1] * stages, blocks, none, none, **more)  # type: ignore[arg-type]


CASES = [([4] * 4, 4, 6), ([16], 1, 3), ([2] * 8, 4, 8), ([4] * 4, 2, 4)]


@pytest.mark.parametrize(("blocks", "stages", "batch"), CASES)
def test_passes(blocks: list[int], stages: int, batch: int) -> None:
    """All passes run once, after what they need, and end when 1F1B of equal stages does."""
    problem = LayoutProblem(MODEL, (gpu_pool("H100", 1),), batch, 2048)
    plan = layout(blocks, stages, virtual=len(blocks) // stages)
    verdict = verify(problem, plan)
    verdict = replace(verdict, seconds=np.ones_like(verdict.seconds))  # stages that take equally long
    found = passes(problem, plan, verdict)
    chunks = len(blocks)
    assert found.shown == found.all == batch and len(found.start) == 2 * batch * chunks
    start, finish = (np.full((2, batch, chunks), np.nan) for _ in range(2))
    where = found.backward.astype(int), found.micro_batch, found.chunk * stages + found.stage
    start[where], finish[where] = found.start, found.finish
    assert not np.isnan(start).any()
    assert (start[0, :, 1:] >= finish[0, :, :-1]).all() and (start[1, :, :-1] >= finish[1, :, 1:]).all()
    assert (start[1, :, -1] >= finish[0, :, -1]).all()
    for s in range(stages):
        mine = found.stage == s
        order = np.argsort(found.start[mine])
        assert (found.start[mine][order][1:] >= found.finish[mine][order][:-1] - 1e-12).all()
    each = 8 / batch  # seconds of a micro-batch on a stage
    assert found.finish.max() == pytest.approx((batch + (stages - 1) / plan.virtual) * each)


def test_only_the_first_are_shown() -> None:
    """Of many micro-batches the first are drawn."""
    problem = LayoutProblem(MODEL, (gpu_pool("H100", 1),), 64, 2048)
    plan = layout([4] * 4, 4)
    found = passes(problem, plan, verify(problem, plan))
    assert (found.shown, found.all) == (8, 64)
