"""Step time: the network prices what a list scheduler does; with prices of 0 that is HEFT."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.verify import verify

from .recipe import kernels_of, recipe_of, solve_with
from .task import Candidate, Lesson, Task

if TYPE_CHECKING:
    from gangplan.solvers.partition.step.model import Prepared

    from .graphs import Split

_COSTS = ("load", "backlog", "opens", "fill", "idle", "last", "moved")
"""As `gangplan.solvers.partition.step.list_scheduler.COSTS`, which takes an import of compiled code."""
PRICES = ("priority", *_COSTS, "same", "same_far", "near_far")
"""Of an op: what is added to its rank; the price of each of `_COSTS`; what it is worth that a reader shares its device,
and, of the time of its output on the farthest way, that one is on its device or near it."""
JOINS = ("device", "device_work", "zone", "zone_work")
"""Of all ops, the mean counts: from what time under way on ops are joined for good, on one device or in one zone, never
below 1, and how much work is joined at most."""
SCORES = (*PRICES, *JOINS)
_SCALE = np.array([0.5, 0.3, 0.3, 0.3, 0.3, 0.1, 0.1, 0.5, 0.1, 0.3, 0.3, 1.0, 1.0, 1.0, 1.0])
"""What a score of one means, so that all are as delicate."""
_QUIET = 0.5
"""Scores that are no larger change nothing: the least price breaks ties, which HEFT's plans depend on."""
_DIGITS = 3
"""Of priorities in mean ops: ops that are alike are to be taken in turn."""
_PATH = 0.05
"""A priority of one is this share of the longest path, or a mean op."""
_FINER = 1.5
"""With each more of a score of joins the time under way falls by a factor of exp(this)."""
_FIRST = 3.0
"""Mean ops of time under way from which on ops are joined with a score of 1."""
_ZONE = 1.0
"""Logarithm of the work of a zone, in even loads of its devices, with a score of 0."""
_TAUGHT = 400
"""Pairs of ops, and edges, of one plan that are taught at most."""
_ROUNDS = 4
"""Of `polish`."""


class Lists:
    """List schedules of scores, see `gangplan.learned.offline.task.Decoder`."""

    def __init__(self, p: Prepared) -> None:
        from gangplan.solvers.partition.step.arrays import workroom
        from gangplan.solvers.partition.step.list_schedule import alone

        self.p, self.room, a = p, workroom(p), p.arrays
        self.alone = alone(p)
        self.far = p.basis.edges[:, 1]
        self.unit = max(1.0, _PATH * float(a.rank.max(initial=0.0)) / a.unit)

    def decode(self, scores: FloatArray) -> Candidate | None:
        """Schedule by the prices that scores mean; or put all on one device, or pack, where that is better."""
        from gangplan.solvers.partition.step.list_schedule import Found
        from gangplan.solvers.partition.step.list_scheduler import Prices, build, empty_state
        from gangplan.solvers.partition.step.settings import clustered
        from gangplan.solvers.partition.step.timing import polish

        p, a = self.p, self.p.arrays
        s = np.sign(scores) * np.maximum(np.abs(scores) - _QUIET, 0) * _SCALE
        u = p.edges[0]
        prices = Prices(
            np.round(s[:, 0] * self.unit, _DIGITS),
            np.ascontiguousarray(s[:, 1:8]),
            s[u, 8] + s[u, 9] * self.far,
            s[u, 10] * self.far,
        )
        a, label = clustered(a, p, self._joins(s[:, len(PRICES) :].mean(axis=0)))
        state, options = empty_state(a, self.room), [self.alone]
        if build(a, prices, state, p.memory_binds):
            start, finish = self.room.start.copy(), self.room.finish.copy()
            length = polish(a, self.room, state.where, start, finish, _ROUNDS)
            options.append(Found(length, state.where if label is None else state.where[label], start))
        best = min((x for x in options if x is not None), key=lambda x: x.length, default=None)
        return self.packed if best is None else Candidate(best.length, best)

    @staticmethod
    def _joins(means: FloatArray) -> FloatArray:
        """Return settings that only join ops; a list scheduler needs no others, as each op has its prices."""
        from gangplan.solvers.partition.step.settings import SETTINGS

        device, device_work, zone, zone_work = np.clip(means, -3, 3).tolist()
        limits = (
            _FIRST * np.exp(-_FINER * (device - 0.5)) if device > 0.5 else 0.0, 1.0, np.exp(device_work),
            _FIRST * np.exp(-_FINER * (zone - 0.5)) if zone > 0.5 else 0.0, 1.0, np.exp(_ZONE + zone_work),
        )  # fmt: skip
        return np.array([0.0] * (len(SETTINGS) - len(limits)) + [*limits])

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
        """Return none: two schedules have no common one."""
        return None

    def plan(self, candidate: Candidate) -> Any:
        """Return its plan."""
        from gangplan.solvers.partition.step.list_schedule import Found, plan_of

        made = candidate.made
        return plan_of(self.p, self.room, made) if isinstance(made, Found) else made


def split(p: Prepared) -> Split:
    """Return the ops, and their edges as between the devices farthest apart."""
    from .graphs import Split

    kinds, count = np.unique(p.type_of, return_counts=True)
    first = [int(np.argmax(p.type_of == kind)) for kind in kinds]
    a, (u, v) = p.arrays, p.edges
    near = p.delay[p.used_levels[0], u] if len(p.used_levels) else a.way
    far = float(np.log1p(a.way.sum() / near.sum())) if near.sum() > 0 else 0.0
    servers = len(np.unique(a.zone)) / p.n_devices
    return Split(
        np.array(p.time[kinds]), count.astype(np.int64), np.array(p.problem.graph.memory, np.float64),
        p.room[first], u.astype(np.int64), v.astype(np.int64), np.array(a.way), p.order.astype(np.int64), np.zeros(p.n),
        p.problem.graph.backward.astype(np.float64), p.group_of.astype(np.int64),
        (far, float(p.contention), servers),
    )  # fmt: skip


def lesson(decoder: Lists, plan: Any) -> Lesson:
    """Say which ops come first on their device, and which edges stay on one."""
    p = decoder.p
    by_device = np.lexsort((plan.start, plan.device))
    a, b = by_device[:-1], by_device[1:]
    a, b = (x[plan.device[a] == plan.device[b]] for x in (a, b))
    rank, (u, v) = p.arrays.rank / (p.arrays.unit * decoder.unit), p.edges
    rng = np.random.default_rng(0)
    pairs, edges = rng.permutation(len(a))[:_TAUGHT], rng.permutation(len(u))[:_TAUGHT]
    a, b, u, v = a[pairs], b[pairs], u[edges], v[edges]
    return Lesson(
        np.concatenate([a, u]).astype(np.int64),
        np.concatenate([b, np.full(len(u), -1)]).astype(np.int64),
        np.repeat([SCORES.index("priority"), SCORES.index("same")], [len(a), len(u)]),
        np.concatenate([rank[a] - rank[b], np.zeros(len(u))]).astype(np.float32),
        np.concatenate([np.ones(len(a)), np.where(plan.device[u] == plan.device[v], 1, -1)]).astype(np.float32),
    )


TASK = Task(
    "offline-step",
    "step",
    len(SCORES),
    split,
    Lists,
    lesson,
    (("list_schedule", 0.3), ("local_search", 0.3), ("cpsat", 1.0)),
    1.0,
    (1.0, 0.0),
    0.3,
)
RECIPE = recipe_of(TASK, "the prices by which a list scheduler places the ops of a step")
gnn, kernels = partial(solve_with, TASK), partial(kernels_of, "step", "list_schedule")
