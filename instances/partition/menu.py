"""Tensor parallelism as a menu: what each op costs when so many devices share it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import FloatArray, IntArray, frozen, require
from ..errors import InstanceError
from ..graph import OpGraph


@dataclass(frozen=True, slots=True, eq=False)
class TensorMenu:
    """What n ops cost at K degrees of tensor parallelism, on one type of device.

    Attributes:
        degree: int32 (K,), how many devices share an op; increasing.
        time: seconds on each of them without communication, float64 (K, n); infinite where an op has no such degree.
        memory: bytes the op occupies on each device, float64 (K, n).
        parameter_bytes: bytes of weights on each device, float64 (K, n).
        activation_bytes: bytes of output kept on each device, float64 (K, n).
        sync_bytes: bytes each device moves over its link so that the op's results agree, a sample, float64 (K, n).
    """

    degree: IntArray
    time: FloatArray = dataclasses.field(metadata={"rank": 2, "null": "infinite"})
    memory: FloatArray = dataclasses.field(metadata={"rank": 2})
    parameter_bytes: FloatArray = dataclasses.field(metadata={"rank": 2})
    activation_bytes: FloatArray = dataclasses.field(metadata={"rank": 2})
    sync_bytes: FloatArray = dataclasses.field(metadata={"rank": 2})

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", frozen(self.degree, np.int32, "degree", (None,)))
        if not len(self.degree):
            raise InstanceError("degree", "the menu has no degree")
        require(self.degree >= 1, self.degree, "degree", "is not positive")
        rising = np.concatenate([[True], np.diff(self.degree) > 0])
        require(rising, self.degree, "degree", "is not above the one before it")
        object.__setattr__(self, "time", frozen(self.time, np.float64, "time", (len(self.degree), None)))
        require(~np.isnan(self.time), self.time, "time", "is not a number")
        require(self.time >= 0, self.time, "time", "is negative")
        for field in ("memory", "parameter_bytes", "activation_bytes", "sync_bytes"):
            values = frozen(getattr(self, field), np.float64, field, self.time.shape)
            object.__setattr__(self, field, values)
            require(np.isfinite(values), values, field, "is not finite")
            require(values >= 0, values, field, "is negative")

    def __repr__(self) -> str:
        return f"TensorMenu({self.n_ops} ops at degrees {', '.join(map(str, self.degree.tolist()))})"

    @property
    def n_ops(self) -> int:
        """How many ops the menu is for."""
        return int(self.time.shape[1])


def single(graph: OpGraph, device_type: str) -> TensorMenu:
    """Return the menu without a choice: every op whole on one device."""
    row = graph.time[[graph.device_types.index(device_type)]]
    nothing = np.zeros(graph.n_ops)
    return TensorMenu(
        np.ones(1, dtype=np.int32),
        row,
        graph.memory[None],
        graph.parameter_bytes[None],
        graph.activation_bytes[None],
        nothing[None],
    )


def megatron(graph: OpGraph, device_type: str, degrees: Sequence[int]) -> TensorMenu:
    """Make a menu in which every op divides evenly (Shoeybi et al., arXiv 1909.08053).

    At degree t an op takes 1/t of its time and memory on each device. An op with weights ends in a ring all-reduce
    of its output, forward and backward, which moves 2 (t - 1)/t of those bytes over the link of each device; ops
    without weights work on what is there. Megatron pairs two matrix products per all-reduce, so this is on the safe
    side.

    Args:
        graph: the job.
        device_type: whose times to take.
        degrees: how many devices may share an op, e.g. ``(1, 2, 4, 8)``.

    Raises:
        InstanceError: if a degree is not a positive whole number, or the graph has no times for the type.
    """
    if device_type not in graph.device_types:
        raise InstanceError("device_type", f"the graph has no times for {device_type!r}")
    for i, t in enumerate(degrees):
        if isinstance(t, bool) or not isinstance(t, int | np.integer) or t < 1:
            raise InstanceError(f"degrees[{i}]", f"{t!r} is not a positive whole number")
    degree = np.unique(np.array(degrees, dtype=np.int32))
    share = 1.0 / degree[:, None]
    holds = graph.parameter_bytes > 0
    # the backward twin of an op with weights reduces the gradient of its input
    twins = graph.twin[holds & (graph.twin >= 0)]
    reduces = holds.copy()
    reduces[twins] = True
    moved = np.where(reduces, np.maximum(graph.activation_bytes, graph.output_bytes()), 0.0)
    row = graph.time[graph.device_types.index(device_type)]
    return TensorMenu(
        degree,
        row * share,
        graph.memory * share,
        graph.parameter_bytes * share,
        graph.activation_bytes * share,
        2.0 * (1.0 - share) * moved,
    )
