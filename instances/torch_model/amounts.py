"""What each op computes, moves, holds and sends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..arrays import FloatArray, IntArray, sums
from ..generators.builder import TRAINING_BYTES
from .flops import footprint
from .kernels import Kernel, storage
from .ops import Op, Ops
from .program import tensors


def op_flops(ops: Ops, backward: bool = False) -> FloatArray:
    """Return the FLOPs of each op, forward or backward, float64 (n,)."""
    return _per_op(ops, backward, lambda kernel: kernel.flops)


def op_moved(ops: Ops, backward: bool = False) -> FloatArray:
    """Return the bytes that the kernels of each op read and write, forward or backward, float64 (n,)."""
    return _per_op(ops, backward, lambda kernel: kernel.moved)


def parameters(ops: Ops, op: Op) -> float:
    """Return how many parameters an op reads."""
    program = ops.profile.program
    return float(sum(program.state[name].numel() for name in op.state if program.is_parameter(name)))


def _per_op(ops: Ops, backward: bool, of: Callable[[Kernel], float]) -> FloatArray:
    found, where = kernels(ops, backward)
    return sums(where, np.array([of(kernel) for kernel in found], dtype=float), len(ops.ops))


def kernels(ops: Ops, backward: bool) -> tuple[list[Kernel], IntArray]:
    """Return the kernels of all ops, forward or backward, and the op of each, int32."""
    found = ops.profile.backward if backward else ops.profile.forward
    pairs = [(kernel, i) for i, op in enumerate(ops.ops) for node in op.nodes for kernel in found[node]]
    return [kernel for kernel, _ in pairs], np.array([i for _, i in pairs], dtype=np.int32)


def weights(ops: Ops, tied: str, training: bool) -> tuple[FloatArray, FloatArray]:
    """Return the bytes of parameters that each op owns, a tied one counted at the first, and the bytes it holds."""
    program = ops.profile.program
    owned, held = np.zeros(len(ops.ops)), np.zeros(len(ops.ops))
    seen: set[str] = set()
    for i, op in enumerate(ops.ops):
        for name in op.state:
            tensor = program.state[name]
            size, parameter = tensor.numel() * tensor.element_size(), program.is_parameter(name)
            if parameter and name not in seen:
                owned[i] += size
            if name not in seen or tied == "copy" or not parameter:
                held[i] += tensor.numel() * TRAINING_BYTES if training and tensor.requires_grad else size
            seen.add(name)
    return owned, held


def output_bytes(ops: Ops, op: Op) -> float:
    """Return the bytes of the memory that an op fills with its results."""
    values = ops.profile.values
    read = {
        storage(x)
        for node in op.nodes
        for name in ops.nodes[node].reads
        if name not in op.nodes
        for x in tensors(values[name])
    }
    made = {storage(x): x for node in op.nodes for x in tensors(values[node])}
    return float(sum(x.untyped_storage().nbytes() for place, x in made.items() if place not in read))


def passed_bytes(ops: Ops, names: Sequence[str]) -> float:
    """Return the bytes of some values, counting memory that several show once."""
    by_place: dict[int, list[Any]] = {}
    for name in names:
        for x in tensors(ops.profile.values[name]):
            by_place.setdefault(storage(x), []).append(x)
    return float(sum(min(sum(map(footprint, xs)), xs[0].untyped_storage().nbytes()) for xs in by_place.values()))
