"""What version 0.2.0 wrote is read: tests/upgrade/0.2.0 holds files as commit cd4415b4 left them."""

from __future__ import annotations

import json
import shutil
from math import inf
from pathlib import Path
from typing import Any

import pytest

import gangplan
from gangplan.cli import main
from gangplan.instances.placement import Fleet, GangJob
from gangplan.instances.placement.proximity import Proximity
from gangplan.learned.policy.weights import load_arrays
from gangplan.scheduler import Quota, Sharing
from gangplan.solvers.method import OBJECTIVES

BEFORE = Path(__file__).parent / "upgrade" / "0.2.0"
FLEET = Fleet.regular(racks=2, nodes=2, gpus=8, gpu_type=("A100", "H100"), cpu=64.0, labels={"ssd": [0, 2]})


@pytest.mark.parametrize("objective", [x for x in OBJECTIVES if x not in ("layout", "pipeline")])  # came later
def test_problems_plans_and_certificates(objective: str) -> None:
    """A problem, its plan and the certificate of its bound say what they said."""
    problem, plan = (gangplan.load((BEFORE / f"{objective}{x}.json").read_text()) for x in ("", "-plan"))
    told = json.loads((BEFORE / f"{objective}-value.json").read_text())
    verdict = gangplan.verify(problem, plan)
    assert verdict.ok and verdict.objective == told["objective"]
    bound = gangplan.verify_bound(problem, json.loads((BEFORE / f"{objective}-certificate.json").read_text()))
    assert str(bound) == told["certified"] and bound <= told["objective"] < inf


def test_log(tmp_path: Path) -> None:
    """A log opens as it was when its last line was written, and goes on."""
    log = tmp_path / "log.jsonl"
    shutil.copy(BEFORE / "log.jsonl", log)
    scheduler = gangplan.Scheduler.open(log)
    assert (scheduler.now, len(scheduler.running)) == (960.0, 5)
    scheduler.submit(GangJob("new", "m", (1,)), 60.0, now=970.0, queue="a")
    decision = scheduler.decide(60.0)
    state = scheduler.snapshot()
    del scheduler
    assert decision.starts and gangplan.Scheduler.open(log).snapshot() == state


def running(state: Any) -> list[Any]:
    """Return names and places of the jobs that run in a snapshot."""
    return [(row["request"]["job"]["name"], row["nodes"]) for row in state["running"]]


def test_snapshots() -> None:
    """A snapshot is restored: who runs runs where it ran, who waits waits."""
    saved = json.loads((BEFORE / "snapshot.json").read_text())
    queues = {"a": Quota(0.5, most=0.75), "b": Quota(0.25, lends=0.5)}
    scheduler = gangplan.Scheduler(FLEET, price=60.0, sharing=Sharing(queues=queues, limits={"ann": 16}))
    patient = json.loads((BEFORE / "snapshot-patient.json").read_text())
    other = gangplan.Scheduler(Fleet.regular(2, 2, 4), "patient", speeds=Proximity())
    for one, state in ((scheduler, saved), (other, patient)):
        one.restore(state)
        now = json.loads(json.dumps(one.snapshot()))
        assert running(now) == running(state)
        assert [x["job"]["name"] for x in now["waiting"]] == [x["job"]["name"] for x in state["waiting"]]
        one.decide(60.0)


def test_weights() -> None:
    """Weights and their card are read, and are whole."""
    arrays, card = load_arrays(BEFORE / "colocate.safetensors")
    assert sum(x.size for x in arrays.values()) == card.parameters > 0


def test_rows_of_gapbench(tmp_path: Path) -> None:
    """A report is made of rows that an earlier version wrote."""
    shutil.copytree(BEFORE / "gapbench", tmp_path / "rows")
    assert main(["bench", "report", "--folder", str(tmp_path / "rows")]) == 0
    assert "cpsat" in (tmp_path / "rows" / "report.md").read_text()
