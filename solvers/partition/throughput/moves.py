"""Move single groups to improve a pipeline."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .kernels import PipelineArrays, PipelineState, improve

Stages = list[tuple[int, NDArray[np.int64]]]
"""In order: device type, groups."""
MOVES = 400
"""At most so many, which large graphs do not get through: the recurrence has balanced them."""


def polished(d: PipelineArrays, stages: Stages) -> tuple[float, Stages]:
    """Return the maximum load of a plan after single moves, seconds, and its stages."""
    kinds, stage = np.array([t for t, _ in stages]), stage_of(stages, d.groups)
    load = improve(d, PipelineState(d, stage, kinds), MOVES)
    return load, [(int(t), np.flatnonzero(stage == s)) for s, t in enumerate(kinds)]


def stage_of(stages: Stages, n: int) -> NDArray[np.int64]:
    """Return the stage of each group, int64 (G,)."""
    stage = np.empty(n, dtype=np.int64)
    for s, (_, groups) in enumerate(stages):
        stage[groups] = s
    return stage
