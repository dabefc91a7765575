"""The methods of the portfolio: ours, and those that others add."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number, require_text
from gangplan.instances.verify import Problem
from gangplan.solvers.method import OBJECTIVES, Method, suite

SHARE = 0.6
"""What a method may take of the time left while others wait."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A method's place in the portfolio of one objective.

    Attributes:
        objective: ``throughput``, ``latency``, ``step``, ``stages``, ``placement`` or ``schedule``.
        name: of the method, as ``method=`` of `solve` takes it.
        method: of a suite by default; another one is given here.
        variants: of the problem for which `auto` runs it; none named means all.
        share: of the time left that it may take while others wait.
        least: seconds left with which it is of use; with less the others go first.
        proves: it mostly ends with a proof where there is one to be had soon, though it need not.
        quick: it takes milliseconds and stops when told: it runs first, in the caller's process.
        learned: it decides by a network, the less of it the further the problem is from what that was trained on.
        soon: size of a problem, see `hardness.size`, up to which it is done about as soon as a policy is loaded.
    """

    objective: str
    name: str
    method: Method | None = None
    variants: tuple[str, ...] = ()
    share: float = SHARE
    least: float = 0.0
    proves: bool = False
    quick: bool = False
    learned: bool = False
    soon: int = 0

    def __post_init__(self) -> None:
        require_text(self.name, "name")
        require_number(self.share, "share", positive=True)
        if self.share > 1:
            raise InstanceError("share", f"{self.share!r} is more than 1")
        if self.objective not in OBJECTIVES:
            raise InstanceError("objective", f"{self.objective!r} is not one of {', '.join(OBJECTIVES)}")
        if self.name == "auto":
            raise InstanceError("name", "'auto' is the portfolio itself")

    def suits(self, problem: Problem) -> bool:
        """Return whether `auto` runs it on `problem`."""
        return self.objective == problem.objective and (not self.variants or problem.variant in self.variants)


_ADDED: list[Entry] = []


def register(entry: Entry) -> None:
    """Add a method to the portfolio, and to what `solve` takes by name.

    In `auto` it runs after the quick methods and before the exact ones, in a process of its own, and whatever it does
    there cannot hurt: its plans are verified, it is stopped when its time is up, and if it fails the others go on.

    Raises:
        InstanceError: if there is a method of that name.
    """
    if entry.name in named(entry.objective):
        raise InstanceError("name", f"{entry.name!r} is a method of {entry.objective} already")
    if entry.method is None:
        raise InstanceError("method", "is not given")
    if entry.quick:
        raise InstanceError("quick", "is for methods that come with gangplan: they run in the caller's process")
    _ADDED.append(entry)


def unregister(objective: str, name: str) -> None:
    """Take back what `register` added."""
    _ADDED[:] = [entry for entry in _ADDED if (entry.objective, entry.name) != (objective, name)]


def named(objective: str) -> dict[str, Method]:
    """Return every method of an objective by its name."""
    more = {e.name: e.method for e in (*own(), *_ADDED) if e.objective == objective and e.method is not None}
    return {**suite(objective).methods, **more}


def suited(problem: Problem, seconds: float = float("inf")) -> list[Entry]:
    """Return what `auto` runs on `problem`, in order: quick, learned, added by others, ours; last what takes longer."""
    found = [entry for entry in (*_ADDED, *own()) if entry.suits(problem)]
    return sorted(found, key=lambda entry: (seconds < entry.least, not entry.quick, not entry.learned))


def installed(method: Method) -> bool:
    """Return whether the library of `method` is there; what it compiles is not compiled without."""
    package = method.library.partition(".")[0]
    return not package or sys.modules.get(package) is not None or find_spec(package) is not None


def own() -> tuple[Entry, ...]:
    """Return the entries that come with gangplan."""
    from .entries import ENTRIES

    return ENTRIES


def is_own(entry: Entry) -> bool:
    """Return whether `entry` comes with gangplan: such a method looks at the clock."""
    return comes_with_gangplan(entry.objective, entry.name)


def comes_with_gangplan(objective: str, name: str) -> bool:
    """Return whether a method of the portfolio is one of ours."""
    return any((known.objective, known.name) == (objective, name) for known in own())
