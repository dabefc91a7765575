"""Functions that kernels alone call: translated once, optimised only as part of the kernels that they are linked to.

Numba optimises every function with all that it calls, and makes machine code of it: a function five calls down is
optimised six times. And it translates ``f(x, 0)`` anew beside ``f(x, n)``. Here it does neither.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher


class _Codegen:
    """The code generator of a library that has no machine code, and so nowhere to keep an environment."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def set_env(self, _name: str, _environment: Any) -> None:
        """Do nothing."""


class _Linked(JITCodeLibrary):
    @property
    def codegen(self) -> Any:
        """The code generator."""
        return _Codegen(self._codegen)

    def _optimize_final_module(self) -> None:
        """Leave that to the kernel."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """Return that there is no such function."""
        self._ensure_finalized()
        return 0


class _Pipeline(Compiler):
    def compile_extra(self, func: Any) -> Any:
        """Translate a function, into a library that is only linked."""
        self.state.library = _Linked(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class Linked(CPUDispatcher):
    """A function that is translated once for types, whatever the values of its arguments."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        no_way_in = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        every = {"nopython": True, "error_model": "numpy", **no_way_in, **options}
        super().__init__(function, targetoptions=every, pipeline_class=_Pipeline)

    def __call__(self, *args: Any) -> Any:
        """Run as Python, where Python calls."""
        return self.py_func(*args)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how it is called with arguments of these types."""
        types_of = {name: types.unliteral(kind) for name, kind in kws.items()}
        return super().get_call_template(tuple(types.unliteral(kind) for kind in args), types_of)
