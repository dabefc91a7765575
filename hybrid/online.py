"""The place of `gangplan.scheduler` up to release 0.2.1: imports from here work for one more."""

from __future__ import annotations

from typing import Any
from warnings import warn

import gangplan.scheduler as present


def __getattr__(name: str) -> Any:
    """Return what has this name in `gangplan.scheduler`."""
    found = getattr(present, {"Candidate": "Considered"}.get(name, name))
    if not name.startswith("__"):
        warn(f"gangplan.hybrid.online is gangplan.scheduler now: import {name} from there", FutureWarning, stacklevel=2)
    return found
