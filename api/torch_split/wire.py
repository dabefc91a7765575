"""Tensors as what passes between processes: plain bytes, so that no shared memory is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree


@dataclass(frozen=True, slots=True)
class Packed:
    """A tensor by its bytes."""

    dtype: Any
    shape: tuple[int, ...]
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
    plain = x.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return Packed(x.dtype, tuple(x.shape), x.requires_grad, plain.view(torch.uint8).numpy())


def _unpacked(x: Any) -> Any:
    if not isinstance(x, Packed):
        return x
    content = torch.from_numpy(x.content).view(x.dtype).reshape(x.shape)
    return content.requires_grad_(x.gradient)
