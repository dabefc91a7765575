"""Beam search over beginnings of plans; once nothing is left out, an exact search by dynamic programming."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, inf

from gangplan.instances.certificates.orders import OrderSearch
from gangplan.instances.certificates.windows import PLACE, effort

from ..run import Run

TRIES = [(width, places) for width in (1, 8, 256, 8192) for places in ((0, 0, 0), (1, 0, 2))[: 1 + (width <= 8)]]
"""Beginnings of as many passes each that are kept, and which kinds go first; where few are, B is also tried."""
_FIT = 5_000_000
"""Pairs of passes up to which heads and tails are those of `WindowsCertificate`: a second."""
_BEGIN = 5e-5
"""Seconds for each pass before a search can look at the clock."""
_FEW = 2000
"""Passes up to which a first plan is worth the tenths of a second that it takes, though the time be up."""


def beam(run: Run, prepared: object = None, tries: int | None = None) -> None:
    """Offer the plans of wider and wider beams, each better than the last; with a barrier, prove the best one.

    Without a barrier what is minimised is the longest that a device takes from its first pass to its last one where all
    begin as early as they can, which is only near to the seconds of a step.
    """

    problem = run.problem

    def look(_: int) -> None:
        if run.stopped and (run.plan is not None or problem.n_passes > _FEW):
            raise TimeoutError

    if problem.n_passes > max(_FEW, run.remaining() / _BEGIN):
        return
    search = OrderSearch(problem, fit=effort(problem) <= _FIT and not run.stopped)
    if problem.barrier:
        run.raise_bound(float(search.least * search.tick) * (1 - problem.n_passes * float(PLACE)), "beam")
    for width, search.places in TRIES[:tries]:
        known = problem.barrier and run.objective is not None
        goal = ceil(Fraction(run.objective or 0.0) / search.tick) if known else inf
        passes, complete = search.run(goal, look, width)
        if passes:
            orders: list[list[int]] = [[] for _ in range(problem.devices)]
            for x in passes:
                orders[search.device[x]].append(x)
            run.offer(problem.plan(orders), "beam")
        if complete and problem.barrier and run.objective is not None:
            run.raise_bound(run.objective * (1 - problem.n_passes * float(PLACE)), "beam")
        if complete or run.stopped:
            return
