"""The registry: every method for schedules by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances.lazy import on_demand

from ..method import CPSAT, Method, Suite
from ..run import OPTIMAL_GAP, Run
from .bounds import bound
from .first_come import BY, first_come
from .grain import LONG, ROOM, rounded_up, suits_cpsat, suits_dual, suits_prices, suits_starts
from .prepare import PreparedJobs, ShiftedRun, prepare

if TYPE_CHECKING:
    from . import classic, enumeration, local_search, plain, starts
else:
    globals().update(on_demand(__package__, "classic enumeration local_search plain starts"))


def _prepare(run: Run) -> PreparedJobs:
    p = prepare(run.problem)
    stuck = np.flatnonzero((np.diff(p.first) == 0) & ~np.isfinite(p.price))
    if len(stuck):
        job = run.problem.jobs[stuck[0]]
        why = f"job {job.name} must run, and with none of its degrees it fits and is in time"
        run.prove_infeasible("each job alone", why)
        return p
    # however little time there is, there is a plan; lists of a long queue take less than this, and are better
    listed = p.n > LONG and p.n * p.nodes <= ROOM and not np.isfinite(p.deadline).any()
    if run.plan is None and run.deadline > run.started and not listed:
        _draft(run, p)
    if not len(p.seconds):  # no job ever fits: all are left out
        _draft(run, p)
        run.raise_bound(run.objective or 0.0, "each job alone")
    if run.stopped:
        return p
    value, name = bound(p)
    run.rounding = p.rounding
    if p.slack(value) > OPTIMAL_GAP * value:
        run.note(f"starts are rounded on a clock of such numbers: bounds leave {p.slack(value):.2g} for it")
    ShiftedRun(run, p).raise_bound(rounded_up(p, value * (1 - 1e-12)), name)
    return p


def _bare(run: Run) -> PreparedJobs:
    p = prepare(run.problem)
    run.rounding = p.rounding
    return p


def _draft(run: Run, p: PreparedJobs | None) -> None:
    found = None if p is None else first_come(p)
    if p is not None and found is not None:
        run.offer(p.plan(*found), BY)


def _start(run: Run, p: PreparedJobs, most: int | None = None) -> None:
    """Offer list schedules, of a long queue `most`, if there is no plan but that in which who comes first is first."""
    begins = run.plan is None or run.trace[-1].by == BY
    if begins and not run.stopped:
        if p.makespan:
            classic.dual(run, p)
        else:
            classic.lists(run, p, most)


def _shifted(method: Callable[..., None], **options: Any) -> Callable[[Run, PreparedJobs], None]:
    """Return `method` on a run whose plan, objective and bound are those of the prepared problem."""
    return lambda run, p: method(ShiftedRun(run, p), p, **options)


_BEGIN = _shifted(_start)
METHODS: dict[str, Method] = {
    "dual": Method(_shifted(classic.dual), suits=suits_dual),
    "lists": Method(_shifted(classic.lists)),
    "local_search": Method(_shifted(local_search.local_search), start=_BEGIN, draws=True),
    "lp": Method(_shifted(starts.lp), suits=suits_prices, start=_shifted(_start, most=1)),
    "starts": Method(_shifted(starts.starts), suits=suits_starts, start=_BEGIN),
    "cpsat": Method(_shifted(plain.cpsat), exact=True, suits=suits_cpsat, library=CPSAT, start=_BEGIN),
    "milp": Method(plain.plain_milp, exact=True, suits=plain.suits_milp, library="highspy", start=_BEGIN),
    "plain_cpsat": Method(plain.plain_cpsat, exact=True, suits=suits_cpsat, library=CPSAT),
    "plain_milp": Method(plain.plain_milp, exact=True, suits=plain.suits_milp, library="highspy"),
}
SUITE = Suite(METHODS, ("",), _prepare, enumeration.optimum, enumeration.random_problem, _draft, bare=_bare)
