"""What Slurm says of nodes, racks and jobs, on what it once said."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.doors.slurm.client import AwayError
from gangplan.doors.slurm.view import SlurmView, gpus_in, tracks_memory
from gangplan.instances import InstanceError


def test_nodes_and_racks(recorded: dict[str, Any]) -> None:
    """Eight nodes of four GPUs in two racks; one is down, one drained, which leaves the first rack the larger."""
    view = SlurmView.read()
    assert view.fleet.names == tuple(f"n{i}" for i in range(8)) and view.fleet.gpus.tolist() == [4] * 8
    assert [level.name for level in view.fleet.topology.levels] == ["rack", "switch 2", "cluster"]
    assert view.fleet.topology.group[0].tolist() == [0] * 4 + [1] * 4
    assert view.fleet.labels == ("partition all", "partition urgent") and view.fleet.labelled.all()
    assert {name: state for name, state in view.states.items() if state != "up"} == {"n5": "closed", "n6": "down"}
    assert view.rack == (4, 16) and not tracks_memory()


def test_jobs_and_tasks(recorded: dict[str, Any]) -> None:
    """Of an array of which two tasks may run, two are looked at; one that runs holds GPUs and cores by node."""
    view = SlurmView.read()
    assert {*view.jobs} == {"1", "2", "3", "4", "5_0", "5_1", "6", "7", "8", "9", "10"}
    assert view.jobs["1"].holds and view.jobs["1"].parts() == {"n0": (3, 2), "n1": (3, 2)}
    assert view.jobs["2"].waits and view.jobs["2"].held and view.jobs["2"].reason == "JobHeldUser"


def test_nodes_of_types_without_switches(recorded: dict[str, Any]) -> None:
    """GPU types and features are read; without switches all nodes are one rack; memory counts if Slurm counts it."""
    for row in recorded["sinfo --json"]["nodes"][:2]:
        row |= {"gres": "gpu:a100:8(S:0-1),nic:2", "active_features": "ib,nvme"}
    recorded["sinfo --json"]["nodes"][2]["gres"] = ""
    recorded["scontrol show topology --oneliner"] = ""
    recorded["scontrol show config"] = "SelectTypeParameters    = CR_CORE_MEMORY\n"
    fleet = SlurmView.read().fleet
    assert fleet.gpu_types == ("a100", "gpu") and fleet.gpus.tolist() == [8, 8, 0, 4, 4, 4, 4, 4]
    assert fleet.gpu_type.tolist()[:4] == [0, 0, 0, 1] and fleet.topology.group[0].tolist() == [0] * 8
    assert "feature ib" in fleet.labels and tracks_memory()


def test_a_node_under_no_switch_is_a_rack(recorded: dict[str, Any]) -> None:
    """It is nobody's neighbour."""
    recorded["scontrol show topology --oneliner"] = "SwitchName=r0 Level=0 LinkSpeed=1 Nodes=n[0-6]\n"
    assert SlurmView.read().fleet.topology.group[0].tolist() in ([0] * 7 + [1], [1] * 7 + [0])


def test_an_answer_with_errors_is_none(recorded: dict[str, Any]) -> None:
    """Slurm 22.05 says with exit code 0 that it found no job because nobody answered: no job is gone."""
    recorded["squeue --json"] = {"errors": [{"error": "Unspecified error", "error_number": -1}], "jobs": []}
    with pytest.raises(AwayError, match="squeue: slurmctld does not answer: Unspecified error"):
        SlurmView.read()
    recorded["squeue --json"] = '{"jobs": [{"job_id": 1'
    with pytest.raises(AwayError):
        SlurmView.read()


def test_another_version_is_an_error(recorded: dict[str, Any]) -> None:
    """What is not understood is said, not guessed."""
    for told, problem in (("high", "priority: 'high' is no number"), (None, "a job has no priority")):
        recorded["squeue --json"]["jobs"][0]["priority"] = told
        with pytest.raises(InstanceError, match=problem):
            SlurmView.read()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gres:gpu:2", (2, "")),
        ("gpu:a100:4(S:0)", (4, "a100")),
        ("gpu:1(IDX:0)", (1, "")),
        ("gres:shard:3", (0, "")),
        ("gres:gpu", (1, "")),
        ("gres/gpu:a100:4(S:0-1)", (4, "a100")),
        ("gpu:a100:1,gpu:h100:2", (3, "a100+h100")),
        ("gres:gpu_mem:80", (0, "")),
        ("gpu:1g.5gb:7(S:0)", (7, "1g.5gb")),
        ("gres/gpu=2", (2, "")),
        ("gpu:0", (0, "")),
    ],
)
def test_gpus_in(text: str, found: tuple[int, str]) -> None:
    """Numbers and types are read from lists of resources."""
    assert gpus_in(text) == found


@pytest.mark.parametrize(
    ("dependency", "state", "waits"),
    [
        ("afterok:1(unfulfilled)", "RUNNING", True),
        ("afterok:1(unfulfilled)", "COMPLETED", False),
        ("afterany:1(unfulfilled),afterok:99(unfulfilled)", "FAILED", False),  # 99 is long gone
        ("after:1+5(unfulfilled)", "RUNNING", False),
        ("after:1(unfulfilled)", "PENDING", True),
        ("afterok:1:3(unfulfilled)", "COMPLETED", True),
        ("afterok:1(unfulfilled)?afterok:3(unfulfilled)", "COMPLETED", False),
        ("afterok:1(unfulfilled)?afterok:3(unfulfilled)", "RUNNING", True),
        ("afterok:5_*(unfulfilled)", "COMPLETED", True),
        ("afterok:5_9(unfulfilled)", "COMPLETED", False),
        ("singleton(unfulfilled)", "RUNNING", True),
        ("singleton(unfulfilled)", "COMPLETED", False),
        ("", "RUNNING", False),
    ],
)
def test_dependencies(recorded: dict[str, Any], dependency: str, state: str, waits: bool) -> None:
    """Whether a parent has ended is seen in the parent, since Slurm notes it a minute late of a held job."""
    rows = recorded["squeue --json"]["jobs"]
    rows[0] |= {"job_state": state, "name": "single"}
    rows[1] |= {"dependency": dependency, "name": "single"}
    view = SlurmView.read()
    assert view.depends(view.jobs["2"]) is waits


def test_blocks_are_racks(recorded: dict[str, Any]) -> None:
    """A topology of blocks, which have no level, is one of racks and of what is above them."""
    recorded["scontrol show topology --oneliner"] = (
        "BlockName=b1 BlockIndex=0 Nodes=n[0-3] BlockSize=4\nBlockName=b2 BlockIndex=1 Nodes=n[4-7] BlockSize=4\n"
        "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[0-7] BlockSize=8\n"
    )
    assert SlurmView.read().fleet.topology.group.tolist() == [[0] * 4 + [1] * 4, [0] * 8, [0] * 8]
