"""The registry: every method for step time by its name."""

from __future__ import annotations

from ...method import Method, Suite
from ...run import Run
from .bounds import impossible, path_bound
from .contiguous import contiguous
from .critical_path import critical_path
from .enumeration import optimum
from .heft import heft
from .list_schedule import list_schedule
from .model import Prepared, prepare
from .random_problem import random_problem


def _prepare(run: Run) -> Prepared:
    p = prepare(run.problem)
    reason = impossible(p)
    if reason is not None:
        run.note(reason)
        run.prove_infeasible()
    else:
        run.raise_bound(path_bound(p), "critical path")
    return p


METHODS: dict[str, Method] = {
    "heft": Method(heft),
    "critical_path": Method(critical_path),
    "list_schedule": Method(list_schedule),
    "contiguous": Method(contiguous),
}
SUITE = Suite(METHODS, ("",), _prepare, optimum, random_problem)
