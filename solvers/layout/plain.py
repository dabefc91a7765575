"""Layouts as one linear model, for CP-SAT and as a MILP; costs are those of the verifier's page, docs/layout.md.

Every combination of degrees has stages of its own. A stage is chosen whole: the blocks of each of its chunks; it
computes as little again as memory allows. Where one chunk ends the next begins: what is chosen is a path through them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import comb, inf
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances.layout.problem import LayoutPlan, LayoutProblem
from gangplan.instances.layout.stage import handovers

from ..plain import ROWS, Formulation, New, PlainRows, Variable, add_up, both, refine
from ..run import Run
from .family import LayoutFamily
from .referee import ways
from .space import Space
from .split import stage_tables

_GPUS = 16
"""More have more combinations of degrees than a model can hold."""

FORMULATION = Formulation(
    "sum_f (T[f] + E[f]) + sum u[f] busy[w] x[f,s,w], the seconds a step",
    (
        Variable("x", "degrees stage way", "1 if the stage of these degrees has these blocks"),
        Variable(
            "T", "degrees", "(m - u) seconds of the slowest stage, m micro-batches, the others count u", seconds=True
        ),
        Variable("E", "degrees", "seconds of the stage that takes longest once a step", seconds=True),
    ),
    (
        ("A", "sum x[f,0,w] = 1", "one combination of degrees, one way for its first stage"),
        ("P", "sum of x[f,s,w] that end chunk j at q = sum of x[f,s+1,w] that begin chunk j + 1 at q", "a path"),
        ("T", "T[f] >= sum_w (m - u[f]) busy[w] x[f,s,w]", "the slowest stage"),
        ("E", "E[f] >= sum_w end[w] x[f,s,w]", "what comes once a step"),
    ),
)
"""The model in words; ways that do not fit the memory of a GPU are left out."""

Chunks = tuple[tuple[int, int], ...]
"""First block and the one after the last of each chunk of a stage."""


class Choice(NamedTuple):
    """A way for one stage: chunks; seconds a micro-batch, and once a step; layers that compute some and all again."""

    chunks: Chunks
    busy: float
    end: float
    selective: int
    full: int


@lru_cache(256)
def _chunks(count: int, stages: int, virtual: int, stage: int) -> list[Chunks]:
    """Return every way to choose the chunks of a stage."""
    last = stages * virtual - 1

    def from_chunk(j: int, after: int) -> Iterator[Chunks]:
        if j > last:
            yield ()
            return
        for a in range(after, after + 1) if not j else range(after, count - last + j):
            for b in (count,) if j == last else range(a + 1, count - last + j + 1):
                for others in from_chunk(j + stages, b + stages - 1):
                    yield ((a, b), *others)

    return list(from_chunk(stage, stage))


def rows(problem: LayoutProblem) -> int:
    """Return the number of columns of either model, of which there are more than rows; no less than `ROWS` if more."""
    count, found = len(problem.model.chain()), 0
    if sum(pool.count for pool in problem.pools) > _GPUS:
        return ROWS + 1
    for way in ways(problem):
        if comb(count, 2 * way.virtual - 1) > ROWS:
            return ROWS + 1
        found += sum(len(_chunks(count, way.stages, way.virtual, s)) for s in range(way.stages))
        if found > ROWS:
            break
    return found


def _solve(run: Run, by: str, new: New) -> None:
    """Minimise the seconds a step."""
    size = rows(run.problem)
    choices = list(_choices(run.problem)) if size <= ROWS else []
    every = [(m + len(stages), x) for _, m, stages in choices for stage in stages for x in stage]
    worst = max((n * x.busy for n, x in every), default=0.0) + max((x.end for _, x in every), default=0.0)
    refine(run, by, size, worst, lambda unit: _Layouts(run, new(unit), choices))


plain_cpsat, plain_milp = both(_solve)


def _choices(problem: LayoutProblem) -> Iterator[tuple[LayoutFamily, int, list[list[Choice]]]]:
    """Yield all degrees, with micro-batches and the choices for each stage."""
    space = Space(problem)
    sums = np.cumsum(np.eye(int(space.kinds.max()) + 1, dtype=np.int64)[space.kinds], axis=0)
    before = np.concatenate([0 * sums[:1], sums])  # blocks of each kind before each block
    for way in ways(problem):
        each = [space.blocks(x.pool, way.degrees(x)) for x in way.of_stage]
        handed = handovers([0.0 if x is None else x.handed for x in each], way.virtual).tolist()
        stages: list[list[Choice]] = []
        for s, (segment, x) in enumerate(zip(way.of_stage, each, strict=True)):
            stages.append([])
            if x is not None:
                every = _chunks(len(space.kinds), way.stages, way.virtual, s)
                counts = np.array([sum(before[b] - before[a] for a, b in chunks) for chunks in every])
                (table,) = stage_tables(problem, x, way, segment, [s], counts, [handed[s]])
                choices = map(Choice, every, *(row[:-1].tolist() for row in table))
                stages[-1] += [choice for choice in choices if choice.busy < inf]
        yield way, problem.batch // (way.data * way.micro_batch), stages


class _Layouts:
    """The model: a row a line, a method a constraint; x[f][s] has a binary for each choice of stage s of degrees f."""

    def __init__(self, run: Run, model: PlainRows, choices: list[tuple[LayoutFamily, int, list[list[Choice]]]]) -> None:
        self.model, self.problem, self.choices = model, run.problem, choices
        self.x = [
            [[model.binary("x", f, s, w) for w in range(len(stage))] for s, stage in enumerate(stages)]
            for f, (_, _, stages) in enumerate(choices)
        ]
        model.letter("A")
        model.equal(add_up(x for f in self.x for x in f[0]), 1)
        total = []
        for f, (way, m, stages) in enumerate(choices):
            model.letter("P")
            self._path(way, stages, self.x[f])
            share = way.waiting
            slowest, end = model.amount(1, "T", f), model.amount(1, "E", f)
            for stage, x in zip(stages, self.x[f], strict=True):
                pairs, weight = list(zip(stage, x, strict=True)), m - share
                model.letter("T")
                model.row(add_up(model.units(weight * c.busy) * y for c, y in pairs), slowest)
                model.letter("E")
                model.row(add_up(model.units(c.end) * y for c, y in pairs), end)
                total += [model.units(c.busy * share) * y for c, y in pairs]
            total += [slowest, end]
        model.minimise(add_up(total), self._plan)

    def _path(self, way: LayoutFamily, stages: list[list[Choice]], x: list[list[Any]]) -> None:
        """Let each chunk begin where the one before ends."""
        p = len(stages)
        for j in range(p * way.virtual - 1):
            (turn, s), (next_turn, t) = divmod(j, p), divmod(j + 1, p)
            cuts = {c.chunks[turn][1] for c in stages[s]} | {c.chunks[next_turn][0] for c in stages[t]}
            for q in sorted(cuts):
                ends = [y for c, y in zip(stages[s], x[s], strict=True) if c.chunks[turn][1] == q]
                begins = [y for c, y in zip(stages[t], x[t], strict=True) if c.chunks[next_turn][0] == q]
                self.model.equal(add_up(ends), add_up(begins))

    def _plan(self, value: Any) -> LayoutPlan:
        f = max(range(len(self.x)), key=lambda f: sum(value(x) for x in self.x[f][0]))
        way, _, stages = self.choices[f]
        pairs = [zip(stage, x, strict=True) for stage, x in zip(stages, self.x[f], strict=True)]
        chosen = [max(pair, key=lambda cx: value(cx[1]))[0] for pair in pairs]
        blocks = [b - a for turn in zip(*(c.chunks for c in chosen), strict=True) for a, b in turn]
        return way.plan(blocks, [c.selective for c in chosen], [c.full for c in chosen])
