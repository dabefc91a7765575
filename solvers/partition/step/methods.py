"""The registry: every method for step time by its name."""

from __future__ import annotations

from ...method import Method, Suite
from ...run import Run
from .bounds import impossible, path_bound
from .enumeration import optimum
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


METHODS: dict[str, Method] = {}
SUITE = Suite(METHODS, ("",), _prepare, optimum, random_problem)
