"""The registry: every method for pipelines by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gangplan.instances.certificates.windows import MOST, PLACE, WindowsCertificate, effort, starved
from gangplan.instances.lazy import on_demand

from ..method import CPSAT, Method, Suite, plain_methods, without_plan
from ..run import Run, in_time
from .beam import beam
from .published import published

if TYPE_CHECKING:
    from . import cpsat, local_search, plain, referee
else:
    globals().update(on_demand(__package__, "cpsat local_search plain referee"))

_LARGE = 20_000
"""Passes up to which CP-SAT has a model."""
_AT_ONCE, _A_SECOND = 200_000, 6_000_000
"""Pairs of passes that are compared before all else: a tenth of a second; and in a second."""


def _prepare(run: Run) -> Run:
    if (d := starved(run.problem)) is not None:
        words = f"device {d} has no room for one micro-batch in all of its stages"
        run.prove_infeasible("memory", f"memory: {words}, which holds them all before it goes back")
        return run
    with in_time(run):
        _draft(run)
    run.raise_bound(float(run.problem.load().max()) * (1 - run.problem.n_passes * float(PLACE)), "load")
    if effort(run.problem) <= _AT_ONCE:
        _bounds(run)
    return run


def _bounds(run: Run, prepared: object = None) -> None:
    """Raise the bound that certificates of windows prove."""
    if effort(run.problem) <= min(MOST, _A_SECOND * run.remaining()):
        run.raise_bound(float(WindowsCertificate(MOST).proved(run.problem)), "bounds")


def _draft(run: Run, prepared: object = None) -> None:
    if run.plan is None and not run.infeasible:
        published(run)
        if run.plan is None or not run.stopped:
            beam(run, tries=2)


def _suits(run: Run) -> bool:
    return bool(run.problem.n_passes <= _LARGE) and not plain.minute(run.problem)


METHODS: dict[str, Method] = {
    "published": Method(published),
    "beam": Method(beam),
    "bounds": Method(_bounds),
    "local_search": Method(local_search.local_search, start=without_plan(_draft), draws=True),
    "cpsat": Method(
        cpsat.cpsat, exact=True, suits=_suits, library=CPSAT,
        start=without_plan(_draft),
    ),
    **plain_methods(plain, start=without_plan(_draft)),
}  # fmt: skip
SUITE = Suite(METHODS, ("",), _prepare, referee.optimum, referee.random_problem, _draft)
