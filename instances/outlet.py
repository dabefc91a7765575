"""Files out: whole or not at all, under names that nobody can guess until they are."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TypeVar

from .errors import InstanceError
from .intake import file_name, io_error

Name = str | PathLike[str]
N = TypeVar("N", bound=Name)


def make_folder(folder: Name) -> None:
    """Make a folder unless it is there.

    Raises:
        InstanceError: if it cannot be made.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InstanceError("file", io_error(error), str(folder)) from None


def write_whole(files: Mapping[N, bytes], *, durable: bool = False, folders: bool = False) -> None:
    """Write each content to its path: all beside their places first, then each into it.

    A link is written through, a device or a pipe written to. Permissions are those of the file that was there, else
    what the umask says.

    Args:
        files: contents by path.
        durable: have each on disk before it takes its place.
        folders: make those that are missing.
    """
    ready: list[tuple[str, str, str]] = []
    try:
        for path, content in files.items():
            name = file_name(path)
            try:
                if folders:
                    os.makedirs(os.path.dirname(os.path.realpath(name)), exist_ok=True)
                there = _status(name)
                if there is not None and not stat.S_ISREG(there.st_mode):
                    _fill(os.open(name, os.O_WRONLY), content, durable=False)  # a device or a pipe
                    continue
                target = os.path.realpath(name)
                part = _beside(target)
                ready.append((name, part, target))
                mode = None if there is None else stat.S_IMODE(there.st_mode)
                _fill(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), content, mode=mode, durable=durable)
            except (OSError, ValueError) as error:
                raise InstanceError("file", io_error(error), name) from None
        for name, part, target in ready:
            try:
                os.replace(part, target)
            except OSError as error:
                raise InstanceError("file", io_error(error), name) from None
    finally:
        for _, part, _ in ready:
            with suppress(OSError):
                os.unlink(part)


def check_writable(path: Name) -> None:
    """Refuse a path that cannot be written."""
    name = file_name(path)
    try:
        there = _status(name)
        if not name or (there is not None and stat.S_ISDIR(there.st_mode)):
            raise InstanceError("file", "is a directory" if name else "no name is given", name)
        target = os.path.realpath(name)
        folder = os.path.dirname(target)
        if there is None and not os.path.isdir(folder):
            raise InstanceError("file", f"the folder {os.path.dirname(name) or folder!r} does not exist", name)
        regular = there is None or stat.S_ISREG(there.st_mode)
        if (there is not None and not os.access(name, os.W_OK)) or (regular and not os.access(folder, os.W_OK)):
            raise InstanceError("file", "permission denied", name)
    except InstanceError:
        raise
    except (OSError, ValueError) as error:
        raise InstanceError("file", io_error(error), name) from None


def _status(name: str) -> os.stat_result | None:
    try:
        return os.stat(name)
    except FileNotFoundError:
        return None


def _beside(target: str) -> str:
    return os.path.join(os.path.dirname(target), f".gangplan-{secrets.token_hex(8)}.part")


def _fill(descriptor: int, content: bytes, *, mode: int | None = None, durable: bool) -> None:
    with os.fdopen(descriptor, "wb") as file:
        if mode is not None:
            with suppress(OSError):  # a file system without permissions
                os.fchmod(file.fileno(), mode)
        file.write(content)
        file.flush()
        if durable:
            os.fsync(file.fileno())
