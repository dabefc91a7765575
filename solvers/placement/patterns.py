"""Exact placement by patterns of nodes: column generation for the bound, CP-SAT to choose among those that matter."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from ortools.sat.python import cp_model

from gangplan.instances.graph import components

from ..cpsat_solver import Value, cpsat_solver, search
from ..run import Run
from .columns import Columns, Pattern
from .gpu_assignment import as_plan, rows_of
from .pattern_model import UNITS, PatternModel
from .prepare import PreparedBatch, Rows
from .state import PlacementState

_NODES = 32
"""Nodes that a server without one is tried on, those with most idle NICs."""


def assign_nodes(columns: Columns, patterns: list[Pattern], evenly: bool) -> list[Rows]:
    """Return the rows of each job if the nodes hold `patterns`: split gangs in one rack if that is easy, or evenly."""
    batch, kin = columns.batch, columns.kin
    rack = batch.members[1] if len(batch.members) > 1 else [0] * batch.n_nodes
    free: dict[tuple[int, int], list[int]] = defaultdict(list)
    for n in range(batch.n_nodes - 1, -1, -1):
        free[int(columns.kind[n]), rack[n]].append(n)
    racks = sorted(set(rack))
    waiting = [list(jobs) for jobs in kin.members]
    rows: list[Rows] = [{} for _ in batch.jobs]
    for group in _groups(columns, patterns):
        counts = Counter(pattern.kind for pattern in group)
        # the fullest rack that holds the group, else the emptiest and then the next
        able = [r for r in racks if all(len(free[q, r]) >= count for q, count in counts.items())]
        order = sorted(able or racks, key=lambda r: sum(len(free[q, r]) for q in counts), reverse=not able)
        used: Counter[int] = Counter()
        for pattern in group:
            q = pattern.kind
            left = [r for r in order if free[q, r]]
            r = min(left, key=lambda r: used[r]) if evenly else left[0]
            used[r] += 1
            node = free[q, r].pop()
            opts = columns.options[q]
            for x in pattern.options:
                f = int(opts.family[x])
                j = waiting[f].pop() if len(kin.members[f]) > 1 else kin.lead[f]
                rows[j][node] = int(opts.workers[x]), int(opts.servers[x])
    return rows


def place_servers(state: PlacementState) -> bool:
    """Put the servers that are on no node yet, gang by gang, where the goal is then least; return if they fit."""
    for j, job in enumerate(state.batch.jobs):
        here = state.rows[j]
        missing = job.servers - sum(p for _, p in here.values())
        while here and missing > 0:
            state.remove(j)
            best: tuple[float, Rows] | None = None
            room = state.server_room(j, here)
            able = np.flatnonzero(room > [here.get(n, (0, 0))[1] for n in range(len(room))])
            near = able[np.argsort(state.crossing[able], kind="stable")[:_NODES]].tolist()
            # of places that cost the same, the idle NIC: the next server may need what is left of the other
            for n in dict.fromkeys([*near, *(n for n in here if n in able)]):
                w, p = here.get(n, (0, 0))
                rows = {**here, n: (w, p + 1)}
                state.add(j, rows)
                total = state.settle()
                if best is None or total < best[0]:
                    best = total, rows
                state.remove(j)
            if best is None:  # no cores or memory for it
                return False
            here = best[1]
            missing -= 1
            state.add(j, here)
            state.settle()
    return True


def swap_nodes(state: PlacementState, columns: Columns) -> float:
    """Swap what nodes of a kind in different racks hold while that helps; return the goal."""
    batch = columns.batch
    rack = batch.members[1] if len(batch.members) > 1 else [0] * batch.n_nodes
    total, better = state.exact(), True
    while better:
        better = False
        tied = [n for n in range(batch.n_nodes) if any(len(state.rows[j]) > 1 for j in state.at[n])]
        for a in tied:
            for b in range(batch.n_nodes):
                if rack[a] == rack[b] or columns.kind[a] != columns.kind[b]:
                    continue
                before = state.snapshot()
                state.restore(_swapped(state, before, a, b))
                now = state.exact()
                if now < total * (1 - 1e-9):
                    total, better = now, True
                else:
                    state.restore(before)
    return total


def _swapped(state: PlacementState, rows: list[Rows], a: int, b: int) -> list[Rows]:
    there = {a: b, b: a}
    changed = {*state.at[a], *state.at[b]}
    return [{there.get(n, n): task for n, task in row.items()} if j in changed else row for j, row in enumerate(rows)]


def _groups(columns: Columns, patterns: list[Pattern]) -> list[list[Pattern]]:
    """Return the patterns that split gangs tie together, largest groups first."""
    parts: defaultdict[int, list[int]] = defaultdict(list)
    for i, pattern in enumerate(patterns):
        opts = columns.options[pattern.kind]
        for x in pattern.options:
            if opts.split[x]:
                parts[int(opts.family[x])].append(i)
    groups: dict[int, list[Pattern]] = {}
    for group, pattern in zip(tied(parts.values(), len(patterns)), patterns, strict=True):
        groups.setdefault(group, []).append(pattern)
    return sorted(groups.values(), key=len, reverse=True)


def tied(together: Iterable[Sequence[int]], count: int) -> list[int]:
    """Return a label for each of `count` things: those that `together` names in one go have the same."""
    pairs = np.array([(group[0], i) for group in together for i in group], dtype=np.int64).reshape(-1, 2)
    labels: list[int] = components(pairs[:, 0], pairs[:, 1], count).tolist()
    return labels


_MOST = 30_000
"""Patterns of a model."""
_SIZES = 1500, 4000, 10_000
"""Columns of ever larger models where all patterns within a margin are too many."""
_SHARE = 0.6
_PORTFOLIO = 8
"""Workers from which on CP-SAT runs all of its strategies; of fewer, the one that sees the whole LP is done first."""
_FIRST = 0.0025
"""The first margin as a share of the bound; each is twice the one before."""


def patterns(run: Run, batch: PreparedBatch) -> None:
    """Raise the bound by column generation, then choose among all patterns whose reduced cost is within the gap.

    A plan that beats the best one uses no pattern with a reduced cost beyond the gap; if all within a smaller margin
    are looked at, a better plan costs no less than the bound plus that margin.
    """
    with run.phase("columns"):
        columns = Columns(run, batch)
        if run.plan is not None:
            columns.start(rows_of(batch, run.plan))
        with run.share(_SHARE):
            columns.solve()
    if not run.stopped and columns.best is not None:
        choose(run, columns)


def choose(run: Run, columns: Columns) -> None:
    """Choose among the patterns within ever larger margins of the bound, see `patterns`."""
    margin, last = _FIRST * max(1.0, abs(columns.bound)), 0.0
    while not run.stopped:
        gap = float("inf") if columns.objective is None else columns.objective - columns.bound
        margin = min(margin, gap * (1 + 1e-9))
        with run.phase("patterns within"):
            found = columns.within(margin, _MOST)
        if found is None and margin > 2 * last > 0:
            margin = 2 * last  # the gap has too many, what is nearer may not
            continue
        if found is None:
            _restricted(run, columns)
            return
        with run.phase("patterns"):
            if not _choose(run, columns, found, margin) or margin >= gap:
                return
        last = margin
        # twice what is nearly the gap would be most of the last model's work, done twice
        margin = 2 * margin if 3 * margin < gap else gap


def _restricted(run: Run, columns: Columns) -> None:
    """Choose among the columns there are, the best first, where all within a margin are too many."""
    for size in _SIZES:
        if run.stopped or size > 2 * len(columns.patterns):
            return
        with run.phase("patterns restricted"), run.share(_SHARE):
            _choose(run, columns, columns.nearest(size), 0.0)


def _choose(run: Run, columns: Columns, found: list[Pattern], margin: float) -> bool:
    batch = columns.batch
    model = PatternModel(columns, found)
    state = PlacementState(batch)

    def placed(value: Value) -> None:
        chosen = [t for t, x in zip(found, model.x, strict=True) for _ in range(value(x))]
        for evenly in (False, True):
            _offer(run, columns, state, assign_nodes(columns, chosen, evenly))

    beyond = columns.bound + margin

    def better(bound: float) -> None:
        value = min(bound / UNITS, beyond)
        if columns.objective is not None:
            value = min(value, columns.objective)
        columns.raise_bound(value - 1e-9, "patterns")

    solver = cpsat_solver(run)
    solver.parameters.relative_gap_limit = 0.0  # an end of the search is to be one
    solver.parameters.linearization_level = 2
    if run.workers < _PORTFOLIO:
        solver.parameters.num_workers = 1
    solver.best_bound_callback = better
    if columns.objective is not None:
        held = columns.held(rows_of(columns.batch, run.plan))
        for t, x in zip(found, model.x, strict=True):
            model.model.add_hint(x, held[t.kind, t.options])
        model.model.add(model.total <= int(columns.objective * UNITS) + 1)
    status = search(run, solver, model.model, placed, "patterns")
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.UNKNOWN):
        better(solver.best_objective_bound)
    elif status == cp_model.INFEASIBLE and columns.objective is not None:
        better(columns.objective * UNITS)
    return status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)


def _offer(run: Run, columns: Columns, state: PlacementState, rows: list[Rows]) -> None:
    state.restore(rows)
    if not place_servers(state) or not state.complete():
        return
    if columns.objective is None or swap_nodes(state, columns) < columns.objective:
        run.offer(as_plan(state.batch, state.rows, lambda n: state.held[n]), "patterns")
