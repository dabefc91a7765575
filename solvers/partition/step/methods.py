"""The registry: every method for step time by its name."""

from __future__ import annotations

from collections.abc import Callable

from ...method import CPSAT, Method, Suite, lazily
from ...run import Run
from ..draft import draft
from .bounds import delay_bound, impossible, path_bound
from .contiguous import contiguous
from .critical_path import critical_path
from .enumeration import optimum
from .heft import heft
from .list_schedule import list_schedule
from .model import Prepared, prepare
from .random_problem import random_problem
from .series_bound import series_bound

_SHARE, _SHARE_IF_SCARCE = 0.15, 0.3
"""What the bound from the series may take of the time that is left; more where memory forces cuts."""


def _prepare(run: Run) -> Prepared:
    p = prepare(run.problem)
    if p.partial:
        run.note(f"only the first {p.n_devices} devices are used, and nothing is proved: they make too many pairs")
        return p
    reason = impossible(p)
    if reason is not None:
        run.note(reason)
        run.prove_infeasible()
    else:
        run.raise_bound(path_bound(p), "critical path")
    return p


def _bounds(run: Run, p: Prepared) -> None:
    if p.partial:
        return
    if not run.stopped:
        delay_bound(run, p)
    # most of what it finds it finds at once
    with run.share(_SHARE_IF_SCARCE if p.memory_binds else _SHARE):
        if not run.stopped:
            series_bound(run, p)


def _seeded(method: Callable[[Run, Prepared], None]) -> Callable[[Run, Prepared], None]:
    """Give `method` a plan to start from if there is none."""

    def run_seeded(run: Run, p: Prepared) -> None:
        for start in (heft, contiguous):
            if run.plan is None and not run.stopped:
                start(run, p)
        if not run.stopped:
            method(run, p)

    return run_seeded


def _at_most(literals: int, transfers: int) -> Callable[[Prepared], bool]:
    """Accept problems of so many places and levels, and with contention of so many ways to send something."""

    def suits(p: Prepared) -> bool:
        k = p.n_devices
        ways = p.n * k * (k - 1) if p.contention else 0
        return not p.partial and p.n_groups * k + len(p.edges[0]) * len(p.used_levels) <= literals and ways <= transfers

    return suits


_local_search = lazily("numba", "partition.step.local_search", "local_search")
_lns = lazily("ortools", "partition.step.lns", "lns")
_cpsat = lazily("ortools", "partition.step.cpsat", "cpsat")
_cpsat_below = lazily("ortools", "partition.step.cpsat", "cpsat", below=True)
_milp = lazily("pulp", "partition.step.milp", "milp")
METHODS: dict[str, Method] = {
    "heft": Method(heft),
    "critical_path": Method(critical_path),
    "list_schedule": Method(list_schedule),
    "contiguous": Method(contiguous),
    "local_search": Method(
        _seeded(_local_search),
        library="numba",
        compiled=("solvers.partition.step.improve.annealing:anneal",),
    ),
    "lns": Method(_seeded(_lns), suits=_at_most(400_000, 40_000), library=CPSAT),
    "cpsat": Method(_seeded(_cpsat), exact=True, suits=_at_most(20_000, 40_000), library=CPSAT),
    "cpsat_below": Method(
        _seeded(_cpsat_below),
        exact=True,
        suits=_at_most(20_000, 40_000),
        library=CPSAT,
    ),
    "milp": Method(_seeded(_milp), exact=True, suits=_at_most(1_000, 400)),
    "bounds": Method(_bounds),
}
SUITE = Suite(METHODS, ("",), _prepare, optimum, random_problem, draft)
