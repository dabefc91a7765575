"""Have what methods need at hand: libraries loaded, and kernels compiled, beside a solve or before it.

A fresh installation has nothing compiled. The first solve of an objective starts a process in its first milliseconds,
which outlives it, so that the next one finds everything there; a kernel is used as soon as its code is in the folder of
compiled code.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from gangplan.instances.errors import InstanceError, unknown
from gangplan.solvers.kernels import (
    VARIABLE,
    compile_kernel,
    folder,
    in_memory,
    keeps,
    name_of,
    on_disk,
    places,
)
from gangplan.solvers.method import OBJECTIVES, Method, suite
from gangplan.solvers.processes import POLL
from gangplan.solvers.run import Run

from .table import ENTRIES, installed, named

_CODE = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from gangplan.hybrid.compiling import main
main()
"""
"""Begun with ``-P``: no file of the folder that the user is in is taken for a module before ``sys.path`` is ours."""
_MARK = "{}.json"
"""The file that says that all kernels of an objective are there."""
_ELSEWHERE = 3
"""Exit code of a process that has found another one at the same work."""
_HERE = 30.0
"""Seconds left from which on a kernel is compiled in this process, where no other one can be started."""
_WARM_SECONDS = 2.0
"""What `Method.warm` takes on a slow or cold machine."""
_warm: set[int] = set()
_begun: dict[str, subprocess.Popen[bytes] | None] = {}


def kernels(objective: str) -> list[Any]:
    """Return what the methods of an objective compile, as the portfolio comes to need it, policies last."""
    methods = named(objective)
    entries = sorted((entry for entry in ENTRIES if entry.objective == objective), key=lambda entry: entry.learned)
    order = [*(methods[e.name] for e in entries if not e.learned), *suite(objective).methods.values()]
    order += [methods[e.name] for e in entries if e.learned]
    compiled = [method.kernels for method in order if method.kernels is not None and installed(method)]
    return list(dict.fromkeys(kernel for found in compiled for kernel in found()))


