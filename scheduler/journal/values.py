"""Arguments of a scheduler's methods as JSON, and back: a dataclass is an object with its ``type``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import required
from gangplan.instances.errors import brief, did_you_mean

_PREFIX = "gangplan."
_PLAIN = (str, int, float, bool, tuple)
HOMES = {
    "Demand": "instances.placement.job",
    "Evolved": "solvers.placement.online.evolved",
    "Fleet": "instances.placement.fleet",
    "GangJob": "instances.placement.job",
    "Level": "instances.cluster",
    "Limit": "scheduler.settings",
    "Move": "scheduler.moving.migration",
    "Moves": "scheduler.moving.migration",
    "Patient": "solvers.placement.online.patient",
    "Proximity": "instances.placement.proximity",
    "Quota": "scheduler.settings",
    "Sharing": "scheduler.settings",
    "SpeedModel": "instances.placement.job",
    "TreeTopology": "instances.cluster",
}
"""The module of each type that a log may name; of no other is anything imported, whoever wrote the log."""
_BEFORE = {"hybrid.online.moves": ("Move", "Moves"), "hybrid.online.sharing": ("Limit", "Quota", "Sharing")}
TYPES = HOMES | {f"{home}:{name}": HOMES[name] for home, names in _BEFORE.items() for name in names}
"""The same, with the names that logs had for some until version 0.2."""


@cache
def _parts(cls: type) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Return the tag of a dataclass, and its fields with their usual values."""
    home = cls.__module__.removeprefix(_PREFIX)
    tag = cls.__name__ if HOMES.get(cls.__name__) == home else ""
    usual = ((f.name, f.default if f.default_factory is MISSING else f.default_factory()) for f in fields(cls))
    return tag, tuple(usual)


def encode(value: Any) -> Any:
    """Return what JSON has for a value that it does not know: fields as usual are left out; for ``json.dumps``."""
    cls = type(value)
    if is_dataclass(cls) and (found := _parts(cls))[0] in TYPES:
        tag, parts = found
        kept = {"type": tag}
        for name, usual in parts:
            held = getattr(value, name)
            plain = type(held) is type(usual) and type(held) in _PLAIN  # 1 is not 1.0 in a snapshot
            if held is not usual and not (plain and held == usual):
                kept[name] = pairs(held)
        return kept
    if isinstance(value, np.ndarray):
        if value.dtype.kind != "f" or np.isfinite(value).all():
            return value.tolist()
        finite = np.where(np.isfinite(value), value, None)  # type: ignore[call-overload]
        return {"type": "infinite", "values": finite.tolist()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    return {"type": "object", "name": f"{cls.__module__}.{cls.__qualname__}"}


def pairs(value: Any) -> Any:
    """Return a mapping by numbers, whose keys JSON would turn into text, as a list of pairs; all else as it is."""
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
        return {"type": "pairs", "items": [[key, item] for key, item in value.items()]}
    return value


def decode(data: Any) -> Any:
    """Return the value that `encode` wrote, of types of this package only."""
    if isinstance(data, list):
        return [decode(item) for item in data]
    if not isinstance(data, dict):
        return data
    if "type" not in data:
        return {key: decode(item) for key, item in data.items()}
    tag, rest = data["type"], {key: decode(item) for key, item in data.items() if key != "type"}
    try:
        if tag == "pairs":
            return dict(rest["items"])
        if tag == "infinite":
            values = np.array(rest["values"], dtype=float)  # None becomes NaN
            return np.where(np.isnan(values), np.inf, values)
        made = _class(tag)
        known, needed = _needed(made)
        if strange := sorted(rest.keys() - known):
            raise InstanceError(strange[0], f"is no field of {made.__name__}{did_you_mean(strange[0], known)}")
        if missing := sorted(needed - rest.keys()):
            raise InstanceError(missing[0], "is missing")
        return made(**rest)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InstanceError):
            raise error.within(str(tag)) from None
        raise InstanceError(str(tag), f"cannot be made of {brief(rest)}: {error}") from None


@cache
def _needed(made: type) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the fields of a dataclass, and of those without a usual value."""
    return frozenset(x.name for x in fields(made) if x.init), frozenset(required(made))


def _class(tag: Any) -> Any:
    """Return the dataclass of this package that a tag names."""
    if not isinstance(tag, str) or tag not in TYPES:
        raise InstanceError("type", f"{brief(tag)} is no type that a log has")
    return getattr(import_module(_PREFIX + TYPES[tag]), tag.rpartition(":")[2])
