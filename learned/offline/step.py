"""Step time: a rule is a setting of the list scheduler, of which one is HEFT."""

from __future__ import annotations

from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.verify import verify

from .recipe import GRAPHS, kernels_of, recipe_of, solve_with
from .task import Candidate, Task

if TYPE_CHECKING:
    from gangplan.solvers.partition.step.model import Prepared

    from .graphs import Split

RULES = 256
"""HEFT, some that put together what talks, and others that are drawn."""


class Lists:
    """List schedules, see `gangplan.learned.offline.task.Decoder`."""

    def __init__(self, p: Prepared, _: Any = None) -> None:
        from gangplan.solvers.partition.step.arrays import workroom
        from gangplan.solvers.partition.step.list_schedule import alone

        self.p, self.room, self.alone = p, workroom(p), alone(p)

    def decode(self, rule: int) -> Candidate | None:
        """Schedule by the settings of the rule; or put all on one device, or pack, where that is better."""
        from gangplan.solvers.partition.step.list_schedule import decode

        options = (self.alone, decode(self.p, self.room, drawn()[rule]))
        best = min((x for x in options if x is not None), key=lambda x: x.length, default=None)
        return self.packed if best is None else Candidate(best.length, best)

    @cached_property
    def packed(self) -> Candidate | None:
        """The plan of a packing of the memory, for where lists lead into a dead end."""
        from gangplan.solvers.partition.step.heft import pack
        from gangplan.solvers.partition.step.timing import placed

        where = pack(self.p)
        if where is None:
            return None
        plan = placed(self.p, self.room, where.astype(np.int64), np.argsort(-self.p.arrays.rank, kind="stable"))
        value = verify(self.p.problem, plan).objective
        return None if value is None else Candidate(value, plan)

    def join(self, candidates: list[Candidate]) -> Candidate | None:
        """Return none: schedules have no common one."""
        return None

    def plan(self, candidate: Candidate) -> Any:
        """Return its plan."""
        from gangplan.solvers.partition.step.list_schedule import Found, plan_of

        made = candidate.made
        return plan_of(self.p, self.room, made) if isinstance(made, Found) else made


@cache
def drawn() -> FloatArray:
    """Return the settings of each rule, float64 (rules, settings)."""
    from gangplan.solvers.partition.step.settings import HEFT, TOGETHER, draw

    some = [HEFT, *TOGETHER]
    return np.concatenate([some, draw(np.random.default_rng(0), RULES - len(some))])


def split(p: Prepared) -> Split:
    """Return the ops, and their edges as between the devices farthest apart."""
    from .graphs import Split

    kinds, count = np.unique(p.type_of, return_counts=True)
    first = [int(np.argmax(p.type_of == kind)) for kind in kinds]
    a, (u, v) = p.arrays, p.edges
    near = p.delay[p.used_levels[0], u] if len(p.used_levels) else a.way
    far = float(np.log1p(a.way.sum() / near.sum())) if near.sum() > 0 else 0.0
    return Split(
        np.array(p.time[kinds]), count.astype(np.int64), np.array(p.problem.graph.memory, np.float64), p.room[first],
        u.astype(np.int64), v.astype(np.int64), np.array(a.way), p.order.astype(np.int64), np.zeros(p.n),
        p.problem.graph.backward.astype(np.float64), p.group_of.astype(np.int64),
        (far, float(p.contention), len(np.unique(a.zone)) / p.n_devices),
    )  # fmt: skip


TASK = Task(
    "offline-step",
    "step",
    RULES,
    GRAPHS.schema,
    lambda given: GRAPHS.graph(split(given)),
    Lists,
    (("list_schedule", 0.3), ("local_search", 0.3), ("cpsat", 1.0)),
)
RECIPE = recipe_of(TASK, "the settings by which a list scheduler places the ops of a step")
gnn, kernels = partial(solve_with, TASK), partial(kernels_of, "step", "list_schedule")
