"""What versions after 22.05 print, written by the schemas that Slurm publishes, is read as what 22.05 prints."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from gangplan.doors.core import Core, encoded
from gangplan.doors.slurm.rounds import SlurmRounds
from gangplan.doors.slurm.view import SlurmView, job_row, node_row, number
from gangplan.instances import InstanceError
from gangplan.scheduler import Scheduler

from .conftest import Played

NUMBERS = (
    *("array_job_id", "array_task_id", "array_max_tasks", "cpus", "het_job_id", "max_nodes", "node_count", "priority"),
    *("tasks", "time_limit"),
)
"""Numbers that are objects since 23.02."""
TIMES = ("eligible_time", "end_time", "submit_time")
"""Times that are objects since 23.11."""


def v23_02(told: dict[str, Any]) -> None:
    """Have numbers in objects, lists of features and states, groups of nodes from sinfo."""
    for row in told["squeue --json"]["jobs"]:
        row |= {name: _number(row[name]) for name in NUMBERS if name in row}
        row |= {"shared": [row["shared"]] if row["shared"] else [], "nice": row["nice"] or 0, "hold": False}
    rows = told["sinfo --json"].pop("nodes")
    for row in rows:
        row["state"] = [row["state"].upper(), *row.pop("state_flags")]
        row |= {name: [x for x in row[name].split(",") if x] for name in ("features", "active_features")}
    told["sinfo --json"]["sinfo"] = [{"node": {"state": row["state"]}, "nodes": {"total": 1}} for row in rows]
    told["scontrol show nodes --json"] = {"nodes": rows, "errors": [], "warnings": []}


def v23_11(told: dict[str, Any]) -> None:
    """Have lists of states, times in objects, another sign before resources, and cores among those of a task."""
    v23_02(told)
    for row in told["squeue --json"]["jobs"]:
        row["job_state"] = [row["job_state"], *(["REQUEUED"] if row["job_state"] == "PENDING" else [])]
        row |= {name: _number(row[name]) for name in TIMES if name in row}
        row |= {name: row[name].replace("gres:", "gres/") for name in row if name.startswith("tres_per_")}
        if row["tres_per_task"]:
            row["tres_per_task"] = f"cpu=1,{row['tres_per_task']}"


def v24_05(told: dict[str, Any]) -> None:
    """Have what a job holds in an object of nodes."""
    v23_11(told)
    for row in told["squeue --json"]["jobs"]:
        held = row.get("job_resources") or {}
        seats = [{"name": seat["nodename"], "cpus": {"count": 8}} for seat in held.get("allocated_nodes", ())]
        row["job_resources"] = {"nodes": {"list": held.get("nodes"), "allocation": seats}} if seats else {}


def v24_11(told: dict[str, Any]) -> None:
    """Have no details of what jobs hold, as who is not to see them is told; no limit where there is none."""
    v24_05(told)
    for row in told["squeue --json"]["jobs"]:
        held = "cpu=4,gres/gpu=6,gres/gpu:a100=6" if row["gres_detail"] else ""
        row.update(tres_alloc_str=held, gres_detail=[], job_resources={})
        if not row["time_limit"]["set"]:
            row["time_limit"] = {"set": True, "infinite": True, "number": 0}


def _number(value: int | None) -> Mapping[str, Any]:
    return {"set": value is not None, "infinite": False, "number": value or 0}


VERSIONS = [v23_02, v23_11, v24_05, v24_11]


@pytest.mark.parametrize("version", VERSIONS)
def test_versions_are_read_alike(recorded: dict[str, Any], version: Callable[[dict[str, Any]], None]) -> None:
    """Nodes, what jobs hold, who is held and what is decided are those of 22.05."""
    before, plans = SlurmView.read(), [_plan()]
    version(recorded)
    after = SlurmView.read()
    assert encoded(after.fleet) == encoded(before.fleet)
    assert (after.states, after.rack) == (before.states, before.rack)
    for name, job in before.jobs.items():
        other = after.jobs[name]
        assert (job.holds, job.waits, job.held, job.reason, job.parts()) == (
            *(other.holds, other.waits, other.held, other.reason, other.parts()),
        )
    assert plans == [_plan()]


def _plan() -> dict[str, Any]:
    core = Core(Scheduler(SlurmView.read().fleet))
    SlurmRounds(core, None, str, memory=True, spread=False).round(SlurmView.read())
    return {name: core.scheduler._state.running[name].nodes for name in core.scheduler.running}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_later_version_is_scheduled(played: Played, version: Callable[[dict[str, Any]], None]) -> None:
    """Of two jobs for all nodes the first runs, and the second is held."""
    first, second = played.submit(1, nodes=8), played.submit(2, nodes=8)
    said = copy.deepcopy(played.told)
    version(said)
    played.told |= said
    assert [line.split()[0] for line in played.door.round(SlurmView.read())] == ["1"]
    assert first["priority"] and not second["priority"]


@pytest.mark.parametrize(
    ("states", "holds", "waits"),
    [
        (["RUNNING"], True, False),
        (["RUNNING", "CONFIGURING"], True, False),
        (["COMPLETED", "COMPLETING"], True, False),
        (["PENDING", "COMPLETING"], True, False),  # requeued, and its nodes are not yet clean
        (["PENDING", "REQUEUED"], False, True),
        (["PENDING", "REVOKED"], False, False),  # runs in another cluster of a federation
        (["CANCELLED"], False, False),
    ],
)
def test_states_of_a_job(recorded: dict[str, Any], states: list[str], holds: bool, waits: bool) -> None:
    """A state may have others beside it."""
    recorded["squeue --json"]["jobs"][0]["job_state"] = states
    assert (SlurmView.read().jobs["1"].holds, SlurmView.read().jobs["1"].waits) == (holds, waits)


def test_numbers() -> None:
    """Not set, without limit, plain; what is none is named."""
    assert number({"set": True, "infinite": False, "number": 3}, "x") == number(3, "x") == 3
    assert number({"set": True, "infinite": True, "number": 0}, "x") is number({"set": False, "number": 0}, "x") is None
    with pytest.raises(InstanceError, match="x: 'a' is no number"):
        number("a", "x")
    with pytest.raises(InstanceError, match="a job has no partition"):
        job_row({"job_id": 1, "job_state": "PENDING", "name": "a", "priority": 0})


def test_states_of_a_node() -> None:
    """State and flags are words in capitals."""
    row = node_row({"name": "a", "state": "idle", "state_flags": ["DRAIN"], "cpus": 4, "real_memory": 9})
    assert row["states"] == ["IDLE", "DRAIN"] and row["features"] == [] and row["cpus"] == 4
