"""The layout problem: split the training of a large model over GPUs so that a step takes least time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..arrays import AMOUNT, POSITIVE, Checked, IntArray, array, check_fields, limited, require_count
from ..errors import InstanceError
from .measured import MeasuredLayers
from .pool import GpuPool
from .transformer import MOST, Transformer

PRECISIONS = {"bf16": 2.0, "fp8": 2.0, "fp32": 4.0}
"""Bytes of a weight and of an activation, by the precision in which matrices are multiplied."""
OPTIMIZERS = {"adam": 12.0, "adam_16": 8.0, "sgd": 8.0}
"""Bytes a weight of the optimizer's state and the copy in 32 bits, which weights of 32 bits have not."""


@dataclass(frozen=True, slots=True)
class Calibration(Checked):
    """Constants of the cost model, which `gangplan.instances.layout.calibrate` fits to measured steps.

    The defaults are fitted to six layouts of NVIDIA's Megatron Bridge performance summary (container 25.11):
    DeepSeek-V3 and GPT-OSS on GB300, Qwen3-235B-A22B on GB200 and GPT-OSS on B200 in 16 bits, Llama-3 8B on GB200 and
    H100 in 8.

    Attributes:
        efficiency: share of the peak FLOP/s that large products reach in 16 and 32 bits.
        efficiency_8: the same in 8 bits.
        grouped: share of that which products of experts reach, many small ones at once and unevenly loaded.
        bandwidth: share of the memory bandwidth that norms, activation functions and sorting by expert reach.
        overhead: seconds of a layer's forward pass that do not shrink with its size: starts of kernels, tails of
            waves. Twice that in its backward pass.
        overlap: share of communication that is hidden while there is enough to compute.
    """

    efficiency: float = limited(0.735, positive=True)
    efficiency_8: float = limited(0.68, positive=True)
    grouped: float = limited(0.54, positive=True)
    bandwidth: float = limited(0.45, positive=True)
    overhead: float = 190e-6
    overlap: float = 0.55


