"""What a job of Slurm is to a scheduler, on what Slurm once said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gangplan.doors.slurm.gang import TIER, NotOursError, events_of
from gangplan.doors.slurm.view import SlurmView


def event(name: str, queues: tuple[str, ...] = (), memory: bool = False, spread: bool = False) -> dict[str, Any]:
    """Return the event of a recorded job."""
    return next(events(name, queues, memory, spread))


def events(name: str, *options: Any) -> Iterator[dict[str, Any]]:
    """Return the events of a recorded job, one for each of its partitions."""
    view = SlurmView.read()
    return events_of(view.jobs[name], view, *options or ((), False, False))


def test_nodes_are_workers(recorded: dict[str, Any]) -> None:
    """Two nodes with four GPUs and a core each: two workers, each on a node of its own, in one rack."""
    told = event("2")
    assert told["job"] == {
        **{"name": "2", "workers": [2], "worker": {"gpu": 4, "cpu": 1}, "gpu_types": [], "most_per_node": 1},
        **{"whole_nodes": False, "requires": ["partition all"]},
    }
    assert told["seconds"] == told["limit"] == 60.0 and told["topology"] == "required" and told["queue"] == "nlp"
    assert told["title"] == "x; rm -rf /  [31m" and told["user"] == "root"
    assert "queue" not in event("2", ("prod",)) and event("2", ("nlp",))["queue"] == "nlp"
    assert event("2", spread=True)["topology"] == "preferred"


def test_gpus_and_tasks_may_be_anywhere(recorded: dict[str, Any]) -> None:
    """Without a number of nodes each GPU, or each task with its GPUs, or each task alone, is a worker."""
    workers = {name: (event(name)["job"]["workers"], event(name)["job"]["worker"]) for name in ("3", "4", "5_0")}
    assert workers == {
        "3": ([6], {"gpu": 1, "cpu": 1}),
        "4": ([4], {"gpu": 0, "cpu": 1}),
        "5_0": ([2], {"gpu": 2, "cpu": 1}),
    }
    assert event("3")["job"]["most_per_node"] is None and "together" not in event("3")


def test_gpus_of_counted_nodes_are_shared_out(recorded: dict[str, Any]) -> None:
    """Six GPUs on three nodes are two each, on nodes for itself; five on two are Slurm's to split."""
    job = event("7")["job"]
    assert job["workers"] == [3] and job["worker"]["gpu"] == 2 and job["whole_nodes"] is True
    with pytest.raises(NotOursError, match="5 GPUs on 2 nodes"):
        event("9")


def test_a_wide_job_may_be_in_several_racks(recorded: dict[str, Any]) -> None:
    """The rack of n0 to n3 takes four nodes; five fit into none."""
    wide = next(row for row in recorded["squeue --json"]["jobs"] if row["job_id"] == 8)
    assert event("8")["topology"] == "required"
    wide["node_count"] = wide["max_nodes"] = 5
    assert event("8")["topology"] == "preferred"


def test_priorities_memory_and_begin(recorded: dict[str, Any]) -> None:
    """Tiers before nice values; memory where it is tracked; seconds of the clock at which a job may begin."""
    assert event("4")["priority"] == TIER - 7 and event("2")["priority"] == 0
    assert event("2", memory=True)["job"]["worker"]["memory"] == 8000 * 2**20
    assert event("10")["begin"] == 2208988800 and event("3")["limit"] == 86400.0


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("required_nodes", "n3", "required_nodes n3"),
        ("excluded_nodes", "n[0-2]", "excluded_nodes"),
        ("features", "a100|h100", "feature a100|h100"),
        ("tres_per_node", "gres:shard:1", "gres:shard:1"),
        ("het_job_id", 3, "het_job_id 3"),
        ("contiguous", True, "contiguous True"),
        ("minimum_tmp_disk_per_node", 100, "minimum_tmp_disk_per_node 100"),
        ("shared", "user", "exclusive=user"),
        ("features", "[h100*2&a100*1]", "feature [h100*2"),
        ("tres_per_node", "gres:gpu:1,gres:nic:1", "gres:nic:1"),
        ("tres_per_node", "gres:gpu:h100:1,gres:gpu:a100:1", "types of GPU a100+h100"),
        ("tres_per_job", "gres:gpu:9", "4 GPUs for each of 2 nodes, and 9 in all"),
    ],
)
def test_what_slurm_alone_understands(recorded: dict[str, Any], field: str, value: Any, words: str) -> None:
    """It is named."""
    recorded["squeue --json"]["jobs"][1][field] = value
    with pytest.raises(NotOursError) as error:
        event("2")
    assert words in str(error.value)


