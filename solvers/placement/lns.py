"""Large-neighbourhood search: a few nodes and all that is on them, placed anew by CP-SAT, over and over."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import PlacementProblem

from ..run import Run
from .best_case import BestCase
from .build import first
from .cpsat import cpsat, read_plan
from .patterns import patterns
from .prepare import Batch, Rows, suits_patterns
from .seats import tied
from .state import State

_NODES = 4
"""Of the first neighbourhoods; one more each time that none of some helps."""
_PAIRS = 5000
"""Pairs of jobs, times nodes, of a neighbourhood at most: what CP-SAT ends or improves in a moment."""
_SECONDS = 1.0
"""For one neighbourhood."""
_TRIES = 20
"""Neighbourhoods without a gain before they get larger."""


def lns(run: Run, batch: Batch) -> None:
    """Improve the best plan, or the best that the policies build, a few nodes at a time (Shaw 1998).

    A gang is drawn by what it costs more than it must. Its nodes are free, and others drawn by what the gangs there
    lose, whole groups tied by split gangs, so that a gang is free or not touched. These nodes and gangs are a small
    problem of their own, which CP-SAT solves from what is there. It does not see who else is on the links above, so
    what it finds is kept only if the whole batch gains.
    """
    state = first(run, batch)
    if state is None:
        return
    rng = np.random.default_rng(run.seed)
    best = BestCase(batch)
    floor = np.array([best.cost(j) for j in range(len(batch.jobs))])
    total, size, failed = state.exact(), _NODES, 0
    while not run.stopped and size <= batch.n_nodes:
        slack = np.maximum(np.array(state.cost) - floor, 0.0)
        nodes, jobs = _neighbourhood(state, slack, size, rng)
        before = state.snapshot()
        if jobs and _improved(run, state, nodes, jobs) and state.exact() < total * (1 - 1e-9):
            total, failed = state.total, 0
            if run.objective is None or total < run.objective:
                run.offer(state.plan(), "lns")
            continue
        state.restore(before)
        failed += 1
        if failed == _TRIES:
            size, failed = size + 1, 0


def _neighbourhood(state: State, slack: FloatArray, size: int, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Return nodes, and the jobs on them and no others: whole groups that split gangs tie together."""
    batch = state.batch
    group = tied((list(rows) for rows in state.rows if rows), batch.n_nodes)
    groups: dict[int, list[int]] = {}
    for n in np.flatnonzero(batch.usable).tolist():
        groups.setdefault(group[n], []).append(n)
    gain = np.full(batch.n_nodes, 1e-3 * max(1e-9, float(slack.max())))  # a node where all is well may give room
    for j, rows in enumerate(state.rows):
        for n in rows:
            gain[n] += slack[j]
    weight = np.array([gain[nodes].mean() for nodes in groups.values()])
    order = rng.choice(len(weight), len(weight), replace=False, p=weight / weight.sum())
    chosen: list[int] = []
    jobs = [j for j, rows in enumerate(state.rows) if not rows][:2]
    members = list(groups.values())
    for i in order.tolist():
        more = {j for n in members[i] for j in state.at[n]}
        count = len(chosen) + len(members[i])
        if count <= size and (len(jobs) + len(more)) ** 2 * count <= _PAIRS:
            chosen += members[i]
            jobs += sorted(more)
        if len(chosen) >= size:
            break
    return sorted(chosen), sorted(jobs)


def _improved(run: Run, state: State, nodes: list[int], jobs: list[int]) -> bool:
    """Place `jobs`, which have `nodes` to themselves, anew; return whether anything else was found."""
    batch = state.batch
    part = Batch(_part(batch, nodes, jobs))
    part.best = batch.best[jobs]  # rates alone are those on the whole fleet
    place = {n: i for i, n in enumerate(nodes)}
    start = State(part)
    start.restore([{place[n]: task for n, task in state.rows[j].items()} for j in jobs])
    inner = Run(part.problem, time_limit=min(_SECONDS, run.remaining()), workers=run.workers, seed=run.seed)
    inner.plan = start.plan()
    inner.objective = start.exact()
    before = inner.plan
    inner.callbacks = (lambda _: run.stopped,)
    (patterns if suits_patterns(part) else cpsat)(inner, part)
    if inner.plan is before:
        return False
    after: list[Rows] = state.snapshot()
    for j, rows in zip(jobs, read_plan(part, inner.plan), strict=True):
        after[j] = {nodes[i]: task for i, task in rows.items()}
    state.restore(after)
    return True


def _part(batch: Batch, nodes: list[int], jobs: list[int]) -> PlacementProblem:
    """Return the problem of some nodes and the jobs that are on them."""
    problem = batch.problem
    small = problem.fleet.at(nodes)
    names = {batch.jobs[j].name for j in jobs}
    free = [batch.jobs[j] for j in jobs]
    known = tuple(replace(job, apart=tuple(x for x in job.apart if x in names)) for job in free)
    running = tuple(x for x in problem.running if x.job in names and set(x.nodes) <= set(small.names))
    return replace(problem, fleet=small, jobs=known, running=running, mix=problem.expected())
