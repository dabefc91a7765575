"""The methods that `auto` knows: those of the suites, in order, and those that others add."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number, require_text
from gangplan.instances.verify import Problem
from gangplan.solvers import Run
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
        quick: it takes milliseconds and stops when told: it runs first, in the caller's process.
        learned: it decides by a network, the less of it the further the problem is from what that was trained on.
    """

    objective: str
    name: str
    method: Method | None = None
    variants: tuple[str, ...] = ()
    share: float = SHARE
    quick: bool = False
    learned: bool = False

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


def _learned(problem: str) -> Entry:
    def run_learned(run: Run, prepared: Any) -> None:
        if run.can_import("torch"):
            with run.phase("import"):
                module = import_module(f"gangplan.learned.{problem}.method")
            module.learned(run, prepared)

    return Entry(problem, "learned", Method(run_learned), share=0.2, learned=True)


def _own(objective: str, names: str, *, variants: tuple[str, ...] = (), **shares: float) -> list[Entry]:
    """Return entries of methods of a suite by their names; a star marks the quick ones."""
    return [
        Entry(objective, n.strip("*"), None, variants, shares.get(n.strip("*"), SHARE), quick=n.endswith("*"))
        for n in names.split()
    ]


_OWN: tuple[Entry, ...] = (
    *_own("throughput", "greedy*", variants=("contiguous", "convex", "free")),
    *_own("throughput", "pipedream*", variants=("free",)),
    *_own("throughput", "pipeline cpsat neighbourhood", variants=("contiguous",)),
    *_own("throughput", "convex", variants=("convex",)),
    # a good pipeline is a good start for every variant
    *_own("throughput", "local_search cpsat", variants=("convex", "free")),
    *_own("latency", "greedy* chain* local_search cpsat neighbourhood"),
    *_own("stages", "ideals chain"),
    # a short CP-SAT proves most; the long one starts from what the searches have found
    *_own("step", "heft* bounds* list_schedule* contiguous* critical_path*"),
    *_own("step", "cpsat local_search lns cpsat_below", cpsat=0.25, local_search=0.1, lns=0.3),
    *_own("schedule", "lists* starts local_search cpsat", local_search=0.1, starts=0.7),
    *_own("placement", "local_search* patterns cpsat", local_search=0.1, patterns=0.9),
)
_LEARNED: tuple[Entry, ...] = ()
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
    _ADDED.append(entry)


def unregister(objective: str, name: str) -> None:
    """Take back what `register` added."""
    _ADDED[:] = [entry for entry in _ADDED if (entry.objective, entry.name) != (objective, name)]


def named(objective: str) -> dict[str, Method]:
    """Return every method of an objective by its name."""
    more = {e.name: e.method for e in (*_LEARNED, *_ADDED) if e.objective == objective and e.method is not None}
    return {**suite(objective).methods, **more}


def suited(problem: Problem) -> list[Entry]:
    """Return what `auto` runs on `problem`, in order: quick, learned, added by others, our own."""
    found = [entry for entry in (*_ADDED, *_LEARNED, *_OWN) if entry.suits(problem)]
    return sorted(found, key=lambda entry: (not entry.quick, not entry.learned))


def is_own(entry: Entry) -> bool:
    """Return whether `entry` comes with gangplan: such a method looks at the clock."""
    return entry in _OWN or entry in _LEARNED
