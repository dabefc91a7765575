"""Replicated stages as one linear model, for CP-SAT and as a MILP; letters as in docs/stages.md.

Nothing is contracted, nothing given, and no ideals are listed: stages are chosen with the ops they hold, the level of
the cut before each, and how often each is replicated at every level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import isfinite, prod
from typing import Any

import numpy as np

from gangplan.instances import StagesPlan, StagesProblem, precedence

from ...plain import Formulation, New, PlainRows, Variable, add_up, both, refine
from ...run import Run
from ..sizes import most

FORMULATION = Formulation(
    "Z, the seconds a sample of the slowest stage",
    (
        Variable("Z", "", "T of the whole cluster", seconds=True),
        Variable("p", "op stage", "1 if op v is in stage s or a later one; x[v,s] = p[v,s] - p[v,s+1]"),
        Variable("y", "stage way", "1 if stage s runs in way c: m[c,l] times in a group of level l, t[c] devices each"),
        Variable("cut", "stage level", "1 if the cut before stage s is of level l"),
        Variable("T", "stage level", "seconds of the part of level l - 1 that stage s is in", seconds=True),
        Variable("k", "stage op", "1 if the output of op u crosses the cut before stage s"),
        Variable("taken", "level stage", "members of its group of level l that stages up to s take"),
        Variable("size", "level menu stage", "weights of the part that stage s is in, as seconds", seconds=True),
        Variable("sofar", "level menu stage", "those of its stages up to s", seconds=True),
        Variable("holds", "level menu stage", "1 if that part has weights"),
        Variable("crosses", "level stage", "1 if anything crosses the cut before stage s"),
        Variable("under", "stage count", "1 if so many samples are under way in stage s"),
        Variable("row", "stage menu", "1 if stage s runs on this row of the menu"),
    ),
    (
        ("A", "p[v,s+1] <= p[v,s];  p[a,s] <= p[b,s] for a before b;  sum_c y[s,c] <= sum_v x[v,s]", "ops in stages"),
        ("R", "sum of m[l] t over the stages of a group <= w[l];  m alike in one part of a level", "replicas"),
        ("K", "k[s,u] >= p[v,s] - p[u,s] for each edge (u, v)", "what crosses a cut"),
        ("L", "y[s,c] = 1  =>  T[s,0] >= sum_v seconds[c,v] x[v,s];  Z >= T[s,L]", "compute of a stage"),
        ("S", "y[s,c] = 1  =>  m T[s,l+1] >= T[s,l] + S(m),  m = m[c,l]", "replicas share, and synchronise"),
        ("X", "cut[s,l] = y[s,c] = 1  =>  m T[s,l+1] >= X(cut)", "moves at both ends"),
        ("M", "row[s,k] = under[s,v] = 1  =>  sum_u (once[k,u] + v kept[k,u]) x[u,s] <= M", "memory"),
    ),
)
"""The model in words; symbols as in docs/stages.md."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run one stage: on row k of the menu, by t devices a replica, m[l] times in a group of each level."""

    k: int
    t: int
    m: tuple[int, ...]


def rows(problem: StagesProblem) -> int:
    """Return the number of rows of either model, but for a few."""
    graph, levels, menu = problem.graph, len(problem.members()), len(problem.options().degree)
    ways, devices = prod(problem.members()) * menu, problem.cluster.n_devices
    return _stages(problem) * (3 * levels * ways + menu * devices + 2 * (graph.n_ops + graph.n_edges))


def _solve(run: Run, by: str, new: New) -> None:
    """Minimise Z, the seconds a sample of the slowest stage."""
    refine(run, by, rows(run.problem), _worst(run.problem), lambda unit: _StagesModel(run, new(unit)))


plain_cpsat, plain_milp = both(_solve)


