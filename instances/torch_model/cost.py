"""What each call of a program computes and moves, by the kernels that torch starts, and how long it takes here.

A multiply-add counts as two. Products (of matrices, convolutions, attention) are counted exactly. The rest gets so many
FLOPs per element; those kernels are bound by memory on any GPU, so little hangs on them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import prod
from statistics import median
from typing import Any

import torch
from torch._subclasses import FakeTensorMode
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils.flop_counter import flop_registry

from ..errors import InstanceError
from .load import said
from .program import Program, ProgramNode, on_tensors, storage, tensors, writes

# fmt: off
MOVES = frozenset((
    "_to_copy", "_unsafe_index", "arange", "as_strided_scatter", "cat", "clone", "constant_pad_nd",
    "contiguous", "copy", "copy_", "diagonal_scatter", "embedding", "empty", "empty_like", "empty_strided",
    "expand_copy", "eye", "fill", "fill_", "flip", "full", "full_like", "gather", "index", "index_put",
    "index_put_", "index_select", "masked_fill", "masked_fill_", "max_pool2d_with_indices_backward",
    "new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros", "nll_loss_backward",
    "nll_loss_forward", "ones", "ones_like", "pixel_shuffle", "reflection_pad1d", "reflection_pad2d", "repeat",
    "replication_pad2d", "roll", "scalar_tensor", "scatter", "select_backward", "select_scatter",
    "slice_backward", "slice_scatter", "split_with_sizes_copy", "stack", "tril", "triu", "unfold_backward",
    "upsample_nearest2d", "where", "zero_", "zeros", "zeros_like",
))
# fmt: on
"""Kernels that only move numbers."""

PER_ELEMENT = {
    **dict.fromkeys(("_softmax", "_log_softmax", "_safe_softmax"), 5),
    **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data"), 4),
    **dict.fromkeys(("native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit"), 8),
    **dict.fromkeys(("native_layer_norm_backward", "native_batch_norm_backward"), 12),
    **dict.fromkeys(("gelu", "tanh", "sigmoid", "silu", "erf", "exp", "log", "sin", "cos"), 8),
    **dict.fromkeys(("gelu_backward", "tanh_backward", "silu_backward"), 12),
}
"""FLOPs per element of the largest tensor; 1 for kernels not named here."""


def product_flops(func: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any) -> float | None:
    """Return the FLOPs of a product, None for another kernel: by torch's own formulas, and ours where it has none.

    Args:
        func: the operator, e.g. ``aten.addmm.default``.
        args, kwargs: its arguments.
        out: what it returned.
    """
    kernel = func._schema.name.split("::")[-1]
    if kernel.startswith("_scaled_dot_product"):
        return _attention(args[1:4], 3, 2) if "backward" in kernel else _attention(args[:3], 1, 1)
    if func._overloadpacket in flop_registry:
        return float(flop_registry[func._overloadpacket](*args, **kwargs, out_val=out))
    return _other_product(kernel, args, out)


def _other_product(kernel: str, args: Sequence[Any], out: Any) -> float | None:
    """Return the FLOPs of a product that torch has no formula for."""
    if kernel in INTEGER:
        return float(2 * out.numel() * args[0].shape[-1])
    if packed := packed_weights(args):
        return float(sum(2 * x.numel() * _uses(x, args[0], out) for x in packed))
    if kernel in ("mv", "dot", "addmv"):
        matrix = args[kernel == "addmv"]
        return float(2 * matrix.numel())
    if kernel in RECURRENT:
        steps = 2 * prod(args[0].shape[:-1]) * (args[1].numel() + args[2].numel())
        return float(steps * (2 if "backward" in kernel else 1))
    return None


def packed_weights(args: Any) -> list[Any]:
    """Return the matrices and filters among the weights that quantized kernels take in a packed form."""
    objects = [x for x in _pytree.tree_leaves(args) if isinstance(x, torch.ScriptObject)]
    with _disable_current_modes():
        inside = [x.unpack() if hasattr(x, "unpack") else x.__getstate__() for x in objects]
    return [x for x in tensors(inside) if x.dim() > 1]


def _uses(weight: Any, value: Any, out: Any) -> float:
    """Return how often a kernel uses each number of a filter, or of a matrix: once for each row."""
    convolves = weight.dim() > 2
    return float(out.numel() / weight.shape[0] if convolves else prod(value.shape[:-1]))


def other_flops(kernel: str, args: Sequence[Any], out: Any) -> float:
    """Return the FLOPs of a kernel that is no product, roughly; none if it moves numbers or computes whole ones."""
    if kernel in MOVES or not any(x.is_floating_point() or x.is_complex() for x in tensors(out)):
        return 0.0
    return float(PER_ELEMENT.get(kernel, 1) * max(x.numel() for x in tensors((tuple(args), out))))


def _attention(matrices: Sequence[Any], by_key: int, by_value: int) -> float:
    query, key, value = matrices
    pairs = prod(query.shape[:-1]) * key.shape[-2]
    return float(2 * pairs * (by_key * query.shape[-1] + by_value * value.shape[-1]))


def footprint(tensor: Any) -> float:
    """Return the bytes that a tensor's values take in memory; what is broadcast is there once."""
    if not isinstance(tensor, torch.Tensor):
        return 0.0
    sizes = (size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)
    return float(prod(sizes) * tensor.element_size()) if tensor.numel() else 0.0


