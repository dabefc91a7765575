"""Pack what a learner must remember into tensors and JSON: optimizers and random generators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .checkpoint import Tensors

if TYPE_CHECKING:
    import torch


def prefixed(prefix: str, tensors: Tensors) -> Tensors:
    """Return the tensors with ``prefix.`` before their names."""
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def under(prefix: str, tensors: Tensors) -> Tensors:
    """Return the tensors whose names begin with ``prefix.``, without it."""
    return {n.removeprefix(f"{prefix}."): x for n, x in tensors.items() if n.startswith(f"{prefix}.")}


def pack_optimizer(optimizer: torch.optim.Optimizer) -> tuple[Tensors, dict[str, Any]]:
    """Return an optimizer's state as tensors named ``parameter.name`` and its settings as what JSON can hold."""
    import torch

    found = optimizer.state_dict()
    tensors: Tensors = {}
    numbers: dict[str, Any] = {}
    for index, entries in found["state"].items():
        for name, value in entries.items():
            (tensors if isinstance(value, torch.Tensor) else numbers)[f"{index}.{name}"] = value
    groups = [{k: _number(v) for k, v in group.items()} for group in found["param_groups"]]
    return tensors, {"numbers": numbers, "groups": groups}


def unpack_optimizer(optimizer: torch.optim.Optimizer, tensors: Tensors, plain: Mapping[str, Any]) -> None:
    """Set an optimizer over the same parameters to what `pack_optimizer` returned."""
    state: dict[int, dict[str, Any]] = {}
    for key, value in {**tensors, **plain["numbers"]}.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    groups = [{k: tuple(v) if k == "betas" else v for k, v in group.items()} for group in plain["groups"]]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def pack_random(generator: np.random.Generator) -> dict[str, Any]:
    """Return the state of a numpy generator as what JSON can hold."""
    found: dict[str, Any] = _lists(generator.bit_generator.state)
    return found


def unpack_random(generator: np.random.Generator, plain: Mapping[str, Any]) -> None:
    """Set a numpy generator of the same kind to what `pack_random` returned."""
    generator.bit_generator.state = plain


def _lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _lists(v) for k, v in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch draw from `seed` inside, as for the first weights of a network, and as before outside."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def pack_torch(generator: torch.Generator) -> torch.Tensor:
    """Return the state of a torch generator, uint8."""
    return generator.get_state().cpu()


def unpack_torch(generator: torch.Generator, state: torch.Tensor) -> None:
    """Set a torch generator of the same device to what `pack_torch` returned."""
    generator.set_state(state.cpu())
