"""Say what a submission may import, and hold it to that in its process.

The standard library, and of gangplan problems, plans and verifier, are always allowed. Gangplan's methods and the
answers of GapBench are closed firmly as far as Python goes: no file of theirs is opened. See docs/teachers.md for the
ways around it.
"""

from __future__ import annotations

import os
import sys
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

LIBRARIES = ("numpy", "networkx", "ortools", "pulp", "highspy")
"""What a submission may import unless its suite says otherwise."""
OURS = "gangplan"
_OURS = ("hybrid", "learned", "plot", "scheduler", "simulator", "solvers", "systems", "teach")
"""Packages of gangplan that are for suites alone that allow all of it."""


def words(allowed: tuple[str, ...]) -> str:
    """Return for people what a submission may import."""
    own = "" if OURS in allowed else "gangplan's problems, plans and verifier, "
    return f"the standard library, {own}{', '.join(allowed) or 'nothing else'}"


def closed(allowed: tuple[str, ...]) -> list[str]:
    """Return the folders that are closed to a submission: GapBench's answers, and gangplan's methods if not allowed."""
    packages = ["hybrid.bench"] if OURS in allowed else _OURS
    specs = [find_spec(f"{OURS}.{name}") for name in packages]
    return [os.path.realpath(folder) for spec in specs if spec for folder in spec.submodule_search_locations or ()]


def restrict(allowed: tuple[str, ...], home: Path, folders: list[str]) -> None:
    """Refuse in this process, from now on, what the program in `home` may not import, and all in closed folders."""
    if OURS not in allowed:
        packages = tuple(f"{OURS}.{name}" for name in _OURS)
        for name in [x for x in sys.modules if x.startswith(packages)]:
            del sys.modules[name]
        for name in set(_OURS) & vars(sys.modules[OURS]).keys():
            delattr(sys.modules[OURS], name)
    sys.meta_path.insert(0, _Finder(allowed, str(home)))
    shut = tuple(f"{x}{os.sep}" for x in folders)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if path.startswith(shut):
                raise PermissionError(f"{Path(path).name} is of gangplan's methods, its answers, or of others")

    sys.addaudithook(hook)


class _Finder(MetaPathFinder):
    """Find nothing, but raise for what may not be imported; what libraries import themselves is their business."""

    def __init__(self, allowed: tuple[str, ...], home: str) -> None:
        self._allowed, self._home = allowed, home

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise ImportError if a module is not allowed."""
        top, _, rest = name.partition(".")
        if top == OURS:
            refused = OURS not in self._allowed and rest.partition(".")[0] in _OURS
        else:
            local = any(Path(self._home, f"{top}{end}").exists() for end in (".py", "/__init__.py"))
            free = local or top in sys.stdlib_module_names or top in self._allowed
            refused = not free and self._is_theirs(sys._getframe(1))
        if refused:
            raise ImportError(f"{name} is not allowed: a submission may import {words(self._allowed)}")

    def _is_theirs(self, frame: FrameType | None) -> bool:
        """Return whether the program itself imports: the nearest code that is none of the machinery of imports."""
        while frame and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename.startswith((self._home, "<string>"))
