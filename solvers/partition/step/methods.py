"""The registry: every method for step time by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...kernels import in_memory
from ...method import CPSAT, Method, Suite, compiled, on_demand, plain_methods
from ...run import Run
from .. import offer_draft
from .bounds import delay_bound, heads_and_tails, impossible, load_bound
from .heft import heft
from .model import Prepared, prepare
from .series_bound import series_bound

if TYPE_CHECKING:
    from . import (
        annealing,
        cpsat,
        enumeration,
        list_schedule,
        list_scheduler,
        lns,
        plain,
        random_problem,
        settings,
        timing,
        traffic,
    )
else:
    (
        annealing,
        cpsat,
        enumeration,
        list_schedule,
        list_scheduler,
        lns,
        plain,
        random_problem,
        settings,
        timing,
        traffic,
    ) = on_demand(
        __package__,
        "annealing cpsat enumeration list_schedule list_scheduler lns plain random_problem settings timing traffic",
    )

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
        head, tail = heads_and_tails(p)
        run.raise_bound(float((head + p.fastest).max()), "critical path")
        run.raise_bound(load_bound(p, head, tail), "load")
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
    if run.plan is None:
        _heft(run, p)


def _start_anyhow(run: Run, p: Prepared) -> None:
    """Offer a plan of next to no time if there is none."""
    if run.plan is None:
        offer_draft(run)


def _at_most(literals: int, transfers: int) -> Callable[[Prepared], bool]:
    """Accept problems of so many places and levels, and with contention of so many ways to send something."""

    def suits(p: Prepared) -> bool:
        k = p.n_devices
        ways = p.n * k * (k - 1) if p.contention else 0
        return not p.partial and p.n_groups * k + len(p.edges[0]) * len(p.used_levels) <= literals and ways <= transfers

    return suits


_DECODING = compiled(list_scheduler.build, timing.polish, timing.schedule, settings.union)


def _heft(run: Run, p: Prepared) -> None:
    """Run HEFT as compiled code where that has run already: on thousands of ops it is a hundred times as fast."""
    (list_schedule.heft if in_memory(_DECODING) else heft)(run, p)


_EXACT = _at_most(20_000, 40_000)
METHODS: dict[str, Method] = {
    "heft": Method(_heft),
    "list_schedule": Method(
        list_schedule.list_schedule,
        library="numba",
        kernels=lambda: (*_DECODING(), *compiled(annealing.anneal)()),
    ),
    "traffic": Method(
        traffic.traffic,
        library="numba",
        suits=traffic.decides,
        kernels=compiled(traffic.anneal_traffic, timing.polish, timing.schedule),
        start=_start_anyhow,
    ),
    "local_search": Method(
        annealing.local_search,
        library="numba",
        kernels=compiled(annealing.anneal, timing.schedule),
        start=_start,
        draws=True,
    ),
    "lns": Method(lns.lns, suits=_at_most(400_000, 40_000), library=CPSAT, start=_start, draws=True),
    "cpsat": Method(cpsat.cpsat, exact=True, suits=_EXACT, library=CPSAT, start=_start),
    "cpsat_below": Method(
        lambda run, p: cpsat.cpsat(run, p, below=True), exact=True, suits=_EXACT, library=CPSAT, start=_start
    ),
    "bounds": Method(_bounds),
    **plain_methods(plain, start=_start, rows_milp=plain.rows_milp),
}
SUITE = Suite(METHODS, ("",), _prepare, lambda: (enumeration.optimum, random_problem.random_problem), offer_draft)
