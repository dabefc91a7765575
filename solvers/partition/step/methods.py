"""The registry: every method for step time by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...method import CPSAT, Method, Referee, Suite
from ...run import Run
from .. import offer_draft
from .bounds import delay_bound, impossible, path_bound
from .contiguous import contiguous
from .heft import heft
from .model import Prepared, prepare
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


def _start(run: Run, p: Prepared) -> None:
    """Offer a plan if there is none."""
    for start in (heft, contiguous):
        if run.plan is None and not run.stopped:
            start(run, p)


def _at_most(literals: int, transfers: int) -> Callable[[Prepared], bool]:
    """Accept problems of so many places and levels, and with contention of so many ways to send something."""

    def suits(p: Prepared) -> bool:
        k = p.n_devices
        ways = p.n * k * (k - 1) if p.contention else 0
        return not p.partial and p.n_groups * k + len(p.edges[0]) * len(p.used_levels) <= literals and ways <= transfers

    return suits


def _list_schedule(run: Run, p: Prepared) -> None:
    from .list_schedule import list_schedule

    list_schedule(run, p)


def _listing() -> tuple[Any, ...]:
    from .annealing import anneal
    from .list_scheduler import build
    from .settings import union
    from .timing import polish

    return build, polish, union, anneal


def _local_search(run: Run, p: Prepared) -> None:
    from .annealing import local_search

    local_search(run, p)


def _annealing() -> tuple[Any, ...]:
    from .annealing import anneal

    return (anneal,)


def _lns(run: Run, p: Prepared) -> None:
    from .lns import lns

    lns(run, p)


def _cpsat(run: Run, p: Prepared) -> None:
    from .cpsat import cpsat

    cpsat(run, p)


def _cpsat_below(run: Run, p: Prepared) -> None:
    from .cpsat import cpsat

    cpsat(run, p, below=True)


def _referee() -> Referee:
    from .enumeration import optimum
    from .random_problem import random_problem

    return optimum, random_problem


_EXACT = _at_most(20_000, 40_000)
METHODS: dict[str, Method] = {
    "heft": Method(heft),
    "list_schedule": Method(_list_schedule, library="numba", kernels=_listing),
    "contiguous": Method(contiguous),
    "local_search": Method(_local_search, library="numba", kernels=_annealing, start=_start),
    "lns": Method(_lns, suits=_at_most(400_000, 40_000), library=CPSAT, start=_start),
    "cpsat": Method(_cpsat, exact=True, suits=_EXACT, library=CPSAT, start=_start),
    "cpsat_below": Method(_cpsat_below, exact=True, suits=_EXACT, library=CPSAT, start=_start),
    "bounds": Method(_bounds),
}
SUITE = Suite(METHODS, ("",), _prepare, _referee, offer_draft)
