"""Take a place that is good enough and breaks up least, the less is free the rather: gangs that come find room."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.simulator.snapshots import Long

from .environment import Environment
from .greedy import Greedy

_ABOVE = 0.1
"""Weight of a level, over that of the one below."""
_SAME = 1e-6
"""Share of what a job takes alone by which places may differ and cost the same."""


class Packing(Greedy):
    """As `Greedy`, but of the places that cost nearly the least, that which leaves least free on what it touches.

    They cost up to `slack` times used over free GPUs times what the job takes alone more than the best: where much is
    free, speed counts; where little is, room for gangs. GPUs that stay free count on the servers of a place and, a
    tenth as much each level up, on the groups below the rack.
    """

    def _chosen(self, env: Environment, job: int, tried: Long, cost: FloatArray, whole: bool) -> int:
        gpus, free = float(env.case.fleet.gpus.sum()), max(float(env.free[:, 0].sum()), 1e-3)
        margin = (self._slack * max(gpus - free, 0.0) / free + _SAME) * self.least(env, job)
        near = np.flatnonzero(cost <= cost.min() + margin)
        return int(near[np.argmin(left_over(env, job, tried[near]))])


def left_over(env: Environment, job: int, tried: Long) -> FloatArray:
    """Return the GPUs that stay free on what each place of a job, int64 (c, m, 2), touches, see `Packing`."""
    topology, weight = env.case.fleet.topology, 1.0
    free, used = env.free[:, 0], tried[:, :, 0] * env.case.jobs.worker[job, 0]
    found = ((free - used) * tried.any(axis=2)).sum(axis=1)
    for level, group in zip(topology.levels, topology.group, strict=False):
        if level.name == "rack":
            break
        weight *= _ABOVE
        inside = (group[:, None] == np.unique(group)).astype(np.float64)
        found = found + weight * ((free @ inside - used @ inside) * ((tried.any(axis=2) @ inside) > 0)).sum(axis=1)
    return np.asarray(found)
