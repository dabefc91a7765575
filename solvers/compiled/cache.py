"""Whether kernels are compiled: that takes longer than many a deadline, and cannot be stopped.

A kernel is named ``module:function``, the module from `gangplan` on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any


def in_memory(names: Iterable[str]) -> bool:
    """Return whether the kernels have run in this process."""
    return all(f"gangplan.{name.partition(':')[0]}" in sys.modules and _signatures(_kernel(name)) for name in names)


def on_disk(names: Iterable[str]) -> bool:
    """Return whether the kernels have run in this process, or can be loaded from what an earlier one has kept."""
    from .kernel import signature

    return all(_signatures(kernel) or kernel._cache.has(signature(kernel)) for kernel in map(_kernel, names))


def compile_kernel(name: str) -> None:
    """Compile a kernel, or load it where its code is kept."""
    from .kernel import signature

    kernel = _kernel(name)
    if not _signatures(kernel):
        kernel.compile(signature(kernel))


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


def _kernel(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(import_module(f"gangplan.{module}"), function)


def _signatures(kernel: Any) -> bool:
    # with NUMBA_DISABLE_JIT it is an ordinary function
    return bool(getattr(kernel, "signatures", True))
