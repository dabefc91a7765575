"""Where calls and host items stand in the line that a plan implies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from .reduced import Reduced


@dataclass(frozen=True)
class Positions:
    """The line: gap 0, call 0, gap 1, call 1, ...

    Attributes:
        call: the place of the accelerators of a plan among the calls; those in use first.
        first: the number of the call of each item; of an item on a host the number of the last call before it, or -1.
        after: how many calls are before each item; of an item on a host also that call.
        order: items as they get their inputs; those of a call stand together.
        members: the items of each call in use.
    """

    call: dict[int, int]
    first: list[int]
    after: list[int]
    order: list[int]
    members: dict[int, list[int]]


def positions(r: Reduced, slot: Sequence[int]) -> Positions:
    """Return the line of the plan with group g in slot `slot[g]`.

    Calls come in an order in which none waits for a later one; a host item stands right behind the last call
    it waits for, directly or not.
    """
    owner = [slot[g] if not r.slots[slot[g]].host else -1 - v for v, g in enumerate(r.group_of.tolist())]
    members: dict[int, list[int]] = {}
    for v, u in enumerate(owner):
        members.setdefault(u, []).append(v)
    inputs = {u: {owner[a] for v in items for a in r.neighbours[0][v]} - {u} for u, items in members.items()}
    outputs: dict[int, list[int]] = {u: [] for u in members}
    for u, waits in inputs.items():
        for w in waits:
            outputs[w].append(u)
    left = {u: len(waits) for u, waits in inputs.items()}
    queue: list[tuple[bool, int, int]] = []
    for u, count in left.items():
        if not count:
            heappush(queue, (u >= 0, members[u][0], u))
    call: dict[int, int] = {}
    level: dict[int, int] = {}
    order: list[int] = []
    while queue:
        _, _, u = heappop(queue)
        order += members[u]
        if u >= 0:
            call[u] = len(call)
            level[u] = call[u]
        else:
            level[u] = max((level[w] for w in inputs[u]), default=-1)
        for w in outputs[u]:
            left[w] -= 1
            if not left[w]:
                heappush(queue, (w >= 0, members[w][0], w))
    for s in r.callers:
        if s not in call:
            call[s] = len(call)
    first = [level[u] for u in owner]
    after = [level[u] if u >= 0 else level[u] + 1 for u in owner]
    return Positions(call, first, after, order, {s: members[u] for u, s in call.items() if u in members})
