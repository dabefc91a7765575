"""Compiled modules run from their sources instead."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import patch


def uncompiled(*modules: ModuleType) -> ModuleType:
    """Return the last of some extension modules, each run from its source as plain Python, with those before it."""
    made = ModuleType("none")
    with patch.dict(sys.modules):
        for module in modules:
            source = Path(str(module.__file__).partition(".")[0]).with_suffix(".py")
            spec = importlib.util.spec_from_file_location(module.__name__, source)
            assert spec is not None and spec.loader is not None
            made = sys.modules[module.__name__] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(made)
    return made
