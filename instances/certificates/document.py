"""Certificates as documents: frozen dataclasses of rationals, whole numbers and further certificates, to and fro."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, get_args, get_type_hints

from ..errors import InstanceError, brief, unknown
from ..kinds import PROBLEMS
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
        """Return what it proves of a problem that it is about."""
        raise NotImplementedError

    def proved(self, problem: Any) -> Fraction | float:
        """Return what it proves of any problem; no objective is below 0."""
        if problem.objective not in self.objectives:
            words = f"{self.argument!r} is about {', '.join(self.objectives)}, not {problem.objective}"
            raise InstanceError("argument", words)
        return max(self.bound(problem), Fraction(0))


@dataclass(frozen=True, slots=True)
class Best(Certificate):
    """Each of some certificates holds, so the greatest of their bounds does.

    Attributes:
        parts: certificates of the same problem.
    """

    argument: ClassVar[str] = "best"
    objectives: ClassVar[tuple[str, ...]] = tuple(PROBLEMS)

    parts: tuple[Certificate, ...]

    def bound(self, problem: Any) -> Fraction | float:
        """Return the greatest of the bounds of the parts."""
        return max((part.proved(problem) for part in self.parts), default=Fraction(0))


ARGUMENTS = Lazy(
    __package__,
    {
        "best": ".document:Best",
        "shares": ".loads:Shares",
        "path": ".paths:Path",
        "prices": ".times:Prices",
        "starts": ".starts:Starts",
        "tree": ".linear:Tree",
        "ideals": ".ideals:Ideals",
        "recurrence": ".stages:Recurrence",
    },
)
"""The arguments by name, one a class."""


def read(data: Any, depth: int = 0) -> Certificate:
    """Return the certificate that parsed JSON holds."""
    if not isinstance(data, dict) or depth > _DEPTH:
        raise InstanceError("certificate", f"{brief(data)} is not a JSON object, or is inside more than {_DEPTH}")
    name, given = data.get("argument"), data.keys() - {"argument"}
    if not isinstance(name, str) or name not in ARGUMENTS:
        raise InstanceError("argument", unknown(name, ARGUMENTS))
    kind = ARGUMENTS[name]
    hints, wanted = get_type_hints(kind), {f.name for f in fields(kind)}
    for field in sorted(given ^ wanted):
        raise InstanceError(field, f"is no field of {name!r}" if field in given else "is missing")
    found: Certificate = kind(**{field: _value(hints[field], data[field], field, depth) for field in wanted})
    return found


def _value(hint: Any, data: Any, field: str, depth: int) -> Any:
    """Return what a field of a type holds."""
    if hint is Fraction:
        return number(data, field)
    if hint is Certificate:
        return read(data, depth + 1)
    if hint is int:
        if not isinstance(data, int) or isinstance(data, bool):
            raise InstanceError(field, f"{brief(data)} is not a whole number")
        return data
    inner = get_args(hint)
    each = inner[:1] * len(data) if Ellipsis in inner and isinstance(data, list) else inner
    if not isinstance(data, list) or len(data) != len(each):
        raise InstanceError(field, f"{brief(data)} is not a list of as many as it should be")
    return tuple(_value(x, item, f"{field}[{i}]", depth) for i, (x, item) in enumerate(zip(each, data, strict=True)))


def write(certificate: Certificate) -> dict[str, Any]:
    """Return a certificate as JSON has it."""
    return {"argument": certificate.argument} | {
        f.name: _written(getattr(certificate, f.name)) for f in fields(certificate)
    }


def _written(value: Any) -> Any:
    if isinstance(value, Certificate):
        return write(value)
    if isinstance(value, tuple):
        return [_written(x) for x in value]
    return str(value) if isinstance(value, Fraction) else value
