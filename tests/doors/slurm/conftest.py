"""What the tests of Slurm share: its real daemons, and what it once said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.slurm_daemons import Daemons, missing
from gangplan.doors.core import Core
from gangplan.doors.slurm import client, view
from gangplan.doors.slurm.rounds import Rounds
from gangplan.doors.slurm.view import View
from gangplan.hybrid.online import Scheduler

OURS = ("--hold", "--comment=gangplan", "--time=5")
"""Options of a job that gangplan places."""
RECORDED = Path(__file__).parent / "recorded.json"
"""What commands of Slurm 22.05.8 printed, by their words, as far as it is read."""


class Door:
    """`gangplan slurm` in this process, a round at a time, with a log of its own.

    Attributes:
        slurm: the daemons.
        said: what the operator was told.
    """

    def __init__(self, slurm: Daemons, log: Path, **arguments: Any) -> None:
        self.slurm, self.log, self.said = slurm, log, list[str]()
        scheduler = Scheduler.open(log) if log.exists() else Scheduler(View.read().fleet, log=log, **arguments)
        self.core = Core(scheduler, log)
        self.rounds = Rounds(self.core, "gangplan", self.said.append, memory=False, spread=False)

    def round(self) -> list[str]:
        """Do a round."""
        return self.rounds.round(View.read())

    def until(self, state: str, *jobs: str, act: bool = True) -> dict[str, dict[str, Any]]:
        """Do rounds until jobs are in a state; return what Slurm says of all jobs."""

        def there() -> bool:
            if act:
                self.round()
            rows = self.slurm.jobs()
            return all(name in rows and rows[name]["job_state"] == state for name in jobs)

        self.slurm.wait(there, f"{state} of {jobs}, {self.said}")
        return self.slurm.jobs()


def nodes_of(row: dict[str, Any]) -> set[str]:
    """Return the nodes that a job has or had."""
    return {seat["nodename"] for seat in row["job_resources"]["allocated_nodes"]}


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """Compile nothing: nobody here solves a problem."""


@pytest.fixture(scope="session")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemons]:
    """Run Slurm: two racks of four nodes, of four GPUs each."""
    if lack := missing():
        pytest.skip(f"Slurm's daemons do not run here: {lack}")
    with Daemons(tmp_path_factory.mktemp("slurm"), (2, 4)) as slurm:
        yield slurm


@pytest.fixture
def slurm(daemons: Daemons, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemons]:
    """Return the daemons with all nodes idle, and none but old jobs."""
    monkeypatch.setenv("SLURM_CONF", daemons.environment["SLURM_CONF"])
    yield daemons
    daemons.ask("scancel", "--user=root")
    daemons.wait(lambda: daemons.states() == ["idle"] * 8, "idle nodes")


@pytest.fixture
def door(slurm: Daemons, tmp_path: Path) -> Door:
    """Return `gangplan slurm` with a new log."""
    return Door(slurm, tmp_path / "log.jsonl")


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Have Slurm say what it once said; what is changed in it, it says too."""
    told: dict[str, Any] = json.loads(RECORDED.read_text())

    def run(*words: str) -> str:
        said = told[" ".join(words)]
        return said if isinstance(said, str) else json.dumps(said)

    monkeypatch.setattr(client, "run", run)
    monkeypatch.setattr(view, "run", run)
    return told
