"""The examples in docs/examples run as they are written, and are short."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from gangplan.cli import main

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
LONG = {"gpt2.py", "operators_loop.py"}
"""A model, and a day of a cluster."""


def example(name: str) -> dict[str, Any]:
    """Return what an example defines."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_is_short(path: Path) -> None:
    """An example has fewer than forty lines."""
    assert len(path.read_text(encoding="utf-8").splitlines()) < 40 or path.name in LONG


def test_own_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It lies between the two rules that it is made of, and the command line takes it."""
    means = example("own_policy")["main"]()
    assert means["sjf"] < means["Patience"] < means["fifo"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text("job_id,num_gpu,submit_time,duration\na,8,0,900\nb,8,1,800\nc,8,2,700\n")
    means = example("own_policy")["main"]("jobs.csv", 1)  # a for 900 s, then b and c, or c and b
    assert means == pytest.approx({"Patience": 4897 / 3, "sjf": 4897 / 3, "fifo": 4997 / 3})
    policy = f"{EXAMPLES / 'own_policy.py'}:Patience,sjf"
    assert main(["simulate", "jobs.csv", "--cluster", "1x8", "--policy", policy]) == 0
    assert "Patience" in capsys.readouterr().out


def test_own_solver() -> None:
    """It passes the contract, and `solve` runs it by name."""
    assert example("own_solver")["main"]().method == "even_cuts"


def test_own_reader() -> None:
    """Of three ops a and b go on one GPU, c on the other, with one transfer."""
    assert example("own_reader")["main"]().objective == pytest.approx(3.008)


def test_own_pick() -> None:
    """It runs on three grounds, alike each time."""
    assert example("own_pick")["main"]() == pytest.approx(
        {"topdrl": 18.1375, "harmony": 5382.8797, "marl": 2911.6461}, rel=1e-3
    )


def test_own_ground() -> None:
    """It passes the contract, and by it the shortest first is ahead of first come."""
    ground = example("own_ground")["Morning"](jobs=40)
    drawn = ground.draw(0)
    fifo, sjf = (ground.play(ground.policy(name)(drawn, 0), drawn)["mean_jct"] for name in ground.usual)
    assert ground.bound(drawn, 1.0) <= sjf < fifo


def test_own_rounds() -> None:
    """All policies play, and one that knows speeds is ahead of one that does not."""
    means = example("own_rounds")["main"]()
    assert len(means) == 8 and means["max_min_fairness_perf"] < means["max_min_fairness"]


def test_many_episodes() -> None:
    """Some episodes end, and jobs of up to 30 s are done in minutes at most."""
    assert 10 < example("many_episodes")["main"]() < 300


def test_own_scores() -> None:
    """It passes the contract, and takes the node with three free GPUs."""
    made = example("own_scores")
    assert made["Tightest"]().choose(made["np"].array([8.0, 2.0, 5.0, 3.0])) == 3


def test_own_learner(tmp_path: Path) -> None:
    """It is trained to its last update, and is then nearest to 3."""
    report = example("own_learner")["main"](tmp_path / "run")
    assert report.reason == "updates" and report.best == pytest.approx(3 / 2**10)


def test_learned_speeds() -> None:
    """What is learned is used, and of two models that halve each other nearly twice the time."""
    learned = example("learned_speeds")["main"]().learned
    assert learned.used and learned.slowdown["vgg"]["lstm"] > 1.5


def test_speeds_beside() -> None:
    """Jobs are predicted to be slower beside others, none to stand still."""
    ratio, deviation = example("speeds_beside")["main"]()
    assert ratio.min() > 0 and ratio.mean() < 1 and (deviation > 0).all()


def test_pacml_policy(tmp_path: Path) -> None:
    """Its schedules hold, and two servers in any block are worse than four as they come."""
    blocked = example("pacml_policy")["main"](tmp_path)
    assert 0 < blocked["constant-4"] < blocked["halves"] < 1


def test_own_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns and dates are read; the short job overtakes the one of an hour and a half under SJF alone."""
    made = example("own_trace")
    (tmp_path / "trace.csv").write_text(made["SAMPLE"])
    means = made["main"](tmp_path / "trace.csv")
    assert means["sjf"] < means["fifo"]
    said = capsys.readouterr().out
    assert said.startswith("5 jobs, ") and "'many' is not a number" in said


def test_pytorch_pipelining(one_thread: None) -> None:
    """The stages of torch, one after the other, compute what the whole model does."""
    assert example("pytorch_pipelining")["main"]() < 1e-5


def test_module_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole model is in both stages, and each of its blocks in one or in both."""
    pytest.importorskip("torch")
    monkeypatch.setattr(sys, "path", [*sys.path])
    stages = example("module_places")["main"]()
    assert set(stages["(the model)"]) == {0, 1}
    assert all(set(found) <= {0, 1} for found in stages.values())


def test_http_client() -> None:
    """Two gangs of six fit on two nodes, and the service is ended."""
    pytest.importorskip("uvicorn")
    pytest.importorskip("fastapi")
    assert example("http_client")["main"]() == ["job0", "job1"]
