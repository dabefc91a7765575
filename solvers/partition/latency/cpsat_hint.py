"""Every variable of the CP-SAT model and its value in a plan: a hint with gaps may be given up as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances.graph import topological_order

from .reduced import ReducedLatency

if TYPE_CHECKING:
    from .cpsat import LatencyModel


@dataclass(frozen=True)
class Toll:
    """Whether call s pays for a net between groups `pins`, holds some of them, holds them all."""

    pins: tuple[int, ...]
    s: int
    paid: Any
    some: Any = None
    every: Any = None


def values(m: LatencyModel, slots: list[int]) -> Iterator[tuple[Any, int]]:
    """Yield every variable with its value in the plan that has group g in slot `slots[g]`."""
    r = m.r
    where = positions(r, slots)
    call = [where.call.get(slot, -1) for slot in slots]
    for g, slot in enumerate(slots):
        yield from ((m.x[g][s], int(call[g] == s)) for s in m.calls)
        yield from ((h, int(slot == q)) for q, h in zip(m.hosts, m.h[g], strict=True))
    for v in range(r.n_items):
        yield from ((m.reached[v][s], int(where.first[v] >= s)) for s in m.calls)
        yield from ((m.behind[v][s], int(where.after[v] > s)) for s in m.calls)
    kinds = {s: r.slots[slot].kind for slot, s in where.call.items()}
    if len(m.kinds) > 1:
        yield from ((literal, int(kinds[s] == t)) for s, row in enumerate(m.y) for t, literal in row.items())
    yield from ((used, int(s in call)) for s, used in enumerate(m.used))
    load = [sum(m.units(r.group_time[kinds[s], g]) for g, c in enumerate(call) if c == s) for s in m.calls]
    costs = [m.units(cost) for a, uses, cost in r.nets if len({int(r.group_of[v]) for v in (a, *uses)}) > 1]
    for cost, toll in zip(costs * len(m.calls), m.tolls, strict=True):
        here = [call[g] == toll.s for g in toll.pins]
        paid = any(here) and not all(here)
        load[toll.s] += cost * paid
        yield toll.paid, int(paid)
        if toll.some is not None:
            yield toll.some, int(any(here))
            yield toll.every, int(all(here))
    yield from _times(m, slots, call, load, where)


def _times(
    m: LatencyModel, slots: list[int], call: list[int], load: list[int], where: Positions
) -> Iterator[tuple[Any, int]]:
    r = m.r
    before, _ = r.neighbours
    start = [0] * len(load)
    ready = [0] * r.n_items
    for v in where.order:
        g = int(r.group_of[v])
        inputs = [ready[u] for u in before[v] if call[g] < 0 or call[int(r.group_of[u])] != call[g]]
        if call[g] < 0:
            ready[v] = max(inputs, default=0) + m.units(r.time[r.slots[slots[g]].kind, v])
        else:
            # all members are at hand one after the other; the last has seen all inputs
            start[call[g]] = max(start[call[g]], max(inputs, default=0))
            for u in where.members[call[g]]:
                ready[u] = start[call[g]] + load[call[g]]
    yield from zip(m.ready, ready, strict=True)
    yield from zip(m.start, start, strict=True)
    yield from ((m.finish[s], start[s] + load[s]) for s in m.calls)
    yield m.z, max(ready)


@dataclass(frozen=True)
class Positions:
    """The line: gap 0, call 0, gap 1, call 1, ...

    Attributes:
        call: the place of the accelerators of a plan among the calls; those in use first.
        first: the number of the call of each item; of an item on a host the number of the last call before it, or -1.
        after: how many calls are before each item; of an item on a host also that call.
        order: items as they get their inputs; those of a call stand together.
    """

    call: dict[int, int]
    first: list[int]
    after: list[int]
    order: list[int]
    members: dict[int, list[int]]


def positions(r: ReducedLatency, slot: Sequence[int]) -> Positions:
    """Return the line of the plan with group g in slot `slot[g]`.

    Calls come in an order in which none waits for a later one; a host item stands right behind the last call
    it waits for, directly or not.
    """
    owner = [slot[g] if not r.slots[slot[g]].host else -1 - v for v, g in enumerate(r.group_of.tolist())]
    members: dict[int, list[int]] = {}
    for v, u in enumerate(owner):
        members.setdefault(u, []).append(v)
    inputs = {u: {owner[a] for v in items for a in r.neighbours[0][v]} - {u} for u, items in members.items()}
    units = sorted(members, key=lambda u: (u >= 0, members[u][0]))
    number = {u: i for i, u in enumerate(units)}
    ends = np.array([(number[w], number[u]) for u, waits in inputs.items() for w in waits], np.int32).reshape(-1, 2)
    call: dict[int, int] = {}
    level: dict[int, int] = {}
    order: list[int] = []
    for i in topological_order(len(units), ends[:, 0], ends[:, 1]).tolist():
        u = units[i]
        order += members[u]
        if u >= 0:
            call[u] = len(call)
            level[u] = call[u]
        else:
            level[u] = max((level[w] for w in inputs[u]), default=-1)
    for s in r.callers:
        if s not in call:
            call[s] = len(call)
    first = [level[u] for u in owner]
    after = [level[u] if u >= 0 else level[u] + 1 for u in owner]
    return Positions(call, first, after, order, {s: members[u] for u, s in call.items() if u in members})
