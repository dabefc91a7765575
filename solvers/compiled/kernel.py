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
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from numba import njit, types
from numba.core import config

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

_SCALARS = {int: types.int64, float: types.float64, bool: types.boolean}
_UNCOUNTED = {"_nrt": False}
_F = TypeVar("_F", bound=Callable[..., Any])


def kernel(function: _F) -> _F:
    """Compile a function that Python calls, when it is first called, and keep the code for later processes.

    It holds no lock of the interpreter; a division by zero gives inf or nan, as in numpy.
    """
    return _kernel(function, {})


def inner(function: _F) -> _F:
    """Compile a function that kernels alone call: with no way in from Python there is half as much to compile."""
    return _inner(function, {})


def lean_kernel(function: _F) -> _F:
    """Do what `kernel` does for a function that makes no arrays: nobody counts references to those it gets.

    That is a third of the time of compilation, and often half of the time that it runs.
    """
    return _kernel(function, _UNCOUNTED)


def lean(function: _F) -> _F:
    """Do what `inner` does for a function that makes no arrays; it may be called by others than `lean_kernel`s too."""
    return _inner(function, _UNCOUNTED)


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


def _kernel(function: _F, options: dict[str, Any]) -> _F:
    try:
        return _cached(function, options)
    except RuntimeError:  # neither the source's folder nor the user's cache can be written to
        return _cached(function, options, _temporary())


def _inner(function: _F, options: dict[str, Any]) -> _F:
    compiler: Any = njit
    compiled = compiler(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy", **options)(function)
    template, plain = compiled.get_call_template, cast(Any, types.unliteral)

    def without_literals(types_: Any, named: Any) -> Any:
        # else it is compiled once for int64 and once more for each number that is written out in a call
        return template([plain(kind) for kind in types_], {n: plain(named[n]) for n in named})

    compiled.get_call_template = without_literals
    return cast(_F, compiled)


def _cached(function: _F, options: dict[str, Any], folder: Path | None = None) -> _F:
    settings: Any = config
    before = settings.CACHE_DIR
    if folder is not None:
        settings.CACHE_DIR = str(folder)
    try:
        compiler: Any = njit
        compiled: _F = compiler(cache=True, nogil=True, error_model="numpy", **options)(function)
        return compiled
    finally:
        settings.CACHE_DIR = before


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
