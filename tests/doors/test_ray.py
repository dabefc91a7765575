"""Ray: workers are where gangplan says, on a real cluster of several nodes here, and on one that is played by hand."""

from __future__ import annotations

import runpy
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gangplan.doors import ray as door
from gangplan.doors.ray import RayScheduler, where

SMALL: dict[str, Any] = {"object_store_memory": 80 * 2**20, "include_dashboard": False}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Return a cluster of two nodes of four GPUs; a busy machine may need more than one try."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

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
    sys.modules["ray"].get(group.ready(), timeout=120)
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
    import ray
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

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

    beside = RayScheduler()  # another driver, which knows nothing but what Ray says
    assert {*beside.scheduler.running} == {"a", "b"} and beside.scheduler.idle == 0
    ids = {name: len(x) for name, x in beside.scheduler.explain("a").nodes.items()}
    assert ids == {name: len(x) for name, x in start.nodes.items()}

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


class Played:
    """A Ray cluster that is played by hand: its nodes and placement groups."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *nodes: dict[str, Any]) -> None:
        self.rows, self.table = list(nodes), dict[str, Any]()
        util = SimpleNamespace(placement_group_table=lambda: self.table, placement_group=self.group)
        played = SimpleNamespace(nodes=lambda: self.rows, util=util, is_initialized=lambda: True)
        monkeypatch.setitem(sys.modules, "ray", played)
        monkeypatch.setitem(sys.modules, "ray.util", util)

    def group(self, bundles: list[Any], bundle_label_selector: list[Any], name: str, **_: Any) -> str:
        """Make a placement group."""
        nodes = {i: x[door.NODE] for i, x in enumerate(bundle_label_selector)}
        rows = {"name": name, "state": "CREATED", "bundles": dict(enumerate(bundles)), "bundles_to_node_id": nodes}
        self.table[f"id of {name}"] = rows
        return name


def node(name: str, gpus: int = 8, kind: str = "A100", **labels: str) -> dict[str, Any]:
    """Return a node as `ray.nodes` has it; its type is a resource, as Ray says it of real GPUs."""
    resources = {"CPU": 64.0, "GPU": float(gpus), f"accelerator_type:{kind}": 1.0}
    return {"NodeID": name, "Alive": True, "Resources": resources, "Labels": labels}


def test_decides_on_whatever_nodes_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gang that the nodes of now are too few for waits, and others start on them, whatever is replaced how often."""
    ray = Played(monkeypatch, *(node(f"n{i}") for i in range(4)))
    cluster = RayScheduler()
    cluster.submit("hour", 24, 3600.0, cpus=0.0)
    assert [x.job for x in cluster.decide(5.0).starts] == ["hour"]
    cluster.submit("wide", 32, 3600.0, cpus=0.0)
    del ray.rows[:2]
    cluster.decide(5.0)
    for i in range(3):
        ray.rows[-1] = node(f"new{i}")
        cluster.submit(f"tiny{i}", 1, 60.0, cpus=0.0)
        assert [x.job for x in cluster.decide(5.0).starts] == [f"tiny{i}"]
        cluster.finish(f"tiny{i}")
    assert {"wide", "hour"} <= {*cluster.scheduler.waiting}
    ray.rows.clear()
    assert cluster.decide(5.0).starts == () and {"wide", "hour"} == {*cluster.scheduler.waiting}
    ray.rows += [node(f"more{i}") for i in range(3)]
    assert [x.job for x in cluster.decide(5.0).starts] == ["hour"]


def test_gpu_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node's type is its label, or a resource of Ray's, and gangs get the type that they ask for."""
    labelled = node("l", kind="x") | {"Labels": {"ray.io/accelerator-type": "H100"}}
    Played(monkeypatch, node("a"), node("b", kind="H200"), labelled)
    assert door.fleet().gpu_types == ("A100", "H200", "H100")
    cluster = RayScheduler()
    cluster.submit("h", 2, 600.0, gpus=2, gpu_types=("H200",))
    cluster.submit("fast", 1, {"A100": 900.0, "H100": 60.0}, gpus=8)
    starts = {x.job: x for x in cluster.decide(5.0).starts}
    assert {job: [*x.nodes] for job, x in starts.items()} == {"h": ["b"], "fast": ["l"]}
    assert cluster.bundles(starts["h"])[1] == [{door.NODE: "b"}] * 2


def test_a_driver_that_begins_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """From its log or from Ray alone it knows who holds what, and what was adopted ends with its placement group."""
    ray, log = Played(monkeypatch, node("a"), node("b")), tmp_path / "ray.jsonl"
    first = RayScheduler(price=60.0, log=log)
    first.submit("w", 3, 600.0, gpus=2)
    (start,) = first.decide(5.0).starts
    assert first.placement_group(start) == "w"
    ray.table["unnamed"] = ray.table["id of w"] | {"name": "", "bundles": {0: {"CPU": 1.0}}}  # holds no GPUs
    del first
    again, other = RayScheduler(price=60.0, log=log), RayScheduler(price=60.0)
    for cluster in (again, other):
        assert cluster.scheduler.running == ("w",) and cluster.scheduler.idle == 10
        cluster.submit("new", 1, 60.0, gpus=8)
        assert [[*x.nodes] for x in cluster.decide(5.0).starts] == [[x for x in "ab" if x not in start.nodes]]
    ray.table.clear()
    assert other.refresh() == () and other.scheduler.running == ("new",)
    again = cluster = None
    assert RayScheduler(price=61.0, log=log).scheduler.explain("w").price == 61.0
    with pytest.raises(door.InstanceError, match="set: together"):
        RayScheduler(together=False, log=log)


def test_a_group_that_does_not_fit_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A placement group on GPUs that are not there is no job: a warning, and it does not wait."""
    ray = Played(monkeypatch, node("a"))
    ray.group([{"GPU": 9.0}], [{door.NODE: "a"}], "odd")
    with pytest.warns(RuntimeWarning, match="'odd' is not taken over"):
        assert RayScheduler().scheduler.waiting == ()
