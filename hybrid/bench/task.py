"""Who takes part, methods of `solve` and solvers of others, and one solve: in a process of its own, within limits."""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError, dump, verify
from gangplan.instances.documents import from_document
from gangplan.instances.errors import did_you_mean
from gangplan.instances.verify import Problem
from gangplan.solvers.method import OBJECTIVES, suite
from gangplan.solvers.result import Status
from gangplan.solvers.run import OPTIMAL_GAP, Run

from ..server import fork_only
from ..solve import VERSIONS, solve
from ..table import named, parts
from .makers import GroundDraw
from .plugins import Plugin, ask, attempted, children, function_of, limit, patience, prepare, used
from .rows import FAILED, ONLINE, SKIPPED, UNSUITED, BenchRow, Key
from .suite import Instance, make

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


def methods_for(problem: Problem, asked: Sequence[str]) -> list[str]:
    """Return those asked for that solve such a problem, by default the usual ones."""
    known = named(problem.objective)
    taken = suite(problem.objective)
    return [
        name
        for name in asked or USUAL[problem.objective]
        if name == "auto" or (name in known and problem.variant in taken.variants_of(known[name]))
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


_PLAYED = 600.0
"""Seconds that a policy has for all of its decisions; a deadline is for the bound."""


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """How instances are run.

    Attributes:
        methods: names; none means the usual ones of each objective.
        plugins: solvers of others, see `gangplan.hybrid.bench.plugins.introduced`.
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
    """A solve to do, with what a worker has to know; `initial` is a plan to start from, `plugin` a solver of others."""

    instance: Instance
    method: str
    seed: int
    deadline: float
    settings: BenchSettings
    initial: Any = None
    plugin: Plugin | None = None

    @property
    def code(self) -> str:
        """See `BenchRow`."""
        return self.plugin.code if self.plugin else ""

    @property
    def own(self) -> bool:
        """Whether its method has not declared, by an attribute or its place in a registry, that it is for others."""
        objective = self.instance.objective
        if self.plugin is not None:
            return not self.plugin.objectives or objective in self.plugin.objectives
        return objective == ONLINE or self.method == "auto" or self.method in named(objective)

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
def _prepare(objective: str, method: str) -> None:
    own = suite(objective)
    prepare(objective, *methods_for(own.random_problem(0, own.variants[0]), (method,)))


def execute(task: SolveTask) -> tuple[BenchRow, str]:
    """Solve in a fork within the limits; return the row, and the plan if it is better than the best known."""
    instance, settings = task.instance, task.settings
    row = BenchRow(
        instance.id, instance.hash, instance.objective, instance.family, instance.size, 0, task.method, task.seed,
        task.deadline, settings.workers, FAILED, environment=environment(), load=round(os.getloadavg()[0], 2),
        date=datetime.now(UTC).isoformat(timespec="seconds"), code=task.code,
    )  # fmt: skip
    if not task.own:
        return replace(row, status=UNSUITED, notes="declares that this objective is not its own"), ""
    if task.plugin is None and instance.objective != ONLINE:
        _prepare(instance.objective, task.method)
    problem = _problem(instance)
    started, before, busy = time.perf_counter(), children(), _busy()
    until = started + patience(task.deadline)
    work: Callable[[Any, SolveTask], tuple[Any, dict[str, Any]]] = _solved
    if isinstance(problem, GroundDraw):
        until, work = started + _PLAYED, _played
        row = replace(row, parts=len(problem.drawn()[0]))
    else:
        row = replace(row, parts=parts(problem), zero=Run(problem, time_limit=1.0).zero)
        if task.plugin is None and not methods_for(problem, (task.method,)):
            return replace(row, status=SKIPPED, notes="does not solve this variant"), ""
    plan: Any = None
    if task.plugin is None or instance.objective == ONLINE:
        found = attempted(lambda: work(problem, task), until)
        plan, told = found if isinstance(found, tuple) else (None, found)
    else:
        asked = {"time_limit": task.deadline, "seed": task.seed, "workers": settings.workers}
        try:
            said, told = ask(task.plugin, problem, {**asked, "memory": settings.memory, "cpu": settings.cpu})
            plan, told = (None, told) if "status" in told else _judged(problem, said, told, task.deadline)
        except Exception as error:
            told = {"notes": f"{type(error).__name__}: {error}"[:300]}
    row = replace(row, **{"seconds": _since(started), "cpu": children() - before, **told, "busy": _busy(busy)})
    if plan is None:
        return row, ""
    row = replace(row, value=verify(problem, plan).objective)
    known = instance.value
    new = settings.keep and row.value is not None and (known is None or row.value < known)
    return row, f"{dump(plan)}\n" if new else ""


def _solved(problem: Any, task: SolveTask) -> tuple[Any, dict[str, Any]]:
    """Solve, in a process of its own; return the plan, and what the row says of the solve."""
    settings = task.settings
    limit(settings.memory, settings.cpu)
    fork_only()  # so that the limits, and the time that is counted, are those of all that it begins
    told, last = None, None

    def follow(run: Run) -> None:
        """Note the bound, and while it is in time."""
        nonlocal told, last
        last = run.bound, run.bound_by
        told = last if run.seconds() <= task.deadline else told

    given: Any = {"time_limit": task.deadline, "seed": task.seed, "workers": settings.workers, "callbacks": (follow,)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the notes have it
        found = solve(problem, method=task.method, initial=task.initial, **given)
    status = found.status
    bound, bound_by = (found.bound, found.bound_by) if told == last else told or (None, "")
    if status is Status.OPTIMAL and (told != last or found.trace[-1].seconds > task.deadline):
        status = Status.FEASIBLE
    return found.plan, {
        "status": str(status),
        "bound": bound,
        "seconds": round(found.wall_seconds, 4),
        "trace": tuple((round(x.seconds, 4), x.objective) for x in found.trace),
        "notes": "; ".join(found.notes)[:300],
        "by": found.trace[-1].by if found.trace else "",
        "bound_by": bound_by,
        "turns": {x.method: round(sum(y.ran for y in found.turns if y.method == x.method), 4) for x in found.turns},
        **used(),
    }


def _judged(
    problem: Problem, said: list[tuple[float, Any]], told: dict[str, Any], deadline: float
) -> tuple[Any, dict[str, Any]]:
    """Return the best plan of what a solver of others said, verified, and what the row says of the solve."""
    run, trace = Run(problem, time_limit=1.0), list[tuple[float, float]]()
    for second, line in said:
        if "bound" not in line:
            if run.offer(from_document(line), "it"):
                trace.append((second, run.objective or 0.0))
        elif second <= deadline:
            run.raise_bound(line["bound"], "it")
    proved = run.gap is not None and run.gap <= OPTIMAL_GAP and trace[-1][0] <= deadline
    status = Status.UNKNOWN if run.plan is None else Status.OPTIMAL if proved else Status.FEASIBLE
    return run.plan, {"status": str(status), "bound": run.bound, "trace": tuple(trace), **told}


def _played(ground: GroundDraw, task: SolveTask) -> tuple[None, dict[str, Any]]:
    """Let a policy decide, in a process of its own; return what the row says."""
    limit(task.settings.memory, task.settings.cpu)
    name, began = task.method, time.perf_counter()
    plugin = task.plugin
    policy = _named(ground, name, task.seed) if plugin is None else function_of(plugin.place)(ground.case)
    if policy is None:
        raise NotImplementedError("makes no policy for this ground")
    value = ground.play(policy)
    told = {"status": str(Status.FEASIBLE), "value": value, "seconds": _since(began)}
    return None, told | {"bound": ground.bound(task.deadline), **used()}


class _UnsuitedError(NotImplementedError):
    """A ground has no policy of that name."""

    status = UNSUITED


def _named(ground: GroundDraw, name: str, seed: int) -> Any:
    try:
        return ground.named(name, seed)
    except InstanceError as error:
        raise _UnsuitedError(str(error)) from None


def _since(started: float) -> float:
    return round(time.perf_counter() - started, 4)


def _busy(since: tuple[float, float] | None = None) -> Any:
    """Return processor seconds of the whole machine and the clock, or how many processors were busy since then."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(x) for x in file.readline().split()[1:9]]
    except OSError:  # not Linux
        return round(os.getloadavg()[0], 2)
    now = (sum(ticks) - sum(ticks[3:5])) / os.sysconf("SC_CLK_TCK"), time.perf_counter()
    return now if since is None else round((now[0] - since[0]) / max(now[1] - since[1], 1e-3), 2)


@cache
def environment() -> str:
    """Return versions and the machine: its processor, number of cores and memory."""
    known = [f"{name} {number}" for name, number in VERSIONS.items()]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    model = platform.processor() or platform.machine()
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), model)
    return "; ".join([*known, platform.platform(), model, f"{os.cpu_count()} cores", f"{memory:.0f} GiB of memory"])
