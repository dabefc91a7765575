"""`gangplan teach`: the table, the JSON, the pages, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gangplan
from gangplan.teach.suite import read_suite

SUITE = """
title = "One"
[[problem]]
name = "placement-racks-toy-02"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a suite and two submissions: a plan, and a program that hangs on to nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "one.toml").write_text(SUITE)
    (tmp_path / "all" / "ann").mkdir(parents=True)
    problem = read_suite("one.toml").assignments[0].problem
    result = gangplan.solve(problem, time_limit=5)
    gangplan.save(result.plan, tmp_path / "all" / "ann" / "placement-racks-toy-02.json")
    (tmp_path / "all" / "\x1b[31mbob.py").write_text("raise SystemExit")
    return tmp_path


def test_grade(place: Path, cli: Any) -> None:
    """Each submission has a row in 80 columns, without escapes, and a page."""
    done = cli("teach", "grade", "all", "--suite", "one.toml")
    assert done.code == 0 and "\x1b" not in done.out
    rows = [line.split() for line in done.out.splitlines() if line.startswith(("ann", "\\x1b"))]
    assert rows == [["\\x1b[31mbob", "0", "0"], ["ann", "10", "10"]]
    assert max(map(len, done.out.splitlines())) <= 80
    assert sorted(x.name for x in (place / "feedback").iterdir()) == ["_x1b_31mbob.html", "ann.html", "points.csv"]
    found = json.loads(cli("teach", "grade", "all", "--suite", "one.toml", "--json").out)
    assert found["most"] == 10 and [x["points"] for x in found["grades"]] == [0, 10]
    assert found["grades"][1]["marks"][0]["gap"] == pytest.approx(0, abs=1e-6)


def test_starter(place: Path, cli: Any) -> None:
    """The starter has the problems of its suite, and is not written over what is there."""
    assert cli("teach", "starter", "new", "--suite", "one.toml").code == 0
    assert gangplan.load(place / "new" / "problems" / "placement-racks-toy-02.json").objective == "placement"
    again = cli("teach", "starter", "new")
    assert again.code == 2 and "is not empty" in again.err


DRAWN = """
best_seconds = 2
[[problem]]
name = "jobs"
generate = { kind = "moldable", jobs = 4 }
draw = true
"""


def test_key(place: Path, cli: Any) -> None:
    """A student is graded on the problems that the starter with the same key and name has."""
    (place / "drawn.toml").write_text(DRAWN)
    for name, key in (("eve", ()), ("new/ann", ("--key", "k")), ("new/bob", ("--key", "k"))):
        assert cli("teach", "starter", name, "--suite", "drawn.toml", *key).code == 0
    problems = [gangplan.load(place / name / "problems" / "jobs.json") for name in ("eve", "new/ann", "new/bob")]
    assert len({gangplan.content_hash(x) for x in problems}) == 3
    for name in ("ann", "bob"):  # both hand in ann's optimum
        gangplan.save(gangplan.solve(problems[1], time_limit=5).plan, place / "new" / name / "jobs.json")
    found = json.loads(cli("teach", "grade", "new", "--suite", "drawn.toml", "--key", "k", "--json").out)
    assert [x["points"] == 10 for x in found["grades"]] == [True, False] and "namespaces" in found["isolation"]
    assert (place / "feedback" / "points.csv").read_text().startswith("submission,points,jobs plan\nann,10,10\n")
    assert not any(x["notes"] for x in found["grades"])
    (place / "new" / "bob").rename(place / "new" / "bob_12345")
    found = json.loads(cli("teach", "grade", "new", "--suite", "drawn.toml", "--key", "k", "--json").out)
    assert [len(x["notes"]) for x in found["grades"]] == [0, 1]
    assert "problems/jobs.json is not what was graded" in found["grades"][1]["notes"][0]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("grade", "nowhere"), "no such file"),
        (("grade", "all", "--suite", "homewrok"), "did you mean homework?"),
        (("grade", "all", "--suite", "one.toml", "--out", "all/x"), "lies among the submissions"),
        (("grade", "all", "--suite", "one.toml", "--out", "one.toml"), "file exists"),
        (("starter", "one.toml"), "not a directory"),
    ],
)
def test_refused(given: tuple[str, ...], says: str, place: Path, cli: Any) -> None:
    """What cannot be used is named before any work, without a traceback."""
    done = cli("teach", *given)
    assert done.code == 2 and says in done.err and "Traceback" not in done.err
