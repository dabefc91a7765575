"""Which running jobs leave so that a gang has room: the set that costs least, and who has the least work left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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


class Leaving:
    """The cheapest set of running jobs that leaves room for a gang: who preempts, defragments or explains asks this.

    Running jobs are numbered by submission, so that which of equal sets is chosen does not depend on what happened
    since.

    Args:
        state: it is not changed.
        gang: as the placer sees it.
        request: of the gang, if it waits: it does not come to nodes that a window closes before it would end.
        domain: parts of the network, one of which has to have all of the gang, int64 (m,), -1 for nodes in none; by
            default see `Placer.domain`.
    """

    def __init__(
        self, state: SchedulerState, gang: GangJob, request: Request | None = None, domain: Long | None = None
    ) -> None:
        placer = state.placer
        table = state.running.table()
        order = np.lexsort((table.node, table.serial))
        node, used, of = table.node[order], table.used[:, order], np.unique(table.serial[order], return_inverse=True)[1]
        kind = Kind.workers(gang)
        blocks, most = placer.guarded[node] | gang.whole_nodes, placer.most_on(kind)
        if against := placer.against(gang):
            blocks |= np.array([state.running.parts[row][0] in against for row in order.tolist()], bool)
        if request is not None:
            most[state.shut(request, request.job.workers[0])] = 0
        domain = placer.domain(kind) if domain is None else domain
        most[domain < 0] = 0
        self._need, self._workers = np.array(kind.need), gang.workers[0]
        self._occupancy = Occupancy(placer.vacant.copy(), most, domain, of, node, used, blocks, np.zeros(0))

    def cheapest(self, cost: FloatArray, seconds: float) -> Eviction | None:
        """Return the cheapest set that is found in so many seconds, and a bound; `None` if no set is enough.

        `cost` is that of each running job if it leaves, infinite if it may not, float64 (jobs,).
        """
        occupancy = replace(self._occupancy, cost=cost)
        return cheapest_eviction(occupancy, self._need, self._workers, time_limit=max(seconds, 0.0))

    def where(self, jobs: Sequence[int]) -> list[int]:
        """Return the parts of the network that have room for the gang once some jobs have left."""
        room = self._occupancy.workers(self._need, np.array(jobs, np.int64))
        return np.flatnonzero(np.bincount(self._occupancy.domain + 1, room)[1:] >= self._workers).tolist()


def least_ends(state: SchedulerState, request: Request) -> tuple[list[str], Eviction] | None:
    """Return the jobs that have to end so that a waiting one has room with its fewest workers.

    What they cost is GPU seconds that they were expected to run still. `None` if they would not be enough.
    """
    jobs = sorted(state.running.values(), key=lambda x: x.request.serial)
    left = np.array([x.left(state.now) * (x.gpus or 1) for x in jobs])
    found = Leaving(state, state.placed(request, request.job.workers[0]), request).cheapest(left, SECONDS)
    return None if found is None else ([jobs[i].name for i in found.jobs], found)
