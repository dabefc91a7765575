"""Have kernels compiled: by a process of its own beside a solve, or before it.

A fresh installation has nothing compiled. The first solve of an objective has a process started that compiles what
the objective lacks and outlives the solve, so that the next one finds everything there; a kernel is used as soon as
its code is in the folder of compiled code. The process holds a lock for as long as it is at work.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from importlib import import_module
from typing import IO, Any

from gangplan.instances.errors import InstanceError, unknown
from gangplan.solvers.kernels import (
    SOURCES,
    VARIABLE,
    compile_kernel,
    folder,
    in_memory,
    keeps,
    name_of,
    on_disk,
    places,
)
from gangplan.solvers.method import OBJECTIVES, Method

from .table import ENTRIES, installed, named, own

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

_MAIN = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from gangplan.hybrid.{} import main
main()
"""
_MARK = "{}.json"
"""The file that says that all kernels of an objective are there."""
_begun: dict[str, subprocess.Popen[bytes]] = {}


def command(module: str, *arguments: str, path: Sequence[str] = ()) -> list[str]:
    """Return what runs ``main`` of a module of this folder in a fresh process, by default with ``sys.path`` of here.

    By ``-P`` no file of the folder that the user is in is taken for a module before ``sys.path`` is ours.
    """
    return [sys.executable, "-P", "-c", _MAIN.format(module), json.dumps([*map(str, path or sys.path)]), *arguments]


def kernels(objective: str) -> list[Any]:
    """Return what the methods of an objective compile, as the portfolio comes to need it, policies last."""
    methods = named(objective)
    entries = sorted((entry for entry in ENTRIES if entry.objective == objective), key=lambda entry: entry.learned)
    order = [*(methods[e.name] for e in entries if not e.learned), *own(objective).values()]
    order += [methods[e.name] for e in entries if e.learned]
    compiled = [method.kernels for method in order if method.kernels is not None and installed(method)]
    return list(dict.fromkeys(kernel for found in compiled for kernel in found()))


def at_hand(method: Method) -> bool:
    """Return whether `method` can begin without compiling anything."""
    return in_memory(method.kernels) or (method.kernels is not None and on_disk(method.kernels))


def begin(objective: str) -> None:
    """Start the process that compiles what an objective lacks, unless one is at work or nothing can be kept."""
    with suppress(OSError, ValueError), lock_on(objective) or nullcontext() as lock:
        if lock is not None and keeps():
            _begun[objective] = subprocess.Popen(
                command("compiling", objective),
                env={**os.environ, VARIABLE: str(folder())},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C ends the solve, not this
                pass_fds=() if fcntl is None else (lock.fileno(),),  # it holds the lock as long as it lives
            )


def busy(objective: str) -> bool:
    """Return whether a process is compiling for an objective."""
    if objective in _begun and _begun[objective].poll() is None:
        return True
    with suppress(OSError), lock_on(objective) or nullcontext() as lock:
        return lock is None
    return False


def main() -> None:
    """Compile what the objective in ``sys.argv[2]`` lacks."""
    compile_all(sys.argv[2])


def compile_all(objective: str, tell: Callable[[str, int, int], None] | None = None) -> None:
    """Compile or load all kernels of an objective, and leave a mark that they are there.

    Args:
        objective: as `solve` takes it.
        tell: called with each kernel before it is compiled, how many are done and how many there are.
    """
    found = kernels(objective)
    for done, kernel in enumerate(found):
        if tell is not None:
            tell(name_of(kernel), done, len(found))
        compile_kernel(kernel)
    with suppress(OSError):
        if SOURCES not in os.environ:
            (folder() / _MARK.format(objective)).write_text(json.dumps(_stamp()), encoding="utf-8")


def complete(objective: str) -> bool:
    """Return whether all kernels have been there on this machine with the sources as they are.

    It is quick, since it looks into no kernel.
    """
    if os.environ.get("NUMBA_DISABLE_JIT") or all(method.kernels is None for method in named(objective).values()):
        return True
    for place in places():
        with suppress(OSError, ValueError, TypeError, LookupError):
            known = json.loads((place / _MARK.format(objective)).read_text(encoding="utf-8"))
            if known[0] == sys.version and all(_stat(path) == [size, at] for path, size, at in known[1]):
                return bool(known[2] == platform.node())
    return False


def _stamp() -> list[Any]:
    """Return Python's version, size and time of numba and of every source that has something compiled, the machine."""
    sources = {str(sys.modules["numba"].__file__)} if "numba" in sys.modules else set()
    for name, module in list(sys.modules.items()):
        if name.startswith("gangplan.") and any(
            callable(value) and hasattr(value, "py_func") for value in vars(module).values()
        ):
            sources.add(str(module.__file__))
    return [sys.version, [[path, *_stat(path)] for path in sorted(sources)], platform.node()]


def _stat(path: str) -> list[int]:
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns]


def lock_on(objective: str) -> IO[str] | None:
    """Return the lock on compiling for an objective, held until it is closed, `None` if another process has it.

    Raises:
        OSError: if nothing can be kept where it is looked for.
    """
    file = (folder() / f"{objective}.lock").open("w")
    if fcntl is not None:  # without, twice the work at worst
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return None
    return file


def warm_up(*objectives: str, tell: Callable[[str, int, int], None] | None = None, workers: bool = True) -> None:
    """Load everything that `solve` may use on these objectives, by default on all, here and in its workers.

    Nobody has to: the first solve has its workers load what they lack. A server calls this once, so that limits of
    milliseconds find everything in its own process; an image is built with it, so that nothing is compiled later. What
    is there by then, of others too, the garbage collector leaves alone from now on (`gc.freeze`).

    Args:
        objectives: as `solve` takes them.
        tell: called before each kernel with its name, how many of the objective's are done, and how many it has.
        workers: whether to load it in the workers too.

    Raises:
        InstanceError: naming an objective that there is not.
    """
    from .workers import load

    for objective in objectives:
        if objective not in OBJECTIVES:
            raise InstanceError("objectives", unknown(objective, OBJECTIVES))
    for objective in objectives or OBJECTIVES:
        compile_all(objective, tell)
        for method in named(objective).values():
            if method.library:
                with suppress(ImportError):
                    import_module(method.library)
    if workers:
        with suppress(OSError):
            load(*(objectives or OBJECTIVES))
    gc.collect()
    gc.freeze()  # a collection would look at all of it, which takes longer than a tenth of a second
