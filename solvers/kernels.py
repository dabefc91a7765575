"""Compiled code: whether it is there, and the folder it is kept in, one that can be written to.

To compile takes longer than many a deadline, and cannot be stopped.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

Kernels = Callable[[], tuple[Any, ...]]
"""Imports kernels, and numba with them, and returns them."""

VARIABLE = "GANGPLAN_CACHE_DIR"
"""The environment variable that names the folder."""
ROOT = str(Path(__file__).parents[1])
"""The folder of the package's sources."""
SOURCES = "GANGPLAN_SOURCES"
"""The environment variable that tells a copy of the package the `token` of the one whose compiled code it shares."""
PACKAGE = Path(__file__).parent / "compiled" / "__pycache__"
"""The package's own, which an image of a container is built with; whoever may not write there reads it all the same."""


@cache
def folder() -> Path:
    """Return where compiled code is kept: the named folder, the package's own, the user's cache, or a temporary one."""
    for path in _wanted():
        if _writable(path):
            return path
    with suppress(OSError):
        return _temporary()
    return PACKAGE  # nothing can be kept


def places() -> list[Path]:
    """Return where compiled code is looked for: the folder, and the package's own unless another one is named."""
    return [folder()] if _named() or folder() == PACKAGE else [folder(), PACKAGE]


def token() -> str:
    """Return what stands for the folder of the package's sources, and does not tell where that is."""
    return os.environ.get(SOURCES) or hashlib.sha256(ROOT.encode()).hexdigest()


def shelf(sources: Path) -> str:
    """Return the name, in a folder of compiled code, of what the sources of a folder are compiled to."""
    return hashlib.sha256(f"{token()} {os.path.relpath(sources, ROOT)}".encode()).hexdigest()[:12]


def keeps() -> bool:
    """Return whether code can be kept at all."""
    return _writable(folder())


def _wanted() -> Iterator[Path]:
    if _named():
        yield Path(_named())
        return
    yield PACKAGE
    with suppress(RuntimeError):  # a user without a home, as containers have
        yield _users() / "gangplan"


def _named() -> str:
    return os.environ.get(VARIABLE) or os.environ.get("NUMBA_CACHE_DIR") or ""


def _users() -> Path:
    if sys.platform == "darwin":
        return Path("~/Library/Caches").expanduser()
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or "~/AppData/Local").expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()


def _writable(path: Path) -> bool:
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return False
    return True


def _temporary() -> Path:
    """Return a folder that is this user's alone, since code that others could write would be run."""
    if not hasattr(os, "getuid"):
        return Path(tempfile.mkdtemp(prefix="gangplan-"))
    path = Path(tempfile.gettempdir()) / f"gangplan-{os.getuid()}"
    with suppress(OSError):
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
            return path
    return Path(tempfile.mkdtemp(prefix="gangplan-"))


def in_memory(kernels: Kernels | None) -> bool:
    """Return whether the kernels have run in this process."""
    return kernels is None or ("numba" in sys.modules and all(map(_signatures, kernels())))


def on_disk(kernels: Kernels) -> bool:
    """Return whether the kernels have run in this process, or can be loaded from what an earlier one has kept."""
    from .compiled.kernel import signature

    return all(_signatures(kernel) or kernel._cache.has(signature(kernel)) for kernel in kernels())


def compile_kernel(kernel: Any) -> None:
    """Compile a kernel, or load it where its code is kept."""
    from .compiled.kernel import signature

    if not _signatures(kernel):
        kernel.compile(signature(kernel))


def name_of(kernel: Any) -> str:
    """Return a kernel's module, from `gangplan` on, and its name."""
    return f"{kernel.__module__.removeprefix('gangplan.')}:{kernel.__name__}"


def interpret() -> None:
    """Run as Python, slowly, all that would be compiled in this process from now on."""
    from numba.core import config
    from numba.core.dispatcher import Dispatcher

    config.DISABLE_JIT = True  # type: ignore[attr-defined]
    for name, module in list(sys.modules.items()):
        if name.startswith("gangplan."):
            for at, function in list(vars(module).items()):
                if isinstance(function, Dispatcher):
                    setattr(module, at, function.py_func)


def _signatures(kernel: Any) -> bool:
    # with NUMBA_DISABLE_JIT it is an ordinary function
    return bool(getattr(kernel, "signatures", True))
