"""Run methods on instances: a row each, in processes by joblib, with limits, resumable after whatever ended it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import TypeVar

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_choice
from gangplan.instances.errors import extra
from gangplan.instances.outlet import make_folder, write_whole
from gangplan.solvers.result import Status

from .makers import USUAL as ONLINE_USUAL
from .plugins import Plugin, introduced, ours
from .rows import ONLINE, BenchRow, append, read_rows, write_table
from .suite import Instance, read_manifest, write_manifest
from .task import USUAL, BenchSettings, SolveTask, check_methods, check_policies, execute

ENGINES = {"loky": "bench", "ray": "ray", "dask": "dask"}
"""Backends of joblib, and the extra that each needs."""
Tell = Callable[[float], None]
T = TypeVar("T")
R = TypeVar("R")


def run(instances: Sequence[Instance], settings: BenchSettings, tell: Tell = lambda share: None) -> list[BenchRow]:
    """Do what the folder has no row of, and return all its rows; Ctrl-C, or worse, leaves those that are there."""
    if any(x.objective != ONLINE for x in instances):
        check_methods(settings.methods)
    else:
        check_policies(settings.methods, {x.arguments["ground"]: x for x in instances}.values())
    plugged = tuple(map(introduced, settings.plugins))
    names = [x.name for x in plugged]
    if twice := sorted({x for x in names if names.count(x) > 1}):
        raise InstanceError("plugin", f"two are named {twice[0]!r}, as rows name them: rename a function or a file")
    make_folder(settings.folder)
    best = {x.id: x.value for x in instances}
    done = {row.key: row.code for row in read_rows(settings.folder)}
    todo = [task for task in _tasks(instances, plugged, settings) if done.get(task.key) != task.code]
    try:
        for i, (row, plan) in enumerate(results(todo, settings, execute)):
            if plan:
                (settings.folder / "plans").mkdir(exist_ok=True)
                write_whole({settings.folder / "plans" / f"{row.instance}.json": plan.encode()})
            append([row.against(best[row.instance])], settings.folder)
            tell((i + 1) / len(todo))
    finally:
        rows = read_rows(settings.folder)
        write_table(rows, settings.folder)
        note(rows, instances, settings.ledger or settings.folder / "ledger.jsonl")
    return rows


def _tasks(instances: Sequence[Instance], plugged: Sequence[Plugin], settings: BenchSettings) -> Iterator[SolveTask]:
    for instance in instances:
        online = instance.objective == ONLINE
        usual = ONLINE_USUAL[instance.arguments["ground"]] if online else USUAL[instance.objective]
        methods = [*((name, None) for name in settings.methods or usual), *((x.name, x) for x in plugged)]
        for (method, plugin), seed, deadline in product(methods, settings.seeds, settings.deadlines):
            yield SolveTask(instance, method, seed, deadline, settings, plugin=plugin)


def results(todo: Sequence[T], settings: BenchSettings, work: Callable[[T], R]) -> Iterator[R]:
    """Yield what `work` makes of each task, in processes by joblib, as they come."""
    require_choice(settings.engine, "engine", ENGINES)
    if settings.jobs == 1 and settings.engine == "loky":
        yield from map(work, todo)
        return
    try:
        import joblib

        if settings.engine == "ray":
            from ray.util.joblib import register_ray

            register_ray()
        elif settings.engine == "dask":
            from dask.distributed import Client

            Client.current(allow_global=True) if _has_client() else Client(n_workers=settings.jobs)
    except ImportError as error:
        words = f"{settings.engine!r} needs {error.name}; {extra(ENGINES[settings.engine])}"
        raise InstanceError("engine", words) from None
    with joblib.parallel_config(settings.engine, n_jobs=settings.jobs):
        if settings.engine != "ray":
            yield from joblib.Parallel(return_as="generator_unordered", batch_size=1)(map(joblib.delayed(work), todo))
            return
        left = iter(todo)  # its backend has no generators: rows come by as many as there are processes
        while batch := list(islice(left, settings.jobs)):
            yield from joblib.Parallel()(map(joblib.delayed(work), batch))


def _has_client() -> bool:
    from dask.distributed import default_client

    try:
        return default_client() is not None
    except ValueError:
        return False


def note(rows: Iterable[BenchRow], instances: Iterable[Instance], path: Path) -> int:
    """Note in a ledger what the rows know better than it, and return how much; bounds only of methods of gangplan."""
    ledger = read_manifest(path)
    known = {x.id: ledger.get(x.id, x) for x in instances}
    new = dict[str, Instance]()
    for row in rows:
        before = new.get(row.instance, known.get(row.instance))
        if before is None or before.hash != row.hash:
            continue
        proved = row.objective == ONLINE or ours(row.objective, row.method)  # online the ground says it
        bound = row.bound if proved and row.status in tuple(Status) else None
        by, of = (row.method if x in ("", row.method) else f"{row.method}: {x}" for x in (row.by, row.bound_by))
        after = replace(before, zero=row.zero).better(row.value, None, by, row.seconds)
        after = after.better(None, bound, of, row.seconds)
        if after != before:
            new[row.instance] = after
    if new:
        write_manifest((ledger | new).values(), path)
    return len(new)
