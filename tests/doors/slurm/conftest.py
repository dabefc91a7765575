"""What the tests of Slurm share: its real daemons, and what it once said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.slurm_daemons import Daemons, missing
from gangplan.doors.core import Core
from gangplan.doors.slurm import client, rounds, view
from gangplan.doors.slurm.rounds import SlurmRounds
from gangplan.doors.slurm.view import SlurmView
from gangplan.instances import InstanceError
from gangplan.scheduler import Scheduler

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
        scheduler = Scheduler.open(log) if log.exists() else Scheduler(SlurmView.read().fleet, log=log, **arguments)
        self.core = Core(scheduler, log)
        self.rounds = SlurmRounds(self.core, "gangplan", self.said.append, memory=False, spread=False)

    def round(self) -> list[str]:
        """Do a round."""
        return self.rounds.round(SlurmView.read())

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


@pytest.fixture(scope="session")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemons]:
    """Run Slurm: two racks of four nodes, of four GPUs each."""
    if lack := missing():
        pytest.skip(f"Slurm's daemons do not run here: {lack}")
    with Daemons(tmp_path_factory.mktemp("slurm"), (2, 4)) as slurm:
        yield slurm


@pytest.fixture
def slurm(daemons: Daemons, monkeypatch: pytest.MonkeyPatch) -> Daemons:
    """Return the daemons with all nodes idle, and none but old jobs, whatever the test before left of them."""
    monkeypatch.setenv("SLURM_CONF", daemons.environment["SLURM_CONF"])
    daemons.rest()
    return daemons


@pytest.fixture
def door(slurm: Daemons, tmp_path: Path) -> Door:
    """Return `gangplan slurm` with a new log."""
    return Door(slurm, tmp_path / "log.jsonl")


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Have Slurm say what it once said; what is changed in it, it says too."""
    told: dict[str, Any] = json.loads(RECORDED.read_text())

    def run(*words: str) -> str:
        said = told["squeue --json" if words[0] == "squeue" else " ".join(words)]
        return said if isinstance(said, str) else json.dumps(said)

    monkeypatch.setattr(client, "run", run)
    monkeypatch.setattr(view, "run", run)
    return told


class Played:
    """Slurm as far as `gangplan slurm` sees it: jobs that are held, released and refused; and time.

    Attributes:
        told: what its commands print, as recorded, with no jobs at first.
        reasons: of jobs that do not start when they are released, by number.
        now: seconds of the clock.
        said: what the operator was told.
        signals: what `scancel` was told.
    """

    def __init__(self, told: dict[str, Any]) -> None:
        self.told, self.reasons, self.now, self.said = told, dict[str, str](), 1.8e9, list[str]()
        self.signals = list[tuple[str, ...]]()
        told["scontrol show config"] = ""
        self.usual = next(row for row in told["squeue --json"]["jobs"] if row["job_id"] == 2)
        self.jobs: list[dict[str, Any]] = []
        told["squeue --json"]["jobs"] = self.jobs
        for node in told["sinfo --json"]["nodes"]:
            node |= {"state": "idle", "state_flags": []}
        self.restart()

    def restart(self, **arguments: Any) -> None:
        """Start `gangplan slurm` anew, with an empty log and arguments of `Scheduler`."""
        self.core = Core(Scheduler(SlurmView.read().fleet, **arguments))
        self.door = rounds.SlurmRounds(self.core, "gangplan", self.said.append, memory=False, spread=False)

    def submit(self, number: int, nodes: int = 1, **fields: Any) -> dict[str, Any]:
        """Add a held job for four GPUs on each of so many nodes; return what is said of it."""
        row = self.usual | {"job_id": number, "name": f"job{number}", "node_count": nodes, "max_nodes": nodes}
        self.jobs.append(row | {"tasks": nodes, "cpus": nodes, "time_limit": 5} | fields)
        return self.jobs[-1]

    def order(self, *words: str) -> str:
        """Do what `scontrol` is told, and remember the signals of `scancel`."""
        if words[0] == "scancel":
            self.signals.append(words[1:])
            return ""
        number = words[2].removeprefix("JobId=")
        row = next(row for row in self.jobs if f"{row['job_id']}" == number.partition("_")[0])
        if row["job_state"] != "PENDING" and any(word.startswith("ReqNodeList=") for word in words):
            raise InstanceError("slurm", f"scontrol: Invalid node name specified for job {number}")
        if words[1] == "requeuehold":
            self.set(row, "PENDING", nodes="", gres_detail=[], priority=0)
            row["state_reason"] = "JobHeldUser"
        if words[1] == "uhold":
            row |= {"priority": 0, "state_reason": "JobHeldUser"}
        elif words[1] == "release":
            row |= {"priority": 9, "state_reason": self.reasons.get(number, "None"), "eligible_time": int(self.now)}
        for name, value in (word.split("=", 1) for word in words[3:]):
            if name == "NumNodes":
                least, _, most = value.partition("-")
                row |= {"node_count": int(least), "max_nodes": int(most or row["max_nodes"])}
            else:
                row[{"Comment": "comment", "ReqNodeList": "required_nodes"}[name]] = value
        return ""

    def round(self, seconds: float = 2.0) -> list[str]:
        """Do a round so many seconds later; then Slurm starts whom it may, where it was told."""
        self.now += seconds
        done = self.door.round(SlurmView.read())
        for row in self.jobs:
            if row["priority"] and row["job_state"] == "PENDING" and row["state_reason"] == "None":
                nodes = row["required_nodes"]
                self.set(row, "RUNNING", nodes=nodes, gres_detail=["gpu:4"] * (1 + nodes.count(",")))
        return done

    @staticmethod
    def set(row: dict[str, Any], state: str, **fields: Any) -> None:
        """Have a job be in a state."""
        row |= {"job_state": state, "state_reason": "None", "job_resources": {}, "end_time": 0, **fields}


@pytest.fixture
def played(recorded: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Played:
    """Play Slurm: eight idle nodes of four GPUs, no jobs."""
    slurm = Played(recorded)
    monkeypatch.setattr(rounds, "run", slurm.order)
    monkeypatch.setattr(rounds.time, "time", lambda: slurm.now)
    return slurm
