"""What plugs into the core, which runs without it: `addons.toml` says whose paths are whose, and what goes where."""

from __future__ import annotations

import sys
import tomllib
from functools import cache
from pkgutil import get_data, resolve_name
from typing import Any


@cache
def addons() -> dict[str, dict[str, Any]]:
    """Return of each add-on ``about``, its ``paths`` in the repository, and what it plugs in, by name."""
    return tomllib.loads((get_data(__name__, "addons.toml") or b"").decode())


def plugged(hook: str) -> dict[str, Any]:
    """Return what add-ons that are installed plug in there, by the add-on's name."""
    return {name: addon[hook] for name, addon in addons().items() if hook in addon and _installed(name)}


def offered(hook: str) -> Any:
    """Return the object that an add-on plugs in there; `None` if none that is installed does."""
    return next((resolve_name(home) for home in plugged(hook).values()), None)


def _installed(name: str) -> bool:
    """Return whether the first path of an add-on is there, and those of others that it needs.

    No package is imported for that, as `importlib.util.find_spec` does.
    """
    addon = addons()[name]
    name, where = "gangplan", sys.modules["gangplan"].__path__
    parts = addon["paths"][0].removesuffix(".py").split("/")
    for part in parts[parts[0] == "api" :]:
        name = f"{name}.{part}"
        spec = next(filter(None, (finder.find_spec(name, where) for finder in sys.meta_path)), None)
        if spec is None:
            return False
        where = spec.submodule_search_locations or []
    return all(map(_installed, addon.get("needs", ())))