@dataclass(frozen=True, slots=True, eq=False)
class LayoutProblem:
    """Choose degrees of parallelism, stages, micro-batch, sharding and recomputation: least seconds a step.

    Attributes:
        model: a transformer whose layers take what the analytic model says, or layers with measured seconds.
        pools: the GPUs, alike within a pool; each stage is on one pool.
        batch: sequences of a step, over all replicas.
        sequence: tokens of each.
        precision: of matrix products: ``bf16``, ``fp8`` or ``fp32``.
        optimizer: ``adam``, ``adam_16`` (moments of 16 bits) or ``sgd``.
        gradient_bytes: of a weight.
        reserve: bytes of each GPU for the runtime and its libraries.
        zero_bubble: whether backward passes may be cut in two, see `LayoutPlan.zero_bubble`.
        calibration: constants of the cost model.
    """

    model: Transformer | MeasuredLayers
    pools: tuple[GpuPool, ...]
    batch: int = field(metadata={"positive": True, "most": MOST})
    sequence: int = field(metadata={"positive": True, "most": MOST})
    precision: str = field(default="bf16", metadata={"choices": tuple(PRECISIONS)})
    optimizer: str = field(default="adam", metadata={"choices": tuple(OPTIMIZERS)})
    gradient_bytes: float = limited(4.0, positive=True)
    reserve: float = 3e9
    zero_bubble: bool = False
    calibration: Calibration = Calibration()

    objective: ClassVar[str] = "layout"
    variant: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.pools:
            raise InstanceError("pools", "there is no GPU")
        for i, pool in enumerate(self.pools):
            require_count(pool.count, f"pools[{i}].count")
            if not self.peak(pool):
                raise InstanceError("precision", f"{self.precision!r}: {pool.gpu} has no such products")

    def __repr__(self) -> str:
        gpus = " and ".join(f"{pool.count} {pool.gpu}" for pool in self.pools)
        return f"LayoutProblem({self.model.name}, {self.batch} x {self.sequence} tokens, {gpus})"

    def peak(self, pool: GpuPool) -> float:
        """Return the FLOP/s that large products reach on a GPU."""
        rate = {"bf16": pool.flops, "fp8": pool.flops_8, "fp32": pool.flops_32}[self.precision]
        return rate * (self.calibration.efficiency_8 if self.precision == "fp8" else self.calibration.efficiency)

    @property
    def width(self) -> float:
        """Bytes of a weight."""
        return PRECISIONS[self.precision]

    @property
    def state(self) -> float:
        """Bytes a weight of the optimizer."""
        return OPTIMIZERS[self.optimizer] - (4.0 if self.precision == "fp32" else 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class LayoutPlan:
    """An answer: how the model is split.

    A stage has `virtual` chunks of blocks: chunk c of stage s is the (c p + s)-th part of the chain of embedding,
    layers and head, p the number of stages. The stages on a pool are in a row, with one degree of tensor parallelism.

    Attributes:
        data: replicas of the whole pipeline.
        context: GPUs that share the tokens of a sequence.
        expert: GPUs that share the experts of a layer.
        micro_batch: sequences of a replica that are computed at once.
        virtual: chunks of a stage.
        zero_bubble: whether gradients of weights are computed where a stage would wait (ZB-H1; Qi et al., ICLR 2024),
            which leaves a third of what it waits, in the memory of 1F1B.
        zero: what the replicas share: 1 states of the optimizer, 2 gradients too, 3 weights too; 0 nothing.
        pool: of each stage, int32 (p,).
        tensor: GPUs that share each layer of a stage, int32 (p,).
        blocks: of each chunk, int32 (virtual p,).
        selective: of each stage, how many of its first layers that are not in `full` compute norms and activation
            functions again, int32 (p,).
        full: of each stage, how many of its first layers compute all again, int32 (p,).
        instance: content hash of the problem it answers, if known.
    """

    pool: IntArray = field(metadata=array(None, holds=AMOUNT))
    tensor: IntArray = field(metadata=array("pool", holds=POSITIVE))
    blocks: IntArray = field(metadata=array(None, holds=POSITIVE))
    selective: IntArray = field(metadata=array("pool", holds=AMOUNT))
    full: IntArray = field(metadata=array("pool", holds=AMOUNT))
    data: int = limited(1, positive=True)
    context: int = limited(1, positive=True)
    expert: int = limited(1, positive=True)
    micro_batch: int = limited(1, positive=True)
    virtual: int = limited(1, positive=True)
    zero: int = 1
    zero_bubble: bool = False
    instance: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.zero > 3:
            raise InstanceError("zero", f"{self.zero} is not 0, 1, 2 or 3")
        if not len(self.pool) or len(self.blocks) != self.virtual * len(self.pool):
            words = f"has {len(self.blocks)} entries, {self.virtual} for each of {len(self.pool)} stages"
            raise InstanceError("blocks", words)

    def __repr__(self) -> str:
        return f"LayoutPlan({self.summary()})"

    @property
    def gpus(self) -> int:
        """How many GPUs it is on."""
        return int(self.tensor.sum()) * self.context * self.data

    def summary(self) -> str:
        """Return the degrees in a line, those that are 1 left out."""
        tensor = "/".join(map(str, dict.fromkeys(self.tensor.tolist())))
        degrees = {"TP": tensor, "CP": self.context, "EP": self.expert, "PP": len(self.pool), "VP": self.virtual}
        shown = [f"{name} {value}" for name, value in degrees.items() if str(value) != "1"]
        shown += ["ZB-H1"] * self.zero_bubble
        return ", ".join([*shown, f"DP {self.data}", f"micro-batch {self.micro_batch}", f"ZeRO {self.zero}"])

    @property
    def layers(self) -> IntArray:
        """Blocks of each chunk without embedding and head, int32 (virtual p,); -1 of one block alone."""
        layers = self.blocks.copy()
        layers[0] -= 1
        layers[-1] -= 1
        return layers

    def chunks(self) -> IntArray:
        """Return the chunk of each block, int32 (blocks,)."""
        return np.repeat(np.arange(len(self.blocks), dtype=np.int32), self.blocks)
