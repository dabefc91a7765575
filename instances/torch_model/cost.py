"""What each call of a program computes and moves, found by running it without data, and how long it takes here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch._subclasses import FakeTensorMode

from ..errors import InstanceError
from .inplace import writes
from .kernels import Kernel, Watch, storage
from .load import said
from .program import Node, Program, on_tensors, tensors


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


def _kept(node: Node, out: Any, values: dict[str, Any], mine: dict[str, Any]) -> Any:
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
                forward[node.name] = _median(lambda node=node: _call(node.run, inputs()), repeats, device)  # type: ignore[misc]
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


def _call(run: Callable[[Any], Any], inputs: Any) -> Callable[[], Any]:
    return lambda: run(inputs)


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
