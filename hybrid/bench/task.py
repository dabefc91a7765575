"""Who takes part, methods of `solve` and solvers of others, and one solve: in a process of its own, within limits."""

from __future__ import annotations

import os
import platform
import resource
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import entry_points
from math import ceil
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError, dump, verify
from gangplan.instances.errors import did_you_mean, extra
from gangplan.instances.torch_model.load import find_object
from gangplan.instances.verify import Problem
from gangplan.solvers.method import OBJECTIVES, suite
from gangplan.solvers.processes import forked
from gangplan.solvers.run import OPTIMAL_GAP, Callback, Run, Status

from ..compiling import warm_up
from ..solve import solve, versions
from ..table import ENTRIES, named, parts
from ..workers import fork_only
from .makers import GroundDraw
from .rows import FAILED, ONLINE, SKIPPED, BenchRow, Key
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
    "pipeline": ("auto", "published", "beam", "cpsat"),
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


def attempt(
    problem: Problem, name: str, time_limit: float, seed: int, workers: int, callbacks: Sequence[Callback] = ()
) -> Run:
    """Have a solver of others, that was entered, solve a problem; return what it did."""
    run = Run(problem, time_limit=time_limit, seed=seed, workers=workers, callbacks=callbacks)
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


_LATE, _LATEST = 0.25, 2.0
"""A solve may overrun its deadline by this share of it, and so many seconds, before it is killed."""
_PLAYED = 600.0
"""Seconds that a policy has for all of its decisions; a deadline is for the bound."""


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How instances are run.

    Attributes:
        methods: names; none means the usual ones of each objective.
        plugins: solvers of others, see `enter`.
        deadlines: seconds of each solve.
        jobs: solves at a time.
        workers: threads of a solve.
        engine: a key of `gangplan.hybrid.bench.run.ENGINES`.
        memory: bytes that a process of a solve may take besides what is loaded before; None for no limit.
        cpu: processor seconds of the same.
        ledger: where better plans and bounds are noted; by default in the folder.
        keep: whether plans better than the best known are kept, in the folder ``plans``.
    """

    folder: Path
    methods: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    deadlines: tuple[float, ...] = (0.5,)
    seeds: tuple[int, ...] = (0,)
    jobs: int = 1
    workers: int = 1
    engine: str = "loky"
    memory: float | None = None
    cpu: float | None = None
    ledger: Path | None = None
    keep: bool = True


@dataclass(frozen=True, slots=True)
class SolveTask:
    """A solve to do, with what a worker has to know; `initial` is a plan to start from."""

    instance: Instance
    method: str
    seed: int
    deadline: float
    settings: BenchSettings
    initial: Any = None

    @property
    def key(self) -> Key:
        """That of its row."""
        return self.instance.id, self.instance.hash, self.method, self.seed, self.deadline, self.settings.workers


_last: dict[str, Any] = {}
"""The problem that this process solved last, by its hash: tasks of an instance follow one another."""


def _problem(instance: Instance) -> Any:
    if instance.hash not in _last:
        _last.clear()
        _last[instance.hash] = make(instance)
    return _last[instance.hash]


@cache
def _prepare(objective: str, method: str, plugins: tuple[str, ...]) -> None:
    """Have this process load what its forks will need: a deadline is for solving, not for imports."""
    for plugin in plugins:
        enter(plugin)
    if objective == ONLINE:
        return
    warm_up(objective, workers=False)
    own = suite(objective)
    tiny = own.random_problem(0, own.variants[0])
    for name in ("auto", *methods_for(tiny, (method,))):
        if name not in PLUGGED:
            solve(tiny, time_limit=0.4, method=name, workers=1)  # in this process: what it imports stays


def execute(task: SolveTask) -> tuple[BenchRow, str]:
    """Solve in a fork within the limits; return the row, and the plan if it is better than the best known."""
    instance, settings = task.instance, task.settings
    _prepare(instance.objective, task.method, settings.plugins)
    problem = _problem(instance)
    row = BenchRow(
        instance.id, instance.hash, instance.objective, instance.family, instance.size, 0, task.method, task.seed,
        task.deadline, settings.workers, FAILED, environment=environment(), load=round(os.getloadavg()[0], 2),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip
    started, before = time.perf_counter(), _children()
    until = started + task.deadline * (1 + _LATE) + _LATEST
    work: Callable[[Any, SolveTask], tuple[Any, dict[str, Any]]] = _solved
    if isinstance(problem, GroundDraw):
        until, work = started + _PLAYED, _played
        row = replace(row, parts=len(problem.drawn()[0]))
    elif methods_for(problem, (task.method,)):
        row = replace(row, parts=parts(problem), zero=Run(problem, time_limit=1.0).zero)
    else:
        return replace(row, parts=parts(problem), status=SKIPPED, notes="does not solve such a problem"), ""
    try:
        found = forked(lambda: work(problem, task), lambda: time.perf_counter() > until)
    except NotImplementedError as error:
        return replace(row, status=SKIPPED, notes=str(error)[:300]), ""
    except Exception as error:
        notes = f"{type(error).__name__}: {error}"[:300]
        return replace(row, seconds=_since(started), cpu=_children() - before, notes=notes), ""
    if found is None:
        late = time.perf_counter() > until
        notes = "did not stop in time and was killed" if late else "its process ended: a crash, or a limit"
        return replace(row, seconds=_since(started), cpu=_children() - before, notes=notes), ""
    plan, told = found
    row = replace(row, **told)
    if plan is None:
        return row, ""
    row = replace(row, value=verify(problem, plan).objective)
    known = instance.value
    new = settings.keep and row.value is not None and (known is None or row.value < known)
    return row, f"{dump(plan)}\n" if new else ""


def _solved(problem: Any, task: SolveTask) -> tuple[Any, dict[str, Any]]:
    """Solve, in a process of its own; return the plan, and what the row says of the solve."""
    settings = task.settings
    _limit(settings)
    fork_only()  # so that the limits, and the time that is counted, are those of all that it begins
    found: Any
    told, last = None, None

    def follow(run: Run) -> None:
        """Note the bound, and while it is in time."""
        nonlocal told, last
        last = run.bound, run.bound_by
        told = last if run.seconds() <= task.deadline else told

    given: Any = {"time_limit": task.deadline, "seed": task.seed, "workers": settings.workers, "callbacks": (follow,)}
    if task.method in PLUGGED:
        found = attempt(problem, task.method, **given)
        seconds, proved = found.seconds(), found.gap is not None and found.gap <= OPTIMAL_GAP
        status = Status.UNKNOWN if found.plan is None else Status.OPTIMAL if proved else Status.FEASIBLE
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the notes have it
            found = solve(problem, method=task.method, initial=task.initial, **given)
        seconds, status = found.wall_seconds, found.status
    bound, bound_by = (found.bound, found.bound_by) if told == last else told or (None, "")
    if status is Status.OPTIMAL and (told != last or found.trace[-1].seconds > task.deadline):
        status = Status.FEASIBLE
    turns = found.turns.values() if isinstance(found, Run) else found.turns
    return found.plan, {
        "status": str(status),
        "bound": bound,
        "seconds": round(seconds, 4),
        "trace": tuple((round(x.seconds, 4), x.objective) for x in found.trace),
        "notes": "; ".join(found.notes)[:300],
        "by": found.trace[-1].by if found.trace else "",
        "bound_by": bound_by,
        "turns": {x.method: round(sum(y.ran for y in turns if y.method == x.method), 4) for x in turns},
        **_used(),
    }


def _played(ground: GroundDraw, task: SolveTask) -> tuple[None, dict[str, Any]]:
    """Let a policy decide, in a process of its own; return what the row says."""
    _limit(task.settings)
    name, began = task.method, time.perf_counter()
    policy = PLUGGED[name](ground.case) if name in PLUGGED else _named(ground, name, task.seed)
    if policy is None:
        raise NotImplementedError("makes no policy for this ground")
    value = ground.play(policy)
    told = {"status": str(Status.FEASIBLE), "value": value, "seconds": _since(began)}
    return None, told | {"bound": ground.bound(task.deadline), **_used()}


def _named(ground: GroundDraw, name: str, seed: int) -> Any:
    try:
        return ground.named(name, seed)
    except InstanceError as error:
        raise NotImplementedError(str(error)) from None


def _limit(settings: BenchSettings) -> None:
    memory = None if settings.memory is None else settings.memory + _loaded()
    for limit, value in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CPU, settings.cpu)):
        if value is not None:
            resource.setrlimit(limit, (ceil(value), ceil(value) + 1))


def _used() -> dict[str, float]:
    """Return what this process and those that it has ended used."""
    _collect()
    own = resource.getrusage(resource.RUSAGE_SELF)
    largest = max(own.ru_maxrss, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    return {"cpu": round(own.ru_utime + own.ru_stime + _children(), 4), "memory": 1024.0 * largest}


def _children() -> float:
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def _collect() -> None:
    """Wait a moment for the processes that the solve has ended: until then what they used is not counted."""
    until = time.perf_counter() + 0.5
    with suppress(ChildProcessError):
        while time.perf_counter() < until:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.002)


def _loaded() -> int:
    with open("/proc/self/statm", encoding="ascii") as pages:
        return int(pages.read().split()[5]) * resource.getpagesize()


def _since(started: float) -> float:
    return round(time.perf_counter() - started, 4)


@cache
def environment() -> str:
    """Return versions and the class of the machine."""
    known = [f"{name} {number}" for name, number in versions().items()]
    return "; ".join([*known, platform.platform(), platform.machine(), f"{os.cpu_count()} cores"])
