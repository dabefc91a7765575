"""When ops can start at the earliest, if inputs are either made on the same device, one by one, or sent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.arrays import FloatArray

from .model import Csr, Prepared
from .one_machine import one_machine
from .series import Half

_MOST = 40
"""Ops that are looked at together; fewer make the bound weaker, not wrong."""


def delayed_heads(p: Prepared) -> list[float]:
    """Return the least time at which each op can start, whatever the devices, seconds; see `earliest`."""
    sent = p.least_delay.tolist()
    return earliest(p.order.tolist(), p.predecessors, p.fastest, lambda u, v: sent[u])


def delayed_tails(p: Prepared) -> list[float]:
    """Return the least time from the end of each op to the end of all, seconds: the same with time reversed."""
    sent = p.least_delay.tolist()
    return earliest(p.order[::-1].tolist(), p.successors, p.fastest, lambda u, v: sent[v])


def delayed_length(p: Prepared, half: Half) -> float:
    """Return the least time between the first and the last op of a half, these left out, seconds."""
    n = len(half.ops)
    sent = p.least_delay[list(half.ops)].tolist()
    rows: list[list[int]] = [[] for _ in range(n)]
    for u, v in half.edges:
        rows[v].append(u)
    first = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    index = np.array([u for row in rows for u in row], dtype=np.int32)
    fastest = p.fastest[list(half.ops)]
    fastest[[0, -1]] = 0.0
    return earliest(list(range(n)), (first, index), fastest, lambda u, v: sent[u])[-1]


def earliest(order: list[int], relation: Csr, fastest: FloatArray, delay: Callable[[int, int], float]) -> list[float]:
    """Return the earliest start of each op, after Papadimitriou and Yannakakis (SIAM J. Comput. 1990).

    Op v starts at T. An input u that is made elsewhere is there no earlier than its own earliest start plus its time
    and its delay; if that is after T, u is on the device of v, and so on with the inputs of u, which must be there
    before the ops from u to v have to start. All those are on one device, one after the other: if Jackson's preemptive
    schedule ends after T, then T is too early. Ops may be duplicated for all this knows.
    """
    first, index = relation[0].tolist(), relation[1].tolist()
    seconds = fastest.tolist()
    head = [0.0] * len(order)

    def local(v: int, limit: float) -> tuple[dict[int, float], float]:
        """Return the ops that are on the device of v if that starts at `limit`, with what is to be done between the
        end of each and v, and the least start of v at which there are fewer."""
        tail: dict[int, float] = {}
        following = float("inf")
        rest = [(v, 0.0)]
        while rest:
            w, behind = rest.pop()
            for u in index[first[w] : first[w + 1]]:
                there = head[u] + seconds[u] + delay(u, w) + behind
                if there > limit and tail.get(u, -1.0) < behind and (u in tail or len(tail) < _MOST):
                    following = min(following, there)
                    tail[u] = behind
                    rest.append((u, behind + seconds[u]))
        return tail, following

    for v in order:
        before = index[first[v] : first[v + 1]]
        at = max((head[u] + seconds[u] for u in before), default=0.0)
        while len(before) > 1:
            together, following = local(v, at)
            least = one_machine([(head[u], seconds[u], behind) for u, behind in together.items()])
            if least <= at:
                break
            at = min(least, following)
        head[v] = at
    return head
