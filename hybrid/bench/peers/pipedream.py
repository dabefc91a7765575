"""PipeDream's recurrence (Narayanan et al., SOSP 2019) in plain Python, for one level of links and ample memory."""

from __future__ import annotations

import numpy as np

from gangplan.instances import StagesPlan, StagesProblem
from gangplan.solvers import Run


def pipedream(run: Run) -> None:
    """Minimise the slowest stage: best[j][m] is the least for ideal j on m devices, over its last stage's replicas.

    Raises:
        NotImplementedError: of other problems than it was made for.
    """
    if run.problem.objective != "stages" or len(getattr(run.problem.cluster.topology, "levels", ())) != 1:
        raise NotImplementedError("PipeDream's recurrence is for replicated stages on one level of links")
    problem: StagesProblem = run.problem
    devices = problem.cluster.n_devices
    source, target, sent = problem.forward_edges()
    forward = np.flatnonzero(~problem.graph.backward).tolist()
    owner = _owners(problem)
    seconds, held = problem.seconds()[0], problem.options().parameter_bytes[0]
    after: dict[int, list[int]] = {v: [] for v in forward}
    before: dict[int, list[int]] = {v: [] for v in forward}
    for u, v in zip(source.tolist(), target.tolist(), strict=True):
        after[u].append(v)
        before[v].append(u)
    ideals = _ideals(run, forward, before)
    if run.stopped:
        return
    work = dict.fromkeys(forward, 0.0)
    weights = dict(work)
    for op, v in enumerate(owner):
        work[v] += float(seconds[op])
        weights[v] += float(held[op])
    crossing = [sum(float(sent[u]) for u in ideal if any(v not in ideal for v in after[u])) for ideal in ideals]
    best: list[list[tuple[float, int, int]]] = [[(0.0, 0, 0)] * (devices + 1)]
    for j in range(1, len(ideals)):
        row = [(np.inf, 0, 0)] * (devices + 1)
        for i in range(j):
            if run.stopped:
                return
            if not ideals[i] < ideals[j]:
                continue
            part = ideals[j] - ideals[i]
            load, size = sum(work[v] for v in part), sum(weights[v] for v in part)
            ends = ([crossing[i]] if i else []) + ([crossing[j]] if j < len(ideals) - 1 else [])
            moved = max((float(problem.move(0, np.array([x]))[0]) for x in ends), default=0.0)
            for r in range(1, devices + 1):
                stage = max(load + float(problem.sync(0, r, np.array([size]))[0]), moved) / r
                for m in range(r, devices + 1):
                    value = max(best[i][m - r][0], stage)
                    if value < row[m][0]:
                        row[m] = (value, i, r)
        best.append(row)
    run.offer(_plan(problem, ideals, best, owner), "pipedream-dp")
    run.raise_bound(best[-1][devices][0], "pipedream-dp")


pipedream.objectives = ("stages",)  # type: ignore[attr-defined]


def _owners(problem: StagesProblem) -> list[int]:
    """Return the forward op that decides where each op is: itself, or that of its class."""
    graph = problem.graph
    leader = {c: v for v, c in enumerate(graph.colocation.tolist()) if c >= 0 and not graph.backward[v]}
    return [leader[c] if back else v for v, (c, back) in enumerate(zip(graph.colocation, graph.backward, strict=True))]


def _ideals(run: Run, ops: list[int], before: dict[int, list[int]]) -> list[frozenset[int]]:
    """Return all sets of ops with all that comes before them, small ones first."""
    found = {frozenset[int]()}
    border = [frozenset[int]()]
    while border and not run.stopped:
        ideal = border.pop()
        for v in ops:
            if v not in ideal and all(u in ideal for u in before[v]):
                larger = ideal | {v}
                if larger not in found:
                    found.add(larger)
                    border.append(larger)
    return sorted(found, key=lambda ideal: (len(ideal), sorted(ideal)))


def _plan(
    problem: StagesProblem, ideals: list[frozenset[int]], best: list[list[tuple[float, int, int]]], owner: list[int]
) -> StagesPlan:
    j, m = len(ideals) - 1, problem.cluster.n_devices
    parts: list[tuple[frozenset[int], int]] = []
    while j:
        _, i, r = best[j][m]
        parts.append((ideals[j] - ideals[i], r))
        j, m = i, m - r
    parts.reverse()
    stage_of = {v: s for s, (part, _) in enumerate(parts) for v in part}
    serves = [s for s, (_, r) in enumerate(parts) for _ in range(r)]
    serves += [-1] * (problem.cluster.n_devices - len(serves))
    stage = np.array([stage_of[v] for v in owner])
    return StagesPlan(problem.graph.names, stage, np.array(serves), np.ones(len(parts), dtype=int))
