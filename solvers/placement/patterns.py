"""Exact placement by patterns of nodes: those that may cost little by the prices of a bound, and a choice of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from typing import NamedTuple

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances.arrays import FloatArray

from ..cpsat_solver import Value, cpsat_solver, search
from ..run import Run
from .gpu_assignment import rows_of
from .options import Pricing, families, merged_kinds, options_of
from .pattern_bound import PatternBound
from .pattern_model import PatternModel
from .policies import take
from .prepare import PreparedBatch, Rows
from .state import PlacementState

_STEPS = 20_000_000
"""Sets of options that a search looks at."""
_ROUNDING = 1e-9
"""Of a bound, taken off for rounding."""


class Pattern(NamedTuple):
    """What is on a node of a kind: options, ascending."""

    kind: int
    options: tuple[int, ...]


class NodePatterns:
    """The patterns of all kinds of nodes, and what they cost beyond what their gangs pay.

    Attributes:
        kind: the kind of each node, int (m,); nodes: how many there are of each.
        kin, options, degree: the families of jobs, the options of each kind of node, workers of a gang of each family.
        bound: what the prices prove (Lagrange), see `pattern_bound`; `None` if some search was not complete.

    Args:
        prices: of each job, float64 (J,).
    """

    def __init__(self, run: Run, batch: PreparedBatch, prices: FloatArray) -> None:
        self.run, self.batch, self.kin = run, batch, families(batch)
        same = merged_kinds(batch)
        self.kind = same[batch.kind]
        self.nodes = np.bincount(self.kind, minlength=len(batch.sample))
        self.options = {
            q: options_of(batch, self.kin, q) for q in np.unique(same).tolist() if batch.allowed[:, q].any()
        }
        self.degree = [batch.jobs[j].workers[0] for j in self.kin.lead]
        count = np.array([len(jobs) for jobs in self.kin.members])
        self._pricing = {q: Pricing(batch, count, self.kin.apart, options) for q, options in self.options.items()}
        values = (batch.jobs[j].value for j in self.kin.lead)
        self._price = np.minimum(prices[self.kin.lead], [np.inf if value is None else value for value in values])
        self._least: dict[int, float] = {}
        for q in self.options:
            reduced, _, complete = self._search(q, 0.0, 1, best=True)
            if complete:
                self._least[q] = min(0.0, float(reduced.min(initial=0.0)))
        self.bound: float | None = None
        if len(self._least) == len(self.options):
            total = float(count @ self._price) + sum(self.nodes[q] * low for q, low in self._least.items())
            self.bound = total - _ROUNDING * (1 / batch.unit + abs(total))

    def _search(self, q: int, limit: float, most: int, *, best: bool) -> tuple[FloatArray, list[tuple[int, ...]], bool]:
        options = self.options[q]
        pays = self._price[options.family] * options.cover
        reduced, _, chosen, complete = self._pricing[q].search(self.run, pays, limit, most, best, _STEPS)
        return reduced, [tuple(sorted(x for x in row if x >= 0)) for row in chosen.tolist()], complete

    def within(self, margin: float, most: int) -> list[Pattern] | None:
        """Return the patterns of all plans that cost less than the bound and `margin`, `None` if they are too many."""
        found: list[Pattern] = []
        for q, least in self._least.items():
            _, chosen, complete = self._search(q, least + margin, most, best=False)
            if not complete or len(found) + len(chosen) > most:
                return None
            found += (Pattern(q, options) for options in chosen)
        return found

    def split(self, pattern: Pattern) -> list[int]:
        """Return the families of which a part is in a pattern, ascending."""
        options = self.options[pattern.kind]
        return [int(options.family[x]) for x in pattern.options if options.split[x]]

    def held(self, rows: list[Rows]) -> Counter[Pattern]:
        """Return on how many nodes of a placement each pattern is."""
        family = {j: f for f, jobs in enumerate(self.kin.members) for j in jobs}
        key = {
            (q, *task): i
            for q, options in self.options.items()
            for i, task in enumerate(np.stack([options.family, options.workers, options.servers], axis=1).tolist())
        }
        at: defaultdict[int, list[int]] = defaultdict(list)
        for j, row in enumerate(rows):
            for n, (w, p) in row.items():
                if w:
                    at[n].append(key[int(self.kind[n]), family[j], w, p])
        return Counter(Pattern(int(self.kind[n]), tuple(sorted(options))) for n, options in at.items())


def assign_nodes(known: NodePatterns, patterns: list[Pattern]) -> list[Rows]:
    """Return the rows of each job if the nodes hold `patterns`: those that have split gangs in common in one rack."""
    rack, kin = known.batch.group[1], known.kin
    free, waiting = set(range(len(rack))), [list(jobs) for jobs in kin.members]
    rows: list[Rows] = [{} for _ in known.batch.jobs]
    for pattern in sorted(patterns, key=known.split):
        options = known.options[pattern.kind]
        beside = Counter(int(rack[n]) for f in known.split(pattern) for n in rows[kin.lead[f]])
        idle = Counter(int(rack[n]) for n in free)
        able = (n for n in free if known.kind[n] == pattern.kind)
        node = max(able, key=lambda n: (beside[rack[n]], idle[rack[n]], -n))
        free.remove(node)
        for x in pattern.options:
            gangs = waiting[int(options.family[x])]
            rows[gangs.pop() if len(gangs) > 1 else gangs[0]][node] = int(options.workers[x]), int(options.servers[x])
    return rows


def place_servers(state: PlacementState) -> bool:
    """Put servers that are on no node yet on others than their workers', those with quiet NICs; return if they fit."""
    for j, job in enumerate(state.batch.jobs):
        here = state.rows[j]
        missing = job.servers - sum(p for _, p in here.values())
        if here and missing > 0:
            state.remove(j)
            alone = np.minimum(state.server_room(j, here), 1)
            alone[list(here)] = 0
            if int(alone.sum()) < missing:
                return False
            more = take(np.argsort(state.crossing, kind="stable"), alone, missing)
            state.add(j, {**here, **{n: (0, p) for n, p in more.items()}})
            state.settle()
    return True


