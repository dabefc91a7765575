"""Compile functions: kernels, which Python calls, and the inner functions that kernels call.

A kernel says by its annotations what it takes, so that it can be compiled before anybody calls it, for these types and
no others::

    @kernel
    def anneal(problem: Data, place: Ints, seconds: Floats, rounds: int) -> float: ...

with `Data` a named tuple whose fields are annotated likewise. Inner functions are translated once, and optimised only
as part of the kernels that they are linked to: numba optimises every function with all that it calls, and makes machine
code of it, so that a function five calls down is optimised six times; and it translates ``f(x, 0)`` anew beside
``f(x, n)``. Here it does neither.

Named tuples of arrays are passed between compiled functions `by_reference`. Numba passes a tuple by value: five to
seven machine words an array, copied at each call. With fifty arrays that is most of what there is to compile, and most
of what there is to run. A reference is one pointer; ``s.load`` reads one field through it, or refers to one that is a
named tuple itself. It may not outlive the call of the function that made it: pass it down, never return or store it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints, overload

from numba import njit, types
from numba.core import cgutils, config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.imputils import impl_ret_borrowed
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_builtin, lower_getattr_generic, models, register_model, type_callable

from .store import Store

Floats = Annotated[Any, types.Array(types.float64, 1, "C")]
Floats2 = Annotated[Any, types.Array(types.float64, 2, "C")]
Floats3 = Annotated[Any, types.Array(types.float64, 3, "C")]
Ints = Annotated[Any, types.Array(types.int64, 1, "C")]
Ints2 = Annotated[Any, types.Array(types.int64, 2, "C")]
Ints3 = Annotated[Any, types.Array(types.int64, 3, "C")]
Halves2 = Annotated[Any, types.Array(types.int32, 2, "C")]
Singles = Annotated[Any, types.Array(types.float32, 1, "C")]
Singles2 = Annotated[Any, types.Array(types.float32, 2, "C")]
Singles3 = Annotated[Any, types.Array(types.float32, 3, "C")]
Singles4 = Annotated[Any, types.Array(types.float32, 4, "C")]
Bools = Annotated[Any, types.Array(types.boolean, 1, "C")]
Bools2 = Annotated[Any, types.Array(types.boolean, 2, "C")]
"""Arrays of so many dimensions in C order: of float64, int64, int32, float32, bool."""


_SETTINGS: Any = config
_SCALARS = {int: types.int64, float: types.float64, bool: types.boolean}
_UNCOUNTED = {"_nrt": False}
_F = TypeVar("_F", bound=Callable[..., Any])


def kernel(function: _F) -> _F:
    """Compile a function that Python calls, when it is first called, and keep the code for later processes.

    It holds no lock of the interpreter; a division by zero gives inf or nan, as in numpy.
    """
    return _kernel(function, {})


@overload
def inner(function: _F) -> _F: ...
@overload
def inner(*, fastmath: bool) -> Callable[[_F], _F]: ...
def inner(function: Any = None, *, fastmath: bool = False) -> Any:
    """Compile a function for the kernels that call it, which are translated once; `fastmath`: sums in any order."""
    if function is None:
        return partial(inner, fastmath=fastmath)
    return function if _SETTINGS.DISABLE_JIT else Linked(function, {"fastmath": fastmath})


def lean_kernel(function: _F) -> _F:
    """Do what `kernel` does for a function that makes no arrays: nobody counts references to those it gets.

    That is a third of the time of compilation, and often half of the time that it runs. What it calls must be `lean`.
    """
    return _kernel(function, _UNCOUNTED)


def lean(function: _F) -> _F:
    """Do what `inner` does for a function that makes no arrays; it may be called by others than `lean_kernel`s too."""
    return cast(_F, function if _SETTINGS.DISABLE_JIT else Linked(function, _UNCOUNTED))


def _kernel(function: _F, options: dict[str, Any]) -> _F:
    compiler: Any = njit
    compiled: Any = compiler(nogil=True, error_model="numpy", **options)(function)
    if hasattr(compiled, "_cache"):  # with NUMBA_DISABLE_JIT it is an ordinary function
        compiled._cache = Store(compiled)
    return cast(_F, compiled)


def signature(function: Any) -> tuple[Any, ...]:
    """Return the types that a kernel takes."""
    hints = get_type_hints(function.py_func, include_extras=True)
    hints.pop("return", None)
    return tuple(_type(hint) for hint in hints.values())


def _type(hint: Any) -> Any:
    if hint in _SCALARS:
        return _SCALARS[hint]
    if get_origin(hint) is Annotated:
        return get_args(hint)[1]
    if get_origin(hint) is tuple:
        return types.Tuple([_type(part) for part in get_args(hint)])
    fields = get_type_hints(hint, include_extras=True)
    return types.NamedTuple([_type(fields[name]) for name in hint._fields], hint)


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
        return _Codegen(self._codegen)

    def _optimize_final_module(self) -> None:
        """Leave that to the kernel."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
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


class Reference(types.Type):
    """The type of a reference to a named tuple of type `of`."""

    def __init__(self, of: Any) -> None:
        self.of = of
        super().__init__(name=f"Reference({of})")


@register_model(Reference)
class _Pointer(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Reference) -> None:
        super().__init__(manager, kind, manager.lookup(kind.of).get_value_type().as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):
    key = Reference

    def generic_resolve(self, reference: Reference, name: str) -> Any:  # type: ignore[override]
        fields = reference.of.fields
        if name not in fields:
            return None
        kind = reference.of.types[fields.index(name)]
        return Reference(kind) if isinstance(kind, types.NamedTuple) else kind


@lower_getattr_generic(Reference)
def _load(context: Any, builder: Any, reference: Reference, pointer: Any, name: str) -> Any:
    i = reference.of.fields.index(name)
    field, kind = cgutils.gep_inbounds(builder, pointer, 0, i), reference.of.types[i]
    if isinstance(kind, types.NamedTuple):
        return field
    return impl_ret_borrowed(context, builder, kind, builder.load(field))


def by_reference(value: Any) -> Any:
    """Return a reference to a named tuple, which lives as long as the function that calls this; in Python itself."""
    return value


@type_callable(by_reference)
def _referred(_context: Any) -> Any:
    return lambda value: Reference(value)  # noqa: PLW0108, numba binds the name


@lower_builtin(by_reference, types.BaseNamedTuple)
def _refer(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return cgutils.alloca_once_value(builder, arguments[0])
