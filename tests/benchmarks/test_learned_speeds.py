"""The table of learned speeds counts as it claims, and its rows are all there."""

from __future__ import annotations

import pytest

from benchmarks.found import Found
from benchmarks.learned_speeds import STUDY, measure, tasks
from benchmarks.learned_speeds_tables import CHANGE, WINDOWS, learned, windows
from benchmarks.rows import Row, Task, read
from benchmarks.study import Options


def row(policy: str, before: float, after: float, seed: int = 0) -> Row:
    """Return the row of a simulation with one mean before the change and one after it, in minutes."""
    means = {name: 60 * (before if i < CHANGE else after) for i, name in enumerate(WINDOWS)}
    return Row(Task("shared", policy, seed), means)


def test_everything_was_run() -> None:
    """There are five seeds of every ground and policy, once."""
    found = [x.task for x in read(STUDY.path)]
    assert sorted(found) == sorted(tasks(Options())) and len(set(found)) == len(found)


def test_the_table_says_what_changed() -> None:
    """A policy that takes 8 of 10 minutes before the change, and 6 of 10 after it, is 20% and 40% below."""
    some = [row("without", 10, 10), row("without", 20, 20, 1), row("learned", 8, 6), row("learned", 16, 12, 1)]
    line = learned(Found([*some, row("lif", 30, 30), row("lif", 30, 30, 1)], STUDY.alike)).splitlines()[2]
    assert line == "| `shared` | learned | 10.5 | -20.0% ± 0.0% | -40.0% ± 0.0% |"


def test_the_best_rule_is_the_best_of_all() -> None:
    """The rule with the least mean stands for all of them."""
    rows = [row("without", 10, 10), row("lif", 9, 9), row("tetris", 9, 8), row("lb", 7, 12)]
    found = windows(Found(rows, STUDY.alike), "shared")
    assert list(found) == ["without", "best rule"] and found["best rule"].mean() == 8.5


@pytest.mark.parametrize("policy", ["without", "learned"])
def test_a_simulation_has_a_mean_a_window(policy: str) -> None:
    """The same seed gives the same means; only a scheduler takes time to decide."""
    found = [measure(Task("links", policy, 1_000_000), Options(), jobs=100) for _ in range(2)]
    assert [found[0][name] for name in WINDOWS] == [found[1][name] for name in WINDOWS]
    assert found[0]["decision"] > 0
