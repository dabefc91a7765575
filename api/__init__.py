"""gangplan: how distributed deep-learning jobs share a GPU cluster."""

import ast
import sys
from importlib import import_module
from typing import Any

_STUB = ast.parse(globals()["__spec__"].loader.get_data(f"{__file__}i"))  # from a zip, too
_FROM = [x for x in _STUB.body if isinstance(x, ast.ImportFrom)]
_HOMES = {name.name: "." * x.level + f"{x.module}" for x in _FROM for name in x.names}
"""Public names by the module they live in, as the stub beside this file tells; imported when asked for."""
__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    setattr(sys.modules[__name__], name, getattr(import_module(_HOMES[name], __name__), name))
    return getattr(sys.modules[__name__], name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
