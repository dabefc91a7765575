"""Say why jobs wait, in words that stay as they are while the reason does: without times."""

from __future__ import annotations

from gangplan.scheduler import Scheduler
from gangplan.scheduler.queueing.admission import too_few
from gangplan.scheduler.queueing.queue_walk import in_order
from gangplan.scheduler.starting.seating import FULL

from .client import plain
from .view import SlurmJob, View

_COUNTED = 10
"""Number of jobs before one from which they are not counted, lest words change with each start."""


def reasons(scheduler: Scheduler, view: View) -> dict[str, str]:
    """Return why jobs wait that depend on others, or that the scheduler has wait, by what `scontrol` calls them."""
    found = {
        job.id: f"waits: dependency {plain(job.row['dependency'])}"
        for job in view.jobs.values()
        if job.waits and view.depends(job)
    }
    before = {name: place for place, name in enumerate(in_order(scheduler._state.queue))}
    for name in scheduler.waiting:
        job, piece = job_of(name, view)
        if job is not None and not piece:
            found[job.id] = f"waits: {_reason(scheduler, name, before.get(name, 0))}"
    return found


def _reason(scheduler: Scheduler, name: str, before: int) -> str:
    state, last = scheduler._state, scheduler._waits.get(name, FULL)
    if name in state.later.held:
        return "its time to begin has not come"
    request = state.waiting[name]
    degree = request.job.workers[0]
    if claim := state.notices.claims.get(name):
        return f"it starts after {', '.join(claim.after[:_COUNTED])}"
    if limit := state.refuses(request, degree):
        return limit
    if state.ground(request, degree).total < state.placed(request, degree).workers[0]:
        return too_few(state, request, degree)
    return last if last != FULL else f"no room, {before if before < _COUNTED else f'{_COUNTED} or more'} before it"


def job_of(name: str, view: View) -> tuple[SlurmJob | None, str]:
    """Return the job of a name in the scheduler, and the node if it is a piece."""
    whole, _, node = name.partition("~")[0].partition("@")
    return view.jobs.get(whole), node
