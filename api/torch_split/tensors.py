"""How far two tensors are apart."""

from __future__ import annotations

from math import inf

import torch


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
