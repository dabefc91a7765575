"""Every place where an option can be, for models that choose among them."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from .prepare import NODES, RAMP, Prepared
from .seated import Place


def places(p: Prepared, o: int) -> list[Place]:
    """Return the places of option o: (node, GPUs) of each node it holds; a pool is one node."""
    c, degree = p.cluster, int(p.gpus[o])
    if c.kind == RAMP:
        return [
            [(server, 1) for server in c.server[c.first[b] : c.first[b + 1]].tolist()]
            for b in np.flatnonzero(c.size == degree)
        ]
    if c.kind != NODES:
        return [[(0, degree)]]
    full, rest = divmod(degree, c.gpus)
    found: list[Place] = []
    for nodes in combinations(range(c.nodes), full):
        held = [(v, c.gpus) for v in nodes]
        if rest:
            found += [[*held, (v, rest)] for v in range(c.nodes) if v not in nodes]
        else:
            found.append(held)
    return found
