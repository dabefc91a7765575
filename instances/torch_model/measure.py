"""Time each call of a program on this machine, on its processor or its GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch.utils import _pytree

from ..errors import InstanceError
from .cost import Profile, gradients, isolated
from .inplace import writes
from .load import said

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
            values[node.name] = _pytree.tree_map(_cut, out)
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


def _cut(value: Any) -> Any:
    return value.detach().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value
