"""Batches of gangs on the command line."""

from __future__ import annotations

import json
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


@pytest.fixture
def batch(tmp_path: Path, cli: Any) -> Path:
    """Return the file of a small batch."""
    path = tmp_path / "batch.json"
    done = cli("generate", "gangs", "--jobs", "5", "--racks", "1", "--nodes", "3", "--gpus", "4", "--out", path)
    assert done.code == 0
    return path


def test_solve_show_verify(batch: Path, cli: Any, tmp_path: Path) -> None:
    """A batch is solved, its plan written, verified to the same figure, and both are described."""
    plan = tmp_path / "plan.json"
    found = json.loads(cli("solve", batch, "--time-limit", "20", "--json", "--out", plan).out)
    assert found["status"] in ("OPTIMAL", "FEASIBLE")
    checked = json.loads(cli("verify", batch, plan, "--json").out)
    assert (checked["feasible"], checked["objective"]) == (True, found["objective"])
    assert "a batch of gangs" in cli("show", batch).out
    assert "5 of 5 jobs" in cli("show", plan).out
    assert "weighted slowdowns in sum" in cli("verify", batch, plan).out
    again = cli("solve", batch, "--time-limit", "5", "--initial", plan)
    assert again.code == 0 and "slowdown" in again.out


def test_infeasible_plan(batch: Path, cli: Any, tmp_path: Path) -> None:
    """A plan that breaks a constraint has exit code 1, with the constraint."""
    plan = tmp_path / "plan.json"
    cli("solve", batch, "--time-limit", "20", "--out", plan)
    data = json.loads(plan.read_text())
    data["workers"][0] += 1
    del data["content_hash"]
    plan.write_text(json.dumps(data))
    done = cli("verify", batch, plan)
    assert done.code == 1
    assert "gang: job" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--variant", "free"), "variant: 'free' does not apply to a batch of gangs"),
        (("--devices", "4"), "devices: 4 does not apply to a batch of gangs"),
    ],
)
def test_options_of_other_problems(batch: Path, cli: Any, arguments: tuple[str, ...], words: str) -> None:
    """Options that say nothing of a batch are refused."""
    done = cli("solve", batch, *arguments)
    assert done.code == 2
    assert words in done.err


def test_other_commands(batch: Path, cli: Any, tmp_path: Path, problem: Path) -> None:
    """Commands that know ops only say so."""
    plan = tmp_path / "plan.json"
    cli("solve", batch, "--time-limit", "20", "--out", plan)
    done = cli("compare", plan, "--problem", problem)
    assert done.code == 2
    assert "kind: 'placement_plan' is a plan of gangs, not of ops" in done.err


def test_plan_of_another_instance(batch: Path, cli: Any, tmp_path: Path) -> None:
    """A plan made for another batch is pointed out."""
    plan, other = tmp_path / "plan.json", json.loads(batch.read_text())
    cli("solve", batch, "--time-limit", "20", "--method", "topology", "--out", plan)
    del other["content_hash"]
    other["jobs"][0]["weight"] *= 2
    batch.write_text(json.dumps(other))
    assert "note: the plan was made for another problem" in cli("verify", batch, plan).out
    assert "another problem" in json.loads(cli("verify", batch, plan, "--json").out)["notes"][0]


def test_a_limit_that_reading_has_used_up(batch: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solve whose limit is over when the file is read says so, and gives a plan all the same."""
    now = time.perf_counter
    module = import_module("gangplan.cli.solve")
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: now() + 3.2))
    done = cli("solve", batch, "--time-limit", "3", "--json")
    found = json.loads(done.out)
    assert found["plan"] is not None and found["wall_seconds"] > 3.2 and found["phases"]["read"] > 3.2
    words = found["notes"][0]
    assert words.startswith("starting and reading took ") and words.endswith("limit of 3 s")
    assert float(words.split()[4]) >= 3.2  # what a busy machine adds counts
    assert not json.loads(cli("solve", batch, "--time-limit", "20", "--method", "topology", "--json").out)["notes"]