ROWS = frozenset(["embedding", "index", "index_select", "gather", "nll_loss_forward", "_unsafe_index"])
"""Kernels that read of their table only as much as they return."""

RECURRENT = frozenset(["mkldnn_rnn_layer", "mkldnn_rnn_layer_backward"])
"""Kernels of a whole recurrent layer; the first axis of their input is time."""

INTEGER = frozenset(["_int_mm", "_weight_int8pack_mm", "_weight_int4pack_mm", "_weight_int4pack_mm_for_cpu"])
"""Products of matrices of few bits that torch's table of formulas does not have."""

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
            exact = product_flops(func, args, kwargs, out)
            flops = other_flops(name, args, out) if exact is None else exact
            written = sum(map(footprint, made))
            once = {id(x): x for x in read}.values()
            packed = sum(x.numel() * x.element_size() for x in packed_weights(args))
            taken = packed + sum(min(footprint(x), written) if name in ROWS else footprint(x) for x in once)
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


@dataclass(frozen=True, slots=True)
class Profile:
    """A program and the cost of its calls.

    Attributes:
        program: the calls.
        values: every value without its data: shapes, types, whether it has a gradient.
        forward, backward: the kernels of each call, by its name; backward those that find the gradients of its
            arguments from those of its results.
        kept: bytes that each call keeps for that besides its arguments and results, e.g. the mask of a dropout.
    """

    program: Program
    values: dict[str, Any]
    forward: dict[str, tuple[Kernel, ...]]
    backward: dict[str, tuple[Kernel, ...]]
    kept: dict[str, float]

    def is_free(self, name: str) -> bool:
        """Say whether a call starts no kernel: it makes a view, or picks an item."""
        return not self.forward[name]

    def has_gradient(self, name: str) -> bool:
        """Say whether gradients of a value are wanted."""
        return any(x.requires_grad for x in tensors(self.values[name]))

    @property
    def random(self) -> bool:
        """Whether the model draws random numbers, as dropout does."""
        return any(kernel.random for kernels in self.forward.values() for kernel in kernels)


