"""What plans are worth beside one another, where they run ops, and how that differs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gangplan.instances import GraphProblem, Plan, StagesPlan, Verdict, verify
from gangplan.instances.verify import clock_cost
from gangplan.solvers.run import OPTIMAL_GAP, relative_gap

from ..units import time_unit

Places = list[tuple[int, ...]]
"""The devices that run each op: one, or all that serve its stage."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A plan to compare.

    Attributes:
        path: its file.
        label: what to call it.
        problem: what it answers.
        key: the same for all plans that answer the same problem.
        plan: the plan.
        claims: what `solve --json` said of it; empty if the file holds only a plan.
        notes: what a reader should know.
    """

    path: str
    label: str
    problem: GraphProblem
    key: str
    plan: Plan
    claims: dict[str, Any]
    notes: tuple[str, ...] = ()

    def number(self, name: str) -> float | None:
        """Return the number that the file claims as `name`, `None` if it has none."""
        claim = self.claims.get(name)
        whole = isinstance(claim, int) and not isinstance(claim, bool) and abs(claim) <= sys.float_info.max
        return float(claim) if whole or isinstance(claim, float) else None  # type: ignore[arg-type]

    def text(self, name: str) -> str | None:
        """Return the text that the file claims as `name`, `None` if it has none."""
        claim = self.claims.get(name)
        return claim if isinstance(claim, str) else None


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A plan beside others; times in seconds, sizes in bytes, `None` where there is nothing to say.

    Attributes:
        candidate: the plan.
        verdict: what the verifier says.
        best: whether no other answers its problem better.
        rivals: how many others answer it.
        over_best: how far it is above the best, relative to that.
        bound: the best that a file proves of its problem and no plan contradicts.
        gap: (objective - bound) / objective.
        devices: in use.
        max_load, mean_load: of the devices in use.
        transfer: the sum over devices of the time they spend with transfers.
        moved_bytes: what is sent, once for each device or group that needs it.
        peak_memory: of the fullest device.
        cuts: edges between ops that are not at the same place.
        placed_differently: ops that are not where the first plan has them.
        renamed: at most so many of these even if devices of a type are renamed.
        notes: what a reader should know.
    """

    candidate: Candidate
    verdict: Verdict
    best: bool
    rivals: int
    over_best: float | None
    bound: float | None
    gap: float | None
    devices: int | None
    max_load: float | None
    mean_load: float | None
    transfer: float | None
    moved_bytes: float | None
    peak_memory: float | None
    cuts: int | None
    placed_differently: int | None
    renamed: int | None
    notes: tuple[str, ...]


def measure(candidates: Sequence[Candidate]) -> list[Measured]:
    """Verify each plan and set it beside the others."""
    verdicts = [verify(c.problem, c.plan) for c in candidates]
    best: dict[str, float] = {}
    for c, verdict in zip(candidates, verdicts, strict=True):
        if verdict.objective is not None:
            best[c.key] = min(verdict.objective, best.get(c.key, np.inf))
    bounds, doubts = _bounds(candidates, best)
    where = [places(c.problem, c.plan) for c in candidates]
    found = []
    for c, verdict, mine, doubt in zip(candidates, verdicts, where, doubts, strict=True):
        value, bound = verdict.objective, bounds.get(c.key)
        if value is not None and bound is not None:
            bound = min(bound, value)  # within rounding of one another
        used = sorted({d for ops in mine for d in ops}) if mine else []
        different = renamed = None
        if mine and where[0] and len(where[0]) == len(mine):
            different, renamed = differences(c.problem, where[0], mine)
        found.append(
            Measured(
                candidate=c,
                verdict=verdict,
                best=value is not None and value == best[c.key],
                rivals=sum(other.key == c.key for other in candidates) - 1,
                over_best=None if value is None else _over(value, best[c.key]),
                bound=bound,
                gap=relative_gap(value, bound, clock_cost(c.problem)),
                devices=len(used) if mine else None,
                max_load=float(verdict.load[used].max()) if verdict.ok else None,
                mean_load=float(verdict.load[used].mean()) if verdict.ok else None,
                transfer=float(verdict.transfer.sum()) if verdict.ok else None,
                moved_bytes=moved(c.problem, mine) if mine and time_unit(c.problem) else None,
                peak_memory=float(verdict.memory[used].max()) if verdict.ok else None,
                cuts=cuts(c.problem, mine) if mine else None,
                placed_differently=different,
                renamed=renamed,
                notes=(*c.notes, *doubt, *_claimed(c, verdict)),
            )
        )
    return found


