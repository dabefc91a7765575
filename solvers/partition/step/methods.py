"""The registry: every method for step time by its name."""

from __future__ import annotations

from collections.abc import Callable

from ...method import Method, Suite
from ...run import Run
from .bounds import delay_bound, impossible, path_bound
from .contiguous import contiguous
from .critical_path import critical_path
from .enumeration import optimum
from .heft import heft
from .list_schedule import list_schedule
from .local_search import local_search
from .model import Prepared, prepare
from .random_problem import random_problem
from .series_bound import series_bound


def _prepare(run: Run) -> Prepared:
    p = prepare(run.problem)
    reason = impossible(p)
    if reason is not None:
        run.note(reason)
        run.prove_infeasible()
    else:
        run.raise_bound(path_bound(p), "critical path")
    return p


def _bounds(run: Run, p: Prepared) -> None:
    for bound in (delay_bound, series_bound):
        if not run.stopped:
            bound(run, p)


def _seeded(method: Callable[[Run, Prepared], None]) -> Callable[[Run, Prepared], None]:
    """Give `method` a plan to start from if there is none."""

    def run_seeded(run: Run, p: Prepared) -> None:
        for start in (heft, contiguous):
            if run.plan is None and not run.stopped:
                start(run, p)
        if not run.stopped:
            method(run, p)

    return run_seeded


METHODS: dict[str, Method] = {
    "heft": Method(heft),
    "critical_path": Method(critical_path),
    "list_schedule": Method(list_schedule),
    "contiguous": Method(contiguous),
    "local_search": Method(_seeded(local_search)),
    "bounds": Method(_bounds),
}
SUITE = Suite(METHODS, ("",), _prepare, optimum, random_problem)