def test_features_and_types_are_asked_for(recorded: dict[str, Any]) -> None:
    """Features are labels, a type of GPU is one."""
    recorded["squeue --json"]["jobs"][1] |= {"features": "ib&nvme", "tres_per_node": "gres:gpu:a100:2"}
    job = event("2")["job"]
    assert job["requires"] == ["partition all", "feature ib", "feature nvme"]
    assert job["gpu_types"] == ["a100"] and job["worker"]["gpu"] == 2


def test_a_range_of_nodes_is_moldable(recorded: dict[str, Any]) -> None:
    """Each number of nodes will do, more are sooner done; of a wide range a few numbers, none above the cluster's."""
    row = recorded["squeue --json"]["jobs"][1]
    row |= {"node_count": 1, "max_nodes": 4, "tasks": 1, "cpus": 1, "time_limit": 5}
    assert event("2")["job"]["workers"] == [1, 2, 3, 4] and event("2")["limit"] == 300.0
    assert event("2")["seconds"] == [300.0, 150.0, 100.0, 75.0]
    row["max_nodes"] = 1000
    assert event("2")["job"]["workers"] == [1, 2, 3, 4, 5, 6, 7, 8]
    row |= {"node_count": 2, "tres_per_node": "", "tres_per_job": "gres:gpu:6"}  # shared out among the least
    assert event("2")["job"]["workers"] == [2] and event("2")["job"]["worker"]["gpu"] == 3


def test_of_several_partitions_each_is_an_event(recorded: dict[str, Any]) -> None:
    """The higher tier comes first, and one that is down not at all."""
    recorded["squeue --json"]["jobs"][1]["partition"] = "all,urgent"
    assert [x["job"]["requires"] for x in events("2")] == [["partition urgent"], ["partition all"]]
    assert [x["priority"] for x in events("2")] == [TIER, 0]
    key = "scontrol show partition --oneliner"
    recorded[key] = "\n".join(
        line.replace("State=UP", "State=DOWN") * ("urgent" in line) for line in recorded[key].split("\n")
    )
    assert [x["job"]["requires"] for x in events("2")] == [["partition all"]]


@pytest.mark.parametrize(
    ("fields", "workers", "gpus", "cpus"),
    [
        ({"tres_per_node": "gres:gpu"}, 2, 1, 1),  # --gres=gpu
        ({"tres_per_node": "gres/gpu:h100:3"}, 2, 3, 1),
        ({"minimum_cpus_per_node": 6}, 2, 4, 6),  # --mincpus=6
        ({"cpus_per_tres": "gres:gpu:4"}, 2, 4, 16),  # --cpus-per-gpu=4
        ({"max_nodes": 0, "tasks": 8, "tasks_per_node": 2, "tres_per_node": "", "tres_per_job": "gpu:8"}, 2, 4, 1),
        ({"tres_per_node": "", "tres_per_task": "cpu=2"}, 2, 0, 1),  # --cpus-per-task=2, as 24.05 has it
    ],
)
def test_what_a_worker_has(
    recorded: dict[str, Any], fields: dict[str, Any], workers: int, gpus: int, cpus: int
) -> None:
    """Of two nodes, by the options of `sbatch`."""
    recorded["squeue --json"]["jobs"][1] |= fields
    job = event("2")["job"]
    assert (job["workers"], job["worker"]["gpu"], job["worker"]["cpu"]) == ([workers], gpus, cpus)
