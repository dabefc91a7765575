"""Pass a named tuple of arrays between compiled functions by reference.

Numba passes a tuple by value: five to seven machine words an array, copied at each call. With fifty arrays that is most
of what there is to compile, and most of what there is to run. A reference is one pointer; ``s.load`` reads one field
through it, or refers to one that is a named tuple itself. It may not outlive the call of the function that made it:
pass it down, never return or store it.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model


class Reference(types.Type):  # type: ignore[misc]
    """The type of a reference to a named tuple of type `of`."""

    def __init__(self, of: Any) -> None:
        self.of = of
        super().__init__(name=f"Reference({of})")


@register_model(Reference)
class _Pointer(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Reference) -> None:
        super().__init__(manager, kind, manager.lookup(kind.of).get_value_type().as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = Reference

    def generic_resolve(self, reference: Reference, name: str) -> Any:
        """Return the type of a field, `None` if there is none of that name."""
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


def _by_reference(_context: Any, value: Any) -> Any:
    """Return a reference to a named tuple, which lives as long as the function that calls this."""

    def lower(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return cgutils.alloca_once_value(builder, arguments[0])

    return Reference(value)(value), lower


by_reference: Any = intrinsic(_by_reference)
