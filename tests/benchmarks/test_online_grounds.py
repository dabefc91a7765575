"""Grounds are played until the intervals are narrow, and p-values are Holm's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import online_grounds
from benchmarks.found import Difference
from benchmarks.online_grounds import STUDY, holm, needed, p_value, run
from benchmarks.rows import Row, Task, append, read
from benchmarks.study import Options


def test_a_ground_is_played_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pairs of the same seeds, classic rules beside them; a second run plays nothing again."""
    chosen = {"cases": ("powers-48",), "policies": ("evolved", "sjf+overtake"), "rows": tmp_path / "rows.csv"}
    run(Options(**chosen, seeds=3))
    first = read(tmp_path / "rows.csv")
    assert {(x.task.policy, x.task.seed) for x in first} == {
        (policy, seed) for policy in ("patient", "evolved", "sjf+overtake") for seed in range(3)
    }
    assert "| powers-48 |" in capsys.readouterr().out
    run(Options(**chosen, seeds=3, as_json=True))
    row = next(x for x in json.loads(capsys.readouterr().out) if x["policy"] == "evolved")
    assert read(tmp_path / "rows.csv") == first and row["seeds"] == 3 and row["above"] < 0


def test_seeds_are_as_many_as_the_interval_asks_for(tmp_path: Path) -> None:
    """Ten at first, twice as many at a time, none if it is narrow; just as many as somebody says."""
    rows = [
        Row(Task("ground", policy, seed), {"mean_jct": 100.0 + far * (-1) ** seed})
        for policy, far in (("patient", 0.0), ("evolved", 5.0), ("gnn", 1.0))
        for seed in range(10)
    ]
    append(rows, tmp_path / "rows.csv", STUDY.figures)
    found = STUDY.found(tmp_path / "rows.csv")
    asked = [needed(found, "ground", x, None) for x in ("evolved", "gnn", "sjf+overtake")]
    assert asked == [20, 10, 10] and [needed(found, "ground", x, 30) for x in ("evolved", "gnn")] == [30, 30]


def test_p_values() -> None:
    """An interval that ends at 0 has 5%; Holm multiplies the least by how many there are, and keeps the order."""
    assert p_value(Difference(20, -2.0, 2.0, 100.0)) == pytest.approx(0.05)
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})


def test_the_share_of_decisions_that_a_network_changed() -> None:
    """Of a network that corrects nothing it is 0, of what ships it is not."""
    run_ = online_grounds.episode("powers-48", Options().data, 0)
    policy = online_grounds.make_policy("gnn-unguarded")
    assert 0.05 < online_grounds.changed(policy, run_) < 0.5
    policy.score = lambda seen: seen.graph.x[: len(seen.place), online_grounds.BY_RULE]
    assert online_grounds.changed(policy, run_) < 0.01
