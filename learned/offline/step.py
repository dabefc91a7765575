"""Step time: scores correct the order in which HEFT takes ops, and say which stay where what they read was made."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances.verify import verify

from .recipe import GRAPHS, kernels_of, recipe_of, solve_with
from .task import Candidate, Lesson, Task

if TYPE_CHECKING:
    from gangplan.solvers.partition.step.model import Prepared

    from .graphs import Split

_MOST = 4.0
"""Times the way of an output that it is worth at most to have it read where it was made."""
_STAYS = 0.5
"""What that is worth at least, in ways, for ops that stay in an optimum; for others it is nothing."""


class Lists:
    """List schedules, see `gangplan.learned.offline.task.Decoder`."""

    def __init__(self, p: Prepared, _: Any = None) -> None:
        from gangplan.solvers.partition.step.arrays import workroom
        from gangplan.solvers.partition.step.list_schedule import alone
        from gangplan.solvers.partition.step.settings import HEFT, TOGETHER

        from .graphs import standard

        self.p, self.room, self.alone = p, workroom(p), alone(p)
        self.keys, self.settings = standard(-p.arrays.rank), (HEFT, *TOGETHER[: int(p.contention)])

    def decode(self, choice: Any) -> Candidate | None:
        """Schedule by HEFT with scores, with contention once more with what talks put together; or all on one device.

        Where all of these lead into a dead end the plan is that of a packing.
        """
        from gangplan.solvers.partition.step.list_schedule import decode
        from gangplan.solvers.partition.step.settings import prices_of

        p, a, scores = self.p, self.p.arrays, np.broadcast_to(choice, (self.p.n, 2))
        way = p.basis.edges[:, 1] * np.clip(scores[:, 1], -_MOST, _MOST)[p.edges[1]]
        options = [self.alone]
        for settings in self.settings:
            told = prices_of(p.basis, settings)
            more = told._replace(priority=told.priority - scores[:, 0] * (a.rank.std() / a.unit), same=told.same + way)
            options.append(decode(p, self.room, settings, more))
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

    def lesson(self, plan: Any) -> Lesson:
        """Return the order of starts, HEFT's where its plan is as good, and which ops stay with what they read."""
        p, value, classic = self.p, verify(self.p.problem, plan).objective, self.decode(0)
        if classic is not None and value is not None and classic.value <= value * (1 + 1e-9):
            plan = self.plan(classic)
        (u, v), no = p.edges, np.full(p.n, np.inf)
        costly = np.argsort(p.basis.edges[:, 1], kind="stable")  # of what an op reads the last way counts
        source = np.arange(p.n)
        source[v[costly]] = u[costly]
        stays, free = plan.device == plan.device[source], source == np.arange(p.n)
        rank = np.unique(plan.start, return_inverse=True)[1]
        return Lesson(rank, self.keys, np.where(stays & ~free, _STAYS, -no), np.where(stays, no, 0.0))


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
    (1, 1),
    GRAPHS.schema,
    lambda given: GRAPHS.graph(split(given)),
    Lists,
    (("list_schedule", 0.3), ("local_search", 0.3), ("cpsat", 1.0)),
)
RECIPE = recipe_of(TASK, "in which order a list scheduler takes the ops of a step, and which stay with what they read")
gnn, kernels = partial(solve_with, TASK), partial(kernels_of, "step", "list_schedule")
