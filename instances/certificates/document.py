"""Certificates as documents: frozen dataclasses of rationals, whole numbers and further certificates, to and fro."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from math import inf, lcm
from sys import float_info
from typing import Any, ClassVar, NamedTuple

from ..arrays import require_choice
from ..errors import InstanceError, brief
from ..kinds import PROBLEMS
from ..lazy import Lazy
from ..typed import Typed
from .exact import number, whole

_DEPTH = 1
"""Certificates inside one another; a combination of combinations says no more than one of them."""
_PARTS = 16
"""Certificates that one combines: each may ask for a search of minutes."""
_BITS = 4096
"""Of the least common multiple of all denominators: sums of others have as many digits as all of them together."""
_TINY, _HUGE = Fraction(1, 2**1000), Fraction(float_info.max)


@dataclass(frozen=True, slots=True)
class Certificate:
    """An argument that no plan of a problem is better than some value.

    `bound` checks it against the problem, in rational numbers, and returns the value: no plan that the verifier accepts
    has an objective below it, `math.inf` if there is no plan at all. What fails is named by an `InstanceError`.
    """

    objectives: ClassVar[tuple[str, ...]]
    """The problems that it is about."""

    @property
    def argument(self) -> str:
        """Its name in documents."""
        return next(name for name in ARGUMENTS if ARGUMENTS.attribute(name) == type(self).__name__)

    def bound(self, problem: Any) -> Fraction | float:
        """Return what it proves of a problem that it is about."""
        raise NotImplementedError

    def proved(self, problem: Any) -> Fraction | float:
        """Return what it proves of any problem; no objective is below 0."""
        if problem.objective not in self.objectives:
            words = f"{self.argument!r} is about {', '.join(self.objectives)}, not {problem.objective}"
            raise InstanceError("argument", words)
        value = self.bound(problem)
        # floats end there: verified objectives are 0 below, sums of denormal numbers are off, and none is finite above
        return value if value == inf else min(value, _HUGE) if value > _TINY else Fraction(0)


@dataclass(frozen=True, slots=True)
class BestCertificate(Certificate):
    """Each of some certificates holds, so the greatest of their bounds does.

    Attributes:
        parts: certificates of the same problem.
    """

    objectives: ClassVar[tuple[str, ...]] = tuple(PROBLEMS)

    parts: tuple[Certificate, ...]

    def bound(self, problem: Any) -> Fraction | float:
        """Return the greatest of the bounds of the parts."""
        if len(self.parts) > _PARTS:
            raise InstanceError("parts", f"has {len(self.parts)} certificates, more than {_PARTS}")
        return max((part.proved(problem) for part in self.parts), default=Fraction(0))


ARGUMENTS = Lazy(
    __package__,
    {
        "best": ".document:BestCertificate",
        "shares": ".loads:SharesCertificate",
        "path": ".paths:PathCertificate",
        "rooms": ".rooms:RoomsCertificate",
        "starts": ".starts:StartsCertificate",
        "together": ".steps:TogetherCertificate",
        "tree": ".linear:TreeCertificate",
        "calls": ".calls:CallsCertificate",
        "covers": ".covers:CoversCertificate",
        "around": ".around:AroundCertificate",
        "grouped": ".grouped:GroupedCertificate",
        "ideals": ".ideals:IdealsCertificate",
        "under_way": ".under_way:UnderWayCertificate",
        "recurrence": ".stages:RecurrenceCertificate",
        "families": ".layouts:FamiliesCertificate",
        "windows": ".windows:WindowsCertificate",
        "orders": ".orders:OrdersCertificate",
    },
)
"""The arguments by name, one a class."""


def read(data: Any, depth: int = 0) -> Certificate:
    """Return the certificate that parsed JSON holds."""
    if not isinstance(data, dict) or depth > _DEPTH:
        raise InstanceError("certificate", f"{brief(data)} is not a JSON object, or is inside more than {_DEPTH}")
    name: Any = data.get("argument")
    require_choice(name, "argument", ARGUMENTS)
    parts = {field: x for field, x in data.items() if field != "argument"}
    found: Certificate = _INSIDE[depth].read(ARGUMENTS[name], parts)
    below = 1
    for x in _denominators(found) if not depth else ():
        below = lcm(below, x)
        if below.bit_length() > _BITS:
            raise InstanceError("certificate", f"its denominators have no common multiple of {_BITS} bits")
    return found


def _denominators(value: Any) -> Iterator[int]:
    if isinstance(value, Fraction):
        yield value.denominator
    elif isinstance(value, tuple):
        for x in value:
            yield from _denominators(x)
    elif isinstance(value, Certificate):
        for f in fields(value):
            yield from _denominators(getattr(value, f.name))


def _below(depth: int, data: Any, field: str) -> Certificate:
    return read(data, depth + 1)


_INSIDE = tuple(
    Typed({Fraction: number, int: whole, Certificate: partial(_below, depth)}) for depth in range(_DEPTH + 1)
)
"""What reads the fields of a certificate so deep inside others."""


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


class Proved(NamedTuple):
    """A certificate and what the checker says that it proves."""

    certificate: Certificate
    bound: Fraction | float

    def as_fields(self) -> dict[str, Any]:
        """Return the fields of a `Result`."""
        return {"certificate": write(self.certificate), "certified": self.bound}
