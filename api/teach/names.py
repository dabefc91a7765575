"""Names of variables and rows that can be read, ``x[op3,gpu1]`` and ``A[op3]``, and the plain models in words."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.errors import unknown
from gangplan.instances.lazy import Later
from gangplan.solvers.method import OBJECTIVES, suite
from gangplan.solvers.plain import Formulation, Variable

_LONGEST = 40
"""Characters of an item's own name: formats end at 255 for a whole name, and a line holds several."""
_SHORT, _FEW = 2, 3
"""Variables, and items of variables, up to which a row's name has all items."""
Labels = tuple[str, ...]


def formulation_of(objective: str) -> Formulation:
    """Return the words of an objective's plain model, which lie beside it."""
    function: Any = suite(objective).methods["plain_milp"].function
    if isinstance(function, Later):
        function = function.find()
    found: Formulation = sys.modules[function.__module__].FORMULATION
    return found


class Names:
    """Names of one model's variables and rows, no two alike."""

    def __init__(self, problem: Any) -> None:
        self._families = {family.letter: family for family in formulation_of(problem.objective).variables}
        self._items = items(problem)
        self._given: Counter[str] = Counter()

    def variable(self, letter: str, index: Sequence[int]) -> tuple[str, tuple[str, Labels], Variable]:
        """Return name, (letter, items) and family of a variable."""
        family = self._families[letter]
        pairs = zip(family.axes.split(), index, strict=False)
        labels = tuple(self._items[axis](i) if axis in self._items else f"{axis}{i}" for axis, i in pairs)
        return self.unique(letter, labels), (letter, labels), family

    def row(self, letter: str, variables: Sequence[tuple[str, Labels]]) -> str:
        """Return the name of a row of a letter by the families and items of its variables.

        It has all items of a short row; of any other, and of a sum such as that of x[op3,gpu0] and x[op3,gpu1], those
        that all its variables share.
        """
        items = [some for _, some in variables if some]
        every = list(dict.fromkeys(label for some in items for label in some))
        alike = len({family for family, some in variables if some}) == 1
        total = alike and len({some[0] for some in items}) == 1
        if total or (len(items) > _SHORT and (alike or len(every) > _FEW)):
            every = [label for label in every if all(label in some for some in items)]
        return self.unique(letter, every)

    def unique(self, letter: str, labels: Iterable[str]) -> str:
        """Return letter and labels, with a number if that name is taken."""
        name = f"{letter}[{','.join(labels)}]".removesuffix("[]")
        self._given[name] += 1
        if (count := self._given[name]) == 1:
            return name
        return self.unique(f"{letter}.{count}", labels)


def items(problem: Any) -> dict[str, Callable[[int], str]]:
    """Return what an axis calls its items, where that is more than the axis and a number."""
    if problem.objective == "schedule":
        from gangplan.solvers.schedule.prepare import prepare

        gpus = prepare(problem).gpus.tolist()
        return {"job": _clean([job.name for job in problem.jobs], "job"), "option": lambda o: f"{gpus[o]}gpu"}
    if problem.objective == "layout":
        return {}
    if problem.objective == "pipeline":
        return {"pass": problem.name}
    if problem.objective == "placement":
        return {"job": _clean([job.name for job in problem.jobs], "job")}
    kinds = problem.cluster.device_types
    host = [kinds[t].host for t in problem.cluster.type_of.tolist()]

    def device(d: int) -> str:
        return f"cpu{d}" if host[d] else f"gpu{d}"

    pipeline = getattr(problem, "variant", "") == "contiguous"
    found = {"op": _clean(problem.graph.names, "op"), "type": _clean([kind.name for kind in kinds], "type")}
    return {**found, "device": device, "slot": (lambda s: f"stage{s}") if pipeline else device}


def _clean(names: Sequence[str], axis: str) -> Callable[[int], str]:
    """Return names without what formats do not allow; numbers if they are long, or alike without that."""
    cleaned = [re.sub(r"\W", "_", name, flags=re.ASCII) for name in names]
    usable = len({*cleaned}) == len(cleaned) and max(map(len, cleaned), default=0) <= _LONGEST and all(cleaned)
    return cleaned.__getitem__ if usable else lambda i: f"{axis}{i}"


class Text(str):
    """Text that a notebook shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
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
