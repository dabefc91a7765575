"""How far a split run is from the run of the whole model."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .launch import SplitRun

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
        """Whether the runs agree; a NaN agrees with nothing."""
        return not self.missing and self.relative <= TOLERANCE


def differences(run: SplitRun) -> list[Difference]:
    """Return the differences of outputs, gradients and buffers, of those there are."""
    found = [
        _difference("outputs", run.outputs, run.whole.outputs, 0.0),
        _difference("gradients", run.gradients, run.whole.gradients, FLOOR),
        _difference("buffers", run.buffers, run.whole.buffers, 0.0),
    ]
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
