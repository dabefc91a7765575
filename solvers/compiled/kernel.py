"""Declare compiled functions: kernels, which Python calls, and the inner functions that kernels call.

A kernel says by its annotations what it takes, so that it can be compiled before anybody calls it, for these types and
no others::

    @kernel
    def anneal(problem: Data, place: Ints, seconds: Floats, rounds: int) -> float: ...

with `Data` a named tuple whose fields are annotated likewise. Numba keeps what it has compiled beside the source; where
that cannot be written to in the user's cache folder, else in a temporary one.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints, overload

from numba import njit, types
from numba.core import config

from .linking import Linked

Floats = Annotated[Any, types.Array(types.float64, 1, "C")]
Floats2 = Annotated[Any, types.Array(types.float64, 2, "C")]
Floats3 = Annotated[Any, types.Array(types.float64, 3, "C")]
Ints = Annotated[Any, types.Array(types.int64, 1, "C")]
Ints2 = Annotated[Any, types.Array(types.int64, 2, "C")]
Ints3 = Annotated[Any, types.Array(types.int64, 3, "C")]
Bools = Annotated[Any, types.Array(types.boolean, 1, "C")]
Bools2 = Annotated[Any, types.Array(types.boolean, 2, "C")]
"""Arrays of so many dimensions in C order: of float64, int64, bool."""

_settings: Any = config
_SCALARS = {int: types.int64, float: types.float64, bool: types.boolean}
_F = TypeVar("_F", bound=Callable[..., Any])


def kernel(function: _F) -> _F:
    """Compile a function that Python calls, when it is first called, and keep the code for later processes.

    It holds no lock of the interpreter; a division by zero gives inf or nan, as in numpy.
    """
    try:
        return _cached(function)
    except RuntimeError:  # neither the source's folder nor the user's cache can be written to
        return _cached(function, _temporary())


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
    return function if _settings.DISABLE_JIT else Linked(function, {"fastmath": fastmath})


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


def _cached(function: _F, folder: Path | None = None) -> _F:
    before = _settings.CACHE_DIR
    if folder is not None:
        _settings.CACHE_DIR = str(folder)
    try:
        compiler: Any = njit
        compiled: _F = compiler(cache=True, nogil=True, error_model="numpy")(function)
        return compiled
    finally:
        _settings.CACHE_DIR = before


def _temporary() -> Path:
    """Return a folder that is ours alone: code that others could write would be run."""
    folder = Path(tempfile.gettempdir()) / f"gangplan-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and (
            os.name == "nt" or (found.st_uid, found.st_mode & 0o077) == (os.getuid(), 0)
        ):
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="gangplan-"))
