"""The textbook model with groups for ops, from a plan and a bound, by CP-SAT and as a MILP by HiGHS."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gangplan.instances import PartitionPlan, precedence

from ...plain import PlainRows, by_cpsat, by_highs, float_rows, literal, refine
from ...run import Run
from ..sizes import whole
from ..textbook import Textbook
from .bounds import load_ceiling
from .plain import assignment
from .quotient import Quotient

_SHY = 1 - 1e-6
"""Share of the bound that HiGHS is told: its rows hold within a tolerance."""


def cpsat(run: Run, q: Quotient) -> None:
    """Minimise the maximum load with CP-SAT, from the best plan; offers plans as they come."""
    _solve(run, q, "cpsat")


def milp(run: Run, q: Quotient) -> None:
    """Minimise the maximum load by MILP and offer the plan found."""
    _solve(run, q, "milp")


def _solve(run: Run, q: Quotient, by: str) -> None:
    t, pipeline, exact = _textbook(q), q.problem.variant == "contiguous", by == "cpsat"
    begin, minimise = (PlainRows, by_cpsat) if exact else (float_rows, by_highs)
    types = [int(i) for i in np.flatnonzero(q.counts)]
    fixed = [i for i in types for _ in range(q.counts[i])]
    largest = np.argsort(-q.work, kind="stable").tolist()

    def attempt(unit: float) -> None:
        model = begin(run, unit, partial(minimise, by=by))

        def known(x: list[dict[int, Any]], z: Any) -> None:
            """Add the bound and (S): unless in a chain, the i-th largest group is on one of the first i devices."""
            least = model.units(min(unit, run.bound or 0.0))
            model.row(least if exact else least * _SHY, z)
            most = max(types, key=lambda i: int(q.counts[i]), default=0)
            slots = [s for s, i in enumerate(fixed) if i == most and not pipeline]
            for i, g in enumerate(largest[: len(slots)]):
                for s in slots[i + 1 :]:
                    model.row(x[g][s], 0)
            if run.plan is not None:
                for row, slot in zip(x, _slots(q, run.plan, fixed), strict=True):
                    model.start.update((literal(y), s == slot) for s, y in row.items())

        assignment(model, run, by, t, [types if pipeline else [i] for i in fixed], q.plan, known)

    refine(run, by, 0, load_ceiling(q), attempt, t.covers.found)


def _slots(q: Quotient, plan: PartitionPlan, kinds: list[int]) -> list[int]:
    """Return the slot of each group in a plan; of the devices of a type the one with the largest group is first."""
    first = np.unique(q.group_of, return_index=True)[1]
    if q.problem.variant == "contiguous":
        stage: list[int] = plan.stage[first].tolist()
        return stage
    device, kind, slot = plan.device[first].tolist(), q.problem.cluster.type_of, dict[int, int]()
    free = {t: [s for s, own in enumerate(kinds) if own == t] for t in {*kinds}}
    for g in np.argsort(-q.work, kind="stable").tolist():
        if device[g] not in slot:
            slot[device[g]] = free[int(kind[device[g]])].pop(0)
    return [slot[d] for d in device]


def _textbook(q: Quotient) -> Textbook:
    """Lay out groups for ops."""
    earlier, later = (ends.tolist() for ends in precedence(q.problem.graph))
    pipeline = q.problem.variant == "contiguous"
    return Textbook(
        time=q.time.tolist(),
        nets=[(cost, sorted(pins)) for pins, cost in q.nets],
        order=list(q.edges) if pipeline else [*zip(earlier, later, strict=True)],
        end_of=range(q.n_groups) if pipeline else q.group_of.tolist(),
        count=q.counts.tolist(),
        host=q.host.tolist(),
        sizes=[whole(q.memory, limit, len(q.group_of)) for limit in q.capacity.tolist()],
        limits=q.capacity,
        op_of=q.group_of,
    )
