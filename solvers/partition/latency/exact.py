"""The textbook model with items for ops, from a plan and a bound, by CP-SAT."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gangplan.instances import LatencyPlan

from ...plain import PlainRows, by_cpsat, literal, refine
from ...run import Run
from ..sizes import whole
from ..textbook import Textbook
from .bounds import ceiling
from .plain import programme
from .reduced import ReducedLatency


def cpsat(run: Run, r: ReducedLatency) -> None:
    """Minimise the latency with CP-SAT, from the best plan; offers plans as they come."""
    t, alike = _textbook(r), max(r.by_type.values(), key=len, default=[])

    def plan(device: list[int]) -> LatencyPlan:
        return r.plan([device[items[0]] for items in r.groups])

    def attempt(unit: float) -> None:
        # one worker may lower times a tick at a time
        model = PlainRows(run, unit, partial(by_cpsat, by="cpsat", instantiate=False))

        def known(x: list[dict[int, Any]], z: Any) -> None:
            """Add the bound, and (S): of equal accelerators the i-th group is on one of the first i."""
            model.row(model.units(min(unit, run.bound or 0.0)), z)
            for i, items in enumerate(r.groups[: len(alike)]):
                for s in alike[i + 1 :]:
                    model.row(x[items[0]][s], 0)
            slots = (None if run.plan is None else r.slots_of(run.plan)) or ()
            for items, slot in zip(r.groups, slots, strict=False):
                model.start.update((literal(y), s == slot) for v in items for s, y in x[v].items())

        programme(model, run, "cpsat", t, plan, known)

    refine(run, "cpsat", 0, ceiling(r), attempt, t.covers.found)


def _textbook(r: ReducedLatency) -> Textbook:
    """Lay out items for ops, slots for devices."""
    types = r.problem.cluster.device_types
    limits = np.array([np.inf if kind.memory is None else kind.memory for kind in types])
    sent = {(a, b) for a, consumers, _ in r.nets for b in consumers}
    free: dict[int, list[int]] = {}
    for a, b in r.edges:
        if (a, b) not in sent:
            free.setdefault(a, []).append(b)
    nets = [(cost, [a, *sorted(consumers)]) for a, consumers, cost in r.nets]
    return Textbook(
        time=r.time.tolist(),
        nets=[*nets, *((0.0, [a, *after]) for a, after in free.items())],
        together=[(items[0], v) for items in r.groups for v in items[1:]],
        kind=[slot.kind for slot in r.slots],
        host=[kind.host for kind in types],
        sizes=[whole(r.memory, limit, len(r.item_of)) for limit in limits.tolist()],
        limits=limits,
        op_of=r.item_of,
    )
