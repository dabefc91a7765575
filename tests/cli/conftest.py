"""What the tests of the command line share: a way to call it, and a small problem in a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from gangplan.cli import main
from gangplan.instances import dump
from gangplan.instances.generators import generate


@dataclass(frozen=True)
class Outcome:
    """Exit code and output of one call."""

    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Call the command line in this process."""

    def call(*arguments: str | Path) -> Outcome:
        code = main([str(x) for x in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    """Return the file of a problem of 24 ops, 12 of them backward, on 3 devices."""
    path = tmp_path / "problem.json"
    path.write_text(dump(generate("layered", ops=12, layers=6, devices=3, seed=1)))
    return path


@pytest.fixture
def plan(problem: Path, cli: Cli) -> Path:
    """Return the file of an optimal plan for `problem`."""
    path = problem.with_name("plan.json")
    assert cli("solve", problem, "--json", "--out", path).code == 0
    return path
