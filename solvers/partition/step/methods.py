"""The registry: every method for step time by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gangplan.instances import StepPlan
from gangplan.instances.lazy import on_demand

from ...method import CPSAT, Method, Suite, plain_methods, without_plan
from ...run import Run
from .. import offer_draft
from .bounds import delay_bound, heads_and_tails, impossible, load_bound
from .model import Prepared, prepare
from .series_bound import series_bound

if TYPE_CHECKING:
    from .. import referee, tiny
    from . import annealing, exact, list_schedule, plain
else:
    globals().update(on_demand(__package__, "annealing exact list_schedule plain"))
    globals().update(on_demand("gangplan.solvers.partition", "referee tiny"))

_SHARE, _SHARE_IF_SCARCE = 0.15, 0.3
"""What the bound from the series may take of the time that is left; more where memory forces cuts."""


def _prepare(run: Run) -> Prepared:
    p = prepare(run.problem)
    if p.partial:
        run.note(f"only the first {p.n_devices} devices are used, and nothing is proved: they make too many pairs")
        return p
    if (reason := impossible(p)) is not None:
        run.prove_infeasible("sums", reason)
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


def _suits_cpsat(p: Prepared) -> bool:
    k = p.n_devices
    ways = p.n * k * (k - 1) if p.contention else 0
    return not p.partial and p.n_groups * k + len(p.edges[0]) * len(p.used_levels) <= 20_000 and ways <= 40_000


def _repair(p: Prepared, plan: StepPlan) -> StepPlan:
    from .schedule import retime, sent_of

    return retime(p, plan.device, plan.start, sent_of(plan))


_start = without_plan(list_schedule.heft)
METHODS: dict[str, Method] = {
    "heft": Method(list_schedule.heft),
    "list_schedule": Method(list_schedule.list_schedule),
    "local_search": Method(annealing.local_search, start=_start, draws=True),
    "cpsat": Method(exact.cpsat, exact=True, suits=_suits_cpsat, library=CPSAT, start=_start),
    "bounds": Method(_bounds),
    **plain_methods(plain, start=_start, rows_milp=plain.rows_milp, exact=False),
}
SUITE = Suite(METHODS, ("",), _prepare, referee.optimum, tiny.random_step, offer_draft, repair=_repair)
