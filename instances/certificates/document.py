"""Certificates as documents: frozen dataclasses of rationals, whole numbers and further certificates, to and fro."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from ..errors import InstanceError, brief, unknown
from ..lazy import Lazy
from .exact import number

_DEPTH = 8
"""Certificates inside one another; a combination of combinations says no more than one of them."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """An argument that no plan of a problem is better than some value.

    `bound` checks it against the problem, in rational numbers, and returns the value: no plan that the verifier accepts
    has an objective below it, `math.inf` if there is no plan at all. What fails is named by an `InstanceError`.
    """

    argument: ClassVar[str]
    """Its name in documents."""
    objectives: ClassVar[tuple[str, ...]]
    """The problems that it is about."""

    def bound(self, problem: Any) -> Fraction | float:
        """Return what it proves of `problem`."""
        raise NotImplementedError


ARGUMENTS = Lazy(
    __package__,
    {
        "best": ".best:Best",
        "shares": ".loads:Shares",
        "path": ".paths:Path",
        "prices": ".times:Prices",
        "area": ".times:Area",
        "floors": ".floors:Floors",
        "tree": ".linear:Tree",
    },
)
"""The arguments by name, one a class."""


def read(data: Any, depth: int = 0) -> Certificate:
    """Return the certificate that parsed JSON holds."""
    if isinstance(data, Certificate):
        return data
    if not isinstance(data, dict):
        raise InstanceError("certificate", f"{brief(data)} is not a JSON object")
    if depth > _DEPTH:
        raise InstanceError("certificate", f"holds certificates more than {_DEPTH} deep")
    body = dict(data)
    name = body.pop("argument", None)
    if not isinstance(name, str) or name not in ARGUMENTS:
        raise InstanceError("argument", unknown(name, ARGUMENTS))
    kind = ARGUMENTS[name]
    readers = _readers(kind)
    for field in [*readers, *body]:
        if field not in body or field not in readers:
            raise InstanceError(field, "is missing" if field in readers else f"is no field of {name!r}")
    found: Certificate = kind(**{field: make(body[field], field, depth) for field, make in readers.items()})
    return found


def write(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as JSON has it."""
    values = {f.name: _written(getattr(certificate, f.name)) for f in fields(certificate)}
    return {"argument": certificate.argument, **values}


def _written(value: Any) -> Any:
    if isinstance(value, Certificate):
        return write(value)
    if isinstance(value, tuple):
        return [_written(x) for x in value]
    return str(value) if isinstance(value, Fraction) else value


_Reader = Callable[[Any, str, int], Any]


@cache
def _readers(kind: type[Certificate]) -> dict[str, _Reader]:
    hints = get_type_hints(kind)
    return {f.name: _reader(hints[f.name]) for f in fields(kind)}


def _reader(hint: Any) -> _Reader:
    if hint is Fraction:
        return lambda data, field, depth: number(data, field)
    if hint is int:
        return _whole
    if hint is Certificate:
        return lambda data, field, depth: read(data, depth + 1)
    assert get_origin(hint) is tuple
    inner = get_args(hint)
    each = [_reader(x) for x in inner if x is not Ellipsis]
    fixed = len(each) if Ellipsis not in inner else None

    def listed(data: Any, field: str, depth: int) -> tuple[Any, ...]:
        if not isinstance(data, list | tuple) or fixed not in (None, len(data)):
            raise InstanceError(field, f"{brief(data)} is not a list{f' of {fixed}' if fixed else ''}")
        return tuple(each[i if fixed else 0](x, f"{field}[{i}]", depth) for i, x in enumerate(data))

    return listed


def _whole(data: Any, field: str, depth: int) -> int:
    if not isinstance(data, int) or isinstance(data, bool):
        raise InstanceError(field, f"{brief(data)} is not a whole number")
    return data
