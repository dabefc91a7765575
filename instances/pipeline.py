"""The pipeline problem: in which order each device runs the passes of micro-batches through its stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from .arrays import AMOUNT, NONE, Checked, FloatArray, IntArray, array, check_fields, require, require_count, sums
from .errors import InstanceError

PHASES = ("F", "B", "W")
"""Of passes: forward; backward to the input, or all of it where it is not split; backward to the weights."""
_INDEX = (lambda x: x >= 0, "is negative")


class Passes(NamedTuple):
    """The passes of a problem, numbered kind by kind, of these stage by stage, of these micro-batch by micro-batch.

    Attributes:
        device: int64 (n,), which runs it.
        seconds: float64 (n,).
        before: int64 (n,), the pass that it waits for besides those before it on its device; -1 if there is none.
        lag: seconds from the end of that one, float64 (n,).
        change: bytes held once it has ended, less those held when it starts, float64 (n,).
    """

    device: IntArray
    seconds: FloatArray
    before: IntArray
    lag: FloatArray
    change: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class PipelineProblem:
    """Order the passes on each device of a training pipeline so that a step takes least time (docs/pipeline.md).

    A stage of the model runs on one device, which may have several. Each micro-batch goes forward through all stages,
    then backward, and in each stage its gradients of weights are taken after its backward pass.

    Attributes:
        device: int32 (stages,), of each stage in the order of the model; every number from 0 to the last is used.
        forward, backward, weight: seconds of a micro-batch in each stage, float64 (stages,): forward, gradients of the
            input, gradients of the weights.
        micro_batches: of a step.
        split: whether gradients of weights may wait; otherwise they are a part of the backward pass.
        transfer: seconds from each stage to the next one's device, and of gradients back, float64 (stages,); the last
            entry, and those between stages of one device, count nothing.
        activation: bytes that a micro-batch holds in each stage from the start of its forward pass to the end of its
            backward pass, float64 (stages,).
        kept: of these, what it holds on until its gradients of weights are taken; by default all.
        capacity: bytes of each device for that, float64 (devices,); without entries there is no limit.
        barrier: whether all devices wait for each other between steps, so that a step takes the time from its first
            start to its last end. Otherwise they follow each other as closely as devices and data are free, and what is
            minimised is the seconds from one step to the next in the long run.
    """

    device: IntArray = field(metadata=array(None, holds=(_INDEX,)))
    forward: FloatArray = field(metadata=array("device", holds=AMOUNT))
    backward: FloatArray = field(metadata=array("device", holds=AMOUNT))
    weight: FloatArray = field(metadata=array("device", holds=AMOUNT))
    micro_batches: int = field(metadata={"positive": True})
    split: bool = True
    transfer: FloatArray = field(default=NONE, metadata=array("device", holds=AMOUNT, usual=0.0))
    activation: FloatArray = field(default=NONE, metadata=array("device", holds=AMOUNT, usual=0.0))
    kept: FloatArray = field(default=NONE, metadata=array(None, holds=AMOUNT))
    capacity: FloatArray = field(default=NONE, metadata=array(None, holds=AMOUNT))
    barrier: bool = True

    objective: ClassVar[str] = "pipeline"
    variant: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_fields(self)
        if not len(self.device):
            raise InstanceError("device", "the pipeline has no stage")
        stages = len(self.device)
        require(self.device < stages, self.device, "device", f"is more than {stages} stages can be on")
        for d in np.flatnonzero(np.bincount(self.device) == 0)[:1].tolist():
            raise InstanceError("device", f"no stage is on device {d}")
        require_count(self.n_passes, "micro_batches")
        for name in ("forward", "backward", "weight", "transfer", "activation"):
            with np.errstate(over="ignore"):
                total = 8.0 * self.devices * self.micro_batches * getattr(self, name).sum()  # of walks through steps
            if not np.isfinite(total):
                raise InstanceError(name, "sums of its entries are beyond floats")
        if not len(self.kept):
            object.__setattr__(self, "kept", self.activation)
        for name, size, of in (("kept", self.stages, "stages"), ("capacity", self.devices, "devices")):
            count = len(getattr(self, name))
            if count != size and (count or name == "kept"):
                raise InstanceError(name, f"has {count} entries for {size} {of}")
        require(self.kept <= self.activation, self.kept, "kept", "is more than the activation")

    def __repr__(self) -> str:
        return f"PipelineProblem({self.words})"

    @property
    def words(self) -> str:
        """What it is of how many."""
        of = f"{self.stages} stages" + f" on {self.devices} devices" * (self.stages != self.devices)
        return f"{self.micro_batches} micro-batches through {of}"

    @property
    def stages(self) -> int:
        """How many stages the model has."""
        return len(self.device)

    @property
    def devices(self) -> int:
        """How many devices there are."""
        return int(self.device.max()) + 1

    @property
    def n_passes(self) -> int:
        """How many passes there are."""
        return (2 + self.split) * self.stages * self.micro_batches

    @property
    def unit(self) -> str:
        """Of memory: micro-batches if one holds 1 in all stages of each device together, else B."""
        each = sums(self.device, self.activation, self.devices)
        return "micro-batches" if np.allclose(each, 1.0, rtol=1e-9, atol=0) else "B"

    def passes(self) -> Passes:
        """Return the passes, with what each waits for."""
        v, m = self.stages, self.micro_batches
        number = np.arange(self.n_passes).reshape(2 + self.split, v, m)
        before, lag = np.full(number.shape, -1), np.zeros(number.shape)
        moves = np.where(self.device[:-1] != self.device[1:], self.transfer[:-1], 0.0)[:, None]
        before[0, 1:], lag[0, 1:] = number[0, :-1], moves
        before[1, :-1], lag[1, :-1] = number[1, 1:], moves
        before[1, -1] = number[0, -1]
        seconds = [self.forward, self.backward + (0 if self.split else self.weight)]
        change = [self.activation, (self.kept if self.split else 0) - self.activation]
        if self.split:
            before[2] = number[1]
            seconds.append(self.weight)
            change.append(-self.kept)
        device, every, held = (np.repeat(np.stack(x), m) for x in ([self.device] * len(number), seconds, change))
        return Passes(device, every, before.ravel(), lag.ravel(), held)

    def number(self, kind: int, stage: int, micro_batch: int) -> int:
        """Return the number of a pass, see `Passes`."""
        return (kind * self.stages + stage) * self.micro_batches + micro_batch

    def told(self, number: int) -> str:
        """Return a pass in words."""
        rest, j = divmod(number, self.micro_batches)
        kind, stage = divmod(rest, self.stages)
        return f"{PHASES[kind]} of micro-batch {j} in stage {stage}"

    def name(self, number: int) -> str:
        """Return a pass as PyTorch writes it: stage, F, I (gradients of the input), W or B (both), micro-batch."""
        rest, j = divmod(number, self.micro_batches)
        kind, stage = divmod(rest, self.stages)
        return f"{stage}{('F', 'I' if self.split else 'B', 'W')[kind]}{j}"

    def load(self) -> FloatArray:
        """Return the seconds that each device is busy, float64 (devices,)."""
        seconds = self.micro_batches * (self.forward + self.backward + self.weight)
        return sums(self.device, seconds, self.devices)

    def plan(self, orders: Sequence[Sequence[int]]) -> PipelinePlan:
        """Return the plan in which each device runs passes, by their numbers, in an order."""
        rest, j = np.divmod(np.array([x for order in orders for x in order], dtype=np.int64), self.micro_batches)
        phase, stage = np.divmod(rest, self.stages)
        return PipelinePlan(phase, stage, j)

    def orders(self, plan: PipelinePlan) -> list[list[int]]:
        """Return the passes of each device by their numbers, in the order of a plan that has no other stages."""
        found: list[list[int]] = [[] for _ in range(self.devices)]
        numbers = (plan.phase * self.stages + plan.stage) * self.micro_batches + plan.micro_batch
        for x, d in zip(numbers.tolist(), self.device[plan.stage].tolist(), strict=True):
            found[d].append(x)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class PipelinePlan(Checked):
    """An answer: all passes; those of a device in the order in which it runs them, each as early as it can.

    Attributes:
        phase: int32 (n,), index into `PHASES`.
        stage: int32 (n,).
        micro_batch: int32 (n,).
        instance: content hash of the problem it answers, if known.
    """

    phase: IntArray = field(metadata=array(None, holds=(_INDEX, (lambda x: x < len(PHASES), "is none of F, B and W"))))
    stage: IntArray = field(metadata=array("phase", holds=(_INDEX,)))
    micro_batch: IntArray = field(metadata=array("phase", holds=(_INDEX,)))
    instance: str | None = None

    def __repr__(self) -> str:
        stages, batches = (int(x.max(initial=-1)) + 1 for x in (self.stage, self.micro_batch))
        return f"PipelinePlan({len(self.phase)} passes of {batches} micro-batches in {stages} stages)"


def schedule_csv(problem: PipelineProblem, plan: PipelinePlan) -> str:
    """Return a plan as `torch.distributed.pipelining` loads it, format ``compute_only``: a line a device."""
    return "".join(f"{','.join(map(problem.name, order))}\n" for order in problem.orders(plan))
