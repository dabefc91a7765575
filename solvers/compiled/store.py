"""Keep compiled code on disk, for later processes: numba's files, in a folder and under names of our own.

Numba by itself looks at the source file of a kernel only, so that after a change of an inner function in another file
the old code would go on being run. Here a name has a digest of all that the code was made of.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar

import numpy as np
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

_SETTINGS: Any = config
ROOT = Path(__file__).parents[2]
"""The folder of the package's sources."""


def folder() -> Path:
    """Return where compiled code is kept."""
    return Path(__file__).parent / "__pycache__"


class Store:
    """What a kernel's code is kept in; opened when it is first asked: inner functions may stand below a kernel."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    @cached_property
    def _files(self) -> Any:
        return _Files(self._kernel.py_func)


class _Here(_CacheLocator):
    def __init__(self, function: Any) -> None:
        self.digest = digest(function)
        source = Path(function.__code__.co_filename)
        checked = "-bounds" if _SETTINGS.BOUNDSCHECK else ""  # numba's key leaves it out
        shelf = hashlib.sha256(os.path.relpath(source.parent, ROOT).encode()).hexdigest()[:12]
        self._path = folder() / f"{shelf}{checked}"

    def get_cache_path(self) -> str:
        return str(self._path)

    def get_source_stamp(self) -> str:
        return self.digest

    def get_disambiguator(self) -> None:
        return None

    @classmethod
    def from_function(cls, function: Any, _file: str) -> _Here:
        return cls(function)


class _Implementation(CompileResultCacheImpl):
    _locator_classes: ClassVar[list[type[object]]] = [_Here]  # type: ignore[misc]

    def get_filename_base(self, name: str, flags: str) -> str:
        return f"{super().get_filename_base(name, flags)}-{self.locator.digest[:12]}"


class _Files(FunctionCache):
    _impl_class = _Implementation

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return kept code; what cannot be read, say after a power failure, is removed, to be made anew."""
        try:
            return super().load_overload(signature, context)
        except Exception:
            for kept in Path(self.cache_path).glob(f"{self._impl.filename_base}.*"):
                with suppress(OSError):
                    kept.unlink()
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep compiled code and remove that of former sources; without room for it, it is compiled again one day."""
        with suppress(OSError):
            super().save_overload(signature, data)
            base = self._impl.filename_base
            for old in Path(self.cache_path).glob(f"{base.rpartition('-')[0]}-*"):
                if not old.name.startswith(base):
                    old.unlink()


def digest(function: Any) -> str:
    """Return a digest of a function's code, all that it calls in turn, and the constants that are compiled into it."""
    found = hashlib.sha256(_ourselves())
    for part in _parts(function, set()):
        found.update(part.encode())
    return found.hexdigest()


@cache
def _ourselves() -> bytes:
    return Path(__file__).with_name("kernel.py").read_bytes()


def _parts(function: Any, seen: set[int]) -> Iterator[str]:
    if id(function) in seen:
        return
    seen.add(id(function))
    codes = [function.__code__]
    yield repr(sorted((name, str(hint)) for name, hint in function.__annotations__.items()))
    while codes:
        code = codes.pop()
        yield code.co_code.hex()
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                codes.append(constant)
            else:
                yield repr(constant)
        for name in code.co_names:
            yield name
            value = function.__globals__.get(name)
            called = getattr(value, "py_func", None) or getattr(value, "_defn", None)
            if called is not None:
                yield from _parts(called, seen)
            elif isinstance(value, type) and hasattr(value, "_fields"):
                yield repr(value._fields)
            elif isinstance(value, bool | int | float | str | tuple | np.generic):
                yield repr(value)
            elif isinstance(value, np.ndarray):
                yield value.tobytes().hex()
    for hint in function.__annotations__.values():
        fields = getattr(function.__globals__.get(str(hint)), "_fields", None)
        if fields is not None:
            yield repr(fields)
