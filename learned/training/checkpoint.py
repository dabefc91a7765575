"""Checkpoints: tensors as safetensors, the rest as JSON; at every instant there is a whole one, by one process."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.intake import read_bytes, read_json
from gangplan.instances.outlet import write_whole

from ..policy.weights import Tensors

FORMAT = 1
LOCK = ".gangplan.lock"
"""The file that is locked. It stays: a lock is on the file as long as its process lives, and no longer."""


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
    """Return the JSON part of checkpoint `name`, None if there is no such checkpoint."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    document = read_json(path)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InstanceError("format", f"is not {FORMAT}: no checkpoint of this version", str(path))
    return document


def read_checkpoint(folder: str | Path, name: str = "best") -> tuple[Tensors, dict[str, Any]]:
    """Return tensors and JSON part of checkpoint ``best`` or ``last``; the learner's own part is under ``learner``."""
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


@contextmanager
def locked(folder: Path, field: str = "folder") -> Iterator[None]:
    """Hold a folder, so that no two processes write to it; the system lets go when a process ends, however it does.

    Args:
        folder: is made if it is not there.
        field: what errors call it.

    Raises:
        InstanceError: if another one holds it, naming that, or nothing can be written there.
    """
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        words = f"{str(folder)!r} is no folder that can be written to: {error.strerror}"
        raise InstanceError(field, words) from None
    with os.fdopen(file, "r+b") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = lock.read(200).decode(errors="replace").strip() or "unknown"
            words = f"is in use by another process ({holder}); wait for it, or choose another folder"
            raise InstanceError(field, words, str(folder)) from None
        except OSError:  # a file system without locks
            yield
            return
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        lock.flush()
        yield
