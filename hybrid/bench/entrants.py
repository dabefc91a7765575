"""Who takes part: the methods of `solve`, and solvers of others by entry point or from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib.metadata import entry_points
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.errors import did_you_mean, extra
from gangplan.instances.torch_model.load import find_object
from gangplan.instances.verify import Problem
from gangplan.solvers.method import OBJECTIVES, suite
from gangplan.solvers.run import Run

from ..table import ENTRIES, named
from .suite import Instance, make

GROUP = "gangplan_bench"
"""The entry points of packages that bring a solver."""
USUAL = {
    "throughput": ("auto", "pipedream", "local_search", "cpsat"),
    "latency": ("auto", "greedy", "local_search", "cpsat"),
    "step": ("auto", "heft", "local_search", "cpsat"),
    "stages": ("auto", "chain", "ideals"),
    "placement": ("auto", "topology", "local_search", "cpsat"),
    "schedule": ("auto", "lists", "local_search", "cpsat"),
}
"""The methods of a run that names none."""
Solver = Callable[[Run], Any]
PLUGGED: dict[str, Solver] = {}
"""The solvers of others in this process, by name."""


def methods_for(problem: Problem, asked: Sequence[str]) -> list[str]:
    """Return those asked for that solve such a problem, by default the usual ones."""
    known = named(problem.objective)
    taken = suite(problem.objective)
    return [
        name
        for name in asked or USUAL[problem.objective]
        if name in ("auto", *PLUGGED) or (name in known and problem.variant in taken.variants_of(known[name]))
    ]


def check_methods(asked: Sequence[str]) -> None:
    """Refuse a name that no objective knows; of policies their ground does."""
    known = {"auto"}.union(*(named(objective) for objective in OBJECTIVES))
    for name in asked:
        if name not in known:
            raise InstanceError("methods", f"there is no {name!r}{did_you_mean(name, known)}; see gangplan methods")


def check_policies(asked: Sequence[str], instances: Iterable[Instance]) -> None:
    """Refuse the name of a policy that no ground of some online instances knows."""
    grounds: list[Any] = [make(x) for x in instances] if asked else []
    for name in asked:
        said: list[InstanceError] = []
        for ground in grounds:
            try:
                ground.named(name, 0)
            except InstanceError as error:
                said.append(error)
        if said and len(said) == len(grounds):
            raise InstanceError("methods", said[-1].problem)


def ours(objective: str, name: str) -> bool:
    """Return whether a method comes with gangplan: only its bounds go into a ledger."""
    own = {*suite(objective).methods, *(entry.name for entry in ENTRIES if entry.objective == objective), "auto"}
    return name in own


def enter(plugin: str) -> str:
    """Load a solver of others and return its name, that of the function; `auto` is as it was.

    Args:
        plugin: ``file.py:function``, ``module:function``, or the name of an entry point of the group
            ``gangplan_bench``. The function takes a `Run` and offers plans on it, or returns one, or None if it has
            none; of a problem that is not for it, it raises `NotImplementedError`.
    """
    try:
        found: Any = find_object(plugin) if ":" in plugin else _installed(plugin)
    except InstanceError as error:
        raise InstanceError("plugin", error.problem) from None
    if not callable(found):
        raise InstanceError("plugin", f"{plugin!r} is a {type(found).__name__}, not a function of a Run")
    name = plugin.rpartition(":")[2]
    if any(ours(objective, name) for objective in OBJECTIVES):
        raise InstanceError("plugin", f"{name!r} is the name of a method of gangplan")
    PLUGGED[name] = found
    return name


def attempt(problem: Problem, name: str, time_limit: float, seed: int, workers: int) -> Run:
    """Have a solver of others, that was entered, solve a problem; return what it did."""
    run = Run(problem, time_limit=time_limit, seed=seed, workers=workers)
    with suppress(TimeoutError):
        plan = PLUGGED[name](run)
        if plan is not None:
            run.offer(plan, name)
        elif run.plan is None and run.bound is None and not run.stopped:
            run.note("has no plan; of problems that are not for it, it should raise NotImplementedError")
    return run


def _installed(name: str) -> Solver:
    known = {point.name: point for point in entry_points(group=GROUP)}
    if name not in known:
        offered = f"nor one of {', '.join(known)}" if known else "and no package that is installed offers one"
        raise InstanceError("plugin", f"{name!r} is no FILE.py:FUNCTION, {offered}")
    try:
        found: Solver = known[name].load()
    except ImportError as error:
        how = f"; {extra('peers')}" if known[name].value.startswith("gangplan.") else ""
        raise InstanceError("plugin", f"{name!r} needs {error.name}, which is not installed{how}") from None
    return found
