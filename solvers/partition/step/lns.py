"""Large-neighbourhood search with CP-SAT inside, for graphs too large for one model (Shaw, CP 1998)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import pairwise

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances import StepPlan
from gangplan.instances.arrays import FloatArray

from ...cpsat_solver import cpsat_solver, start_from
from ...processes import interruptible
from ...run import Run
from ..sizes import CoverCuts
from .cpsat import in_ticks
from .cpsat_model import StepModel, Transfers
from .model import Prepared
from .schedule import retime, sent_of
from .segments import Segments, Ticks

_NEAR = 2.0
_LEAST = 0.005
"""How far from its time a free op may go, of the makespan: `_NEAR` times the share of groups free, or `_LEAST`."""
_EFFORT = 0.5
"""Deterministic seconds for one neighbourhood: about as many seconds, but the same on every machine."""


class _PartialModel(StepModel):
    """A model in which what stays keeps its order, and what is free stays near its time."""

    def __init__(self, around: Neighbourhoods, free: Collection[int], stopped: Callable[[], bool]) -> None:
        self.around, self.free = around, free
        p = around.p
        self.arcs = around.arcs(free)
        fixed = {g: d for g, d in enumerate(around.device) if g not in free}
        cut = Segments((), np.zeros(p.n, dtype=np.int32), 1)
        super().__init__(
            around.ticks,
            cut,
            around.makespan,
            fixed=fixed,
            paths=around.paths(free, self.arcs),
            covers=around.covers,
            stopped=stopped,
        )

    def _devices(self) -> None:
        """(D) a device runs one op at a time. What is free comes between what stays long before and long after it."""
        around, model = self.around, self.model
        for u, v in self.arcs:
            model.add(self.start[v] >= self.end[u])
        moving = [v for v in around.order if self.group[v] in self.free]
        far = around.makespan * max(_NEAR * len(self.free) / self.p.n_groups, _LEAST)
        for d, staying in enumerate(around.staying(self.free)):
            starts, ends = around.start[staying], around.end[staying]
            here = [v for v in moving if d in self.x[self.group[v]]]
            near: set[int] = set()
            for v in here:
                # both ends grow along a device
                low = int(np.searchsorted(ends, around.start[v] - far, side="left"))
                high = int(np.searchsorted(starts, around.end[v] + far, side="right"))
                near.update(range(low, high))
                if low > 0:
                    model.add(self.start[v] >= self.end[staying[low - 1]]).only_enforce_if(self.x[self.group[v]][d])
                if high < len(staying):
                    model.add(self.start[staying[high]] >= self.end[v]).only_enforce_if(self.x[self.group[v]][d])
            rivals = [*here, *(staying[i] for i in sorted(near))]
            if here and len(rivals) > 1:
                model.add_no_overlap([self._interval(v, d) for v in rivals])

    def _groups(self) -> None:
        """(G) is left out: the order of what stays says most of it."""


class Neighbourhoods:
    """The neighbourhoods of one plan.

    Attributes:
        scale: ticks per second.
        start, end: of each op in ticks, as early as the plan's order allows.
        order: the ops by start; what takes no time before what starts with it.
        covers: groups that do not go together; it learns.
    """

    def __init__(self, p: Prepared, plan: StepPlan, unit: float, covers: CoverCuts | None = None) -> None:
        """Look at `plan`; `unit` is the makespan that the fineness of ticks is chosen for."""
        self.p, self.covers = p, covers if covers is not None else CoverCuts()
        self.ticks, self.scale = in_ticks(p, unit)
        early = retime(self.ticks, plan.device, plan.start, sent_of(plan))
        self.sent = sent_of(early)
        self.start = early.start
        took = self.ticks.time[p.type_of[plan.device], np.arange(p.n)]
        self.end: FloatArray = self.start + took
        self.makespan = int(self.end.max())
        self.device: list[int] = [int(plan.device[ops[0]]) for ops in p.members]
        self.order: list[int] = np.lexsort((p.rank, took, self.start)).tolist()

    def improve(self, free: Collection[int], run: Run) -> tuple[StepPlan | None, bool]:
        """Return the best plan in which only the groups `free` move, if worth a search, and whether none is better."""
        arcs = self.arcs(free)
        head, tail = self.paths(free, arcs)
        if int((head + self.least(free) + tail).max()) >= self.makespan:
            return None, True
        model = _PartialModel(self, free, lambda: run.stopped)
        sent = Transfers(model) if self.p.contention and not run.stopped else None
        if run.stopped:
            return None, False
        self._hint(model, sent)
        return self._solve(model, sent, run)

    def staying(self, free: Collection[int]) -> list[list[int]]:
        """Return the ops on each device that are not free, by start."""
        found: list[list[int]] = [[] for _ in range(self.p.n_devices)]
        group = self.p.group_of.tolist()
        for v in self.order:
            if group[v] not in free:
                found[self.device[group[v]]].append(v)
        return found

    def arcs(self, free: Collection[int]) -> list[tuple[int, int]]:
        """Return the neighbours in the order of what stays on each device."""
        return [pair for row in self.staying(free) for pair in pairwise(row)]

    def least(self, free: Collection[int]) -> Ticks:
        """Return the ticks each op takes at least, int64 (n,)."""
        p, ticks = self.p, self.ticks
        here = ticks.time[p.type_of[np.array(self.device)[p.group_of]], np.arange(p.n)]
        return np.where(np.isin(p.group_of, list(free)), ticks.fastest, here).astype(np.int64)

    def paths(self, free: Collection[int], arcs: list[tuple[int, int]]) -> tuple[Ticks, Ticks]:
        """Return the longest paths before and after each op, with the order and the delays of what stays."""
        p = self.p
        took = self.least(free).tolist()
        following: list[list[tuple[int, int]]] = [[] for _ in range(p.n)]
        level, delay, group = p.level.tolist(), self.ticks.delay.astype(np.int64).tolist(), p.group_of.tolist()
        for u, v in zip(*(ends.tolist() for ends in p.edges), strict=True):
            g, h = group[u], group[v]
            between = -1 if g in free or h in free else level[self.device[g]][self.device[h]]
            following[u].append((v, delay[between][u] if between >= 0 else 0))
        for u, v in arcs:
            following[u].append((v, 0))
        head, tail = [0] * p.n, [0] * p.n
        for u in self.order:
            ready = head[u] + took[u]
            for v, wait in following[u]:
                head[v] = max(head[v], ready + wait)
        for u in reversed(self.order):
            tail[u] = max((wait + took[v] + tail[v] for v, wait in following[u]), default=0)
        return np.array(head, dtype=np.int64), np.array(tail, dtype=np.int64)

    def _hint(self, model: StepModel, sent: Transfers | None) -> None:
        known = [*model.placed(self.device), (model.length[0], self.makespan)]
        known += [(s, int(self.start[v])) for v, s in enumerate(model.start)]
        if sent is not None:
            known += sent.values(self.device, [0], self.sent, self.end.tolist())
        start_from(model.model, known)

    def _solve(self, model: StepModel, sent: Transfers | None, run: Run) -> tuple[StepPlan | None, bool]:
        solver = cpsat_solver(run)
        solver.parameters.max_deterministic_time = _EFFORT
        # a second worker would look for neighbourhoods in the neighbourhood
        solver.parameters.num_workers = 1
        status = interruptible(lambda: solver.solve(model.model), solver.stop_search, lambda: run.stopped)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None, False
        where = [next(d for d, x in row.items() if solver.boolean_value(x)) for row in model.x]
        start = np.array([solver.value(s) for s in model.start], dtype=float)
        times = sent.times(solver.value, [0]) if sent is not None else None
        plan = retime(self.p, np.array(where, dtype=np.int32)[self.p.group_of], start, times)
        kept = self.covers.kept(run, plan, self.p.group_of, "lns")
        return kept, kept is not None and status == cp_model.OPTIMAL


def lns(run: Run, p: Prepared) -> None:
    """Free a part of the best plan, place and order it anew by CP-SAT, keep what is better; again and again.

    It ends when the run stops, or once everything was free at the same time and nothing better exists.
    """
    if run.plan is None or run.objective is None:
        return
    rng = np.random.default_rng(run.seed)
    choice = AdaptiveChoice(p, rng)
    unit = run.objective
    with run.phase("lns"):
        around = Neighbourhoods(p, run.plan, unit, covers := CoverCuts())
        while not run.stopped:
            i, free = choice.pick(around)
            plan, searched = around.improve(free, run)
            better = plan is not None and run.offer(plan, "lns")
            choice.learn(i, better, searched)
            if better and plan is not None:
                around = Neighbourhoods(p, plan, unit, covers)
            elif searched and len(free) == p.n_groups:
                return


Pick = Callable[[Neighbourhoods, int, np.random.Generator], set[int]]
"""Returns about so many groups to free."""


def window(around: Neighbourhoods, size: int, rng: np.random.Generator) -> set[int]:
    """Free what runs around one moment, and whatever is colocated with it."""
    moment = rng.uniform(0.0, float(around.end.max()))
    distance = np.maximum(around.start - moment, moment - around.end)
    return _first(around.p, np.lexsort((rng.random(around.p.n), distance)), size)


def devices(around: Neighbourhoods, size: int, rng: np.random.Generator) -> set[int]:
    """Free what two or three devices run around one moment: they may swap and share anew."""
    p = around.p
    count = min(int(rng.integers(2, 4)), p.n_devices)
    chosen = rng.choice(p.n_devices, count, replace=False)
    moment = rng.uniform(0.0, float(around.end.max()))
    distance = np.maximum(around.start - moment, moment - around.end)
    elsewhere = ~np.isin(np.array(around.device)[p.group_of], chosen)
    return _first(p, np.lexsort((distance, elsewhere))[: int((~elsewhere).sum())], size)


def subgraph(around: Neighbourhoods, size: int, rng: np.random.Generator) -> set[int]:
    """Free what is near one op in the graph, breadth first."""
    p = around.p
    seed = int(rng.integers(p.n))
    seen, queue = {seed}, [seed]
    free: set[int] = set()
    for v in queue:
        if len(free) >= size:
            break
        free.add(int(p.group_of[v]))
        near = [index[first[v] : first[v + 1]] for first, index in (p.predecessors, p.successors)]
        for u in rng.permutation(np.concatenate(near)).tolist():
            if u not in seen:
                seen.add(u)
                queue.append(u)
    return free


def critical(around: Neighbourhoods, size: int, rng: np.random.Generator) -> set[int]:
    """Free a stretch of what the makespan hangs on: ops without room to start later, and those beside them."""
    p = around.p
    head, tail = around.paths((), around.arcs(()))
    through = head + around.least(()) + tail
    # not the makespan: with contention waits for links are on no path
    tight = through >= through.max() * (1 - 1e-9)
    at = float(around.start[int(rng.choice(np.flatnonzero(tight)))])
    distance = np.abs(around.start - at) * np.where(tight, 0.3, 1.0)
    return _first(p, np.argsort(distance, kind="stable"), size)


PICKS: tuple[Pick, ...] = (window, devices, subgraph, critical)


class AdaptiveChoice:
    """Choose a pick by its recent success, as adaptive large-neighbourhood search does (Ropke and Pisinger, 2006).

    Each pick has a size of its own: it grows while neighbourhoods are searched to the end in vain, and shrinks when
    they are too large for that.
    """

    def __init__(self, p: Prepared, rng: np.random.Generator) -> None:
        self.p, self.rng = p, rng
        self.weight = np.ones(len(PICKS))
        self.size = np.full(len(PICKS), 20.0)

    def pick(self, around: Neighbourhoods) -> tuple[int, set[int]]:
        """Return which pick it is, and the groups to free."""
        i = int(self.rng.choice(len(PICKS), p=self.weight / self.weight.sum()))
        return i, PICKS[i](around, int(self.size[i]), self.rng)

    def learn(self, i: int, better: bool, searched: bool) -> None:
        """Take note of what came of pick `i`."""
        self.weight[i] = max(0.1, 0.8 * self.weight[i] + (0.4 if better else 0.0))
        if not better:
            self.size[i] *= 1.15 if searched else 0.8
            self.size[i] = min(max(self.size[i], 8.0), self.p.n_groups)


def _first(p: Prepared, ops: np.ndarray, size: int) -> set[int]:
    groups = dict.fromkeys(p.group_of[ops].tolist())
    return set(list(groups)[:size])
