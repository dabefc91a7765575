"""Every variable of the CP-SAT model and its value in a plan: a hint with gaps may be given up as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .positions import Positions, positions

if TYPE_CHECKING:
    from .cpsat import Model


@dataclass(frozen=True)
class Toll:
    """Whether call s pays for a net between groups `pins`, holds some of them, holds them all."""

    pins: tuple[int, ...]
    s: int
    paid: Any
    some: Any
    every: Any


def values(m: Model, slots: list[int]) -> Iterator[tuple[Any, int]]:
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
    if len(m.types) > 1:
        yield from ((literal, int(kinds[s] == t)) for s, row in enumerate(m.y) for t, literal in row.items())
    yield from ((used, int(s in call)) for s, used in enumerate(m.used))
    load = [sum(m.units(r.group_time[kinds[s], g]) for g, c in enumerate(call) if c == s) for s in m.calls]
    price = iter([(m.units(cost), toll) for (_, _, cost), toll in _priced(m)])
    for cost, toll in price:
        here = [call[g] == toll.s for g in toll.pins]
        paid = any(here) and not all(here)
        load[toll.s] += cost * paid
        yield toll.paid, int(paid)
        if toll.some is not None:
            yield toll.some, int(any(here))
            yield toll.every, int(all(here))
    yield from _times(m, slots, call, load, where)


def _priced(m: Model) -> Iterator[tuple[tuple[int, frozenset[int], float], Toll]]:
    r = m.r
    nets = [net for net in r.nets if len({int(r.group_of[v]) for v in (net[0], *net[1])}) > 1]
    return zip([*nets] * len(m.calls), m.tolls, strict=True)


def _times(m: Model, slots: list[int], call: list[int], load: list[int], where: Positions) -> Iterator[tuple[Any, int]]:
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
