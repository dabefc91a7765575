"""Which running jobs would have to end for a waiting one to start: those with the least work left."""

from __future__ import annotations

import numpy as np

from gangplan.solvers.placement.eviction import Eviction, Occupancy, cheapest_eviction
from gangplan.solvers.placement.online.capacity import Kind

from .queue import Request
from .state import ClusterState

SECONDS = 0.25
"""For the search."""


def least_ends(state: ClusterState, request: Request) -> tuple[list[str], Eviction] | None:
    """Return the jobs that have to end so that a waiting one has room with its fewest workers.

    What they cost is GPU seconds that they were expected to run still. `None` if they would not be enough.
    """
    job, placer, now = state.placed(request, request.job.workers[0]), state.placer, state.now
    _, (node, *_), used = state.running.table()
    names = list(state.running)
    number = {name: i for i, name in enumerate(names)}
    of = np.array([number[name] for name, _ in state.running.parts], np.int64)
    against = placer.against(job)
    blocks = np.array([name in against for name, _ in state.running.parts], bool)
    blocks |= placer.guarded[node] | job.whole_nodes
    left = np.array([x.left(now) * (x.gpus or 1) for x in state.running.values()])
    kind, part = Kind.workers(job), placer.part(job)
    domain = np.zeros(state.fleet.n_nodes, np.int64) if part is None else part
    occupancy = Occupancy(
        placer.vacant.copy(), placer.most_on(job), domain, of, node.copy(),
        used.copy(), blocks, left,
    )  # fmt: skip
    found = cheapest_eviction(occupancy, np.array(kind.need), job.workers[0], time_limit=SECONDS)
    return None if found is None else ([names[i] for i in found.jobs], found)
