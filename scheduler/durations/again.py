"""Predict waiting jobs anew as others finish.

Else jobs that are alike were in an order of chance: each by what was known when it came, so that who came later could
pass who waits, again and again. Jobs that may be stopped keep what they came with: a change of their order costs stops.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING

from .spread import Work

if TYPE_CHECKING:
    from ..state import SchedulerState

MOST = 16
"""Jobs that are predicted anew in a decision, in turn: about a millisecond."""


def predict_again(state: SchedulerState) -> None:
    """Predict the next waiting jobs anew, unless all have been since the last job finished."""
    estimates = state.estimates
    if estimates.learned:
        estimates.learned, estimates.stale = False, len(state.waiting)
    estimates.stale = min(estimates.stale, len(state.waiting))
    if not estimates.stale:
        return
    count, known = min(MOST, estimates.stale), dict[object, Work]()  # jobs that are alike are predicted once
    turn, waiting = estimates.turn, state.waiting.values()
    behind = (request for request in waiting if request.serial > turn)
    for request in list(islice(chain(behind, waiting), count)):
        estimates.turn = request.serial
        if not request.work or request.price is not None:
            continue
        job, terms = request.job, request.terms
        like = job.model, job.workers, job.worker, terms.user, terms.title, terms.queue, terms.limit, request.guess
        if like not in known:
            known[like] = estimates.predict(job, terms, request.guess)
        if known[like] != request.work:
            state.estimate(replace(request, work=known[like]).aged(request.done))
    estimates.stale -= count
