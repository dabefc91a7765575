"""Checkpoints: tensors as safetensors, the rest as JSON; at every instant there is a whole one on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

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
