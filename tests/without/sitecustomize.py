"""Hide modules from a Python that starts with this folder in PYTHONPATH: those that GANGPLAN_WITHOUT names.

Processes that it starts hide them too. A module's submodules go with it; to everybody who asks, they are not installed.
"""

from __future__ import annotations

import os
import sys
from typing import Any

GONE = tuple(os.environ.get("GANGPLAN_WITHOUT", "").split())


class Hiding:
    """A finder of modules that finds all but what is hidden."""

    def __init__(self, finder: Any) -> None:
        self.finder = finder

    def __getattr__(self, name: str) -> Any:
        """Do all else as the finder does."""
        return getattr(self.finder, name)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find a module."""
        gone = any(name == x or name.startswith(f"{x}.") for x in GONE)
        return None if gone else self.finder.find_spec(name, path, target)


sys.meta_path[:] = map(Hiding, sys.meta_path)
