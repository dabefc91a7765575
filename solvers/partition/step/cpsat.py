"""CP-SAT for the step: what it starts from, which plans are the same but for names, and what it proves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np

from gangplan.instances import StepPlan
from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.graph import connected

from ...cpsat_solver import cpsat_solver, minimise, start_from
from ...plain import attempts
from ...run import OPTIMAL_GAP, Run, never
from ..sizes import CoverCuts
from .cpsat_model import StepModel, Transfers
from .model import Prepared
from .schedule import Sent, retime, sent_of
from .segments import segments


def cpsat(run: Run, p: Prepared) -> None:
    """Minimise the makespan with CP-SAT, warm-started with the best plan; offers plans as they come."""
    covers = CoverCuts()
    for _ in attempts(run, np.inf, covers.found):
        with run.phase("cpsat model"):
            model = StepFormulation(p, run.objective, run.plan, covers=covers, stopped=lambda: run.stopped)
        if not run.stopped:
            with run.phase("cpsat"):
                _solve(run, model)


class StepFormulation:
    """The whole model of a problem, with a plan as its hint.

    Attributes:
        base: the model without symmetry and transfers.
        scale: ticks per second.
    """

    def __init__(
        self,
        p: Prepared,
        objective: float | None,
        plan: StepPlan | None,
        *,
        covers: CoverCuts | None = None,
        stopped: Callable[[], bool] = never,
    ) -> None:
        """Build it; no worse makespan than `objective`, that of `plan`, is looked for.

        `covers`: groups known not to go together; it learns.
        """
        self.p, self.stopped = p, stopped
        self.ceiling = objective if objective is not None else ceiling_of(p)
        self.ticks, self.scale = in_ticks(p, self.ceiling)
        exact = np.array_equal(self.ticks.time, p.time) and np.array_equal(self.ticks.delay, p.delay)
        # ops and what lies between them, each rounded down by less than a tick
        self._rounding = 0 if exact else 2 * p.n + 2
        most = int(self.ceiling * self.scale) + 1
        self.base = StepModel(self.ticks, segments(p), most, covers=covers, stopped=stopped)
        self.sent = Transfers(self.base) if p.contention and not stopped() else None
        self.families, self.tree = equal_parts(p), DeviceTree(p)
        if stopped():
            return
        self._symmetry()
        if plan is not None:
            self.hint(plan)

    def _symmetry(self) -> None:
        """(S) the i-th group in topological order is on no device that i - 1 others have to come before.

        (B) of equal parts each op of an earlier one starts no later than the same op of the next.
        """
        rank = self.tree.ranks()
        for i, g in enumerate(self._sequence()):
            for d, x in self.base.x[g].items():
                if rank[d] > i:
                    self.base.model.add(x == 0)
        for family in self.families:
            for one, next_ in pairwise(family):
                for u, v in zip(one, next_, strict=True):
                    self.base.model.add(self.base.start[u] <= self.base.start[v])

    def _sequence(self) -> list[int]:
        return list(dict.fromkeys(self.p.group_of[self.p.order].tolist()))

    def at_least(self, bound: float) -> None:
        """Let the makespan be no less than `bound` seconds."""
        ticks = ceil(bound * self.scale * (1 - OPTIMAL_GAP)) - self._rounding
        self.base.model.add(sum(self.base.length) >= min(ticks, self.base.ceiling))

    def hint(self, plan: StepPlan) -> None:
        """Give every variable the value it has in `plan`, devices and parts renamed as (S) and (B) want them."""
        device, start, sent = self.in_order(plan)
        base = self.base
        groups = [device[ops[0]] for ops in self.p.members]
        begin, length = self._begins(device, start)
        known = [*base.placed(groups), *zip(base.length, length, strict=True)]
        known += [(s, int(start[v]) - begin[int(base.cut.of[v])]) for v, s in enumerate(base.start)]
        if self.sent is not None:
            known += self.sent.values(groups, begin, sent, self._ends(device, start).tolist())
        start_from(base.model, known)

    def in_order(self, plan: StepPlan) -> tuple[IntArray, FloatArray, Sent]:
        """Return devices, starts and transfers of `plan` in ticks, as early as they can be, renamed."""
        first = [self.p.members[g][0] for g in self._sequence()]
        name = self.tree.canonical(plan.device[first].tolist())
        device = np.array([name[d] for d in plan.device.tolist()], dtype=np.int32)
        given: Sent = {(u, name[d]): at for (u, d), at in sent_of(plan).items()}
        early = retime(self.ticks, device, plan.start, given)
        start = early.start.copy()
        sent = sent_of(early)
        for family in self.families:
            for ops in zip(*family, strict=True):
                start[list(ops)] = np.sort(start[list(ops)])
                for d in range(self.p.n_devices):
                    pairs = [(u, d) for u in ops if (u, d) in sent]
                    sent.update(zip(pairs, sorted(sent[pair] for pair in pairs), strict=True))
        return device, start, sent

    def _begins(self, device: IntArray, start: FloatArray) -> tuple[list[int], list[int]]:
        cut = self.base.cut
        begin = [0]
        for j in range(1, cut.count):
            gate = cut.gate(j)
            assert gate is not None
            begin.append(int(start[gate]))
        ends = [*begin[1:], int(self._ends(device, start).max())]
        return begin, [b - a for a, b in zip(begin, ends, strict=True)]

    def _ends(self, device: IntArray, start: FloatArray) -> FloatArray:
        return start + self.ticks.time[self.p.type_of[device], np.arange(self.p.n)]

    def plan(self, value: Callable[[Any], int]) -> StepPlan:
        """Return the plan of a solution, its times exact; `value` gives the value of a variable."""
        base = self.base
        where = [next(d for d, x in row.items() if value(x)) for row in base.x]
        begin = np.concatenate([[0], np.cumsum([value(t) for t in base.length])])
        start = np.array(
            [begin[base.cut.of[v]] + (s if isinstance(s, int) else value(s)) for v, s in enumerate(base.start)]
        )
        sent = self.sent.times(value, begin.tolist()) if self.sent is not None else None
        return retime(self.p, np.array(where, dtype=np.int32)[self.p.group_of], start.astype(float), sent)


def _solve(run: Run, model: StepFormulation) -> None:
    if run.bound is not None:
        model.at_least(run.bound)
    solver = cpsat_solver(run)
    if model.p.problem.is_shop():
        # no linear programme says when ops of one machine end: without any, ft10 takes 2 s instead of 17
        solver.parameters.linearization_level = 0
        solver.parameters.extra_subsolvers.append("no_lp")  # the first of several workers

    def kept(value: Callable[[Any], int]) -> StepPlan | None:
        return model.base.covers.kept(run, model.plan(value), model.p.group_of, "cpsat")

    minimise(run, solver, model.base.model, model.scale, kept)


_FINENESS = 4_000_000
"""Ticks in the ceiling per task that may lie on one path: rounding costs a quarter of 1e-6 at most."""
MOST_TICKS = 1 << 40
"""Sums of so many stay far within 64 bits."""


def ceiling_of(p: Prepared) -> float:
    """Return seconds that suffice for any placement: one task after the other, each as slow as it can be."""
    slowest = np.where(np.isfinite(p.time), p.time, 0.0).max(axis=0)
    degree = np.minimum(np.bincount(p.edges[0], minlength=p.n), p.n_devices) if p.contention else 1
    sent = p.delay[p.used_levels].max(axis=0, initial=0.0) * degree
    return float(slowest.sum() + sent.sum())


def in_ticks(p: Prepared, ceiling: float) -> tuple[Prepared, float]:
    """Return the problem with all times in ticks, whole numbers rounded down, and the ticks of a second.

    As every time is rounded down, every schedule fits in as many ticks as it has seconds times the scale. The ceiling
    is `floor(ceiling * scale)` ticks; what is longer counts as twice that, equally forbidden. Where all is in whole
    seconds, as in shops, a tick is one of them: far fewer are far sooner searched.
    """
    units = min(_FINENESS * (p.n + 1), MOST_TICKS)
    scale = units / ceiling if ceiling > 0 else 1.0
    times = np.concatenate([p.time, p.delay])
    if ceiling < units and (np.floor(times) == times).all():
        units, scale = int(ceiling) + 1, 1.0

    def rounded(seconds: FloatArray) -> FloatArray:
        ticks = np.floor(np.minimum(seconds * scale, 2.0 * units))
        return np.where(np.isfinite(seconds), ticks, np.inf)

    return replace(p, time=rounded(p.time), delay=rounded(p.delay)), scale


class DeviceTree:
    """The devices as a tree of circles, the widest first, down to single ones; siblings of one shape may be swapped."""

    def __init__(self, p: Prepared) -> None:
        self.kind = list(zip(p.type_of.tolist(), p.capacity.tolist(), strict=True))
        self.levels = [*p.used_levels[-2::-1].tolist(), -1]
        self.level = p.level
        self.paths: list[tuple[int, ...]] = [
            tuple(int(np.flatnonzero(p.level[d] <= level)[0]) for level in self.levels) for d in range(p.n_devices)
        ]
        """The circles of each device, each named by its first device."""

    def ranks(self) -> IntArray:
        """Return how many other groups must be placed before one needs a device: the earlier siblings on its way.

        Devices are renamed so that of siblings of one shape an earlier one is used first. The first use of a sibling
        with i earlier ones then comes after the first uses of those, by i other groups; and so on inside it.
        """
        rank = np.zeros(len(self.kind), dtype=np.int32)
        for depth in range(len(self.levels)):
            seen: dict[Hashable, list[int]] = {}
            for d, path in enumerate(self.paths):
                if path[depth] == d:
                    seen.setdefault((path[:depth], self._shape(d, depth)), []).append(d)
            for circles in seen.values():
                for i, first in enumerate(circles):
                    for d, path in enumerate(self.paths):
                        if path[depth] == first:
                            rank[d] += i
        return rank

    def canonical(self, used: Sequence[int]) -> dict[int, int]:
        """Return new names for devices, so that along `used` earlier siblings are used first."""
        name: dict[tuple[int, ...], tuple[int, ...]] = {(): ()}
        taken: set[tuple[int, ...]] = set()
        for d in [*dict.fromkeys(used), *(d for d in range(len(self.kind)) if d not in used)]:
            path = self.paths[d]
            for depth in range(len(self.levels)):
                here, above = path[: depth + 1], name[path[:depth]]
                if here not in name:
                    shape = self._shape(path[depth], depth)
                    name[here] = next(
                        other[: depth + 1]
                        for e, other in enumerate(self.paths)
                        if other[:depth] == above
                        and other[: depth + 1] not in taken
                        and other[depth] == e
                        and self._shape(e, depth) == shape
                    )
                    taken.add(name[here])
        return {d: name[path][-1] for d, path in enumerate(self.paths)}

    def _shape(self, d: int, depth: int) -> Hashable:
        """Return what tells a circle's inside from that of others: equal shapes can be mapped on each other."""
        if depth == len(self.levels) - 1:
            return self.kind[d]
        inside = {path[depth + 1] for path in self.paths if path[depth] == d and self.paths[d][:depth] == path[:depth]}
        return tuple(sorted((self._shape(e, depth + 1) for e in inside), key=repr))


def equal_parts(p: Prepared) -> list[list[list[int]]]:
    """Return families of parts of the graph that do exactly the same on the same devices, such as micro-batches.

    A part is a connected component, its ops ascending. The i-th ops of all parts of a family are colocated and equally
    long, send as much, and have the same edges. So if some schedule gives the i-th ops certain starts, they can be
    handed out in the order of the parts: sorting keeps every precedence and moves nothing on any device or link.
    """
    families: dict[Hashable, list[list[int]]] = {}
    for part in connected(p.n, zip(*(ends.tolist() for ends in p.edges), strict=True)):
        place = {v: i for i, v in enumerate(part)}
        first, index = p.successors
        edges = tuple((i, place[w]) for i, v in enumerate(part) for w in index[first[v] : first[v + 1]].tolist())
        looks = np.concatenate([p.time[:, part], p.delay[:, part], p.group_of[None, part].astype(float)])
        families.setdefault((edges, looks.tobytes()), []).append(part)
    return [family for family in families.values() if len(family) > 1]
