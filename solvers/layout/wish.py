"""Degrees that somebody wishes a layout to have."""

from __future__ import annotations

from typing import Any, NamedTuple

from gangplan.instances.arrays import require_number
from gangplan.instances.errors import InstanceError, unknown
from gangplan.instances.layout.problem import LayoutProblem
from gangplan.instances.verify.layout import misfits

from .family import Combination, LayoutFamily, Segment
from .shapes import chunks


class Wish(NamedTuple):
    """Degrees that a layout is to have; see `LayoutPlan`."""

    TP: int | None = None
    PP: int | None = None
    CP: int | None = None
    EP: int | None = None
    VP: int | None = None
    DP: int | None = None
    MB: int | None = None
    ZERO: int | None = None

    def allows(self, x: Combination) -> bool:
        """Return whether layouts of a combination may be meant."""
        given = (self.CP, x.context), (self.EP, x.expert), (self.MB, x.micro_batch)
        return all(a in (None, b) for a, b in given) and all(t in (0, self.TP or t) for t in x.tensor)

    def is_met(self, x: LayoutFamily) -> bool:
        """Return whether the layouts of a family, of a combination that is allowed, are meant."""
        given = (self.PP, x.stages), (self.VP, x.virtual), (self.DP, x.data), (self.ZERO, x.zero)
        return all(a in (None, b) for a, b in given)

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self._asdict().items() if value is not None)


ANY = Wish()
"""No wish."""


def wish(degrees: dict[str, int]) -> Wish:
    """Return the degrees that somebody names, in capitals or not.

    Raises:
        InstanceError: naming the degree that is unknown, or its value.
    """
    named = {name.upper(): value for name, value in degrees.items()}
    for name, value in named.items():
        if name not in Wish._fields:
            raise InstanceError("explain", unknown(name, Wish._fields))
        require_number(value, f"explain {name}", whole=True, positive=name != "ZERO")
    if named.get("ZERO", 0) > 3:
        raise InstanceError("explain ZERO", f"{named['ZERO']} is not one of 0, 1, 2, 3")
    return Wish(**named)


def contradiction(problem: LayoutProblem, wanted: Wish) -> InstanceError:
    """Return why there is no layout with such degrees, whether it fits into memory or not."""
    model, p, v = problem.model, wanted.PP or 1, wanted.VP or 1
    count = len(model.chain())
    if p * v > count:
        return InstanceError("explain", f"{wanted}: the model has {count} blocks, embedding and head included")
    degrees: Any = *(x or 1 for x in (wanted.DP, wanted.CP, wanted.EP, wanted.MB)), v
    degrees += (1 if wanted.ZERO is None else wanted.ZERO,)
    family = LayoutFamily((Segment(0, wanted.TP or 1, p),), *degrees)
    sizes = [count // p + (s < count % p) for s in range(p)]
    words = misfits(problem, family.plan(chunks(sizes, v), [0] * p, [0] * p))
    open_ = "the degrees that are left open cannot be chosen so that it works"
    return InstanceError("explain", f"{wanted}: {'; '.join(words) or open_}")
