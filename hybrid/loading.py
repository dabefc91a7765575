"""What methods load: here, before their processes begin, so that it is there for the next solve as well."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from importlib import import_module

from gangplan.instances import InstanceError
from gangplan.solvers import Run
from gangplan.solvers.compiled.cache import in_memory
from gangplan.solvers.method import OBJECTIVES, Method, suite

from .registry import named

_WARM_SECONDS = 2.0
"""What `Method.warm` takes on a slow or cold machine."""
_TINY, _TINY_SECONDS = 64, 60.0
"""Problems solved at most to have everything compiled, and the limit of each, which none comes near."""
_warm: set[int] = set()


def loaded(method: Method) -> bool:
    """Return whether `method` can begin at once."""
    return (
        _there(method.library)
        and (method.warm is None or id(method) in _warm)
        and (not method.compiled or in_memory(method.compiled))
    )


def load(run: Run, method: Method) -> None:
    """Load what `method` needs if there is time; why something cannot be loaded is for the method to say."""
    if loaded(method) or not (_there(method.library) or run.can_import(method.library)):
        return
    with run.phase("import"):
        with suppress(ImportError):
            import_module(method.library)
        if run.remaining() > _WARM_SECONDS and run.can_compile(*method.compiled):
            _warm_up(method)


def warm_up(*objectives: str) -> None:
    """Load everything that `solve` may use on these objectives, by default on all, so that short deadlines suffice.

    A server calls this once: PyTorch alone takes seconds to import, which no deadline of a tenth of a second has, and
    after an installation numba compiles for up to a minute, which `solve` does only if there is time. What is there by
    then, of others too, the garbage collector leaves alone from now on (`gc.freeze`).

    Raises:
        InstanceError: naming an objective that there is not.
    """
    for objective in objectives or OBJECTIVES:
        if objective not in OBJECTIVES:
            raise InstanceError("objectives", f"{objective!r} is not one of {', '.join(OBJECTIVES)}")
        for method in named(objective).values():
            if method.library:
                with suppress(ImportError):
                    import_module(method.library)
            _warm_up(method)
        compile_all(objective)
    gc.collect()
    gc.freeze()  # a collection would look at all of it, which takes longer than a tenth of a second


def compile_all(objective: str) -> None:
    """Have the methods of a suite solve tiny problems until all that they compile has run."""
    tools = suite(objective)
    for method in tools.methods.values():
        for seed in range(_TINY):
            if in_memory(method.compiled):
                break
            run = Run(tools.random_problem(seed, tools.variants_of(method)[0]), time_limit=_TINY_SECONDS)
            prepared = tools.prepare(run)
            if not run.stopped:
                with suppress(Exception):  # it fails again, and is guarded, when it is run
                    method.run(run, prepared)


def _there(library: str) -> bool:
    return not library or library in sys.modules


def _warm_up(method: Method) -> None:
    if method.warm is not None and id(method) not in _warm:
        with suppress(Exception):  # it fails again, and is guarded, when it is run
            method.warm()
        _warm.add(id(method))