def swap_nodes(state: PlacementState, known: NodePatterns) -> float:
    """Swap what two nodes of a kind in different racks hold while that helps; return the goal."""
    total, better, rack = state.exact(), True, state.batch.group[1]
    alike = [(a, b) for a, b in combinations(range(len(rack)), 2) if known.kind[a] == known.kind[b]]
    while better:
        better = False
        for a, b in ((a, b) for a, b in alike if rack[a] != rack[b]):
            before, there = state.snapshot(), {a: b, b: a}
            state.restore([{there.get(n, n): tasks for n, tasks in row.items()} for row in before])
            now = state.exact()
            if now < total * (1 - 1e-9):
                total, better = now, True
            else:
                state.restore(before)
    return total


_MOST = 30_000
"""Patterns of a model."""
_SHARE = 0.6
"""Of the time, for prices."""
_PORTFOLIO = 8
"""Workers from which on CP-SAT runs all of its strategies; of fewer, the one that sees the whole LP is done first."""
_FIRST = 0.0025
"""The first margin as a share of the bound; each is twice the one before."""


def patterns(run: Run, batch: PreparedBatch) -> None:
    """Raise the bound by prices, then choose among all patterns that may be in a plan below a margin or the best plan.

    A plan that beats the best one uses no pattern with a reduced cost beyond the gap; if all within a smaller margin
    are looked at, a better plan costs no less than the bound plus that margin.
    """
    relaxation = PatternBound(run, batch)
    with run.phase("prices"), run.share(_SHARE):
        relaxation.solve()
    if not run.stopped:
        choose(run, NodePatterns(run, batch, relaxation.prices()))


def choose(run: Run, known: NodePatterns) -> None:
    """Choose among the patterns within ever larger margins of the bound, see `patterns`."""
    if known.bound is None:
        return
    run.raise_bound(known.bound, "patterns")
    margin, last = _FIRST * max(1 / known.batch.unit, known.bound), 0.0
    while not run.stopped:
        gap = np.inf if run.objective is None else run.objective - known.bound
        margin = min(margin, gap * (1 + 1e-9))
        with run.phase("patterns within"):
            found = known.within(margin, _MOST)
        if found is None and margin > 2 * last > 0:
            margin = 2 * last  # the gap has too many, what is nearer may not
            continue
        with run.phase("patterns"):
            if found is None or not _choose(run, known, found, margin) or margin >= gap:
                return
        last = margin
        # twice what is nearly the gap would be most of the last model's work, done twice
        margin = 2 * margin if 3 * margin < gap else gap


def _choose(run: Run, known: NodePatterns, found: list[Pattern], margin: float) -> bool:
    model = PatternModel(known, found)
    state, beyond = PlacementState(known.batch), (known.bound or 0.0) + margin

    def placed(value: Value) -> None:
        chosen = [t for t, x in zip(found, model.x, strict=True) for _ in range(value(x))]
        state.restore(assign_nodes(known, chosen))
        if not place_servers(state) or not state.complete():
            return
        if run.objective is None or swap_nodes(state, known) < run.objective:
            run.offer(state.plan(), "patterns")

    def better(bound: float) -> None:
        value = min(bound / model.units, beyond, np.inf if run.objective is None else run.objective)
        run.raise_bound(value - _ROUNDING * (1 / known.batch.unit + abs(value)), "patterns")

    solver = cpsat_solver(run)
    solver.parameters.relative_gap_limit = 0.0  # an end of the search is to be one
    solver.parameters.linearization_level = 2
    if run.workers < _PORTFOLIO:
        solver.parameters.num_workers = 1
    solver.best_bound_callback = better
    if run.objective is not None:
        held = known.held(rows_of(known.batch, run.plan))
        for t, x in zip(found, model.x, strict=True):
            model.model.add_hint(x, held[t])
        model.model.add(model.total <= int(run.objective * model.units) + 1)
    status = search(run, solver, model.model, placed, "patterns")
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        better(solver.best_objective_bound)
    elif status == cp_model.INFEASIBLE and run.objective is not None:
        better(run.objective * model.units)
    return status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
