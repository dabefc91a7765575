"""Tensors as what passes between processes: plain bytes, so that no shared memory is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree


@dataclass(frozen=True, slots=True)
class Packed:
    """A tensor by its bytes.

    Attributes:
        dtype: of its numbers.
        shape: with the dimensions in the order in which they lie in memory.
        order: those dimensions; whether rows or columns come first shows in which number a dropout draws for which.
        gradient: whether it wants one.
        content: the bytes.
    """

    dtype: Any
    shape: tuple[int, ...]
    order: tuple[int, ...]
    gradient: bool
    content: Any


def pack(value: Any) -> Any:
    """Return a value, which may be nested, with every tensor packed."""
    return _pytree.tree_map(_packed, value)


def unpack(value: Any) -> Any:
    """Return what was packed; tensors want a gradient if they did before."""
    return _pytree.tree_map(_unpacked, value)


def _packed(x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return x
    order = tuple(sorted(range(x.dim()), key=lambda i: -x.stride(i)))
    plain = x.detach().resolve_conj().resolve_neg().permute(order).contiguous()
    content = plain.reshape(-1).view(torch.uint8).numpy() if x.numel() else None
    return Packed(x.dtype, tuple(plain.shape), order, x.requires_grad, content)


def _unpacked(x: Any) -> Any:
    if not isinstance(x, Packed):
        return x
    if x.content is None:
        plain = torch.empty(x.shape, dtype=x.dtype)
    else:
        plain = torch.from_numpy(x.content).view(x.dtype).reshape(x.shape)
    back = sorted(range(len(x.order)), key=x.order.__getitem__)
    return plain.permute(back).requires_grad_(x.gradient)
