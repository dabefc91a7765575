"""Names that are imported, and values that are made, when they are first asked for: a program loads what it uses."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Lazy(Mapping[str, Any]):
    """Values by name; looking one up imports the module it lives in, counting and listing them imports nothing."""

    def __init__(self, package: str, homes: Mapping[str, str]) -> None:
        self._package = package
        self._homes = homes

    def __getitem__(self, name: str) -> Any:
        return getattr(import_module(self._homes[name].partition(":")[0], self._package), self.attribute(name))

    def attribute(self, name: str) -> str:
        """Return what the value is called where it lives."""
        return self._homes[name].partition(":")[2] or name

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


def exported(package: str, homes: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package that has names of its modules, ``{".a": "B C"}``, when asked for them.

    By default those of the stub beside it, which type checkers read; they see others below ``TYPE_CHECKING``, and
    `tests/test_layout.py` compares.
    """
    known = stubbed(sys.modules[package]) if homes is None else {}
    names = Lazy(package, known | {name: module for module, some in (homes or {}).items() for name in some.split()})

    def attribute(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = names[name]
        setattr(sys.modules[package], name, value)  # the next time it is there
        return value

    return attribute


def stubbed(package: Any) -> dict[str, str]:
    """Return the names that the stub of a package imports, and the module of each."""
    tree = ast.parse(package.__spec__.loader.get_data(f"{package.__file__}i"))  # from a zip, too
    found = (x for x in tree.body if isinstance(x, ast.ImportFrom))
    return {y.name: "." * x.level + (x.module or "") for x in found for y in x.names}


class OfLast(Generic[T]):
    """What `make` returns of a thing, made anew when it is asked of another one."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self._of = make, None
        self._made: T

    def __call__(self, of: Any) -> T:
        """Return it of this one."""
        if self._of is not of:
            self._of, self._made = of, self._make(of)
        return self._made


class Later:
    """A function, ``module:attribute``, whose module is imported when it is called or looked up."""

    def __init__(self, reference: str) -> None:
        self._reference = reference

    def find(self) -> Any:
        """Return the function itself."""
        return resolve_name(self._reference)

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call it."""
        return self.find()(*given, **named)


class _OnDemand:
    """A module of which everything is a function, to be imported when one is called."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Later:
        return Later(f"{self._module}:{name}")


def on_demand(package: str, names: str) -> dict[str, Any]:
    """Return modules of a package by name that wait to be imported until one of their functions is called.

    They go into ``globals()``; a type checker is shown ordinary imports in their place.
    """
    return {name: _OnDemand(f"{package}.{name}") for name in names.split()}
