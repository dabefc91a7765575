"""Declare compiled functions: kernels, which Python calls, and the inner functions that kernels call.

A kernel says by its annotations what it takes, so that it can be compiled before anybody calls it, for these types and
no others::

    @kernel
    def anneal(problem: Data, place: Ints, seconds: Floats, rounds: int) -> float: ...

with `Data` a named tuple whose fields are annotated likewise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from numba import njit, types

from .store import Store

Floats, Floats2, Floats3 = (Annotated[Any, types.Array(types.float64, n, "C")] for n in (1, 2, 3))
Ints, Ints2, Ints3 = (Annotated[Any, types.Array(types.int64, n, "C")] for n in (1, 2, 3))
Bools, Bools2 = (Annotated[Any, types.Array(types.boolean, n, "C")] for n in (1, 2))
"""Arrays of so many dimensions in C order: of float64, int64, bool."""

_SCALARS = {int: types.int64, float: types.float64, bool: types.boolean}
_F = TypeVar("_F", bound=Callable[..., Any])


def kernel(function: _F) -> _F:
    """Compile a function that Python calls, when it is first called, and keep the code for later processes.

    It holds no lock of the interpreter; a division by zero gives inf or nan, as in numpy.
    """
    compiler: Any = njit
    compiled: Any = compiler(nogil=True, error_model="numpy")(function)
    if hasattr(compiled, "_cache"):  # with NUMBA_DISABLE_JIT it is an ordinary function
        compiled._cache = Store(compiled)
    return cast(_F, compiled)


def inner(function: _F) -> _F:
    """Compile a function that kernels alone call: with no way in from Python there is half as much to compile.

    To call it from Python crashes.
    """
    compiler: Any = njit
    compiled: _F = compiler(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")(function)
    return compiled


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
