"""`gangplan pipeline`: the table, what it writes, the frontier, and bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gangplan
from gangplan.instances.pipeline import schedule_csv

from .conftest import Cli

SMALL = ("pipeline", "--devices", "2", "--micro-batches", "4")


def test_table(cli: Cli) -> None:
    """Published schedules stand beside the best order, each with its gap, in 80 columns."""
    done = cli(*SMALL, "--memory", "2")
    lines = done.out.splitlines()
    assert done.code == 0 and max(map(len, lines)) <= 80
    rows = {line.split()[0]: line for line in lines if line.strip()}
    assert "no room" in rows["GPipe"] and "13 s" in rows["ZB-H1"] and "proved" in rows["gangplan"]
    assert "OPTIMAL" in rows["status"] and "micro-batches" in rows["schedule"]
    # as published, with B whole: 3 (m + p - 1) s, a bubble of (p - 1) / (m + p - 1), twice
    assert rows["1F1B"].split() == ["1F1B", "whole", "15", "s", "20%", "20%", "2", "13.3%"]


def test_bytes(cli: Cli, tmp_path: Path) -> None:
    """Memory is in bytes where a micro-batch does not hold 1 on each device."""
    problem = gangplan.generate("micro_batches", devices=2, micro_batches=4, memory=2)
    file = tmp_path / "bytes.json"
    file.write_text(gangplan.dump(replace(problem, activation=2e9 * problem.activation, kept=np.zeros(2),
                                          capacity=2e9 * problem.capacity)))  # fmt: skip
    assert "GB" in cli("pipeline", file).out and "4 GB" in cli("show", file).out


def test_files(cli: Cli, tmp_path: Path) -> None:
    """The plan is a document of the problem that `generate` makes, the lines are its orders, the picture is drawn."""
    out, csv, picture = (tmp_path / name for name in ("plan.json", "s.csv", "p.svg"))
    done = cli(*SMALL, "--memory", "2", "--out", out, "--csv", csv, "--draw", picture, "--json")
    assert cli("generate", "micro_batches", "--devices", "2", "--micro-batches", "4", "--memory", "2",
               "--out", tmp_path / "mb.json").code == 0  # fmt: skip
    problem, plan = gangplan.load(tmp_path / "mb.json"), gangplan.load(out)
    assert cli("verify", tmp_path / "mb.json", out).code == cli("show", tmp_path / "mb.json").code == 0
    assert cli("show", out).code == 0
    data = json.loads(done.out)
    assert {x["name"]: x["seconds"] for x in data["schedules"]} == {
        "GPipe": None, "1F1B": 15.0, "ZB-H1": 13.0, "gangplan": 13.0,
    }  # fmt: skip
    assert csv.read_text() == schedule_csv(problem, plan) and "<svg" in picture.read_text()
    again = cli("pipeline", tmp_path / "mb.json", "--json")
    assert json.loads(again.out)["schedules"] == data["schedules"]


@pytest.mark.parametrize(
    "more", [("--no-barrier",), ("--shape", "v"), ("--chunks", "2"), ("--no-split",), ("--spread", ".2")]
)
def test_shapes(cli: Cli, more: tuple[str, ...]) -> None:
    """Every shape of pipeline has a plan."""
    assert cli(*SMALL, *more).code == 0


def test_frontier(cli: Cli, tmp_path: Path) -> None:
    """Each amount of memory has its best step, until more gains nothing."""
    done = cli(*SMALL, "--no-barrier", "--frontier", tmp_path / "f.svg", "--json")
    assert [(x["capacity"], x["seconds"], x["proved"]) for x in json.loads(done.out)["frontier"]] == [
        (1, 20, True), (2, 13, True), (3, 12, True),
    ]  # fmt: skip
    assert "ZB-H2" in (tmp_path / "f.svg").read_text()


def test_no_room(cli: Cli) -> None:
    """With too little memory for a micro-batch the exit code is 1, and the device is named."""
    done = cli(*SMALL, "--memory", ".5")
    assert done.code == 1 and "INFEASIBLE" in done.out and "device 1 has 0.5 micro-batches" in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--devices", "0"), "devices: 0 is not positive"),
        (("--micro-batches", "x"), "'x' is not a whole number"),
        (("--backward", "-2"), "backward: -2.0 is negative"),
        (("--shape", "x"), "shape: 'x' is not"),
        (("--shape", "v", "--chunks", "3"), "chunks: 3 is more than 2"),
        (("--csv", "plan.txt"), "'.txt' is not .csv"),
        (("--time-limit", "0"), "time_limit: 0.0 is not a positive number"),
        (("--frontier", "f.svg", "--out", "p.json"), "out: is of one plan"),
        (("nowhere.json",), "nowhere.json: file: no such file"),
    ],
)
def test_bad_input(
    cli: Cli, arguments: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A wrong option ends with exit code 2 and a line that names it."""
    monkeypatch.chdir(tmp_path)
    done = cli("pipeline", *arguments)
    assert done.code == 2 and words in done.err and not done.out, done.err


def test_another_problem(cli: Cli, problem: Path) -> None:
    """A problem of another kind is refused."""
    done = cli("pipeline", problem)
    assert done.code == 2 and "holds no pipeline problem" in done.err


def test_options_beside_a_file(cli: Cli, tmp_path: Path) -> None:
    """What an option says of the problem is not ignored beside a file: it is refused."""
    file = tmp_path / "mb.json"
    assert cli("generate", "micro_batches", "--out", file).code == 0
    done = cli("pipeline", file, "--memory", "2")
    assert done.code == 2 and "memory: does not apply to the pipeline of" in done.err
