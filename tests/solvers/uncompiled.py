"""Compiled modules run from their sources instead."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np


def uncompiled(*modules: ModuleType) -> ModuleType:
    """Return the last of some extension modules, each run from its source as plain Python, with those before it."""
    made = ModuleType("none")
    with patch.dict(sys.modules):
        for module in modules:
            path = Path(str(module.__file__))
            source = path.with_name(path.name.partition(".")[0] + ".py")
            spec = importlib.util.spec_from_file_location(module.__name__, source)
            assert spec is not None and spec.loader is not None
            made = sys.modules[module.__name__] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(made)
    return made


class Strict(np.ndarray[Any, Any]):
    """An array in which no place counts from the end."""

    def _see(self, places: Any) -> None:
        for place in places if isinstance(places, tuple) else (places,):
            if isinstance(place, int | np.integer) and place < 0:
                raise IndexError(f"{place} is before the array")

    def __getitem__(self, places: Any) -> Any:
        """Return what is there."""
        self._see(places)
        return super().__getitem__(places)

    def __setitem__(self, places: Any, value: Any) -> None:
        """Put a value there."""
        self._see(places)
        super().__setitem__(places, value)


def _loose(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(map(_loose, value))
    return value.view(np.ndarray) if isinstance(value, Strict) else value


class _Numpy:
    """numpy, of which every function returns strict arrays."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found

        def made(*given: Any, **more: Any) -> Any:
            value = found(*map(_loose, given), **more)
            return value.view(Strict) if isinstance(value, np.ndarray) else value

        return made


@contextmanager
def from_source(*modules: ModuleType) -> Iterator[None]:
    """Have all that use some extension modules use their sources instead, each after those it uses, on strict arrays.

    No place before an array or beyond it is read or written there.
    """
    with ExitStack() as stack:
        with patch.dict(sys.modules):
            for i, module in enumerate(modules):
                plain = sys.modules[module.__name__] = uncompiled(*modules[i : i + 1])
                stack.enter_context(patch.object(plain, "np", _Numpy()))
                names = {name: value for name, value in vars(module).items() if callable(value) and name in vars(plain)}
                for user in [u for name, u in sys.modules.items() if name.startswith("gangplan") and u is not plain]:
                    for name in [name for name, value in names.items() if vars(user).get(name) is value]:
                        if user is not module:
                            stack.enter_context(patch.object(user, name, vars(plain)[name]))
        yield
