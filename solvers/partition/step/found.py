"""What the searches hand one another: devices of groups, and when ops start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.instances import StepPlan
from gangplan.instances.arrays import FloatArray, IntArray

from .arrays import Workroom
from .model import Prepared
from .timing import placed


class Found(NamedTuple):
    """A plan: its makespan, the device of each group, a start for each op in their order, and its settings, if any."""

    length: float
    where: IntArray
    start: FloatArray
    settings: FloatArray | None = None


def devices_of(p: Prepared, plan: StepPlan | None) -> IntArray | None:
    """Return the device of each group in a plan, int64 (G,); `None` without a plan, or if it uses one left out."""
    if plan is None or plan.device.max() >= p.n_devices:
        return None
    return np.asarray(plan.device[[ops[0] for ops in p.members]], dtype=np.int64)


def plan_of(p: Prepared, room: Workroom, found: Found) -> StepPlan:
    """Return the plan with these devices of groups and this order of starts."""
    return placed(p, room, found.where, np.lexsort((p.arrays.topological, found.start)))
