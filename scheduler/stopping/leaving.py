"""Which running jobs would have to end for a waiting one to start: those with the least work left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import GangJob
from gangplan.solvers.placement.eviction import Eviction, Occupancy, cheapest_eviction
from gangplan.solvers.placement.online.capacity import Kind
from gangplan.solvers.placement.online.state import Long

from ..queueing.request import Request

if TYPE_CHECKING:
    from ..state import SchedulerState

SECONDS = 0.25
"""Time of the search."""


def occupied(
    state: SchedulerState, job: GangJob, cost: FloatArray, domain: Long, request: Request | None = None
) -> Occupancy:
    """Return who is in the way of a gang, as the placer sees it; running jobs are numbered by submission.

    So which one of equal sets is chosen does not depend on what happened since.

    Args:
        cost: of each running job if it leaves, infinite if it may not, float64 (jobs,).
        domain: see `domains`.
        request: of the gang: it does not come to nodes that a window closes before it would end.
    """
    placer = state.placer
    _, (node, _, _, serial), used = state.running.table()
    order = np.lexsort((node, serial))
    node, used, of = node[order], used[:, order], np.unique(serial[order], return_inverse=True)[1]
    blocks, most = placer.guarded[node] | job.whole_nodes, placer.most_on(job)
    if against := placer.against(job):
        blocks |= np.array([state.running.parts[row][0] in against for row in order.tolist()], bool)
    if request is not None:
        lasts = state.lasts(request, request.job.workers[0])
        most[state.calendar.closed(request, state.now, state.now + lasts)] = 0
    return Occupancy(placer.vacant.copy(), most, domain, of, node, used, blocks, cost)


def domains(state: SchedulerState, job: GangJob) -> Long:
    """Return the part of the network of each node, one of which has all of a gang, int64 (m,)."""
    part = state.placer.part(job)
    return np.zeros(state.fleet.n_nodes, np.int64) if part is None else part


def least_ends(state: SchedulerState, request: Request) -> tuple[list[str], Eviction] | None:
    """Return the jobs that have to end so that a waiting one has room with its fewest workers.

    What they cost is GPU seconds that they were expected to run still. `None` if they would not be enough.
    """
    job, jobs = (
        state.placed(request, request.job.workers[0]),
        sorted(state.running.values(), key=lambda x: x.request.serial),
    )
    left = np.array([x.left(state.now) * (x.gpus or 1) for x in jobs])
    occupancy, need = occupied(state, job, left, domains(state, job), request), np.array(Kind.workers(job).need)
    found = cheapest_eviction(occupancy, need, job.workers[0], time_limit=SECONDS)
    return None if found is None else ([jobs[i].name for i in found.jobs], found)