class _StagesModel:
    """The model: a row a line, a method a constraint.

    Variables: p[v][s], op v is in stage s or a later one, so x[v][s] = p[v][s] - p[v][s + 1]; y[s][c], stage s runs in
    way c; cut[s][l], the cut before stage s is of level l; T[s][l], seconds of the part of level l - 1 that s is in.
    """

    def __init__(self, run: Run, model: PlainRows) -> None:
        self.model, self.run, problem = model, run, run.problem
        self.problem: StagesProblem = problem
        self.members, menu = problem.members(), problem.options()
        self.line, self.levels, self.ops = (
            range(n) for n in (_stages(problem), len(self.members), problem.graph.n_ops)
        )
        self.ways = [
            Way(k, t, m)
            for m in product(*(range(1, w + 1) for w in self.members))
            for k, t in enumerate(menu.degree.tolist())
            if m[0] * t <= self.members[0]
        ]
        # T of an inner level is divided by its replicas before it counts, so it may be that many units
        self.up = [prod(self.members[level:]) for level in range(len(self.members) + 1)]
        self.p: list[list[Any]] = [[*(model.binary("p", v, s) for s in self.line), 0] for v in self.ops]
        self.x = [[row[s] - row[s + 1] for s in self.line] for row in self.p]
        self.y = [[model.binary("y", s, c) for c in range(len(self.ways))] for s in self.line]
        self.cut = [[model.binary("cut", s, i) for i in self.levels] for s in self.line]
        self.T = [[model.amount(up, "T", s, i) for i, up in enumerate(self.up)] for s in self.line]
        self.sent = problem.forward_edges()[2].tolist()
        self.k = [{u: model.binary("k", s, u) for u in np.flatnonzero(self.sent).tolist()} for s in self.line]
        self.z = model.amount(1, "Z")
        builders = self._line, self._groups, self._cross, self._compute, self._sync, self._moves, self._memory
        for letter, build in zip("ARKLSXM", builders, strict=True):
            model.letter(letter)
            build()
        model.minimise(self.z, self._plan)

    def _line(self) -> None:
        """Put every op in a stage; stages in use come first, none is empty, none has edges from later ones."""
        row, equal, p, x, graph = self.model.row, self.model.equal, self.p, self.x, self.problem.graph
        seconds, leader = self.problem.seconds(), dict[int, int]()
        same = [(leader.setdefault(c, v), v) for v, c in enumerate(graph.colocation.tolist()) if c >= 0]
        for s in self.line:
            used = add_up(self.y[s])
            row(used, add_up(self.y[s - 1]) if s else 1)
            row(used, add_up(x[v][s] for v in self.ops))
            equal(add_up(self.cut[s]), used if s else 0)
            for v in self.ops:
                row(p[v][s + 1], p[v][s])
                row(x[v][s], used)
                if not s:
                    row(1, p[v][s])
                for k in np.flatnonzero(~np.isfinite(seconds[:, v])).tolist():
                    row(x[v][s] + add_up(y for c, y in self._chosen(s) if c.k == k), 1)
            for v, w in same:
                equal(p[v][s], p[w][s])
            for a, b in zip(*precedence(graph), strict=True):
                row(p[a][s], p[b][s])

    def _groups(self) -> None:
        """Replicate the stages of one part of a level alike, on no more members than a group has."""
        row = self.model.row
        for i, w in enumerate(self.members):
            taken = [self.model.count(w, "taken", i, s) for s in self.line]
            for s in self.line:
                m = add_up(c.m[i] * y for c, y in self._chosen(s))
                held = add_up(c.m[i] * (c.t if i == 0 else 1) * y for c, y in self._chosen(s))
                row(held, taken[s])
                row(taken[s - 1] + held if s else 0, taken[s], self.cut[s][i])
                for joined in self._joined(s, i):
                    before = add_up(c.m[i] * y for c, y in self._chosen(s - 1))
                    row(taken[s - 1], taken[s], joined)
                    self.model.equal(m, before, joined)

    def _cross(self) -> None:
        """k[s][u]: the output of u crosses the cut before stage s."""
        source, target, _ = self.problem.forward_edges()
        for s in self.line:
            for u, v in zip(source.tolist(), target.tolist(), strict=True):
                if u in self.k[s]:
                    self.model.row(self.p[v][s] - self.p[u][s], self.k[s][u])

    def _compute(self) -> None:
        """T[s][0] is the compute of a stage; Z is T of the whole cluster."""
        seconds = self.problem.seconds().tolist()
        for s in self.line:
            self.model.row(self.T[s][-1], self.z)
            for c, y in self._chosen(s):
                self.model.row(self._sum(s, seconds[c.k], self.up[0]), self.T[s][0], y)

    def _sync(self) -> None:
        """(T + S(m)) / m of each part, S(m) = 4 (m - 1) / m P / (B g) + 2 (m - 1) latency if P > 0."""
        row, menu = self.model.row, self.problem.options().parameter_bytes.tolist()
        for i, link in enumerate(self.problem.levels()):
            rate, wait = (
                (4 / link.bandwidth / prod(self.members[:i]), 2 * link.latency) if self.problem.training else (0, 0)
            )
            for k, weights in enumerate(menu if i == 0 else [self.problem.graph.parameter_bytes.tolist()]):
                # P of the part that a stage is in, as seconds of 4 P / (B g), and whether it is more than nothing
                size = [self.model.amount(len(self.ops) * 4 * self.up[i], "size", i, k, s) for s in self.line]
                so_far = [self.model.amount(len(self.ops) * 4 * self.up[i], "sofar", i, k, s) for s in self.line]
                holds = [self.model.binary("holds", i, k, s) for s in self.line]
                for s in self.line:
                    own = self._sum(s, [rate * x for x in weights], 2 * self.up[i])
                    row(own, so_far[s])
                    row(so_far[s], size[s])
                    for v in self.ops:
                        row(self.x[v][s] if weights[v] else 0, holds[s])
                    for joined in self._joined(s, i):
                        row(so_far[s - 1] + own, so_far[s], joined)
                        row(size[s], size[s - 1], joined)
                        self.model.equal(holds[s - 1], holds[s], joined)
                    for c, y in self._chosen(s):
                        if i or c.k == k:
                            m = c.m[i]
                            latency = m * self.model.units((m - 1) * wait, self.up[i])
                            left = m * self.T[s][i] + (m - 1) * size[s] + latency * holds[s]
                            row(left, m * m * self.T[s][i + 1], y, slack=m * m - 1)

    def _moves(self) -> None:
        """X / m of each end of a part that is a cut of its level: X = 2 (a / B + latency), or half."""
        model, ways = self.model, (2 if self.problem.training else 1) * self.problem.activations
        for i, link in enumerate(self.problem.levels()):
            for s in self.line[1:]:
                crosses = model.binary("crosses", i, s)
                moved = model.units(ways * link.latency, self.up[i]) * crosses
                for u, k in self.k[s].items():
                    model.row(k, crosses)
                    moved += model.units(ways * self.sent[u] / link.bandwidth, self.up[i]) * k
                for end in (s - 1, s):
                    for c, y in self._chosen(end):
                        model.row(moved, c.m[i] * self.T[end][i + 1], y, self.cut[s][i], slack=c.m[i] - 1)

    def _memory(self) -> None:
        """(once) + v (kept, and what crosses into the stage if recomputed) <= M, v = ceil(later replicas / own)."""
        problem, model = self.problem, self.model
        limit = most(float(problem.capacity()[0]), len(self.ops))
        if problem.memory_model == "none" or not isfinite(limit):
            return
        once, kept = (rows.tolist() for rows in problem.need())
        for s in self.line:
            later = (
                add_up(prod(c.m) * y for r in self.line[s + 1 :] for c, y in self._chosen(r)) if problem.training else 0
            )
            under_way = [model.binary("under", s, v) for v in range(self.up[0])]
            model.row(1, add_up(under_way))
            for c, y in self._chosen(s):
                model.row(later, prod(c.m) * add_up(v * b for v, b in enumerate(under_way)), y)
            for k, (first, more) in enumerate(zip(once, kept, strict=True)):
                on_row = model.binary("row", s, k)
                model.row(add_up(y for c, y in self._chosen(s) if c.k == k), on_row)
                for v, b in enumerate(under_way):
                    total = add_up(model.share((first[u] + v * more[u]) / limit) * self.x[u][s] for u in self.ops)
                    if s and problem.recompute:
                        total += add_up(
                            model.share(v * self.sent[u] / limit) * crosses for u, crosses in self.k[s].items()
                        )
                    model.row(total, model.share(1.0), on_row, b)

    def _chosen(self, s: int) -> Iterator[tuple[Way, Any]]:
        return zip(self.ways, self.y[s], strict=True)

    def _joined(self, s: int, level: int) -> list[Any]:
        """Return literals, one of which is true if stage s and the one before are in one part of a level."""
        return self.cut[s][:level] if s else []

    def _sum(self, s: int, seconds: list[float], cap: float) -> Any:
        return add_up(self.model.units(x, cap) * self.x[v][s] for v, x in enumerate(seconds) if isfinite(x))

    def _plan(self, value: Any) -> StagesPlan:
        stage = np.array([round(sum(value(x) for x in row[1:-1])) for row in self.p])
        line = range(stage.max() + 1)
        ways = [max(self._chosen(s), key=lambda chosen: value(chosen[1]))[0] for s in line]
        level = [max(self.levels, key=lambda i: value(self.cut[s][i])) for s in line]

        def serves(i: int, first: int, last: int) -> list[int]:
            """Return what the devices of a group of level i serve that runs the stages from first up to last."""
            starts = [s for s in range(first, last) if s == first or level[s] == i]
            found: list[int] = []
            for a, b in zip(starts, [*starts[1:], last], strict=True):
                found += (serves(i - 1, a, b) if i else [a] * ways[a].t) * ways[a].m[i]
            return found + [-1] * (prod(self.members[: i + 1]) - len(found))

        of_device = np.empty(self.problem.cluster.n_devices, dtype=int)
        of_device[self.problem.device_order()] = serves(len(self.levels) - 1, 0, len(line))
        return StagesPlan(self.problem.graph.names, stage, of_device, np.array([way.t for way in ways]))


def _stages(problem: StagesProblem) -> int:
    label = problem.graph.colocation
    return min(int((label < 0).sum()) + len(np.unique(label[label >= 0])), problem.cluster.n_devices)


def _worst(problem: StagesProblem) -> float:
    seconds, sent = problem.seconds(), problem.forward_edges()[2]
    held = np.maximum(problem.graph.parameter_bytes, problem.options().parameter_bytes.max(axis=0)).sum(keepdims=True)
    links = sum(
        float(problem.move(level, sent).sum()) + float(problem.sync(level, w, held)[0])
        for level, w in enumerate(problem.members())
    )
    return float(np.where(np.isfinite(seconds), seconds, 0.0).max(axis=0).sum()) + links
