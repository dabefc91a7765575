"""Checkpoints: tensors as safetensors, the rest as JSON; at every instant there is a whole one on disk.

Optimizers and random generators are packed into tensors and what JSON can hold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.intake import read_bytes, read_json
from gangplan.instances.outlet import write_whole

if TYPE_CHECKING:
    import torch

Tensors: TypeAlias = "dict[str, torch.Tensor]"
FORMAT = 1


def write_checkpoint(folder: Path, name: str, tensors: Tensors, plain: Mapping[str, Any]) -> None:
    """Write checkpoint `name`.

    The tensors get a file with a name of its own, and the JSON file names it: renaming that one is what makes the new
    checkpoint the one that counts. Then the tensors of the old one are deleted.
    """
    from safetensors.torch import save

    content = save({key: value.detach().cpu().contiguous() for key, value in tensors.items()})
    digest = hashlib.sha256(content).hexdigest()
    file = f"{name}-{digest[:16]}.safetensors"
    write_whole({folder / file: content}, durable=True)
    document = {"format": FORMAT, "tensors": file, "sha256": digest, **plain}
    write_whole({folder / f"{name}.json": json.dumps(document, indent=1).encode()}, durable=True)
    for old in folder.glob(f"{name}-*.safetensors"):
        if old.name != file:
            old.unlink()


def read_plain(folder: Path, name: str) -> dict[str, Any] | None:
    """Return the JSON part of checkpoint `name`, None if there is no such checkpoint.

    Raises:
        InstanceError: if it is broken, naming the file.
    """
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    document = read_json(path)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InstanceError("format", f"is not {FORMAT}: no checkpoint of this version", str(path))
    return document


def read_checkpoint(folder: str | Path, name: str = "best") -> tuple[Tensors, dict[str, Any]]:
    """Return tensors and JSON part of checkpoint ``best`` or ``last``; the learner's own part is under ``learner``.

    Raises:
        InstanceError: if it is missing or broken, naming the file.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    folder = Path(folder)
    plain = read_plain(folder, name)
    if plain is None:
        raise InstanceError("checkpoint", "there is none", str(folder / f"{name}.json"))
    path = folder / Path(str(plain.get("tensors"))).name
    content = read_bytes(path)
    if hashlib.sha256(content).hexdigest() != plain.get("sha256"):
        raise InstanceError("sha256", "the tensors are not those that were written", str(path))
    try:
        return load(content), plain
    except (SafetensorError, ValueError, KeyError) as error:
        raise InstanceError("tensors", f"are broken: {error}", str(path)) from None


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
