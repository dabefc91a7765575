"""The portfolio as a table: which methods `auto` runs on each kind of problem, in which order, and for how long."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Any

from gangplan.instances.addons import plugged
from gangplan.instances.arrays import require_kind, require_share, require_text
from gangplan.instances.errors import InstanceError, unknown
from gangplan.instances.lazy import Later
from gangplan.instances.partition import StepProblem
from gangplan.solvers.method import OBJECTIVES, Method, suite

if TYPE_CHECKING:
    from gangplan.instances.verify import Problem

SHARE = 0.6
"""What a method may take of the time left while others wait."""
LONG = 300
"""Jobs of a schedule up to which all lists are tried: `gangplan.solvers.schedule.grain.LONG`, which takes an import."""
FEW = 40
"""Jobs of a schedule up to which a search over starts has the time that annealing has of more jobs."""

_SHOP = 80
"""Ops of a shop up to which CP-SAT is often done within tenths of a second."""
_ENCODE = 1e-4
"""Seconds for each part of a problem that a policy takes to encode it and to answer."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A method's place in the portfolio of one objective.

    What its variants, its size or its model (`Method.suits`) do not admit is left out, and so is what is not installed,
    has no time to be imported; all but the first two are in `Result.left_out`.

    Attributes:
        objective: ``throughput``, ``latency``, ``step``, ``stages``, ``placement``, ``schedule`` or ``pipeline``.
        name: of the method, as ``method=`` of `solve` takes it.
        method: the one of that name in the objective's suite by default; another one is given here.
        variants: of the problem for which `auto` runs it, of step time ``contention``, ``no contention`` or
            ``shop``, see `StepProblem.is_shop`; none named means all.
        share: of the time left that it may take while others wait; the last one has all of it.
        short: the same where milliseconds are left, or it would be too small for anything.
        least: seconds left with which it is of use; with less it goes last, and a network is left out.
        fewest, most: parts of the problems, ops say, that `auto` runs it on.
        each: the same for each part of the problem, see `parts`, besides.
        quick: it takes milliseconds and stops when told: it runs first.
        alone: it is quick whatever its library.
        child: it runs in a process, for what it imports takes time, once here and never there.
        beside: it only proves bounds: with a second worker it is at work beside the others from the start.
        learned: it decides by a network, whose library takes seconds to import.
        added: by `register`.
        trusted: of one that is added, whether the bounds it raises, and that there is no plan, count as proved.
        foreign: it may hang or crash in what is not ours, or in a product of matrices: it has a process then.
    """

    objective: str
    name: str
    method: Method | None = None
    variants: tuple[str, ...] = ()
    share: float = SHARE
    short: float = 0.9
    least: float = 0.0
    fewest: int = 0
    most: float = inf
    each: float = 0.0
    quick: bool = False
    alone: bool = False
    child: bool = False
    beside: bool = False
    learned: bool = False
    added: bool = False
    trusted: bool = False
    foreign: bool = field(init=False)

    @property
    def does(self) -> Method:
        """The method, of an entry that has one."""
        assert self.method is not None
        return self.method

    def __post_init__(self) -> None:
        require_text(self.name, "name")
        require_share(self.share, "share", positive=True)
        if self.objective not in OBJECTIVES:
            raise InstanceError("objective", unknown(self.objective, OBJECTIVES))
        if self.name == "auto":
            raise InstanceError("name", "'auto' is the portfolio itself")
        library = isinstance(self.method, Method) and bool(self.does.library)
        object.__setattr__(self, "foreign", library or self.child or self.beside or self.added)


ENTRIES = (
    # a good pipeline is a good start for every variant
    Entry("throughput", "pipedream", quick=True),
    # of wide pipelines whose transfers are most of the load, tenths of a second often give the optimum
    Entry("throughput", "bounds", variants=("contiguous",), share=0.15, least=0.2, fewest=501, quick=True),
    # proofs of milliseconds; with less the searches go first
    Entry("throughput", "convex", variants=("convex",), least=0.5),
    Entry("throughput", "pipeline", variants=("contiguous",), least=0.5),
    Entry("throughput", "bounds", variants=("contiguous",), share=0.05, least=0.2, fewest=101, most=500, child=True),
    # milliseconds, where it is not a pipeline's
    Entry("throughput", "bounds", variants=("convex", "free"), share=0.1, least=0.2, child=True),
    Entry("throughput", "local_search", share=0.45, most=500),
    # once bounds are through, large graphs go on annealing
    Entry("throughput", "local_search", variants=("contiguous",), share=0.7, fewest=501),
    Entry("throughput", "local_search", variants=("convex", "free"), share=0.85, fewest=501),
    Entry("throughput", "bounds", variants=("contiguous",), share=0.3, least=0.05, most=500, child=True),
    Entry("throughput", "bounds", variants=("contiguous",), share=0.7, least=0.1, fewest=501, child=True),
    Entry("throughput", "cpsat"),
    # large graphs go on annealing for as long as there is time
    Entry("throughput", "local_search", fewest=501),
    Entry("latency", "greedy", quick=True),
    # their bounds are often the best there are after milliseconds
    Entry("latency", "series", share=0.5, least=0.3, quick=True),
    Entry("latency", "chain", share=0.5, short=0.2),
    Entry("latency", "local_search", share=0.3),
    Entry("latency", "cpsat", share=0.8),
    Entry("latency", "local_search"),
    Entry("stages", "ideals", share=0.9),
    Entry("stages", "chain"),
    # of few ops on machines of their own it is over before another process has begun
    Entry("step", "cpsat", variants=("shop",), share=0.3, least=2.0, most=_SHOP, quick=True, alone=True),
    # bounds take tens of milliseconds
    Entry("step", "bounds", share=0.2, least=0.2, each=0.002, quick=True),
    Entry("step", "list_schedule", share=0.4, short=0.6, least=0.005, most=500),
    Entry(
        "step", "list_schedule", share=0.5, short=0.5, least=0.005, fewest=501, most=3000, variants=("no contention",)
    ),
    # where transfers wait for one another, cut short it leaves the search a plan that costs up to a third more
    Entry("step", "list_schedule", share=0.7, short=0.95, fewest=501, most=3000, variants=("contention",)),
    # of so many ops the next list is worth more than annealing
    Entry("step", "list_schedule", share=0.95, fewest=3001),
    Entry("step", "local_search", share=0.4),
    # from what the searches have found
    Entry("step", "cpsat", share=0.5, least=0.5, each=0.005),
    # where a model is too large for the time
    Entry("step", "local_search", share=1.0),
    Entry("schedule", "dual", quick=True),
    Entry("schedule", "lists", quick=True, most=LONG),
    # it ends by itself, and what follows it gains less; of long queues it needs one list, and none is as good
    Entry("schedule", "lp", share=0.85, least=0.03, quick=True, most=LONG),
    Entry("schedule", "lp", share=0.85, least=0.01, quick=True, fewest=LONG + 1, most=1000),
    Entry("schedule", "lp", share=1.0, least=0.01, quick=True, fewest=1001),
    Entry("schedule", "lists", quick=True, fewest=LONG + 1),
    # of few jobs a search over starts is often a proof, and it takes all that annealing leaves
    Entry("schedule", "local_search", share=0.1, most=FEW),
    Entry("schedule", "local_search", share=0.6, fewest=FEW + 1),
    Entry("schedule", "starts", share=0.7, least=0.5),
    Entry("schedule", "local_search", share=0.6, most=FEW),
    Entry("schedule", "cpsat"),
    Entry("placement", "local_search", share=0.4),
    Entry("placement", "patterns", share=0.7),
    # from what patterns have found, with more time; without them at once
    Entry("placement", "local_search", share=0.93),
    Entry("placement", "bounds", share=0.8, least=0.2, beside=True),
    Entry("placement", "cpsat"),
    # nobody's bound is better, and its first plans come within tenths of a second
    Entry("layout", "branch", share=1.0),
    # a published plan and a bound come with preparing
    Entry("pipeline", "beam", share=0.5, quick=True, most=20_000),
    Entry("pipeline", "beam", share=0.9, quick=True, fewest=20_001),
    # with less, moves find better plans
    Entry("pipeline", "cpsat", share=0.9, least=2.0),
    # where a model is too large, or takes all of the time
    Entry("pipeline", "local_search", share=1.0),
)
"""In this order, but the quick ones go first, then what others have added, then learned ones."""
_ADDED: list[Entry] = []
_LEARNED = {
    objective: {"gnn": Method(Later(f"gangplan.learned.offline.{objective}:gnn"))}
    for objective in ("throughput", "placement")
}
"""By objective and name; `auto` runs none of them, since search is better in the same time."""


def register(entry: Entry) -> None:
    """Add a method to the portfolio, and to what `solve` takes by name.

    In `auto` it runs after the quick methods and before the exact ones, in a process of its own, and whatever it does
    there cannot hurt: its plans are verified, it is stopped when its time is up, and if it fails the others go on.

    Raises:
        InstanceError: if there is a method of that name.
    """
    require_kind(entry, "entry", (Entry,))
    if entry.name in named(entry.objective):
        raise InstanceError("name", f"{entry.name!r} is a method of {entry.objective} already")
    require_kind(entry.method, "method", (Method,))
    if entry.quick:
        raise InstanceError("quick", "is for methods that come with gangplan: they run in the caller's process")
    _ADDED.append(replace(entry, added=True))


def unregister(objective: str, name: str) -> None:
    """Take back what `register` added.

    Raises:
        InstanceError: if it added no method of that name.
    """
    if not any((entry.objective, entry.name) == (objective, name) for entry in _ADDED):
        raise InstanceError("name", unknown(name, [x.name for x in _ADDED if x.objective == objective]))
    _ADDED[:] = [entry for entry in _ADDED if (entry.objective, entry.name) != (objective, name)]


def own(objective: str) -> dict[str, Method]:
    """Return the methods that come with gangplan by name, those included that a network decides for."""
    return {**suite(objective).methods, **_LEARNED.get(objective, {})}


@cache
def proofs() -> dict[str, Method]:
    """Return what makes proofs of claims by name: no method of `solve`, but run as those are, see `witness`."""
    library = next(iter(plugged("certify").values()), "").partition(":")[0]
    homes = {name: Later(f"gangplan.hybrid.witness:{name}") for name in ("certificate", "enumeration")}
    return {name: Method(home, library=library if name == "certificate" else "") for name, home in homes.items()}


def named(objective: str) -> dict[str, Method]:
    """Return every method of an objective by its name."""
    more = {e.name: e.method for e in (*ENTRIES, *_ADDED) if e.objective == objective and e.method is not None}
    return {**own(objective), **more}


def methods(objective: str = "throughput") -> dict[str, tuple[str, ...]]:
    """Return the names of all methods for `objective`, each with the variants it solves; ``auto`` picks among them."""
    return {name: suite(objective).variants_of(method) for name, method in named(objective).items()}


def entry_for(problem: Problem, name: Any, *, bare: bool = False) -> Entry:
    """Return the entry of the method of that name; for a bare run it may be one that makes proofs.

    Raises:
        InstanceError: if there is none, or it does not solve the problem's variant.
    """
    objective = problem.objective
    known = named(objective)
    if bare and name in proofs():
        return Entry(objective, name, proofs()[name], child=True)
    if not isinstance(name, str) or name not in known:
        raise InstanceError("method", unknown(name, ("auto", *known)))
    if problem.variant not in suite(objective).variants_of(known[name]):
        raise InstanceError("method", f"{name!r} does not solve the variant {problem.variant!r}")
    own_entry = Entry(objective, name, known[name])
    return next((entry for entry in suited(problem) if entry.added and entry.name == name), own_entry)


def suited(problem: Problem) -> list[Entry]:
    """Return what `auto` runs on `problem`, with methods, in order: quick, added by others, learned, ours."""
    methods, size, variants = named(problem.objective), parts(problem), {str(problem.variant)}
    if isinstance(problem, StepProblem):
        variants = {"contention" if problem.contention else "no contention"}
        variants |= {"shop"} if size <= _SHOP and problem.is_shop() else set()
    entries = [
        replace(x, method=methods[x.name], least=max(x.least + x.each * size, _ENCODE * size * x.learned))
        for x in (*_ADDED, *ENTRIES)
        if x.objective == problem.objective
        and (not x.variants or variants & {*x.variants})
        and x.fewest <= size <= x.most
    ]
    return sorted(entries, key=lambda x: (not x.quick, not x.added, not x.learned))


def libraries(objective: str) -> list[str]:
    """Return the heavy libraries of an objective's methods, in an order that every process has."""
    return sorted({method.library for method in suite(objective).methods.values() if method.library})


def import_libraries(objective: str) -> None:
    """Import the heavy libraries of an objective's methods that are installed, so that no solve has to."""
    for library in libraries(objective):
        with suppress(ImportError):
            import_module(library)


def parts(problem: Any) -> int:
    """Return of how many parts a problem consists: ops, jobs and nodes, jobs, or passes."""
    if problem.objective == "placement":
        return len(problem.jobs) + int(problem.fleet.n_nodes)
    if problem.objective == "layout":
        return sum(pool.count for pool in problem.pools)
    if problem.objective == "pipeline":
        return int(problem.n_passes)
    return len(problem.jobs) if problem.objective == "schedule" else int(problem.graph.n_ops)
