"""What a stage adds to its blocks: micro-batches under way, bytes on a GPU, and what comes once a step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .costs import Degrees
from .pool import GpuPool
from .problem import LayoutProblem

ZERO_BUBBLE = 1 / 3
"""The bubble of ZB-H1 over that of 1F1B, if gradients of inputs and of weights take as long as a forward pass."""


class Memory(NamedTuple):
    """Bytes on each GPU of a stage."""

    weights: Any
    gradients: Any
    optimizer: Any
    activations: Any
    buffers: Any


class Finish(NamedTuple):
    """Seconds of a stage once a step: what of the reduction of gradients is not hidden, what is, and the optimizer."""

    reduction: Any
    hidden: Any
    update: Any


def under_way(stages: int, stage: int, micro_batches: int, virtual: int = 1) -> float:
    """Return how many micro-batches of all its blocks a stage keeps at most under 1F1B.

    A stage of one chunk keeps as many as there are stages from it on. Interleaved, it starts
    2 (p - s - 1) + (v - 1) p + 1 chunks before the first is done with (Narayanan et al., SC 2021, section 2.2), each of
    a part of its blocks.
    """
    if virtual == 1:
        return float(min(micro_batches, stages - stage))
    chunks = 2 * (stages - stage - 1) + (virtual - 1) * stages + 1
    return min(micro_batches * virtual, chunks) / virtual


def waiting(virtual: int, zero_bubble: bool) -> float:
    """Return what share of a micro-batch of all other stages one waits in a step: the bubble."""
    return ZERO_BUBBLE if zero_bubble else 1.0 / virtual


def stage_memory(problem: LayoutProblem, at: Degrees, own: Any, experts: Any, kept: Any, gathered: Any) -> Memory:
    """Return the bytes on a GPU, elementwise of arrays.

    Args:
        problem: what is split.
        at: its degrees.
        own: parameters of the stage on a GPU, without those of experts.
        experts: parameters of experts.
        kept: bytes of activations, of all micro-batches under way.
        gathered: bytes of the weights of its largest block where the replicas share them.
    """
    shares = at.context * at.data, at.ranks // at.expert
    whole, part = own + experts, own / shares[0] + experts / shares[1]
    return Memory(
        problem.width * (part if at.zero == 3 else whole),
        problem.gradient_bytes * (part if at.zero >= 2 else whole),
        problem.state * (part if at.zero else whole),
        kept,
        problem.reserve + 2 * gathered,  # of one block in use, and the next on its way
    )


def stage_finish(
    problem: LayoutProblem,
    pool: GpuPool,
    at: Degrees,
    own: Any,
    experts: Any,
    update: Any,
    passes: tuple[Any, Any],
) -> Finish:
    """Return what a stage takes once a step; `passes` are its seconds of a micro-batch forward and backward.

    Gradients are reduced behind the last backward pass, weights gathered behind the first forward pass.
    """
    shown: Any = 0.0
    sent: Any = 0.0
    overlap = problem.calibration.overlap
    groups = (own, at.context * at.data, at.tensor), (experts, at.ranks // at.expert, at.expert)
    for behind, size, wanted in (
        (passes[1], problem.gradient_bytes, at.zero < 2),
        (passes[0], problem.width if at.zero else problem.gradient_bytes, at.zero < 3),
    ):
        if wanted:
            takes = sum(pool.gather(k, stride).seconds(size * x * (k > 1)) for x, k, stride in groups)
            sent += takes
            shown += takes - overlap * np.minimum(takes, behind)
    return Finish(shown, sent - shown, update)
