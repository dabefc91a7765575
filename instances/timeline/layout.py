"""When each stage of a layout computes what: 1F1B, or interleaved, of the first micro-batches of a step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..layout.problem import LayoutPlan, LayoutProblem
from ..verify.layout import LayoutVerdict

MOST = 6000
"""Passes that a picture has room for."""
FORWARD = np.array([1, 0, 0, 1 / 2, 1 / 3, 1 / 2, 1 / 3, 1 / 2])
"""Share of the forward pass of the first parts of a step, see `SECONDS`; the rest is of the backward pass."""


class Passes(NamedTuple):
    """Passes of micro-batches through chunks, n of them.

    Attributes:
        stage, chunk, micro_batch: of each, int32 (n,).
        backward: whether it is one, bool (n,).
        start, finish: seconds, float64 (n,).
        shown: micro-batches of each replica.
        all: how many there are.
    """

    stage: IntArray
    chunk: IntArray
    micro_batch: IntArray
    backward: BoolArray
    start: FloatArray
    finish: FloatArray
    shown: int
    all: int


def passes(problem: LayoutProblem, plan: LayoutPlan, verdict: LayoutVerdict) -> Passes:
    """Return the passes of the first micro-batches of a step, as many as can be drawn, or of all.

    The orders are those of Narayanan et al., SC 2021, section 2.2; a pass starts when its stage is free and what it
    needs has come. Chunks of a stage take equally long.
    """
    p, v = len(plan.pool), plan.virtual
    count = problem.batch // (plan.data * plan.micro_batch)
    few = max(2 * p, 8) if v == 1 else 2 * p
    shown = min(count, few if 2 * p * v * few <= MOST else p)
    each = verdict.seconds[: len(FORWARD)] / (count * v)
    seconds = np.stack([FORWARD @ each, (1 - FORWARD) @ each])
    orders = [_order(s, p, v, shown) for s in range(p)]
    done = np.full((2, shown, p * v), np.nan)
    free, at = np.zeros(p), [0] * p
    rows: list[tuple[int, int, int, int, float, float]] = []
    while any(i < len(order) for i, order in zip(at, orders, strict=True)):
        for s, order in enumerate(orders):
            while at[s] < len(order):
                back, b, c = order[at[s]]
                k = c * p + s
                last = k == p * v - 1 if back else k == 0
                before = (done[0, b, k] if back else 0.0) if last else done[back, b, k + (1 if back else -1)]
                if np.isnan(before):
                    break
                start = max(free[s], before)
                free[s] = done[back, b, k] = start + seconds[back, s]
                rows.append((s, c, b, back, start, free[s]))
                at[s] += 1
    stage, chunk, batch, backward, start, finish = np.array(rows).T
    stage, chunk, batch = (x.astype(np.int32) for x in (stage, chunk, batch))
    return Passes(stage, chunk, batch, backward.astype(bool), start, finish, shown, count)


def _order(stage: int, stages: int, virtual: int, count: int) -> list[tuple[int, int, int]]:
    """Return the passes of a stage in their order: whether backward, micro-batch, chunk."""
    turn, total = stages * virtual, count * virtual
    one = [(i // turn * stages + i % stages, i % turn // stages) for i in range(total)] if virtual > 1 else []
    ahead = [(0, b, c) for b, c in one] or [(0, b, 0) for b in range(count)]
    behind = [(1, b, virtual - 1 - c) for _, b, c in ahead]
    warm = min(total, 2 * (stages - stage - 1) + (virtual - 1) * stages if virtual > 1 else stages - stage - 1)
    pairs = [x for both in zip(ahead[warm:], behind, strict=False) for x in both]
    return [*ahead[:warm], *pairs, *behind[total - warm :]]