def _bounds(candidates: Sequence[Candidate], best: dict[str, float]) -> tuple[dict[str, float], list[tuple[str, ...]]]:
    """Return the best bound of each problem, and what is wrong with that of each file."""
    bounds: dict[str, float] = {}
    doubts: list[tuple[str, ...]] = []
    for c in candidates:
        claim = c.number("bound")
        doubt: tuple[str, ...] = ()
        if claim is not None:
            if claim > best.get(c.key, np.inf) * (1 + OPTIMAL_GAP):
                doubt = (
                    f"its bound {claim:.9g} is above the objective {best[c.key]:.9g} of a feasible plan: not used",
                )
            else:
                bounds[c.key] = max(claim, bounds.get(c.key, 0.0))
        doubts.append(doubt)
    return bounds, doubts


def _claimed(c: Candidate, verdict: Verdict) -> list[str]:
    claim = c.number("objective")
    if verdict.objective is None or claim is None:
        return []
    near = abs(claim - verdict.objective) <= OPTIMAL_GAP * verdict.objective
    return [] if near else [f"the file says objective {claim:.9g}, the verifier {verdict.objective:.9g}"]


def _over(value: float, best: float) -> float:
    return (value - best) / best if best > 0 else 0.0


def places(problem: GraphProblem, plan: Plan) -> Places | None:
    """Return where each op runs, `None` if the plan is for other ops or other devices."""
    n, d = problem.graph.n_ops, problem.cluster.n_devices
    if len(plan.ops) != n:
        return None
    if isinstance(plan, StagesPlan):
        serving = [tuple(np.flatnonzero(plan.serves == s).tolist()) for s in range(len(plan.degree))]
        return [serving[s] for s in plan.stage.tolist()] if len(plan.serves) == d else None
    return [(x,) for x in plan.device.tolist()] if plan.device.max() < d else None


def cuts(problem: GraphProblem, where: Places) -> int:
    """Return how many edges lead from one place to another."""
    graph = problem.graph
    return sum(where[u] != where[v] for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True))


def moved(problem: GraphProblem, where: Places) -> float:
    """Return the bytes sent, an output once to each other place that needs it."""
    graph = problem.graph
    ends = zip(graph.source.tolist(), graph.target.tolist(), strict=True)
    size = graph.output_bytes()
    return float(sum(size[u] for u, _ in {(u, where[v]) for u, v in ends if where[u] != where[v]}))


def differences(problem: GraphProblem, first: Places, other: Places) -> tuple[int, int]:
    """Return how many ops lie elsewhere, and how many if places of one kind may swap their names, at most.

    Names are swapped greedily, the two places that share most ops first.
    """
    type_of = problem.cluster.type_of
    different = sum(a != b for a, b in zip(first, other, strict=True))
    shared = Counter(zip(first, other, strict=True))
    taken: tuple[set[tuple[int, ...]], set[tuple[int, ...]]] = (set(), set())
    kept = 0
    for (a, b), count in sorted(shared.items(), key=lambda item: (-item[1], item[0])):
        alike = sorted(type_of[list(a)]) == sorted(type_of[list(b)])
        if alike and a not in taken[0] and b not in taken[1]:
            taken[0].add(a)
            taken[1].add(b)
            kept += count
    return different, min(different, len(first) - kept)
