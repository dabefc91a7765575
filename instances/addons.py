"""What plugs into the core, which runs without it: `addons.toml` says whose paths are whose, and what goes where."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any


@cache
def addons() -> dict[str, dict[str, Any]]:
    """Return of each add-on ``about``, its ``paths`` in the repository, and what it plugs in, by name."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def plugged(hook: str) -> dict[str, Any]:
    """Return what add-ons that are installed plug in there, by the add-on's name."""
    return {name: addon[hook] for name, addon in addons().items() if hook in addon and _installed(addon)}


def offered(hook: str) -> Any:
    """Return the object that an add-on plugs in there; `None` if none that is installed does."""
    return next((resolve_name(home) for home in plugged(hook).values()), None)


def _installed(addon: dict[str, Any]) -> bool:
    path = Path(addon["paths"][0]).with_suffix("")
    return find_spec(".".join(("gangplan", *path.parts)).replace("gangplan.api", "gangplan")) is not None
