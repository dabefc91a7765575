"""PipeDream's recurrence over ideals, level by level: exact on all ideals, a heuristic on some; and back to a plan.

A_l[b](I, J) is the least time of a group of level l that runs the stages from ideal I to ideal J as a pipeline over
its members, when b samples are under way in all later stages for each that is under way in the group:

    A_l[b](I, J) = min over I < K <= J, m of max(T(I, K, m), move(K)/m, A'(K, J)),

where T(I, K, m) = (A_{l-1}[ceil((S + b)/m)](I, K) + sync(m))/m is the first stage on m members, S the replicas behind
it in the group, and A' the rest of the pipeline on the other members, whose first stage waits for its input too
(Narayanan et al., SOSP 2019, section 3.1, with memory). Where memory is ample S and b do not matter and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from gangplan.instances import StagesPlan, StagesProblem
from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.verify.stages import Nest

from ...run import never
from .family import IdealStates

State = tuple[int, int]
"""Members used, replicas of all stages in them (0 where memory is ample)."""
_ROWS = 128
_DENSE = 0.1
"""Of a block of numbers fewer that matter are picked out, more are looked at all together."""


@dataclass(frozen=True)
class Option:
    """A way to run a stage: `replicas` of members or groups of devices, `used` members in all.

    Attributes:
        what: the row of the menu at the innermost level, the replicas inside each member above.
        workers: replicas of all innermost stages it comes to.
    """

    used: int
    replicas: int
    what: int
    workers: int


@dataclass(frozen=True)
class PipelineTable:
    """The best pipelines of a group between any two ideals, by state; `fed` counts the first stage's inputs too."""

    plain: dict[State, FloatArray]
    fed: dict[State, FloatArray]


