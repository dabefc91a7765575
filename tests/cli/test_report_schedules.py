"""Jobs over time on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gangplan.hybrid.table import Entry, register, unregister
from gangplan.solvers.method import Method


@pytest.fixture
def jobs(tmp_path: Path, cli: Any) -> Path:
    """Return the file of a small problem."""
    path = tmp_path / "jobs.json"
    done = cli(
        "generate", "moldable", "--jobs", "6", "--nodes", "2", "--gpus", "4", "--capacity", "nodes", "--out", path
    )
    assert done.code == 0
    assert done.out == f"{path}: 6 jobs over time on 8 GPUs: weighted_completion\n"
    return path


def test_solve_show_verify_compare(jobs: Path, cli: Any, tmp_path: Path) -> None:
    """A problem is solved, its plan written, verified to the same figure, described and compared."""
    plan = tmp_path / "plan.json"
    found = json.loads(cli("solve", jobs, "--time-limit", "20", "--json", "--out", plan).out)
    assert found["status"] == "OPTIMAL"
    checked = json.loads(cli("verify", jobs, plan, "--json").out)
    assert (checked["feasible"], checked["objective"]) == (True, found["objective"])
    assert len(checked["finish"]) == 6
    assert "moldable jobs over time: weighted_completion" in cli("show", jobs).out
    assert "6 of 6 jobs run" in cli("show", plan).out
    assert "of weighted completion in sum" in cli("verify", jobs, plan).out
    worse = tmp_path / "worse.json"
    late = json.loads(plan.read_text())
    late["start"] = [x + 3600 for x in late["start"]]
    del late["content_hash"]
    worse.write_text(json.dumps(late))
    done = cli("compare", plan, worse, "--problem", jobs, "--json")
    rows = json.loads(done.out)["plans"]
    assert done.code == 0 and rows[0]["over_best"] == 0 < rows[1]["over_best"]
    assert rows[1]["mean_jct"] == pytest.approx(rows[0]["mean_jct"] + 3600)
    assert "above" in cli("compare", plan, worse, "--problem", jobs).out
    assert "nodes" in cli("solve", jobs, "--time-limit", "5", "--initial", plan).out


def test_infeasible_plan(jobs: Path, cli: Any, tmp_path: Path) -> None:
    """A plan that breaks a constraint has exit code 1, with the constraint."""
    plan = tmp_path / "plan.json"
    cli("solve", jobs, "--time-limit", "20", "--out", plan)
    data = json.loads(plan.read_text())
    data["gpus"][0] += 1
    del data["content_hash"]
    plan.write_text(json.dumps(data))
    for arguments in (("verify", jobs, plan), ("compare", plan, "--problem", jobs)):
        done = cli(*arguments)
        assert done.code == 1 and "gang: job" in " ".join(done.out.split())  # long lines are folded


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--variant", "free"), "variant: 'free' does not apply to jobs over time"),
        (("--method", "heft"), "method: 'heft' is not one of auto, dual, lists"),
    ],
)
def test_options_of_other_problems(jobs: Path, cli: Any, arguments: tuple[str, ...], words: str) -> None:
    """Options that say nothing of such a problem are refused."""
    done = cli("solve", jobs, *arguments)
    assert done.code == 2 and words in done.err


def test_plan_of_another_problem(jobs: Path, cli: Any, tmp_path: Path, problem: Path) -> None:
    """A plan of jobs over time answers no graph."""
    plan = tmp_path / "plan.json"
    cli("solve", jobs, "--time-limit", "20", "--out", plan)
    done = cli("compare", plan, "--problem", problem)
    assert done.code == 2 and "SchedulePlan is not a PartitionPlan" in done.err


def test_plan_of_another_instance(jobs: Path, cli: Any, tmp_path: Path) -> None:
    """A plan made for another problem is pointed out wherever it is judged."""
    plan, other = tmp_path / "plan.json", json.loads(jobs.read_text())
    cli("solve", jobs, "--time-limit", "20", "--out", plan)
    del other["content_hash"]
    other["jobs"][0]["weight"] *= 2
    (tmp_path / "other.json").write_text(json.dumps(other))
    for arguments in (
        ("verify", tmp_path / "other.json", plan),
        ("compare", plan, "--problem", tmp_path / "other.json"),
    ):
        assert "was made for another problem" in cli(*arguments).out
        assert "was made for another problem" in cli(*arguments, "--json").out


def test_methods_beside_those_of_the_solvers(jobs: Path, cli: Any) -> None:
    """A method that the user has registered is taken by name, as `gangplan methods` lists it."""
    register(Entry("schedule", "stranger", Method(lambda run, prepared: run.note("a stranger was here"))))
    try:
        assert "stranger" in json.loads(cli("methods", "--json").out)["schedule"]
        done = cli("solve", jobs, "--method", "stranger", "--time-limit", "10", "--json")
    finally:
        unregister("schedule", "stranger")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["method"] == "stranger" and "a stranger was here" in found["notes"]
