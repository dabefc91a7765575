"""The teacher weighs the rows that the network sees, its table solves the Bellman equation, and it looks ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gangplan.systems.pacml.learned import values
from gangplan.systems.pacml.learned.features import CLASSES, MOST, N_LEVELS, DegreeDecision, Past
from gangplan.systems.pacml.learned.network import BlockNetwork
from gangplan.systems.pacml.learned.teacher import label
from gangplan.systems.pacml.learned.values import Scenario, value_table
from gangplan.systems.pacml.learned.worth import COUNTED, GAMMA, HORIZON, PLAYED, SHAPE, STEPS, Teacher, add_equations

from .test_features import past_of
from .test_hindsight import one_server

START = np.zeros(SHAPE) + 0.01 * np.arange(SHAPE[2])


@pytest.mark.parametrize("choose", [True, False])
def test_weighs_the_same_rows(scenario: Scenario, choose: bool) -> None:
    """The teacher values each candidate by the counts that its row holds."""
    rng, table = np.random.default_rng(0), np.random.default_rng(1).normal(size=SHAPE)
    past, decision, out = (
        past_of(scenario, [(1.0, 0, 0.0)]),
        DegreeDecision(scenario.tables, choose=choose),
        np.zeros(MOST),
    )
    turn = past.turn(scenario.tables.n)
    for busy in (0.0, 0.4, 0.7):
        end = np.where(rng.random(32) < busy, rng.uniform(0, 20, 32) * turn, -1.0)
        k = decision.look(end, 0.0, turn, scenario.times, 0, 1.0, past)
        decision.write(k)
        Teacher(scenario.tables, scenario.times, table, choose=choose).judge(decision, k, out)
        count = np.expm1(np.asarray(decision.row)[:k, : 2 * CLASSES * N_LEVELS : 2] / 0.3).round().astype(int)
        count = count.reshape(k, CLASSES, N_LEVELS)[:, : SHAPE[0], COUNTED]
        column = STEPS[np.minimum(count, len(STEPS) - 1)]
        worth = np.take_along_axis(table[None], column[..., None], axis=3).sum(axis=(1, 2, 3))
        assert k > 1 and np.allclose(out[:k], worth + (np.asarray(decision.choice)[:k] >= 0))


def test_least_squares() -> None:
    """On a chain that goes round through three states, the values are those of the Bellman equation."""
    reward = np.array([0.0, 1.0, 0.5])
    columns, n = np.arange(300)[:, None] % 3, 3
    a, b = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
    add_equations(columns, np.tile(reward, 100), a, b)
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
        return float(values.watch(episode, scenario.times, table, DegreeDecision(scenario.tables), -1)[1].mean())

    before, after = ([accepted(x, t) for x in tests] for t in (START, table))
    assert np.mean(after) > np.mean(before) + 0.05
    assert np.array_equal(table, value_table(scenario, draw, np.random.default_rng(0), rounds=4))


def test_looks_ahead(scenario: Scenario) -> None:
    """One server is free: a job that holds it for good costs all short jobs to come, which the table does not know."""
    end = np.full(32, 1e6)
    end[7] = -1.0
    times, decision, out, none = one_server(scenario), DegreeDecision(scenario.tables), np.zeros(MOST), np.zeros(SHAPE)
    for accept, after in ((1.0, True), (0.01, False)):  # whether those to come can be done in time at all
        k = decision.look(end, 0.0, 1.0, times, 0, 1.0, Past())
        Teacher(scenario.tables, times, none).judge(decision, k, out)
        assert k == 2 and out[:2].tolist() == [0.0, 1.0]
        Teacher(scenario.tables, times, none, np.ones(10), np.full(10, accept)).judge(decision, k, out)
        assert out[1] == pytest.approx(1.0)
        assert out[0] == pytest.approx(sum(GAMMA**h for h in range(HORIZON)) if after else 0.0)
    assert PLAYED > 1


@pytest.mark.parametrize("how", ["table", "rollouts", "plans", "student"])
def test_labels(small: Scenario, how: str) -> None:
    """Labels are rows with finite values, of decisions that have a choice; a seed gives them again."""
    (name,) = small.sets
    episode, ahead = (small.draw(name, "D", seed, 60) for seed in (0, 1))
    student = BlockNetwork(8).weights() if how == "student" else None

    def labels() -> Any:
        futures = () if how == "table" else (ahead.kind, ahead.beta)
        knows = Teacher(small.tables, small.times, START, *futures, planned=how in ("plans", "student"), seed=3)
        return label(small, episode, knows, 1.0, student)

    found = labels()
    length = np.diff(found.first)
    assert len(length) > 20 and (length > 1).all()
    assert found.rows.shape[0] == len(found.value) == found.first[-1]
    assert np.isfinite(found.value).all() and np.isfinite(found.rows).all()
    taken = found.rows[:, -8]
    assert (taken[found.first[:-1]] == 0).all() and taken.sum() == len(taken) - len(length)  # only the first rejects
    again = labels()
    assert np.array_equal(found.value, again.value) and np.array_equal(found.rows, again.rows)