class LevelPipelines:
    """Pipelines over the members of a group of one level.

    Args:
        level: from 0, the innermost.
        tracked: whether memory depends on what is under way, so that replicas have to be counted.
        stopped: raises the alarm.
        cap: seconds; a group that takes longer is in no plan worth having.
    """

    def __init__(
        self, family: IdealStates, level: int, tracked: bool, stopped: Callable[[], bool], cap: float = np.inf
    ) -> None:
        problem = family.problem
        self.family, self.level, self.tracked, self.stopped = family, level, tracked, stopped
        self.members = problem.members()[level]
        self.capacity = float(problem.capacity()[0])
        self.cap = cap * (1 + 1e-9)
        self.inner = LevelPipelines(family, level - 1, tracked, stopped, cap * self.members) if level else None
        self.moves = family.moves(level)
        self.options = list(self._options())
        self.states = self._states()
        self._known = set(self.states)
        self.tables: dict[int, PipelineTable] = {}
        self._best: dict[tuple[int, int], FloatArray] = {}

    def _options(self) -> Iterator[Option]:
        if self.inner is None:
            for row, degree in enumerate(self.family.problem.options().degree.tolist()):
                for replicas in range(1, self.members // degree + 1):
                    yield Option(replicas * degree, replicas, row, replicas if self.tracked else 0)
            return
        for workers in self.inner.workers():
            for replicas in range(1, self.members + 1):
                yield Option(replicas, replicas, workers, replicas * workers)

    def workers(self) -> list[int]:
        """Return how many replicas of innermost stages a group can come to."""
        return sorted({workers for _, workers in self.states})

    def _states(self) -> list[State]:
        found: set[State] = set()
        layer: set[State] = {(0, 0)}
        while layer:
            layer = {
                (m + x.used, s + x.workers) for m, s in layer for x in self.options if m + x.used <= self.members
            } - found
            found |= layer
        return sorted(found)

    def ways(self, state: State) -> Iterator[tuple[Option, State | None]]:
        """Yield each first stage, and what is left of `state` for the others."""
        members, workers = state
        for option in self.options:
            rest = (members - option.used, workers - option.workers)
            if rest == (0, 0):
                yield option, None
            elif rest in self._known:
                yield option, rest

    def later(self, option: Option, rest: State | None, behind: int) -> int:
        """Return how many samples each replica has under way behind it: ceil((S + b)/m)."""
        workers = 0 if rest is None else rest[1]
        return -(-(workers + behind) // option.replicas) if self.tracked else 0

    def stage(self, option: Option, later: int, rows: slice) -> FloatArray:
        """Return the seconds a sample of all stages that begin at `rows`, infinite where there is none."""
        if self.inner is None:
            own = self.family.leaf(option.what, option.replicas, later, rows, self.capacity)
            own += self.family.gap(rows)
            return own
        inner = self.inner.best(later, option.what)
        return self.family.nested(self.level, option.replicas, inner[rows], rows)

    def best(self, behind: int, workers: int) -> FloatArray:
        """Return the least time of a group between any two ideals, float64 (N, N), with that many replicas inside."""
        if (behind, workers) not in self._best:
            plain = self.table(behind).plain
            ends = [value for state, value in plain.items() if state[1] == workers]
            self._best[behind, workers] = np.minimum.reduce(ends)
        return self._best[behind, workers]

    def table(self, behind: int) -> PipelineTable:
        """Return the best pipelines between any two ideals; raise `TimeoutError` if the time is up."""
        if behind not in self.tables:
            self.tables[behind] = self._fill(behind)
        return self.tables[behind]

    def _fill(self, behind: int) -> PipelineTable:
        plain: dict[State, FloatArray] = {}
        fed: dict[State, FloatArray] = {}
        stages: dict[tuple[Option, int], FloatArray] = {}
        everything = slice(0, len(self.family))
        for state in self.states:
            total = np.full((len(self.family), len(self.family)), np.inf)
            waiting = total.copy() if self.moves.any() else total
            for option, rest in self.ways(state):
                later = self.later(option, rest, behind)
                if (option, later) not in stages:
                    found = self.stage(option, later, everything)
                    stages[option, later] = np.where(found <= self.cap, found, np.inf)
                found = stages[option, later]
                if rest is not None:
                    found = self._joined(np.maximum(found, self.moves / option.replicas), fed[rest])
                np.minimum(total, found, out=total)
                if waiting is not total:
                    np.minimum(waiting, np.maximum(found, self.moves[:, None] / option.replicas), out=waiting)
            plain[state], fed[state] = total, waiting
        return PipelineTable(plain, fed)

    def _joined(self, first: FloatArray, rest: FloatArray) -> FloatArray:
        """Return the (min, max) product: the best ideal between a first stage and the rest."""
        total = np.full_like(first, np.inf)
        for k in range(1, len(first) - 1):
            if not k % 64 and self.stopped():
                raise TimeoutError
            rows, columns = np.flatnonzero(first[:k, k] < np.inf), np.flatnonzero(rest[k] < np.inf)
            if not len(rows) or not len(columns):
                continue
            a, b, c, d = int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
            if len(rows) * len(columns) > _DENSE * (b - a) * (d - c):
                corner = total[a:b, c:d]
                np.minimum(corner, np.maximum(first[a:b, k, None], rest[k, c:d]), out=corner)
            else:
                where = np.ix_(rows, columns)
                total[where] = np.minimum(total[where], np.maximum(first[rows, k, None], rest[k, columns]))
        return total

    def top(self) -> dict[State, FloatArray]:
        """Return the least time from each ideal to the last, by state, where the first stage waits for its input."""
        n = len(self.family)
        fed = {state: np.full(n, np.inf) for state in self.states}
        ways = {state: list(self.ways(state)) for state in fed}
        # a stage ends at a larger ideal than it begins at, and larger ones come later
        for start in reversed(range(0, n - 1, _ROWS)):
            rows = slice(start, min(start + _ROWS, n - 1))
            stages: dict[tuple[Option, int], FloatArray] = {}
            for state, choices in ways.items():
                if self.stopped():
                    raise TimeoutError
                for option, rest in choices:
                    later = self.later(option, rest, 0)
                    if (option, later) not in stages:
                        stages[option, later] = self.stage(option, later, rows)
                    found = self._ended(stages[option, later], option, rest, fed)
                    found = np.maximum(found, self.moves[rows] / option.replicas)
                    np.minimum(fed[state][rows], found, out=fed[state][rows])
        return fed

    def _ended(self, stage: FloatArray, option: Option, rest: State | None, fed: dict[State, FloatArray]) -> FloatArray:
        if rest is None:
            return np.asarray(stage[:, -1])
        behind = np.maximum(fed[rest], self.moves / option.replicas)
        return np.asarray(np.maximum(stage, behind).min(axis=1))


def effort(family: IdealStates, tracked: bool) -> float:
    """Return how many numbers the recurrence looks at, at most."""
    n = float(len(family))
    level: LevelPipelines | None = LevelPipelines(family, len(family.problem.members()) - 1, tracked, never)
    behind, total, pairs = {0}, 0.0, n * n
    while level is not None:
        # what is under way behind the members of this level, however its pipelines are put together
        inside: set[int] = set()
        for state in level.states:
            for option, rest in level.ways(state):
                total += pairs * len(behind)
                if level.inner is not None:
                    inside |= {level.later(option, rest, b) for b in behind}
        behind, pairs, level = inside, family.density**2 * n**3 / 6, level.inner
    return total


@dataclass(frozen=True)
class ChosenStage:
    """A stage of a pipeline as it was chosen, from ideal `start` to `end`; `later` samples are under way behind it."""

    option: Option
    start: int
    end: int
    later: int


def best_steps(level: LevelPipelines, fed: dict[State, FloatArray]) -> tuple[float, list[ChosenStage]]:
    """Return the least time of a pipeline over the top level and its steps; infinity and nothing if there is none."""
    state = min(fed, key=lambda x: (float(fed[x][0]), x))
    if not np.isfinite(fed[state][0]):
        return np.inf, []
    return float(fed[state][0]), _walk(level, state, 0, len(level.family) - 1, 0, fed)


def inner_steps(level: LevelPipelines, behind: int, workers: int, start: int, end: int) -> list[ChosenStage]:
    """Return the steps of the best pipeline of a group, with so many replicas in it, from one ideal to another."""
    table = level.table(behind)
    choices = [state for state in table.plain if state[1] == workers]
    state = min(choices, key=lambda x: (float(table.plain[x][start, end]), x))
    return _walk(level, state, start, end, behind, {x: value[:, end] for x, value in table.fed.items()})


def _walk(
    level: LevelPipelines, state: State | None, start: int, end: int, behind: int, fed: dict[State, FloatArray]
) -> list[ChosenStage]:
    steps: list[ChosenStage] = []
    while state is not None:
        best: tuple[float, ChosenStage, State | None] | None = None
        for option, rest in level.ways(state):
            later = level.later(option, rest, behind)
            row = level.stage(option, later, slice(start, start + 1))[0]
            at = end
            if rest is not None:
                row = np.maximum(np.maximum(row, level.moves / option.replicas), fed[rest])
                at = int(row[: end + 1].argmin())
            value = float(row[at])
            if steps:
                value = max(value, float(level.moves[start]) / option.replicas)
            if best is None or value < best[0]:
                best = value, ChosenStage(option, start, at, later), rest
        assert best is not None, "a state comes from some way"
        steps.append(best[1])
        start, state = best[1].end, best[2]
    return steps


def plan_of(level: LevelPipelines, steps: list[ChosenStage]) -> StagesPlan:
    """Return the plan of a pipeline over the members of the top level."""
    ends: list[int] = []
    degree: list[int] = []
    nest = _nest(level, steps, ends, degree)
    family, problem = level.family, level.family.problem
    # a unit's stage is how many stages end before it is done
    stage = (~family.bits[ends]).sum(axis=0).astype(np.int32)[family.units.order.group_of]
    shares = np.array(degree, dtype=np.int32)
    return StagesPlan(problem.graph.names, stage, deal(problem, nest, shares), shares)


def deal(problem: StagesProblem, nest: Nest, degree: IntArray) -> IntArray:
    """Return the stage that each device serves: members in order, devices of a replica side by side."""
    order, members = problem.device_order(), problem.members()
    serves = np.full(len(order), -1, dtype=np.int32)

    def place(level: int, part: Nest, first: int) -> None:
        for replicas, inner in part:
            if isinstance(inner, int):
                last = first + replicas * int(degree[inner])
                serves[order[first:last]] = inner
                first = last
                continue
            for _ in range(replicas):
                place(level - 1, inner, first)
                first += prod(members[:level])

    place(len(members) - 1, nest, 0)
    return serves


def _nest(level: LevelPipelines, steps: list[ChosenStage], ends: list[int], degree: list[int]) -> Nest:
    """Return the nested pipeline and list, on the way, where each stage ends and how many devices share its ops."""
    parts: list[tuple[int, Nest | int]] = []
    for step in steps:
        option = step.option
        if level.inner is None:
            parts.append((option.replicas, len(ends)))
            ends.append(step.end)
            degree.append(int(level.family.problem.options().degree[option.what]))
            continue
        inner = inner_steps(level.inner, step.later, option.what, step.start, step.end)
        parts.append((option.replicas, _nest(level.inner, inner, ends, degree)))
    return tuple(parts)
