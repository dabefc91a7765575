"""The teacher weighs the rows that the network sees, its table solves the Bellman equation, and it looks ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan.systems.pacml.learned import values
from gangplan.systems.pacml.learned.features import (
    CLASSES,
    MOST,
    N_LEVELS,
    SUMS,
    remember,
    scratch_of,
    turn_of,
    write_rows,
)
from gangplan.systems.pacml.learned.hindsight import Future
from gangplan.systems.pacml.learned.network import BlockNetwork
from gangplan.systems.pacml.learned.teacher import FUTURES, HORIZON, label, look_ahead, teacher
from gangplan.systems.pacml.learned.values import GAMMA, SHAPE, Scenario, value_table, weigh

START = np.zeros(SHAPE) + 0.01 * np.arange(SHAPE[2])


def past(scenario: Scenario, kind: int = 0) -> tuple[Any, float]:
    """Return the sums and the turn after one job."""
    sums = np.zeros(SUMS)
    remember(sums, 1.0, scenario.times.sequential[kind], scenario.times.efficiency[kind], 0.0)
    return sums, turn_of(sums, scenario.tables.n)


@pytest.mark.parametrize("choose", [True, False])
def test_weighs_the_same_rows(scenario: Scenario, choose: bool) -> None:
    """The teacher's candidates are those of `write_rows`, and it values each by the counts that its row holds."""
    rng, table = np.random.default_rng(0), np.random.default_rng(1).normal(size=SHAPE)
    sums, turn = past(scenario)
    sequential = scenario.times.sequential[0]
    for busy in (0.0, 0.4, 0.7):
        end = np.where(rng.random(32) < busy, rng.uniform(0, 20, 32) * turn, -1.0)
        mine, other, out = (
            scratch_of(scenario.tables, choose=choose),
            scratch_of(scenario.tables, choose=choose),
            np.zeros(MOST),
        )
        k = weigh(end, 0.0, turn, scenario.tables, scenario.times, 0, sequential, table, mine, out)
        assert k == write_rows(end, 0.0, turn, scenario.tables, scenario.times, 0, 1.0, sums, other) > 1
        assert np.array_equal(mine.choice[:k], other.choice[:k])
        count = np.expm1(other.row[:k, : 2 * CLASSES * N_LEVELS : 2] / 0.3).round().astype(int)
        count = count.reshape(k, CLASSES, N_LEVELS)[:, : SHAPE[0], values.COUNTED]
        column = values.STEPS[np.minimum(count, len(values.STEPS) - 1)]
        worth = np.take_along_axis(table[None], column[..., None], axis=3).sum(axis=(1, 2, 3))
        assert np.allclose(out[:k], worth + (other.choice[:k] >= 0))


def test_least_squares() -> None:
    """On a chain that goes round through three states, the values are those of the Bellman equation."""
    reward = np.array([0.0, 1.0, 0.5])
    columns, n = np.arange(300)[:, None] % 3, 3
    a, b = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
    values._lstd(columns, np.tile(reward, 100), a, b)
    solved = np.linalg.lstsq(a, b)[0]
    step = np.roll(np.eye(n), 1, axis=1)  # from each state to the next
    value = np.linalg.solve(np.eye(n) - GAMMA * step, step @ reward)
    assert np.allclose(solved[:-1] + solved[-1], value, rtol=1e-3)


def test_a_table_is_learned(scenario: Scenario) -> None:
    """After three rounds the teacher accepts more jobs of unseen cases than by the table it began with."""
    (name,) = scenario.sets

    def draw(rng: np.random.Generator) -> Any:
        return scenario.draw(name, "D", int(rng.integers(1000)), 400, load=1.5)

    table = value_table(scenario, draw, np.random.default_rng(0), rounds=4)
    tests = [scenario.draw(name, "D", 5000 + i, 1000, load=1.5) for i in range(3)]

    def accepted(episode: Any, table: Any) -> float:
        world, case = (scenario.tables, scenario.times), (episode.kind, episode.beta, episode.gap)
        return float(values.watch(*case, *world, table, scratch_of(scenario.tables), -1)[1].mean())

    before, after = ([accepted(x, t) for x in tests] for t in (START, table))
    assert np.mean(after) > np.mean(before) + 0.05
    assert np.array_equal(table, value_table(scenario, draw, np.random.default_rng(0), rounds=4))


def test_looks_ahead(scenario: Scenario) -> None:
    """One server is free: a job that holds it for good costs all short jobs to come, which the table does not know."""
    s = len(scenario.tables.fast)
    alone = scenario.tables.degree[np.unique(scenario.tables.shape, return_index=True)[1]] == 0
    turn = 1.0
    jct = np.full((2, s), np.inf)
    jct[:, alone] = [[1000.0], [0.5]]
    times = scenario.times._replace(jct=jct, sequential=np.array([1000.0, 0.5]))
    end = np.full(32, 1e6)
    end[7] = -1.0
    mine, out = scratch_of(scenario.tables), np.zeros(MOST)
    none = np.zeros(SHAPE)
    for accept, after in ((1.0, True), (0.01, False)):  # whether those to come can be done in time at all
        k = weigh(end, 0.0, turn, scenario.tables, times, 0, 1000.0, none, mine, out)
        assert k == 2 and out[:2].tolist() == [0.0, 1.0]
        knows = teacher(scenario, none, None, planned=False, choose=True)
        knows = knows._replace(future=Future(np.ones(10, np.int64), np.full(10, accept)))
        look_ahead(k, end, 0.0, turn, 0, scenario.tables, times, knows, mine, out)
        assert out[1] == pytest.approx(1.0)
        assert out[0] == pytest.approx(sum(GAMMA**h for h in range(HORIZON)) if after else 0.0)
    assert FUTURES > 1


@pytest.mark.parametrize("how", ["table", "rollouts", "plans", "student"])
def test_labels(small: Scenario, how: str) -> None:
    """Labels are rows with finite values, of decisions that have a choice; a seed gives them again."""
    (name,) = small.sets
    episode, ahead = (small.draw(name, "D", seed, 60) for seed in (0, 1))
    student = BlockNetwork(8).compiled() if how == "student" else None

    def labels() -> Any:
        futures = None if how == "table" else ahead
        knows = teacher(small, START, futures, planned=how in ("plans", "student"), choose=True)
        return label(small, episode, knows, 1.0, 3, student)

    found = labels()
    length = np.diff(found.first)
    assert len(length) > 20 and (length > 1).all()
    assert found.rows.shape[0] == len(found.value) == found.first[-1]
    assert np.isfinite(found.value).all() and np.isfinite(found.rows).all()
    taken = found.rows[:, -8]
    assert (taken[found.first[:-1]] == 0).all() and taken.sum() == len(taken) - len(length)  # only the first rejects
    again = labels()
    assert np.array_equal(found.value, again.value) and np.array_equal(found.rows, again.rows)
