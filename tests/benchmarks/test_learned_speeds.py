"""The section on learned speeds says what benchmarks/learned_speeds.csv holds, and its table counts as it claims."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import learned_speeds
from benchmarks.learned_speeds import GROUNDS, JOBS, POLICIES, WINDOW, LearnedRow, measure, read, simulate
from benchmarks.learned_speeds_page import learned, windows

ROW = LearnedRow("shared", 0, "without", 0, 600.0, 0.001, "2026", "abc")


def rows(policy: str, before: float, after: float, seed: int = 0) -> list[LearnedRow]:
    """Return the rows of a simulation with one mean before the change and one after it."""
    half = JOBS // WINDOW // 2
    made = replace(ROW, policy=policy, seed=seed)
    return [replace(made, window=i, jct=60 * (before if i < half else after)) for i in range(2 * half)]


def test_everything_was_run() -> None:
    """There are five seeds of every ground and policy, every window once."""
    found = [(row.ground, row.policy, row.seed, row.window) for row in read()]
    assert len(set(found)) == len(found) == len(GROUNDS) * len(POLICIES) * 5 * (JOBS // WINDOW)


def test_the_table_says_what_changed() -> None:
    """A policy that takes 8 of 10 minutes before the change, and 6 of 10 after it, is 20% and 40% below."""
    some = [*rows("without", 10, 10), *rows("without", 20, 20, 1), *rows("learned", 8, 6), *rows("learned", 16, 12, 1)]
    line = learned([*some, *rows("lif", 30, 30), *rows("lif", 30, 30, 1)]).splitlines()[3]
    assert line == "| `shared` | learned | 12.0 | 12.0 | 9.0 | 9.0 | 10.5 | -20.0% ± 0.0% | -40.0% ± 0.0% |"


def test_the_best_rule_is_the_best_of_all() -> None:
    """The rule with the least mean stands for all of them."""
    found = windows([*rows("without", 10, 10), *rows("lif", 9, 9), *rows("tetris", 9, 8), *rows("lb", 7, 12)], "shared")
    assert list(found) == ["without", "best rule"] and found["best rule"].mean() == 8.5


def test_runs_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation writes a row a window; what is there is not run again; the same seed gives the same means."""
    path, said = tmp_path / "rows.csv", list[str]()
    monkeypatch.setattr(learned_speeds, "JOBS", 100)
    monkeypatch.setattr(learned_speeds, "WINDOW", 50)
    monkeypatch.setattr(simulate, "__defaults__", (100, learned_speeds.DATA))
    for policies in (["without"], ["without", "learned"]):
        measure(["shared", "links"], policies, [1_000_000], path, say=said.append)
    assert len(said) == 4 and len(read(path)) == 8
    again = simulate("links", 1_000_000, "learned", 100)
    assert [row.jct for row in again] == [x.jct for x in read(path) if (x.ground, x.policy) == ("links", "learned")]
