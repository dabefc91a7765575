"""The whole model, run in this process, which a split run has to reproduce, and how far it is from that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import torch

from gangplan.instances import InstanceError
from gangplan.instances.torch_model.load import LoadedModel, leaves
from gangplan.instances.torch_model.ops import Ops
from gangplan.instances.torch_model.program import STATE, ProgramNode, tensors

if TYPE_CHECKING:
    from .launch import SplitRun


@dataclass(frozen=True, slots=True)
class WholeModel:
    """What the whole model computes.

    Attributes:
        outputs: its outputs, by name.
        gradients: of its parameters, by name; empty without training.
        buffers: its buffers after the run, by name.
        cotangents: the gradients of the outputs that the backward pass starts from, by name of the output: 1 for a
            scalar, which is taken for a loss, if there is one; random numbers for all outputs otherwise.
        traced: whether the trace was run, as the model draws random numbers, and not the model.
    """

    outputs: dict[str, Any]
    gradients: dict[str, Any]
    buffers: dict[str, Any]
    cotangents: dict[str, Any]
    traced: bool


def reference(model: LoadedModel, ops: Ops, training: bool, seed: int) -> WholeModel:
    """Run the whole model on its example inputs, and backward if `training`.

    A model that draws random numbers gives others each time; its trace is run instead, each call with its own seed.
    """
    program = ops.profile.program
    buffers = {name: x.clone() for name, x in program.state.items() if not program.is_parameter(name)}
    with torch.random.fork_rng(devices=[]), torch.set_grad_enabled(training), kept(model.module) as before:
        if ops.profile.random:
            values = program.inputs | program.state | buffers
            for i, node in enumerate(program.nodes):
                values[node.name] = run_seeded(node, values, seed + i)
            results = [values[name] for name in program.outputs]
        else:
            results = tensors(leaves(model.module(*model.args, **model.kwargs)))
            buffers |= _changed(model.module, before, buffers.keys())
        if len(results) != len(program.outputs):
            words = f"the model returns {len(results)} tensors, and {len(program.outputs)} when it is traced"
            raise InstanceError("run", words)
        outputs = dict(zip(program.outputs, results, strict=True))
        cotangents = _cotangents(outputs, seed) if training else {}
        gradients = _gradients(program, outputs, cotangents) if training else {}
    plain = {name: x.detach().clone() for name, x in outputs.items()}
    return WholeModel(plain, gradients, buffers, cotangents, ops.profile.random)


def run_seeded(node: ProgramNode, values: dict[str, Any], seed: int) -> Any:
    """Run a call with the random numbers of this seed, so that a model with dropout computes the same when split."""
    torch.manual_seed(seed)
    return node.run(values)


@contextmanager
def kept(module: Any) -> Iterator[dict[str, Any]]:
    """Leave a module's buffers in the end as they are; yield copies of them by all their names."""
    named = ((part, *each) for part in module.modules() for each in part._buffers.items())
    held = [(part, name, x, x.clone()) for part, name, x in named if x is not None]
    try:
        yield {STATE + name: x.clone() for name, x in module.named_buffers(remove_duplicate=False)}
    finally:
        for part, name, x, old in held:
            part._buffers[name] = x
            x.data.copy_(old)


def _changed(module: Any, before: dict[str, Any], read: Iterable[str]) -> dict[str, Any]:
    """Return copies of the buffers that the trace reads, and of those that a pass has changed besides."""
    now = {STATE + name: x for name, x in module.named_buffers(remove_duplicate=False)}
    places = {id(now[name]) for name in read if name in now}
    lost = [name for name, x in now.items() if id(x) not in places and name in before and apart(x, before[name])]
    return {name: now[name].clone() for name in (*read, *lost) if name in now}


def _cotangents(outputs: dict[str, Any], seed: int) -> dict[str, list[Any]]:
    """Return a list of one gradient or None for each output."""
    live = {name: x for name, x in outputs.items() if x.requires_grad}
    losses = [name for name, x in live.items() if not x.dim()]
    generator = torch.Generator().manual_seed(seed)
    chosen: dict[str, list[Any]] = {name: [None] for name in outputs}
    for name, x in live.items():
        if not losses:
            chosen[name] = [torch.randn(x.shape, generator=generator).to(x.dtype)]
        elif name in losses:
            chosen[name] = [torch.ones_like(x)]
    return chosen


def _gradients(program: Any, outputs: dict[str, Any], cotangents: dict[str, list[Any]]) -> dict[str, Any]:
    wanted = {name: x for name, x in program.state.items() if program.is_parameter(name) and x.requires_grad}
    pairs = [(outputs[name], given) for name, (given,) in cotangents.items() if given is not None]
    if not pairs or not wanted:
        return {}
    results, given = zip(*pairs, strict=True)
    found = torch.autograd.grad(results, list(wanted.values()), given, allow_unused=True)
    return {name: x for name, x in zip(wanted, found, strict=True) if x is not None}


TOLERANCE = 1e-5
"""Relative difference up to which two results are the same: sums of floats in another order."""
FLOOR = 1e-3
"""Share of the largest gradient below which a gradient is measured against that: some are zero but for rounding."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest differences among some tensors.

    Attributes:
        what: ``outputs``, ``gradients`` or ``buffers``.
        tensors: how many were compared.
        absolute: the largest of all differences of two numbers.
        relative: the largest of all tensors' ratios of largest difference to largest number.
        worst: the tensor with that ratio.
        missing: tensors that only one of the two runs has.
    """

    what: str
    tensors: int
    absolute: float
    relative: float
    worst: str
    missing: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Return whether the runs agree; a NaN agrees with nothing."""
        return not self.missing and self.relative <= TOLERANCE


def differences(run: SplitRun) -> list[Difference]:
    """Return the differences of outputs, gradients and buffers, of those there are."""
    kinds = (("outputs", 0.0), ("gradients", FLOOR), ("buffers", 0.0))
    found = [_difference(name, getattr(run, name), getattr(run.whole, name), floor) for name, floor in kinds]
    return [x for x in found if x.tensors or x.missing]


def _difference(what: str, mine: dict[str, Any], whole: dict[str, Any], floor: float) -> Difference:
    both = [name for name in whole if name in mine]
    size = {name: largest(whole[name]) for name in both}
    least = floor * max(size.values(), default=0.0)
    absolute = relative = 0.0
    worst = ""
    for name in both:
        gap = apart(mine[name].detach(), whole[name].detach())
        ratio = gap / max(size[name], least, 1e-300)
        absolute = max(absolute, gap)
        if ratio > relative:
            relative, worst = ratio, name
    return Difference(what, len(both), absolute, relative, worst, tuple(sorted(mine.keys() ^ whole.keys())))


def apart(a: torch.Tensor, b: torch.Tensor) -> float:
    """Return the largest difference, infinite if one is not a number or the shapes differ."""
    if a.shape != b.shape:
        return inf
    difference = torch.where(a == b, 0.0, (a.double() - b.double()).abs())  # infinite in both is the same
    return float(torch.nan_to_num(difference, nan=inf, posinf=inf).max()) if a.numel() else 0.0


def largest(x: torch.Tensor) -> float:
    """Return the largest finite magnitude."""
    x = x.detach().double().abs()
    return float(x[x.isfinite()].max()) if x.isfinite().any() else 0.0
