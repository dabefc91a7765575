"""Pictures from the command line: `plot`, and --plot and --panel of the commands that solve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gangplan.plot
from gangplan.instances import InstanceError, dump
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import Demand, GangJob, PlacementProblem
from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem

BEGINS = {"png": b"\x89PNG", "svg": b"<svg", "html": b"<!doctype html>"}


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    """Return the file of a small batch of gangs."""
    path = tmp_path / "batch.json"
    path.write_text(dump(gangs(jobs=3, racks=1, nodes=2, gpus=4, load=0.5, seed=1)))
    return path


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """Return the file of a few jobs over time."""
    path = tmp_path / "jobs.json"
    many = tuple(MoldableJob(name, (1, 2), (9.0, 5.0)) for name in "abc")
    path.write_text(dump(ScheduleProblem(many, Pool(2), "mean_jct")))
    return path


@pytest.mark.parametrize("ending", BEGINS)
def test_solve_draws(problem: Path, batch: Path, jobs: Path, cli: Any, ending: str) -> None:
    """`solve --plot` draws what it solved, by the ending of the file, with the bound that was proved."""
    for file, options in ((problem, ("--objective", "step", "--method", "heft")), (batch, ()), (jobs, ())):
        target = file.with_name(f"{file.stem}-picture.{ending}")
        done = cli("solve", file, "--time-limit", "10", *options, "--json", "--plot", target)
        assert done.code == 0, done.err
        assert target.read_bytes().startswith(BEGINS[ending])
        if ending == "html":
            assert f"{file.stem}: ".encode() in target.read_bytes()


def test_plot(problem: Path, plan: Path, cli: Any) -> None:
    """`plot` draws a plan that was made before, all of it or one panel."""
    whole, part = problem.with_name("whole.svg"), problem.with_name("part.svg")
    assert cli("plot", problem, plan, whole).code == 0
    assert cli("plot", problem, plan, part, "--panel", "load").code == 0
    assert b"<svg" in part.read_bytes()
    assert len(part.read_bytes()) < len(whole.read_bytes())


def test_compare_draws_schedules(jobs: Path, cli: Any) -> None:
    """`compare --plot` draws schedules below one another."""
    plans = [jobs.with_name(name) for name in ("one.json", "two.json")]
    for path in plans:
        assert cli("solve", jobs, "--time-limit", "10", "--out", path).code == 0
    target = jobs.with_name("both.html")
    assert cli("compare", *plans, "--problem", jobs, "--plot", target).code == 0
    page = target.read_text()
    assert "1: one" in page
    assert "2: two" in page


def test_mistakes(problem: Path, plan: Path, jobs: Path, batch: Path, cli: Any) -> None:
    """What cannot be drawn is refused in one line, before anything is solved or written."""
    target = problem.with_name("x.png")
    cases = [
        (
            ("solve", problem, "--plot", target, "--panel", "nowhere"),
            "panel: 'nowhere' is not one of graph, load, memory",
        ),
        (("solve", jobs, "--plot", target, "--panel", "gantt"), "panel: 'gantt' is not one of jobs, load, queue"),
        (("solve", problem, "--plot", problem.with_name("x.gif")), "'.gif' is not one of .png, .svg, .html"),
        (("plot", jobs, plan, target), "does not apply to jobs over time"),
        (("plot", problem, plan, plan), "would be overwritten"),
        (("plot", problem, plan, target, "--panel", "gantt"), "'gantt' is not one of graph, load, memory"),
    ]
    for arguments, message in cases:
        done = cli(*arguments)
        assert (done.code, done.out) == (2, ""), arguments
        assert message in done.err
        assert done.err.count("\n") == 1
    assert not target.exists()


def test_infeasible_plan(problem: Path, plan: Path, cli: Any) -> None:
    """A plan that breaks a constraint is not drawn."""
    done = cli("plot", problem, plan, problem.with_name("x.png"), "--memory", "1")
    assert (done.code, done.out) == (2, "")
    assert "cannot be drawn" in done.err


def test_extra_is_absent(problem: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra nothing is solved, and the line says what to install."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = cli("solve", problem, "--plot", problem.with_name("plan.png"))
    assert (done.code, done.out) == (2, "")
    assert 'pip install ".[plot]"' in done.err
    assert done.err.count("\n") == 1


def test_nothing_is_written_on_errors(batch: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If drawing fails, neither picture nor plan is left behind; without a plan there is no picture."""
    out, plot = batch.with_name("plan.json"), batch.with_name("plan.png")

    def fail(*_: Any, **__: Any) -> bytes:
        raise InstanceError("plot", "cannot be drawn")

    monkeypatch.setattr(gangplan.plot, "render", fail)
    assert cli("solve", batch, "--time-limit", "20", "--out", out, "--plot", plot).code == 2
    assert sorted(batch.parent.iterdir()) == [batch]
    monkeypatch.undo()
    whole = gangs(jobs=1, racks=1, nodes=1, gpus=2, load=0.5, seed=1)
    large = GangJob("a", whole.jobs[0].model, (9,), worker=Demand(1.0))
    batch.write_text(dump(PlacementProblem(whole.fleet, (large,), whole.speeds)))
    done = cli("solve", batch, "--time-limit", "20", "--plot", plot)
    assert done.code == 1
    assert "is not written" in done.err
    assert sorted(batch.parent.iterdir()) == [batch]
