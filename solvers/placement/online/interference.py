"""Least interference for gangs that come and go; an empty node is worth something.

rule = LeastInterference(fleet, speeds)
workers = rule.choose(room, degree, job)    # room: a `Vacancy`; node -> workers
rule.note(job, {node: (workers, servers)})  # it runs there now
rule.forget(job, {node: (workers, servers)})  # it has ended
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet, GangJob, SpeedModel

from ..policies import GangPolicy, Vacancy, take

RECENT = 64
"""Jobs that came last, whose mean weight an empty node is worth: a job to come would have it alone."""
_RACKS = 8
"""Of the racks that hold a gang, so many of the tightest and of the roomiest are looked into."""


_NODE = 0.1
"""What another node costs a gang, in parts of its weight."""


class LeastInterference:
    """Chooses the nodes of gangs by what they would lose to those there, and those there to them.

    The sum over the jobs on a node of what each of the two adds to the compute of the other, each by its weight; a node
    that nobody is on costs the mean weight of recent jobs instead, so that it is left to those that need it. The
    cheapest node that holds the gang is taken, of equals the fullest; a larger gang goes into one rack if one holds it,
    on few nodes or on cheap ones. A decision takes no random number. `recent`: the weights of the jobs that came last.
    """

    def __init__(self, fleet: Fleet, speeds: SpeedModel) -> None:
        self._host = np.asarray(speeds.host)
        self._index = {name: k for k, name in enumerate(speeds.models)}
        self._jobs = np.zeros((fleet.n_nodes, len(speeds.models)))
        self._weight = np.zeros((fleet.n_nodes, len(speeds.models)))
        self.recent: deque[float] = deque([1.0], RECENT)

    def policy(self, job: GangJob) -> GangPolicy:
        """Return `choose` for a job, in the form of `GANG_POLICIES`."""
        return lambda room, degree: self.choose(room, degree, job)

    def choose(self, room: Vacancy, degree: int, job: GangJob) -> dict[int, int]:
        """Return node -> workers for a gang of `degree` workers, no more than the room has in all."""
        return cheapest(room, degree, self._cost(job), job.weight * _NODE)

    def note(self, job: GangJob, rows: Mapping[int, tuple[int, int]]) -> None:
        """Enter a gang that runs: node -> (workers, servers)."""
        self.recent.append(job.weight)
        self._count(job, rows, 1)

    def forget(self, job: GangJob, rows: Mapping[int, tuple[int, int]]) -> None:
        """Take a gang off that has ended, from where it was noted."""
        self._count(job, rows, -1)

    def _count(self, job: GangJob, rows: Mapping[int, tuple[int, int]], sign: int) -> None:
        nodes, model = [node for node, (workers, _) in rows.items() if workers], self._index[job.model]
        self._jobs[nodes, model] += sign
        self._weight[nodes, model] += sign * job.weight

    def _cost(self, job: GangJob) -> FloatArray:
        model, empty = self._index[job.model], np.mean(self.recent)
        mutual = job.weight * (self._jobs @ self._host[model]) + self._weight @ self._host[:, model]
        return np.asarray(mutual + empty * (self._jobs.sum(axis=1) == 0))


def cheapest(room: Vacancy, degree: int, cost: FloatArray, node: float) -> dict[int, int]:
    """Return node -> workers on the cheapest node that holds the gang, or in one rack if one holds it.

    Args:
        cost: of being on each node, float64 (m,).
        node: what each node costs on top where several are taken.
    """
    free = room.free
    able = np.flatnonzero(room.room >= degree)
    if len(able):
        return {int(able[np.lexsort([able, free[able], np.round(cost[able], 9)])[0]]): degree}
    rack, nodes = room.tree.group[1], np.flatnonzero(room.room)
    holds = np.argsort(room.sums[0], kind="stable")
    holds = holds[room.sums[0][holds] >= degree]
    racks = dict.fromkeys([*holds[:_RACKS].tolist(), *holds[::-1][:_RACKS].tolist()])
    best: tuple[float, dict[int, int]] = (np.inf, {})
    for inside in [nodes[rack[nodes] == one] for one in racks] or [nodes]:
        few, cheap = -room.room[inside], np.round(cost[inside], 6)
        for keys in ([inside, cost[inside], few], [inside, few, cheap]):
            chosen = take(inside[np.lexsort(keys)], room.room, degree)
            found = float(cost[list(chosen)].sum()) + node * len(chosen)
            best = min(best, (found, chosen), key=lambda x: x[0])
    return best[1]
