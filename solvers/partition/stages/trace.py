"""Back through the recurrence: the stages that its best value came from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray

from .recurrence import Level, Option, State


@dataclass(frozen=True)
class Step:
    """A stage of a pipeline as it was chosen, from ideal `start` to `end`; `later` samples are under way behind it."""

    option: Option
    start: int
    end: int
    later: int


def best_steps(level: Level, fed: dict[State, FloatArray]) -> tuple[float, list[Step]]:
    """Return the least time of a pipeline over the top level and its steps; infinity and nothing if there is none.

    Args:
        level: the top one.
        fed: what its `top` returned.
    """
    state = min(fed, key=lambda x: (float(fed[x][0]), x))
    if not np.isfinite(fed[state][0]):
        return np.inf, []
    return float(fed[state][0]), _walk(level, state, 0, len(level.family) - 1, 0, fed)


def inner_steps(level: Level, behind: int, workers: int, start: int, end: int) -> list[Step]:
    """Return the steps of the best pipeline of a group, with so many replicas in it, from one ideal to another."""
    table = level.table(behind)
    choices = [state for state in table.plain if state[1] == workers]
    state = min(choices, key=lambda x: (float(table.plain[x][start, end]), x))
    return _walk(level, state, start, end, behind, {x: value[:, end] for x, value in table.fed.items()})


def _walk(
    level: Level, state: State | None, start: int, end: int, behind: int, fed: dict[State, FloatArray]
) -> list[Step]:
    steps: list[Step] = []
    while state is not None:
        best: tuple[float, Step, State | None] | None = None
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
                best = value, Step(option, start, at, later), rest
        assert best is not None, "a state comes from some way"
        steps.append(best[1])
        start, state = best[1].end, best[2]
    return steps
