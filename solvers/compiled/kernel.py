"""Declare compiled functions: kernels, which Python calls, and the inner functions that kernels call.

A kernel says by its annotations what it takes, so that it can be compiled before anybody calls it, for these types and
no others::

    @kernel
    def anneal(problem: Data, place: Ints, seconds: Floats, rounds: int) -> float: ...

with `Data` a named tuple whose fields are annotated likewise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints, overload

from numba import njit, types
from numba.core import config

from .linking import Linked
from .store import Store

Floats = Annotated[Any, types.Array(types.float64, 1, "C")]
Floats2 = Annotated[Any, types.Array(types.float64, 2, "C")]
Floats3 = Annotated[Any, types.Array(types.float64, 3, "C")]
Ints = Annotated[Any, types.Array(types.int64, 1, "C")]
Ints2 = Annotated[Any, types.Array(types.int64, 2, "C")]
Ints3 = Annotated[Any, types.Array(types.int64, 3, "C")]
Halves2 = Annotated[Any, types.Array(types.int32, 2, "C")]
Bools = Annotated[Any, types.Array(types.boolean, 1, "C")]
Bools2 = Annotated[Any, types.Array(types.boolean, 2, "C")]
"""Arrays of so many dimensions in C order: of float64, int64, int32, bool."""


_SETTINGS: Any = config
_SCALARS = {int: types.int64, float: types.float64, bool: types.boolean}
_UNCOUNTED = {"_nrt": False}
_F = TypeVar("_F", bound=Callable[..., Any])


def kernel(function: _F) -> _F:
    """Compile a function that Python calls, when it is first called, and keep the code for later processes.

    It holds no lock of the interpreter; a division by zero gives inf or nan, as in numpy.
    """
    return _kernel(function, {})


@overload
def inner(function: _F) -> _F: ...
@overload
def inner(*, fastmath: bool) -> Callable[[_F], _F]: ...
def inner(function: Any = None, *, fastmath: bool = False) -> Any:
    """Compile a function for the kernels that call it, see `gangplan.solvers.compiled.linking`.

    Args:
        function: to be compiled.
        fastmath: whether sums may be taken in another order.
    """
    if function is None:
        return partial(inner, fastmath=fastmath)
    return function if _SETTINGS.DISABLE_JIT else Linked(function, {"fastmath": fastmath})


def lean_kernel(function: _F) -> _F:
    """Do what `kernel` does for a function that makes no arrays: nobody counts references to those it gets.

    That is a third of the time of compilation, and often half of the time that it runs. What it calls must be `lean`.
    """
    return _kernel(function, _UNCOUNTED)


def lean(function: _F) -> _F:
    """Do what `inner` does for a function that makes no arrays; it may be called by others than `lean_kernel`s too."""
    return cast(_F, function if _SETTINGS.DISABLE_JIT else Linked(function, _UNCOUNTED))


def _kernel(function: _F, options: dict[str, Any]) -> _F:
    compiler: Any = njit
    compiled: Any = compiler(nogil=True, error_model="numpy", **options)(function)
    if hasattr(compiled, "_cache"):  # with NUMBA_DISABLE_JIT it is an ordinary function
        compiled._cache = Store(compiled)
    return cast(_F, compiled)


def signature(function: Any) -> tuple[Any, ...]:
    """Return the types that a kernel takes."""
    hints = get_type_hints(function.py_func, include_extras=True)
    hints.pop("return", None)
    return tuple(_type(hint) for hint in hints.values())


def _type(hint: Any) -> Any:
    if hint in _SCALARS:
        return _SCALARS[hint]
    if get_origin(hint) is Annotated:
        return get_args(hint)[1]
    if get_origin(hint) is tuple:
        return types.Tuple([_type(part) for part in get_args(hint)])
    fields = get_type_hints(hint, include_extras=True)
    return types.NamedTuple([_type(fields[name]) for name in hint._fields], hint)
