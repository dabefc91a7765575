"""Which running jobs would have to end for a waiting one to start: those with the least work left."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import GangJob
from gangplan.solvers.placement.eviction import Eviction, Occupancy, cheapest_eviction
from gangplan.solvers.placement.online.capacity import Kind
from gangplan.solvers.placement.online.state import Long

from .queue import Request
from .state import ClusterState

SECONDS = 0.25
"""Time of the search."""


def occupied(state: ClusterState, job: GangJob, cost: FloatArray, domain: Long) -> Occupancy:
    """Return who is in the way of a gang, as the placer sees it.

    Args:
        cost: of each running job if it leaves, infinite if it may not, float64 (jobs,).
        domain: the part of the network of each node, int64 (m,).
    """
    placer = state.placer
    _, (node, _, _, serial), used = state.running.table()
    number = np.array([x.request.serial for x in state.running.values()], np.int64)
    order = np.argsort(number)
    of = order[np.searchsorted(number[order], serial)]
    blocks = placer.guarded[node] | job.whole_nodes
    if against := placer.against(job):
        blocks |= np.array([name in against for name, _ in state.running.parts], bool)
    return Occupancy(placer.vacant.copy(), placer.most_on(job), domain, of, node.copy(), used.copy(), blocks, cost)


def domains(state: ClusterState, job: GangJob) -> Long:
    """Return the part of the network of each node, one of which has all of a gang, int64 (m,)."""
    part = state.placer.part(job)
    return np.zeros(state.fleet.n_nodes, np.int64) if part is None else part


def least_ends(state: ClusterState, request: Request) -> tuple[list[str], Eviction] | None:
    """Return the jobs that have to end so that a waiting one has room with its fewest workers.

    What they cost is GPU seconds that they were expected to run still. `None` if they would not be enough.
    """
    job, names = state.placed(request, request.job.workers[0]), list(state.running)
    left = np.array([x.left(state.now) * (x.gpus or 1) for x in state.running.values()])
    occupancy, need = occupied(state, job, left, domains(state, job)), np.array(Kind.workers(job).need)
    found = cheapest_eviction(occupancy, need, job.workers[0], time_limit=SECONDS)
    return None if found is None else ([names[i] for i in found.jobs], found)
