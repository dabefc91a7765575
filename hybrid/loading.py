"""What methods load: here, before their processes begin, so that it is there for the next solve as well."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

from gangplan.instances import InstanceError
from gangplan.solvers import Run
from gangplan.solvers.compiled.cache import compile_kernel, in_memory
from gangplan.solvers.method import OBJECTIVES, Method

from .compiling import compile_all
from .registry import named

_WARM_SECONDS = 2.0
"""What `Method.warm` takes on a slow or cold machine."""
_warm: set[int] = set()


def loaded(method: Method) -> bool:
    """Return whether `method` can begin at once."""
    return _there(method.library) and (method.warm is None or id(method) in _warm) and in_memory(method.kernels)


def load(run: Run, method: Method) -> None:
    """Load what `method` needs if there is time; why something cannot be loaded is for the method to say."""
    if loaded(method) or not (_there(method.library) or run.can_import(method.library)):
        return
    with run.phase("import"):
        with suppress(ImportError):
            import_module(method.library)
        if run.remaining() > _WARM_SECONDS and (method.kernels is None or run.compiled(method.kernels, method.library)):
            for kernel in method.kernels() if method.kernels else ():
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
            raise InstanceError("objectives", f"{objective!r} is not one of {', '.join(OBJECTIVES)}")
    for objective in objectives or OBJECTIVES:
        compile_all(objective, tell)
        for method in named(objective).values():
            if method.library:
                with suppress(ImportError):
                    import_module(method.library)
            _warm_up(method)
    gc.collect()
    gc.freeze()  # a collection would look at all of it, which takes longer than a tenth of a second


def _there(library: str) -> bool:
    return not library or library in sys.modules


def _warm_up(method: Method) -> None:
    if method.warm is not None and id(method) not in _warm:
        with suppress(Exception):  # it fails again, and is guarded, when it is run
            method.warm()
        _warm.add(id(method))
