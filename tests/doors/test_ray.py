"""Ray: workers are where gangplan says, on a real cluster of several nodes on this machine."""

from __future__ import annotations

import runpy
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")
import ray
from ray.cluster_utils import Cluster
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from gangplan.doors.ray import RayScheduler, where

SMALL: dict[str, Any] = {"object_store_memory": 80 * 2**20, "include_dashboard": False}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Return a cluster of two nodes of four GPUs; a busy machine may need more than one try."""
    for tries in range(3):
        found = None
        try:
            found = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "num_gpus": 4, **SMALL})
            found.add_node(num_cpus=2, num_gpus=4, **SMALL)
            ray.init(address=found.address, log_to_driver=False)
            break
        except Exception:
            ray.shutdown()
            if found is not None:
                found.shutdown()
            if tries == 2:
                raise
    yield found
    ray.shutdown()
    found.shutdown()


def started(scheduler: RayScheduler) -> Any:
    """Return the only start of a decision, and its placement group once it is ready."""
    (start,) = scheduler.decide(5.0).starts
    group = scheduler.placement_group(start)
    ray.get(group.ready(), timeout=120)
    return start, group


def test_workers_of_ray_train(cluster: Any) -> None:
    """A `ScalingConfig` ties each worker of Ray Train to its node."""
    pytest.importorskip("ray.train")
    scheduler = RayScheduler()
    scheduler.submit("t", 3, 60.0, gpus=2)
    (start,) = scheduler.decide(5.0).starts
    config = scheduler.scaling_config(start)
    assert config.num_workers == 3 and config.resources_per_worker == {"GPU": 2.0, "CPU": 1.0}
    assert Counter(x["ray.io/node-id"] for x in config.label_selector).keys() == start.nodes.keys()


def test_the_example(cluster: Any) -> None:
    """Two of three workers are on one node, which has two cores, and so are their tasks; then all GPUs are free."""
    example = Path(__file__).parents[2] / "docs" / "examples" / "ray_gang.py"
    nodes = runpy.run_path(str(example), run_name="ray_gang")["main"](3)
    assert sorted(Counter(nodes).values()) == [1, 2]
    assert RayScheduler().scheduler.idle == 8


def test_workers_are_where_gangplan_says(cluster: Any) -> None:
    """Bundles and actors are on the nodes of the start; after a node was killed the gang starts on another."""
    scheduler = RayScheduler()
    assert scheduler.scheduler.idle == 8
    scheduler.submit("a", 2, 600.0, gpus=2)
    start, group = started(scheduler)
    assert Counter(where(group).values()) == {name: len(ids) // 2 for name, ids in start.nodes.items()}

    @ray.remote(num_gpus=2, num_cpus=1)
    class Worker:
        def node(self) -> str:
            return str(ray.get_runtime_context().get_node_id())

    tied = [PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=i) for i in range(2)]
    workers = [Worker.options(scheduling_strategy=each).remote() for each in tied]
    assert ray.get([worker.node.remote() for worker in workers], timeout=120) == [where(group)[i] for i in range(2)]
    del workers

    scheduler.submit("b", 1, 600.0, gpus=4)
    second, other = started(scheduler)
    assert not {*second.nodes} & {*start.nodes}
    groups = {"a": group, "b": other}
    lost, kept = (start, second) if cluster.head_node.node_id in second.nodes else (second, start)

    (node,) = lost.nodes
    cluster.remove_node(next(x for x in cluster.list_all_nodes() if x.node_id == node), allow_graceful=False)
    until = time.monotonic() + 120
    while node in [row["NodeID"] for row in ray.nodes() if row["Alive"]]:
        assert time.monotonic() < until
        time.sleep(0.2)
    ray.util.remove_placement_group(groups[lost.job])
    assert scheduler.decide().starts == () and scheduler.scheduler.waiting == (lost.job,)
    ray.util.remove_placement_group(groups[kept.job])
    scheduler.finish(kept.job)
    again, group = started(scheduler)
    assert again.job == lost.job and {*where(group).values()} == {*again.nodes} == {*kept.nodes}

    new = cluster.add_node(num_cpus=2, num_gpus=4, **SMALL)
    scheduler.submit("new", 1, 60.0, gpus=4)
    third, group = started(scheduler)
    assert [*third.nodes] == [*where(group).values()] == [new.node_id]
