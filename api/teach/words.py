"""The plain models in words and formulas."""

from __future__ import annotations

from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.errors import unknown
from gangplan.solvers.method import OBJECTIVES

from .names import formulation_of


class Text(str):
    """Text that a notebook shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the text itself."""
        return str(self)


def formulation(kind: Any) -> Text:
    """Return the plain model of a kind of problem: its variables, and its constraints by letter.

    Args:
        kind: an objective, such as ``step``, or a problem that has one.

    Raises:
        InstanceError: there is no such objective.
    """
    objective = getattr(kind, "objective", kind)
    if objective not in OBJECTIVES:
        raise InstanceError("kind", unknown(objective, OBJECTIVES))
    words = formulation_of(objective)
    names = [f"{v.letter}[{','.join(v.axes.split())}]".removesuffix("[]") for v in words.variables]
    wide = max(map(len, names))
    lines = [f"minimise {words.minimise}", "", "variables"]
    lines += [f"  {name:<{wide}}  {v.words}" for name, v in zip(names, words.variables, strict=True)]
    lines += ["", "constraints"]
    for letter, formula, meaning in words.constraints:
        lines += [f"  ({letter}) {meaning}", f"      {formula}"]
    return Text("\n".join(lines))
