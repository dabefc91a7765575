"""Whether kernels are compiled: that takes longer than many a deadline, and cannot be stopped."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

Kernels = Callable[[], tuple[Any, ...]]
"""Imports kernels, and numba with them, and returns them."""


def in_memory(kernels: Kernels | None) -> bool:
    """Return whether the kernels have run in this process."""
    return kernels is None or ("numba" in sys.modules and all(map(_signatures, kernels())))


def on_disk(kernels: Kernels) -> bool:
    """Return whether the kernels have run in this process, or can be loaded from what an earlier one has kept."""
    from .kernel import signature

    return all(_signatures(kernel) or kernel._cache.has(signature(kernel)) for kernel in kernels())


def compile_kernel(kernel: Any) -> None:
    """Compile a kernel, or load it where its code is kept."""
    from .kernel import signature

    if not _signatures(kernel):
        kernel.compile(signature(kernel))


def name_of(kernel: Any) -> str:
    """Return a kernel's module, from `gangplan` on, and its name."""
    return f"{kernel.__module__.removeprefix('gangplan.')}:{kernel.__name__}"


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


def _signatures(kernel: Any) -> bool:
    # with NUMBA_DISABLE_JIT it is an ordinary function
    return bool(getattr(kernel, "signatures", True))
