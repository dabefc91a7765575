"""Each node in turn for a gang that fits one, or for the rest of one that fills some: what small fleets can afford."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import IntArray

from .gang import Policy, compact
from .state import State

_LARGE = 256
"""Nodes beyond which the policies' own places must do."""
_NODES = 12


def minded(nodes: int) -> list[Policy]:
    """Return policies for a fleet of so many nodes: the k-th takes the node where the jobs mind k-th least."""
    return [_kth(k) for k in range(min(nodes, _NODES))] if nodes <= _LARGE else []


def _kth(k: int) -> Policy:
    def policy(state: State, j: int, degree: int, room: IntArray) -> dict[int, int]:
        most = int(room.max())
        rest = degree if degree <= most else degree % most
        able = np.flatnonzero(room >= rest)
        if not rest or len(able) <= k:
            return {}
        speeds, model = state.batch.problem.speeds, state.batch.model[j]
        mutual = state.present[able] @ (speeds.host[model] + speeds.host[:, model])
        if rest < degree:
            mutual = mutual + state.crossing[able]
        node = int(able[np.lexsort([able, state.free_gpu[able], mutual])[k]])
        if rest == degree:
            return {node: rest}
        others = room.copy()
        others[node] = 0
        if int(others.sum(dtype=np.int64)) < degree - rest:
            return {}
        return {node: rest, **compact(np.flatnonzero(others), others, degree - rest)}

    return policy
