"""The textbook MILP of groups for ops, from a plan and a bound, by HiGHS."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gangplan.instances import precedence

from ...highs import TOLERANCE, minimise_rows
from ...plain import float_rows, refine
from ...run import Run
from ..sizes import whole
from ..textbook import Textbook
from .bounds import load_ceiling
from .plain import assignment
from .quotient import Quotient


def milp(run: Run, q: Quotient) -> None:
    """Minimise the maximum load by MILP and offer the plan found."""
    t, pipeline = _textbook(q), q.problem.variant == "contiguous"
    types = [int(i) for i in np.flatnonzero(q.counts)]
    fixed = [i for i in types for _ in range(q.counts[i])]
    largest = np.argsort(-q.work, kind="stable").tolist()

    def attempt(unit: float) -> None:
        model = float_rows(run, unit, partial(minimise_rows, by="milp"))

        def known(x: list[dict[int, Any]], z: Any) -> None:
            """Add the bound and (S): unless in a chain, the i-th largest group is on one of the first i devices."""
            model.row(model.units(min(unit, run.bound or 0.0)) * (1 - 10 * TOLERANCE), z)
            most = max(types, key=lambda i: int(q.counts[i]), default=0)
            slots = [s for s, i in enumerate(fixed) if i == most and not pipeline]
            for i, g in enumerate(largest[: len(slots)]):
                for s in slots[i + 1 :]:
                    model.row(x[g][s], 0)

        assignment(model, run, "milp", t, [types if pipeline else [i] for i in fixed], q.plan, known)

    refine(run, "milp", 0, load_ceiling(q), attempt, t.covers.found)


def _textbook(q: Quotient) -> Textbook:
    """Lay out groups for ops."""
    earlier, later = (ends.tolist() for ends in precedence(q.problem.graph))
    pipeline = q.problem.variant == "contiguous"
    return Textbook(
        time=q.time.tolist(),
        nets=[(cost, sorted(pins)) for pins, cost in q.nets],
        order=list(q.edges) if pipeline else [*zip(earlier, later, strict=True)],
        end_of=range(q.n_groups) if pipeline else q.group_of.tolist(),
        together=[],
        kind=[],
        count=q.counts.tolist(),
        host=q.host.tolist(),
        sizes=[whole(q.memory, limit, len(q.group_of)) for limit in q.capacity.tolist()],
        limits=q.capacity,
        op_of=q.group_of,
    )
