"""Layers with measured seconds: a profile of a model by micro-batch, tensor parallelism and type of GPU."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from ..arrays import AMOUNT, POSITIVE, FloatArray, IntArray, array, check_fields
from ..errors import InstanceError


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredLayers:
    """A chain of blocks, and what each was measured to take; a row is a GPU, a micro-batch and a degree.

    Attributes:
        name: what reports call it.
        blocks: their names in the order of the chain, embedding and head included.
        gpu: the type of GPU of each row.
        micro_batch: sequences at once, int32 (rows,).
        tensor: GPUs that share a block, int32 (rows,).
        forward: seconds of a micro-batch, float64 (rows, blocks).
        backward: seconds of its backward pass, float64 (rows, blocks).
        update: seconds of the optimizer, float64 (rows, blocks).
        weights: parameters of a block on each GPU, float64 (rows, blocks).
        kept: bytes that a micro-batch keeps until its backward pass, float64 (rows, blocks).
        sent: bytes that a block hands to the next, float64 (rows, blocks).
    """

    name: str
    blocks: tuple[str, ...]
    gpu: tuple[str, ...]
    micro_batch: IntArray = field(metadata=array("gpu", holds=POSITIVE))
    tensor: IntArray = field(metadata=array("gpu", holds=POSITIVE))
    forward: FloatArray = field(metadata=array("gpu", "blocks", holds=AMOUNT))
    backward: FloatArray = field(metadata=array("gpu", "blocks", holds=AMOUNT))
    update: FloatArray = field(metadata=array("gpu", "blocks", holds=AMOUNT))
    weights: FloatArray = field(metadata=array("gpu", "blocks", holds=AMOUNT))
    kept: FloatArray = field(metadata=array("gpu", "blocks", holds=AMOUNT))
    sent: FloatArray = field(metadata=array("gpu", "blocks", holds=AMOUNT))

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.blocks or not self.gpu:
            raise InstanceError("blocks", "there is no block, or no row")

    def chain(self) -> IntArray:
        """Return the kind of each block, each one of its own, int32 (blocks,)."""
        return np.arange(len(self.blocks), dtype=np.int32)

    def mixed(self, gpus: Collection[str]) -> MeasuredLayers:
        """Return these layers with rows for GPUs that work side by side, ``A+B``: each block waits for the slowest."""
        rows = zip(self.gpu, self.micro_batch.tolist(), self.tensor.tolist(), strict=True)
        where = {row: i for i, row in enumerate(rows) if row[0] in gpus}
        alike = [[where.get((gpu, *at), -1) for gpu in gpus] for at in sorted({row[1:] for row in where})]
        some = np.array([row for row in alike if min(row) >= 0], dtype=np.int32).reshape(-1, len(gpus))
        if not len(some):
            raise InstanceError("gpu", f"nothing was measured alike on {' and '.join(gpus)}")
        arrays = {x.name: getattr(self, x.name) for x in fields(self) if x.name not in ("name", "blocks", "gpu")}
        slowest: dict[str, Any] = {name: np.concatenate([x, x[some].max(axis=1)]) for name, x in arrays.items()}
        return replace(self, gpu=(*self.gpu, *["+".join(gpus)] * len(some)), **slowest)
