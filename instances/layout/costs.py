"""What a block costs at some degrees of parallelism: seconds, and bytes on a GPU (docs/layout.md has the formulas)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray
from .measured import MeasuredLayers
from .pool import GpuPool
from .problem import LayoutProblem
from .transformer import Block, Transformer

COMMUNICATION = ("tensor", "context", "expert", "sharding")
"""What GPUs exchange within a layer, in the order of the rows of `BlockCosts.sent`."""
HIDDEN = np.array([1.0, 1.0, 0.0, 1.0])
"""Whether computing hides it, by the same rows: experts wait for what they are sent."""
PERMUTED = 4.0
"""Times that what experts are sent is read and written to sort it by expert, and to sort it back."""
HEAD = 128
"""Width of a head from which on fused attention is bound by products, not by exponentials (Shah et al., arXiv
2407.08608, section 2.3); narrower ones take as long."""
BACKWARD = 2.0
"""Matrix products of a backward pass for one of the forward pass."""
BACKWARD_ATTENTION = 2.5
"""The same of fused attention, which computes its scores again (Dao et al., arXiv 2205.14135)."""


class Degrees(NamedTuple):
    """How many GPUs share what: see `LayoutPlan`."""

    tensor: int
    context: int = 1
    expert: int = 1
    data: int = 1
    micro_batch: int = 1
    zero: int = 1

    @property
    def ranks(self) -> int:
        """GPUs of a stage."""
        return self.tensor * self.context * self.data


@dataclass(frozen=True, slots=True, eq=False)
class BlockCosts:
    """What each kind of block costs a GPU; K kinds.

    Attributes:
        compute: seconds of a micro-batch without communication, forward and backward, float64 (2, K).
        sent: seconds of communication of each kind, forward and backward, float64 (4, 2, K).
        shown: the part of it that is not hidden behind computing, float64 (4, 2, K).
        again: seconds more with norms and activation functions, and with all, computed again, float64 (3, K); first 0.
        kept: bytes that a micro-batch keeps, by what is computed again, float64 (3, K).
        weights: parameters on a GPU, those of experts apart, float64 (K,).
        expert_weights: parameters of experts on a GPU, float64 (K,).
        working: bytes that only the block being computed needs: gradients of what it keeps, and its weights and the
            next block's where the replicas share them, float64 (K,).
        update: seconds of the optimizer, float64 (K,).
        handed: seconds to hand a micro-batch to another stage and take its gradient back, that are not hidden.
    """

    compute: FloatArray
    sent: FloatArray
    shown: FloatArray
    again: FloatArray
    kept: FloatArray
    weights: FloatArray
    expert_weights: FloatArray
    working: FloatArray
    update: FloatArray
    handed: float

    def seconds(self) -> FloatArray:
        """Return the seconds of a micro-batch by what is computed again, forward and backward, float64 (3, K)."""
        return np.asarray((self.compute + self.shown.sum(axis=0)).sum(axis=0) + self.again)


def block_costs(problem: LayoutProblem, pool: GpuPool, at: Degrees) -> BlockCosts | None:
    """Return what the kinds of block of a problem cost at some degrees, `None` where that was not measured."""
    if isinstance(problem.model, MeasuredLayers):
        return _measured(problem, problem.model, pool, at)
    kinds = [_analytic(problem, problem.model, pool, at, block) for block in problem.model.blocks()]
    compute, sent, again, kept, numbers = (np.array(part) for part in zip(*kinds, strict=True))
    sent, overlap = sent.transpose(1, 2, 0), problem.calibration.overlap
    shown = sent - overlap * HIDDEN[:, None, None] * np.minimum(sent, compute.T)
    size = 2.0 if problem.precision != "fp32" else 4.0
    tokens = at.micro_batch * problem.sequence / at.context
    handed = 2 * pool.send(at.ranks).seconds(tokens * problem.model.width * size / at.tensor)
    own, experts = numbers.T
    layer = np.array([block.pair > 0 for block in problem.model.blocks()])
    working = kept[:, 0] * layer + 2 * problem.width * (own + experts) * (at.zero == 3)
    return BlockCosts(
        compute.T,
        sent,
        shown,
        again.T,
        kept.T,
        own,
        experts,
        working,
        _update(problem, pool, at, own, experts),
        handed * (1 - overlap),
    )


def _analytic(
    problem: LayoutProblem, model: Transformer, pool: GpuPool, at: Degrees, block: Block
) -> tuple[list[float], list[list[float]], list[float], list[float], list[float]]:
    """Return what one kind of block costs: computing, communication, computing again, bytes kept, parameters."""
    fitted, t, c, e = problem.calibration, at.tensor, at.context, at.expert
    size = (4.0 if problem.precision == "fp32" else 2.0) / 2  # of a number, over 16 bits
    tokens = at.micro_batch * problem.sequence / c
    layer = block.pair > 0
    sixteen = (pool.flops_32 if problem.precision == "fp32" else pool.flops) * fitted.efficiency
    rate = problem.peak(pool) if layer else sixteen  # embedding and head stay in 16 bits
    products = 2 * tokens * (block.multiplied + block.expert_multiplied / fitted.grouped) / t / rate
    wide = max(1.0, HEAD / model.head)
    attention = tokens * block.pair * model.seen(problem.sequence) * wide / t / sixteen
    moved = size * tokens * (block.moved + PERMUTED * block.routed) / t / (fitted.bandwidth * pool.memory_bandwidth)
    own, experts = block.weights / t, block.expert_weights / e
    read = (own + experts) / pool.memory_bandwidth if layer else 0.0  # a micro-batch adds to all gradients
    start = fitted.overhead if layer else 0.0
    forward = products + attention + moved + start + problem.width * read
    backward = BACKWARD * (products + moved + start) + BACKWARD_ATTENTION * attention
    backward += (problem.width + 2 * problem.gradient_bytes) * read
    if block.name == "embedding":
        backward = moved
    # both matrices, or attention alone, gather their input and scatter their output
    tensor = 2 * block.reductions * pool.gather(t, 1).seconds(size * tokens * block.reduced * (t > 1))
    ring = pool.gather(c, t).seconds(size * tokens * c * block.shifted / t * (c > 1))
    routed = 2 * pool.exchange(e, 1).seconds(size * tokens * block.routed / t * (e > 1))
    gather = scatter = 0.0
    if at.zero >= 2:
        # replicas gather weights for each pass, and scatter gradients after each micro-batch
        for count, members, stride in ((own, c * at.data, t), (experts, at.ranks // e, e)):
            group = pool.gather(members, stride)
            gather += group.seconds(problem.width * count * (members > 1) * (at.zero == 3))
            scatter += group.seconds(problem.gradient_bytes * count * (members > 1))
    sent = [[tensor, tensor], [ring, 2 * ring], [routed, routed], [gather, gather + scatter]]
    full = forward + sum(row[0] for row in sent) if layer else 0.0
    kept = [size * tokens * x / t for x in block.kept]
    return [forward, backward], sent, [0.0, moved if layer else 0.0, full], kept, [own, experts]


def _update(problem: LayoutProblem, pool: GpuPool, at: Degrees, own: FloatArray, experts: FloatArray) -> FloatArray:
    """Return the seconds in which the optimizer reads and writes its state, gradients and weights."""
    states = 2 * (problem.state + problem.width) + problem.gradient_bytes
    shares = (at.context * at.data, at.ranks // at.expert) if at.zero else (1, 1)
    rate = problem.calibration.bandwidth * pool.memory_bandwidth
    return np.asarray(states * (own / shares[0] + experts / shares[1]) / rate)


def _measured(problem: LayoutProblem, model: MeasuredLayers, pool: GpuPool, at: Degrees) -> BlockCosts | None:
    """Return what was measured; each block is a kind of its own."""
    if (at.context, at.expert) != (1, 1) or at.zero > 1:
        return None
    asked = (pool.gpu, at.micro_batch, at.tensor)
    rows = zip(model.gpu, model.micro_batch.tolist(), model.tensor.tolist(), strict=True)
    if (row := next((i for i, x in enumerate(rows) if x == asked), None)) is None:
        return None
    nothing = np.zeros(len(model.blocks))
    compute, zeros = np.stack([model.forward[row], model.backward[row]]), np.zeros((4, 2, len(nothing)))
    handed = 2 * pool.send(at.ranks).seconds(float(model.sent[row][:-1].max(initial=0.0)) / at.tensor)
    inputs = np.concatenate([[0.0], model.sent[row][:-1]])
    return BlockCosts(
        compute,
        zeros,
        zeros,
        np.stack([nothing, nothing, model.forward[row]]),
        np.stack([model.kept[row], model.kept[row], inputs]),
        model.weights[row],
        nothing,
        2 * model.kept[row],
        model.update[row],
        handed * (1 - problem.calibration.overlap),
    )