class Compiler:
    """What is compiled beside one solve."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.objective: str = run.problem.objective
        mark = _mark(self.objective)
        self._trusted = mark == platform.node()
        self._process = None if mark is not None else begin(self.objective)

    def has(self, method: Method) -> bool:
        """Return whether `method` can begin without compiling anything."""
        if method.kernels is None or in_memory(method.kernels):
            return True
        if self._trusted and "numba" not in sys.modules:  # numba and kernels take longer to import than many a proof
            return True
        if not self.run.can_import("numba", tell=False):
            return False
        if on_disk(method.kernels):
            return True
        if self._process is None:  # another processor, or other versions, than when the folder was last complete
            self._process = begin(self.objective)
        if self._process is not None or self.run.remaining() <= _HERE:
            return False
        for kernel in method.kernels():
            compile_kernel(kernel)
        return True

    def comes(self, method: Method) -> bool:
        """Return whether somebody is compiling what `method` lacks."""
        return self._process is not None and self._process.poll() in (None, _ELSEWHERE) and not self.has(method)

    def wait(self, method: Method, name: str) -> bool:
        """Return whether `method` can begin, once it can or its time is up; a note says so if it cannot."""
        with self.run.phase("compile"):
            while self.comes(method) and not self.run.stopped:
                time.sleep(min(POLL, self.run.remaining()))
        return self.has(method) or self.missing(name)

    def missing(self, name: str) -> bool:
        """Note that the method `name` is left out for want of compiled code; return false."""
        if self._process is not None and self._process.poll() not in (None, 0, _ELSEWHERE):
            self.run.note(f"{name} cannot be compiled here; gangplan warm-up says why")
        elif not self.run.can_import("numba", tell=False):
            self.run.no_time(f"{name} left out: no time to import numba")
        else:
            self.run.no_time(f"no time to compile {name}: that goes on, for the solves to come")
        return False


def begin(objective: str) -> subprocess.Popen[bytes] | None:
    """Start the process that compiles what an objective lacks, once; return it, `None` where none can be started."""
    before = _begun.get(objective)
    if before is not None and before.poll() == _ELSEWHERE:
        del _begun[objective]  # the other one may have been killed since
    if objective not in _begun:
        _begun[objective] = None
        if keeps():
            with suppress(OSError, ValueError):
                _begun[objective] = subprocess.Popen(
                    [sys.executable, "-P", "-c", _CODE, json.dumps(sys.path), objective],
                    env={**os.environ, VARIABLE: str(folder())},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C ends the solve, not this
                )
    return _begun[objective]


def main() -> None:
    """Compile what the objective in ``sys.argv[2]`` lacks."""
    objective = sys.argv[2]
    with alone(objective) as free:
        if not free:
            sys.exit(_ELSEWHERE)
        compile_all(objective)


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
        (folder() / _MARK.format(objective)).write_text(json.dumps(_stamp()), encoding="utf-8")


def _mark(objective: str) -> str | None:
    """Return the machine on which all kernels have been there with the sources as they are, `None` if on none.

    It is quick, since it looks into no kernel.
    """
    if os.environ.get("NUMBA_DISABLE_JIT") or all(method.kernels is None for method in named(objective).values()):
        return platform.node()
    for place in places():
        with suppress(OSError, ValueError, TypeError, LookupError):
            known = json.loads((place / _MARK.format(objective)).read_text(encoding="utf-8"))
            if known[0] == sys.version and all(_stat(path) == [size, at] for path, size, at in known[1]):
                return str(known[2])
    return None


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


@contextmanager
def alone(objective: str, *, wait: bool = False) -> Iterator[bool]:
    """Hold the lock on compiling for an objective; give whether it was free, or wait for it."""
    try:
        import fcntl
    except ImportError:  # no such locks here: twice the work at worst
        yield True
        return
    with (folder() / f"{objective}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            yield False
        else:
            yield True


def loaded(method: Method) -> bool:
    """Return whether `method` can begin at once."""
    there = not method.library or method.library in sys.modules
    return there and (method.warm is None or id(method) in _warm) and in_memory(method.kernels)


def load(run: Run, method: Method) -> None:
    """Load what `method` needs if there is time; why something cannot be loaded is for the method to say.

    It is done in this process, before those of methods begin, so that it is there for the next solve as well.
    """
    if loaded(method) or (method.library and not run.can_import(method.library, tell=False)):
        return
    with run.phase("import"):
        _import(method)
        if run.remaining() > _WARM_SECONDS and run.compiled(method.kernels, method.library):
            for kernel in method.kernels() if method.kernels is not None else ():
                compile_kernel(kernel)
            _warm_up(method)


def warm_up(*objectives: str, tell: Callable[[str, int, int], None] | None = None) -> None:
    """Load everything that `solve` may use on these objectives, by default on all, so that short deadlines suffice.

    Nobody has to: `solve` has what it lacks compiled beside its methods. A server calls this once, since PyTorch alone
    takes seconds to import, which no deadline of a tenth of a second has; an image is built with it, so that nothing is
    compiled later. What is there by then, of others too, the garbage collector leaves alone from now on (`gc.freeze`).

    Args:
        objectives: as `solve` takes them.
        tell: called before each kernel with its name, how many of the objective's are done, and how many it has.

    Raises:
        InstanceError: naming an objective that there is not.
    """
    for objective in objectives:
        if objective not in OBJECTIVES:
            raise InstanceError("objectives", unknown(objective, OBJECTIVES))
    for objective in objectives or OBJECTIVES:
        compile_all(objective, tell)
        for method in named(objective).values():
            _import(method)
            _warm_up(method)
    gc.collect()
    gc.freeze()  # a collection would look at all of it, which takes longer than a tenth of a second


def _import(method: Method) -> None:
    if method.library:
        with suppress(ImportError):
            import_module(method.library)


def _warm_up(method: Method) -> None:
    if method.warm is not None and id(method) not in _warm:
        with suppress(Exception):  # it fails again, and is guarded, when it is run
            method.warm()
        _warm.add(id(method))
