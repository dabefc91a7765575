"""What a stage adds to its blocks: micro-batches under way, bytes on a GPU, and what replicas reduce once a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray
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


def handovers(handed: Sequence[float], virtual: int = 1) -> FloatArray:
    """Return the seconds in which each stage exchanges a micro-batch and its gradient with both neighbours.

    Args:
        handed: of each stage with one like itself; the slower of two neighbours counts.
        virtual: chunks of a stage.
    """
    between = np.maximum(handed[:-1], handed[1:])
    return np.asarray(virtual * (np.append(between, 0.0) + np.append(0.0, between)))


def waiting(virtual: int, zero_bubble: bool) -> float:
    """Return what share of a micro-batch of all other stages one waits in a step: the bubble."""
    return ZERO_BUBBLE if zero_bubble else 1.0 / virtual


def stage_memory(problem: LayoutProblem, at: Degrees, own: Any, experts: Any, kept: Any, working: Any) -> Memory:
    """Return the bytes on a GPU, elementwise of arrays.

    Args:
        problem: what is split.
        at: its degrees.
        own: parameters of the stage on a GPU, without those of experts.
        experts: parameters of experts.
        kept: bytes of activations, of all micro-batches under way.
        working: bytes that only the block being computed needs, of the block that needs most.
    """
    shares = at.context * at.data, at.ranks // at.expert
    whole, part = own + experts, own / shares[0] + experts / shares[1]
    return Memory(
        problem.width * (part if at.zero == 3 else whole),
        problem.gradient_bytes * (part if at.zero >= 2 else whole),
        problem.state * (part if at.zero else whole),
        kept,
        problem.reserve + working,
    )


def stage_reduction(problem: LayoutProblem, pool: GpuPool, at: Degrees, own: Any, experts: Any) -> Any:
    """Return the seconds in which replicas sum gradients, and gather weights, once a step.

    Nothing of it is hidden: only the last micro-batch of a stage could, and measured steps show all of it.
    """
    sizes = problem.gradient_bytes * (at.zero < 2)
    sizes += (problem.width if at.zero else problem.gradient_bytes) * (at.zero < 3)
    groups = (own, at.context * at.data, at.tensor), (experts, at.ranks // at.expert, at.expert)
    return sum(pool.gather(k, stride).seconds(sizes * x * (k > 1)) for x, k, stride in groups)
