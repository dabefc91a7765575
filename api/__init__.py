"""gangplan: how distributed deep-learning jobs share a GPU cluster."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_HOMES: dict[str, tuple[str, str]] = {}
"""Of each public name its module and its name there, as the stub beside this file says; imported when asked for."""
for _line in Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8").splitlines():
    if _line.startswith("from "):
        _, _module, _, _there, _, _name = _line.split()
        _HOMES[_name] = _module, _there
__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, there = _HOMES[name]
    setattr(sys.modules[__name__], name, getattr(import_module(module, __name__), there))
    return getattr(sys.modules[__name__], name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
