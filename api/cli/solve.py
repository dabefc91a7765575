"""`gangplan solve`: read, solve within the limit, print, write, draw."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from gangplan.instances import dump, verify
from gangplan.instances.errors import InstanceError
from gangplan.instances.quantities import quantity

from . import options
from .output import AS_JSON, Told, note, tell, write

LEAST = 0.05
"""Seconds a solve gets even if reading has used up the limit: enough for a plan."""
_MUCH = 0.5
"""Of the limit: where reading takes more, the result says so."""
_CERTIFICATE = "look for a certificate of the bound, for as long again, and write it"


def solve(
    context: typer.Context,
    file: options.File,
    given: options.Given,
    time_limit: Annotated[float, "for everything from start to answer; pictures come on top", "SECONDS"] = 30.0,
    method: Annotated[str, "auto or one of `gangplan methods`"] = "auto",
    seed: options.Seed = 0,
    workers: Annotated[int | None, "threads  [default: a thread a core]"] = None,
    gap: Annotated[float, "good enough: (objective - bound) / objective", "RATIO"] = 0.0,
    initial: Annotated[str | None, "a plan to start from", "PLAN", options.READ] = None,
    verbose: Annotated[bool, "say what each method did, and where time went"] = False,
    out: Annotated[str | None, "write the plan here", "PLAN", options.Output()] = None,
    certificate: Annotated[str | None, _CERTIFICATE, "FILE", options.Output()] = None,
    plot: options.Picture = None,
    panel: options.Panel = None,
) -> Told:
    """Find a plan for the problem in FILE, and a bound that no plan can beat.

    Exit code: 0 with a plan, 1 without one (INFEASIBLE, UNKNOWN), 2 for bad input. Ctrl-C gives the best plan so far.
    """
    from gangplan.hybrid import MethodFailed
    from gangplan.hybrid import solve as run_solve
    from gangplan.hybrid.table import entry_for

    from .report import as_blocks, as_data, from_start

    if not 0 < time_limit < float("inf"):
        raise InstanceError("time_limit", f"{time_limit!r} is not a positive number of seconds")
    problem = options.problem(file, given)
    options.check_panel(panel, type(problem))
    start = None if initial is None else _start(problem, initial)
    if method != "auto":
        entry_for(problem, method)
    before = time.perf_counter() - context.obj
    warnings.simplefilter("ignore", MethodFailed)  # its notes are in the report
    result = run_solve(
        problem, max(time_limit - before, LEAST), method=method, seed=seed, workers=workers, gap=gap, initial=start,
        display=not AS_JSON.get(), certify=certificate is not None,
    )  # fmt: skip
    result = from_start(result, before)
    if before > _MUCH * time_limit:
        slow = f"starting and reading took {quantity(before, 's', 3)} of the limit of {quantity(time_limit, 's', 3)}"
        result = replace(result, notes=(slow, *result.notes))
    files: tuple[tuple[str | None, str, Any], ...] = (
        (out, "plan", lambda _: f"{dump(result.plan)}\n"),
        (plot, "plan", lambda path: options.drawn(path, problem, result, name=Path(file).stem, panel=panel)),
        (certificate, "certificate", lambda _: f"{json.dumps(result.certificate)}\n"),
    )
    lacks = [(path, what) for path, what, _ in files if path and getattr(result, what) is None]
    note(*(f"there is no {what}, {path} is not written" for path, what in lacks))
    write(*((path, make) for path, what, make in files if (path, what) not in lacks))
    code = 0 if result.plan is not None else 1
    return tell(lambda: as_data(result), lambda: as_blocks(problem, result, verbose=verbose), code=code)


def _start(problem: Any, path: str) -> Any:
    plan = options.read_result(path)[0]
    try:
        verdict = verify(problem, plan)
    except InstanceError as error:
        raise InstanceError("initial", error.problem, path) from None
    if not verdict.ok:
        raise InstanceError("initial", f"is not feasible: {verdict.violations[0]}", path)
    return plan