def profile(program: Program) -> Profile:
    """Run a program without data, forward and, call by call, backward."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    given = {**program.state, **program.inputs}

    def fake(x: Any) -> Any:
        return mode.from_tensor(x.detach(), static_shapes=True).requires_grad_(x.requires_grad)

    values = {name: on_tensors(fake, value) for name, value in given.items()}
    forward: dict[str, tuple[Kernel, ...]] = {}
    backward: dict[str, tuple[Kernel, ...]] = {}
    kept: dict[str, float] = {}
    with mode:
        for node in program.nodes:
            mine = {name: isolated(values[name], copied=bool(writes(node))) for name in node.reads}
            with Watch() as watch, _saved() as saved:
                out = node.run(mine)
            known = {storage(x) for x in tensors((out, list(mine.values())))}
            extra = {storage(x): x.untyped_storage().nbytes() for x in saved}
            kept[node.name] = float(sum(size for place, size in extra.items() if place not in known))
            forward[node.name] = tuple(watch.kernels)
            back = gradients(out, list(mine.values()))
            with Watch() as watch:
                if back is not None:
                    back()
            backward[node.name] = tuple(watch.kernels)
            values[node.name] = _kept(node, out, values, mine)
    return Profile(program, values, forward, backward, kept)


def isolated(value: Any, copied: bool = False) -> Any:
    """Return a value cut off from what made it, so that gradients end here; copied if the call writes into it."""

    def cut(x: Any) -> Any:
        leaf = x.detach().requires_grad_(x.requires_grad)
        return leaf.clone() if copied else leaf

    return on_tensors(cut, value)


def gradients(out: Any, inputs: Any) -> Callable[[], Any] | None:
    """Return a call that finds the gradients of all inputs that want one from gradients of ones; None if none does."""
    results = [x for x in tensors(out) if x.grad_fn is not None]  # an argument that is returned has none
    wanted = [x for x in tensors(inputs) if x.requires_grad]
    if not results or not wanted:
        return None
    ones = [torch.ones_like(x) for x in results]
    return lambda: torch.autograd.grad(results, wanted, ones, allow_unused=True, retain_graph=True)


@contextmanager
def _saved() -> Iterator[list[Any]]:
    """Collect the tensors that torch keeps for the backward pass."""
    found: list[Any] = []

    def note(x: Any) -> Any:
        found.append(x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        yield found


def _kept(node: ProgramNode, out: Any, values: dict[str, Any], mine: dict[str, Any]) -> Any:
    """Return a result without its past, in the memory of the value that the call wrote into if it returns that."""
    originals = {storage(mine[name]): values[name] for name in writes(node) if isinstance(mine[name], torch.Tensor)}

    return on_tensors(lambda x: originals.get(storage(x), x).detach().requires_grad_(x.requires_grad), out)


REPEATS = 5
PROCESSOR = "cpu"


def require_device(device: str) -> None:
    """Raise an error unless torch can compute on `device`, e.g. ``cpu``, ``cuda`` or ``cuda:1``."""
    if not isinstance(device, str):
        raise InstanceError("measured", f"{device!r} is not the name of a device, such as cpu or cuda")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InstanceError("device", f"{device!r} is not one that torch has here: {said(error)}") from None


def measure(
    profile: Profile, training: bool = True, repeats: int = REPEATS, device: str = PROCESSOR
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the seconds of each call, forward and backward, by its name: the median of some runs after a warm-up.

    Each call runs by itself on the values that the model's example inputs lead to; a view takes no time forward.
    """
    program = profile.program
    values: dict[str, Any] = dict(program.inputs)
    for name, tensor in program.state.items():
        values[name] = tensor if program.is_parameter(name) else tensor.clone()
    unread = program.last_readers()
    forward, backward = dict.fromkeys(profile.forward, 0.0), dict.fromkeys(profile.backward, 0.0)
    with torch.random.fork_rng(devices=[]), torch.set_grad_enabled(training):
        for node in program.nodes:
            copied = bool(writes(node))

            def inputs(node: Any = node, copied: bool = copied) -> dict[str, Any]:
                return {name: isolated(values[name], copied) for name in node.reads}

            if not profile.is_free(node.name):
                forward[node.name] = _median(lambda node=node: partial(node.run, inputs()), repeats, device)  # type: ignore[misc]
            mine = inputs()
            out = node.run(mine)
            back = gradients(out, list(mine.values())) if profile.backward[node.name] else None
            if back is not None:
                backward[node.name] = _median(lambda back=back: back, repeats, device)  # type: ignore[misc]
            values[node.name] = isolated(out)
            for name in unread[node.name]:
                del values[name]
    return forward, backward


def copy_bandwidth(device: str = PROCESSOR, size: int = 1 << 26, repeats: int = REPEATS) -> float:
    """Return the bytes/s at which `device` copies its memory: the median.

    Two GPUs have a link of their own, which is slower; where there is a second one the copy goes there.
    """
    source = torch.ones(size, dtype=torch.uint8, device=device)
    kind = source.device.type
    second = kind == "cuda" and torch.cuda.device_count() > 1
    target = torch.empty_like(source, device=f"cuda:{1 - (source.device.index or 0)}" if second else device)
    return size / _median(lambda: lambda: target.copy_(source), repeats, device)


def _median(prepare: Callable[[], Callable[[], Any]], repeats: int, device: str) -> float:
    waits = torch.device(device).type == "cuda"
    seconds = []
    for _ in range(repeats + 1):
        call = prepare()
        if waits:
            torch.cuda.synchronize(device)
        start = time.perf_counter()
        call()
        if waits:
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - start)
    return median(seconds[1:])
