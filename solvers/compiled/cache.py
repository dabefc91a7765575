"""Whether what numba compiles is compiled: that takes longer than many a deadline, and cannot be stopped.

A function is named ``module:function``, the module from `gangplan` on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any


def in_memory(names: Iterable[str]) -> bool:
    """Return whether the functions have run in this process."""
    return all(f"gangplan.{name.partition(':')[0]}" in sys.modules and _signatures(_function(name)) for name in names)


def on_disk(names: Iterable[str]) -> bool:
    """Return whether the functions have run in this process or an earlier one, of which numba keeps the code."""
    return all(_signatures(_function(name)) or _kept(name) for name in names)


def _function(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(import_module(f"gangplan.{module}"), function)


def _signatures(function: Any) -> bool:
    # with NUMBA_DISABLE_JIT it is an ordinary function
    return bool(getattr(function, "signatures", True))


def _kept(name: str) -> bool:
    """Return whether there is an index of compiled code that is no older than the source."""
    function = _function(name)
    source = Path(function.py_func.__code__.co_filename)
    kept = Path(function.stats.cache_path).glob(f"{source.stem}.{function.__name__}-*.nbi")
    return any(index.stat().st_mtime >= source.stat().st_mtime for index in kept)


def interpret() -> None:
    """Run as Python, slowly, all that would be compiled in this process from now on."""
    from numba.core import config
    from numba.core.dispatcher import Dispatcher

    config.DISABLE_JIT = True  # type: ignore[attr-defined]
    for name, module in list(sys.modules.items()):
        if name.startswith("gangplan."):
            for at, function in list(vars(module).items()):
                if isinstance(function, Dispatcher):
                    setattr(module, at, function.py_func)
