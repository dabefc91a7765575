"""Watch the kernels that torch starts: what each computes and moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .flops import footprint, other_flops, product_flops
from .program import tensors

ROWS = frozenset(["embedding", "index", "index_select", "gather", "nll_loss_forward", "_unsafe_index"])
"""Kernels that read of their table only as much as they return."""

RECURRENT = frozenset(["mkldnn_rnn_layer", "mkldnn_rnn_layer_backward"])
"""Kernels of a whole recurrent layer; the first axis of their input is time."""

ALLOCATIONS = frozenset(["empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"])


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel.

    Attributes:
        name: e.g. ``addmm``.
        flops: floating-point operations.
        moved: bytes read and written.
        product: whether it is a product of matrices, a convolution or an attention, whose FLOPs are exact.
        random: whether it draws random numbers.
        precision: bytes of one of the numbers that it computes with.
        launches: how often a GPU starts something for it: once, but for each step of a recurrent layer.
    """

    name: str
    flops: float
    moved: float
    product: bool
    random: bool
    precision: int = 4
    launches: int = 1


class Watch(TorchDispatchMode):  # type: ignore[misc]
    """Collect the kernels that run inside; views and allocations are none."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels: list[Kernel] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator and note it."""
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func._schema.name.split("::")[-1]
        random = torch.Tag.nondeterministic_seeded in func.tags and _drops(func, args, kwargs)
        made, read = tensors(out), tensors((args, kwargs))
        if made and name not in ALLOCATIONS and (func._schema.is_mutable or not is_view(made, read)):
            exact = product_flops(name, args, out)
            flops = other_flops(name, args, out) if exact is None else exact
            written = sum(map(footprint, made))
            once = {id(x): x for x in read}.values()
            taken = sum(min(footprint(x), written) if name in ROWS else footprint(x) for x in once)
            numbers = [x.dtype for x in (*made, *read) if x.is_floating_point()]
            precision = max((kind.itemsize for kind in numbers), default=4)
            steps = args[0].shape[0] if name in RECURRENT else 1
            self.kernels.append(Kernel(name, flops, written + taken, exact is not None, random, precision, steps))
        return out


def _drops(func: Any, args: Any, kwargs: Any) -> bool:
    """Say whether a kernel that can drop values at random does so; true for all others."""
    given = dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | kwargs
    return "dropout_p" not in {a.name for a in func._schema.arguments} or given.get("dropout_p", 0.0) > 0


def is_view(made: list[Any], read: list[Any]) -> bool:
    """Say whether every tensor made lies in the memory of one that was read."""
    places = {storage(x) for x in read}
    return all(storage(x) in places for x in made)


def storage(tensor: Any) -> int:
    """Return a number for the memory a tensor lies in."""
    return int(tensor.untyped_storage()._cdata)
