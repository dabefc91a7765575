"""Find a user's model by its name, ``my_module:build`` or ``path/to/file.py:build``, and its example inputs."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from ..errors import InstanceError, extra

OURS = "__gangplan_model__"
"""Marks modules that were loaded from a file here; another file of that name may take their place."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A module and what to call it with.

    Attributes:
        name: as the user gave it.
        module: the `torch.nn.Module`.
        args, kwargs: example inputs; shapes and types of the trace follow from them.
    """

    name: str
    module: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def load_model(name: str) -> LoadedModel:
    """Import a model.

    Args:
        name: ``module:attribute`` or ``file.py:attribute``. The attribute is a callable without arguments that returns
            ``(module, args)``, ``(module, args, kwargs)`` or a module; or it is a module. A module alone says by
            ``example_inputs``, a method or an attribute, what its positional inputs are (a tuple, or one tensor).
    """
    require_torch()
    with contextlib.redirect_stdout(sys.stderr):  # what the user's code prints is no part of an answer
        return _checked(name, _made(name, find_object(name)))


def find_object(name: str) -> Any:
    """Import what ``module:attribute`` or ``file.py:attribute`` names."""
    place, colon, attribute = name.rpartition(":")
    if not colon or not place or not attribute:
        raise InstanceError("model", f"{name!r} is not of the form module:attribute, e.g. my_module:build")
    return _attribute(name, _import(place), attribute)


def require_torch() -> None:
    """Raise an error that says how to install torch, unless it is there."""
    if find_spec("torch") is None:
        raise InstanceError("torch", f"is not installed; {extra('torch')}")


def _import(place: str) -> Any:
    is_file = place.endswith(".py") or os.sep in place
    here = str(Path(place).resolve().parent) if is_file else os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    if is_file and not Path(place).is_file():
        raise InstanceError("model", f"there is no file {place!r}")
    importlib.invalidate_caches()
    try:
        return _from_file(Path(place)) if is_file else importlib.import_module(place)
    except ModuleNotFoundError as error:
        if not is_file and error.name and (place == error.name or place.startswith(f"{error.name}.")):
            raise InstanceError("model", f"there is no Python module {place!r}") from None
        raise InstanceError("model", f"{place!r} cannot be imported: {error}") from None
    except (Exception, SystemExit) as error:
        raise InstanceError("model", f"{place!r} cannot be imported: {said(error)}") from None


def _from_file(path: Path) -> Any:
    found = sys.modules.get(path.stem)
    if found is not None and getattr(found, "__file__", None) == str(path.resolve()):
        return found
    if path.stem in sys.stdlib_module_names or (found is not None and not hasattr(found, OURS)):
        raise InstanceError("model", f"{str(path)!r} has the name of another Python module, {path.stem!r}: rename it")
    spec = spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise InstanceError("model", f"{str(path)!r} is no Python file")
    module = module_from_spec(spec)
    setattr(module, OURS, True)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module


def _attribute(name: str, value: Any, path: str) -> Any:
    for part in path.split("."):
        if not hasattr(value, part):
            where = getattr(value, "__name__", name)
            raise InstanceError("model", f"{where!r} has no attribute {part!r}")
        value = getattr(value, part)
    return value


def _made(name: str, value: Any) -> Any:
    from torch import nn

    if isinstance(value, nn.Module):
        return value
    if not callable(value):
        raise InstanceError("model", f"{name!r} is a {type(value).__name__}, neither callable nor a torch.nn.Module")
    try:
        return value()
    except (Exception, SystemExit) as error:
        raise InstanceError("model", f"{name!r} fails: {said(error)}") from None


def _checked(name: str, made: Any) -> LoadedModel:
    import torch

    parts = made if isinstance(made, tuple) else (made,)
    module, *rest = parts or (None,)
    if not isinstance(module, torch.nn.Module):
        raise InstanceError("model", f"{name!r} gives a {type(module).__name__}, not a torch.nn.Module")
    if len(parts) > 3:
        raise InstanceError(
            "model", f"{name!r} gives {len(parts)} values, not (module, args) or (module, args, kwargs)"
        )
    kwargs = rest[1] if len(rest) > 1 else {}
    args = rest[0] if rest else _example_inputs(name, module)
    if isinstance(args, torch.Tensor):
        args = (args,)
    if not isinstance(args, tuple | list):
        raise InstanceError("model", f"{name!r} gives a {type(args).__name__} as its inputs, not a tuple")
    if not isinstance(kwargs, Mapping):
        raise InstanceError("model", f"{name!r} gives a {type(kwargs).__name__} as its keyword inputs, not a dict")
    return LoadedModel(name, module, tuple(args), dict(kwargs))


def _example_inputs(name: str, module: Any) -> Any:
    found = getattr(module, "example_inputs", None)
    if found is None:
        raise InstanceError("model", f"{name!r} gives a module without inputs: return (module, args)")
    try:
        return found() if callable(found) else found
    except Exception as error:
        raise InstanceError("model", f"example_inputs of {name!r} fails: {said(error)}") from None


def leaves(value: Any) -> list[Any]:
    """Return what a nested value holds, fields of data classes that torch does not know included."""
    from torch.utils import _pytree

    found: list[Any] = []
    for x in _pytree.tree_leaves(value):
        inside = is_dataclass(x) and not isinstance(x, type)
        found += leaves([getattr(x, field.name) for field in fields(x)]) if inside else [x]
    return found


def said(error: BaseException) -> str:
    """Return type and first line of an error of the user's code or of torch."""
    text = str(error).strip().splitlines()
    first = " ".join(line.strip() for line in text[: 1 + text[0].rstrip().endswith(":")]) if text else ""
    return f"{type(error).__name__}{': ' + first if first else ''}"
