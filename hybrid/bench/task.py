"""One solve of a run, in a process of its own: within limits, its plan verified when it has ended."""

from __future__ import annotations

import os
import platform
import resource
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from math import ceil
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError, dump, verify
from gangplan.solvers.method import suite
from gangplan.solvers.processes import forked
from gangplan.solvers.run import OPTIMAL_GAP, Run, Status

from ..compiling import warm_up
from ..solve import solve, versions
from ..table import parts
from ..workers import fork_only
from .entrants import PLUGGED, attempt, enter, methods_for
from .grounds import Ground
from .rows import FAILED, ONLINE, SKIPPED, Key, Row
from .suite import Instance, make

_LATE, _LATEST = 0.25, 2.0
"""A solve may overrun its deadline by this share of it, and so many seconds, before it is killed."""
_PLAYED = 600.0
"""Seconds that a policy has for all of its decisions; a deadline is for the bound."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How instances are run.

    Attributes:
        folder: of rows and plans.
        methods: names; none means the usual ones of each objective.
        plugins: solvers of others, see `enter`.
        deadlines: seconds of each solve.
        seeds: of the methods.
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
class Task:
    """A solve to do, with what a worker has to know."""

    instance: Instance
    method: str
    seed: int
    deadline: float
    settings: Settings

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


def execute(task: Task) -> tuple[Row, str]:
    """Solve in a fork within the limits; return the row, and the plan if it is better than the best known."""
    instance, settings = task.instance, task.settings
    _prepare(instance.objective, task.method, settings.plugins)
    problem = _problem(instance)
    row = Row(
        instance.id, instance.hash, instance.objective, instance.family, instance.size, 0, task.method, task.seed,
        task.deadline, settings.workers, FAILED, environment=_environment(), load=round(os.getloadavg()[0], 2),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip
    started, before = time.perf_counter(), _children()
    until = started + task.deadline * (1 + _LATE) + _LATEST
    work: Callable[[Any, Task], tuple[Any, dict[str, Any]]] = _solved
    if isinstance(problem, Ground):
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


def _solved(problem: Any, task: Task) -> tuple[Any, dict[str, Any]]:
    """Solve, in a process of its own; return the plan, and what the row says of the solve."""
    settings = task.settings
    _limit(settings)
    fork_only()  # so that the limits, and the time that is counted, are those of all that it begins
    found: Any
    if task.method in PLUGGED:
        found = attempt(problem, task.method, task.deadline, task.seed, settings.workers)
        seconds, proved = found.seconds(), found.gap is not None and found.gap <= OPTIMAL_GAP
        status = Status.UNKNOWN if found.plan is None else Status.OPTIMAL if proved else Status.FEASIBLE
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the notes have it
            found = solve(
                problem, time_limit=task.deadline, method=task.method, seed=task.seed, workers=settings.workers
            )
        seconds, status = found.wall_seconds, found.status
    return found.plan, {
        "status": str(status),
        "bound": found.bound,
        "seconds": round(seconds, 4),
        "trace": tuple((round(x.seconds, 4), x.objective) for x in found.trace),
        "notes": "; ".join(found.notes)[:300],
        **_used(),
    }


def _played(ground: Ground, task: Task) -> tuple[None, dict[str, Any]]:
    """Let a policy decide, in a process of its own; return what the row says."""
    _limit(task.settings)
    name, began = task.method, time.perf_counter()
    policy = PLUGGED[name](ground.case) if name in PLUGGED else _named(ground, name, task.seed)
    if policy is None:
        raise NotImplementedError("makes no policy for this ground")
    value = ground.play(policy)
    told = {"status": str(Status.FEASIBLE), "value": value, "seconds": _since(began)}
    return None, told | {"bound": ground.bound(task.deadline), **_used()}


def _named(ground: Ground, name: str, seed: int) -> Any:
    try:
        return ground.named(name, seed)
    except InstanceError as error:
        raise NotImplementedError(str(error)) from None


def _limit(settings: Settings) -> None:
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
def _environment() -> str:
    known = [f"{name} {number}" for name, number in versions().items()]
    return "; ".join([*known, platform.platform(), platform.machine(), f"{os.cpu_count()} cores"])
