"""Nodes that differ: GPU types with seconds each, taints, one group of a level, groups on one node, no GPU at all."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan import InstanceError, Scheduler
from gangplan.instances.placement import Demand, Fleet, GangJob, Proximity
from gangplan.scheduler import Patient
from gangplan.scheduler.stopping.running_jobs import RunningJob

TWO = Fleet.regular(1, 2, 8, gpu_type=("A100", "H100"))
SECONDS = {"A100": 600.0, "H100": 350.0}


def gang(name: str, *workers: int, **options: Any) -> GangJob:
    """Return a gang of a model that does not matter."""
    return GangJob(name, "any", workers, **options)


def started(scheduler: Scheduler, **options: Any) -> dict[str, dict[str, int]]:
    """Return the GPUs of each node by the name of each job that starts."""
    decision = scheduler.decide(60.0, **options)
    assert not decision.notes
    return {x.job: {node: len(gpus) for node, gpus in x.nodes.items()} for x in decision.starts}


def again(scheduler: Scheduler, fleet: Fleet, **options: Any) -> Scheduler:
    """Return a scheduler that has taken over the state of another, as JSON."""
    saved = json.loads(json.dumps(scheduler.snapshot()))
    other = Scheduler(fleet, **options)
    other.restore(saved)
    assert json.loads(json.dumps(other.snapshot())) == saved
    return other


def test_the_fastest_type_with_room() -> None:
    """The first takes the H100s, the second starts on the A100s at once, and their ends follow."""
    scheduler = Scheduler(TWO)
    scheduler.submit(gang("a", 8), SECONDS, now=0.0)
    scheduler.submit(gang("b", 8), SECONDS, now=0.0)
    decision = scheduler.decide(60.0)
    assert {x.job: ([*x.nodes], x.seconds) for x in decision.starts} == {
        "a": (["node1"], 350.0),
        "b": (["node0"], 600.0),
    }
    scheduler.submit(gang("c", 8), SECONDS)
    assert scheduler.explain("c").earliest == 350.0
    restored = again(scheduler, TWO)
    assert restored.explain("c").earliest == 350.0 and "on A100 or H100" in str(restored.explain("c"))


def test_who_is_told_to_wait_does() -> None:
    """By the patient rule a job that would take 600/350 times as long waits, unless nobody runs or it is due."""
    scheduler = Scheduler(TWO, Patient())
    scheduler.submit(gang("a", 8), SECONDS, now=0.0)
    scheduler.submit(gang("b", 8), SECONDS)
    assert started(scheduler) == {"a": {"node1": 8}}
    scheduler.finish("a", now=350.0)
    assert started(scheduler) == {"b": {"node1": 8}}


def test_the_order_is_that_of_the_best_type() -> None:
    """X takes 1 s on an H100 and goes before y, which takes 2 s on any; y has the A100 left."""
    scheduler = Scheduler(TWO)
    scheduler.submit(gang("y", 8), {"A100": 2.0, "H100": 2.0}, now=0.0)
    scheduler.submit(gang("x", 8), {"A100": 10.0, "H100": 1.0}, now=0.0)
    assert started(scheduler) == {"x": {"node1": 8}, "y": {"node0": 8}}


def test_a_gang_does_not_mix_types_unless_told() -> None:
    """12 GPUs of one type there are not; mixed, 12 of both are as slow as the slowest."""
    scheduler = Scheduler(TWO)
    with pytest.raises(InstanceError, match="never fits"):
        scheduler.submit(gang("a", 12), SECONDS)
    with pytest.raises(InstanceError, match="never fits"):
        scheduler.submit(gang("a", 12, gpu_types=("A100", "H100")), 10.0)
    scheduler.submit(gang("a", 12), SECONDS, now=0.0, mixed=True)
    (start,) = scheduler.decide(60.0).starts
    assert start.seconds == 600.0 and len(start.nodes) == 2
    scheduler.finish("a", now=600.0)
    scheduler.submit(gang("b", 8), SECONDS, mixed=True)  # of one type if there is room
    (start,) = scheduler.decide(60.0).starts
    assert start.seconds == 350.0


def test_seconds_by_type_and_number_of_workers() -> None:
    """Eight workers are best on both types, and the H100s twice as fast for them."""
    scheduler = Scheduler(TWO)
    scheduler.submit(gang("a", 4, 8), {"A100": {4: 30.0, 8: 20.0}, "H100": [25.0, 10.0]}, now=0.0)
    (start,) = scheduler.decide(60.0).starts
    assert (start.degree, start.seconds, [*start.nodes]) == (8, 10.0, ["node1"])


def test_work_is_kept_when_the_type_changes() -> None:
    """A job that got on for 300 of 600 s on A100s has half its work left, 175 s on H100s."""
    scheduler = Scheduler(TWO, price=0.0)
    scheduler.submit(gang("a", 8, gpu_types=("H100",)), 10.0, now=0.0)
    scheduler.submit(gang("b", 8), SECONDS)
    assert started(scheduler) == {"a": {"node1": 8}, "b": {"node0": 8}}
    scheduler.finish("a", now=10.0)
    scheduler.submit(gang("c", 8, gpu_types=("A100",)), 1.0, now=300.0)
    decision = scheduler.decide(60.0)
    assert [stop.job for stop in decision.stops] == ["b"]
    assert {x.job: (*x.nodes, x.seconds) for x in decision.starts} == {"c": ("node0", 1.0), "b": ("node1", 175.0)}


@pytest.mark.parametrize(
    ("job", "seconds", "options", "field"),
    [
        (gang("a", 8), {"A10": 5.0}, {}, "seconds"),
        (gang("a", 8, gpu_types=("A100",)), {"H100": 5.0}, {}, "seconds"),
        (gang("a", 8), {"A100": None}, {}, "seconds"),
        (gang("a", 8), {"A100": -1.0}, {}, "seconds"),
        (gang("a", 8), 5.0, {"within": "row"}, "within"),
        (gang("a", 8), 5.0, {"within": "rack", "topology": "nice"}, "topology"),
        (gang("a", 8), 5.0, {"group": 3}, "group"),
        (gang("a", 8), 5.0, {"group": 0}, "group"),
        (gang("a", 8, most_per_node=2), 5.0, {"group": 4}, "group"),
        (gang("a", 16), 5.0, {"group": 16}, "job"),
        (gang("a", 8, worker=Demand(0, cpu=1)), {"A100": 5.0}, {}, "seconds"),
        (gang("a", 8, worker=Demand(0, cpu=1)), 5.0, {"group": 2}, "group"),
        (gang("a", 8, worker=Demand(0, cpu=1)), 5.0, {"together": True}, "together"),
        (gang("a", 8, worker=Demand(0)), 5.0, {}, "job.worker"),
        (gang("a", 3, worker=Demand(0, cpu=80)), 5.0, {}, "job"),
    ],
)
def test_what_is_refused(job: GangJob, seconds: Any, options: dict[str, Any], field: str) -> None:
    """The field is named, and nothing has changed."""
    scheduler = Scheduler(TWO)
    before = scheduler.snapshot()
    with pytest.raises(InstanceError) as error:
        scheduler.submit(job, seconds, **options)
    assert error.value.field == field and scheduler.snapshot() == before


def test_a_head_that_waits_in_one_pool_does_not_block_the_other() -> None:
    """Head and old wait for A100s that are in use; young goes to the H100s, named alone or with the other type."""
    scheduler = Scheduler(TWO)
    scheduler.submit(gang("runs", 4, gpu_types=("A100",)), 1000.0, now=0.0)
    assert started(scheduler) == {"runs": {"node0": 4}}
    scheduler.submit(gang("head", 8, gpu_types=("A100",)), 1.0)
    scheduler.submit(gang("old", 8, gpu_types=("A100",)), 5.0)
    scheduler.submit(gang("young", 4, gpu_types=("H100",)), 5000.0)
    scheduler.submit(gang("either", 4), {"A100": 3000.0, "H100": 3000.0})
    # head has room at 1000 s: either, of 3000 s, may not be beside runs, though four A100s are idle
    assert started(scheduler) == {"young": {"node1": 4}, "either": {"node1": 4}}
    assert scheduler.explain("head").earliest == 1000.0


RACKS = Fleet.regular(2, 2, 4)


def filled(**options: Any) -> Scheduler:
    """Return two racks of two nodes of four GPUs, half of each node in use; those of the second end first."""
    scheduler = Scheduler(RACKS, **options)
    for i, seconds in enumerate((400.0, 500.0, 200.0, 300.0)):
        scheduler.submit(gang(f"r{i}", 2), seconds, now=0.0)
        nodes = {i: (0, 1)}
        request = scheduler._state.waiting[f"r{i}"]
        assert scheduler._state.put(RunningJob(request, 2, 0.0, seconds, nodes))
    assert scheduler.running == ("r0", "r1", "r2", "r3")
    return scheduler


def test_one_rack_is_required_or_preferred() -> None:
    """Eight GPUs are idle, four in each rack: six workers fit, but not in one rack before r2 ends there."""
    scheduler = filled(together=False)
    scheduler.submit(gang("a", 6), 10.0, within="rack")
    assert started(scheduler) == {}
    told = scheduler.explain("a")
    assert told.earliest == 200.0 and "all in one rack" in told.why
    # to start now: two GPUs of one rack, those with the least left
    assert any(words.startswith("end or stop r2 ") and "nothing cheaper" in words for words in told.remedies)
    scheduler.submit(gang("b", 6), 500.0, within="rack", topology="preferred")
    # b would take the room that is kept for a in the second rack
    assert started(scheduler) == {}
    scheduler.withdraw("a")
    assert sum(started(scheduler)["b"].values()) == 6
    scheduler = filled(together=False)
    scheduler.submit(gang("c", 4), 10.0, within="rack", topology="preferred")
    assert set(started(scheduler)["c"]) in ({"node0", "node1"}, {"node2", "node3"})


def test_of_types_as_fast_that_which_has_one_node_is_preferred() -> None:
    """Five workers go to the node that has five C, not to two with as many B, which come first by name."""
    fleet = replace(Fleet.regular(1, 3, 5), gpu_types=("B", "C"), gpu_type=np.array([1, 0, 0], np.int32))
    scheduler = Scheduler(fleet, "patient", speeds=Proximity(0.0, 1.0, 1.0, intensity={"any": 0.0}))
    scheduler.submit(gang("r", 1, gpu_types=("B",)), 90.0, now=0.0)
    scheduler.submit(gang("q", 1, gpu_types=("B",), apart=("r",)), 90.0)
    assert {node for nodes in started(scheduler).values() for node in nodes} == {"node1", "node2"}
    scheduler.submit(gang("a", 5), {"C": 10.0, "B": 10.0}, within="node", topology="preferred")
    assert started(scheduler) == {"a": {"node0": 5}}


def test_a_reservation_is_of_one_rack() -> None:
    """While a waits for the second rack until 200 s, the first takes whoever comes, however long."""
    scheduler = filled(together=False)
    scheduler.submit(gang("a", 6), 1.0, within="rack")
    scheduler.submit(gang("long", 4), 9000.0, within="rack")
    assert started(scheduler) == {"long": {"node0": 2, "node1": 2}}
    assert again(scheduler, RACKS, together=False).explain("a").earliest == 200.0


def test_stops_free_one_rack() -> None:
    """Who stops for six workers of one rack is of one rack, though others have more left."""
    scheduler = filled(price=0.0, together=False)
    scheduler.submit(gang("a", 6), 1.0, now=10.0, within="rack")
    decision = scheduler.decide(60.0)
    (start,) = (x for x in decision.starts if x.job == "a")
    racks = {int(node[4:]) // 2 for node in start.nodes}
    assert len(racks) == 1 and decision.stops
    assert {int(node[4:]) // 2 for stop in decision.stops for node in stop.nodes} == racks


def test_groups_on_one_node() -> None:
    """Nodes of six GPUs: eight workers in groups of four are four and four, not six and two; one node is a level."""
    fleet = Fleet.regular(1, 3, 6)
    for options in ({}, {"together": False}):
        scheduler = Scheduler(fleet)
        scheduler.submit(gang("a", 8), 10.0, now=0.0, group=4, **options)
        assert sorted(started(scheduler)["a"].values()) == [4, 4]
        scheduler.submit(gang("b", 4), 10.0, group=4)
        assert started(scheduler) == {"b": {"node2": 4}}
        scheduler.submit(gang("c", 4), 10.0, group=2, together=False)
        assert sorted(started(scheduler)["c"].values()) == [2, 2]
        assert again(scheduler, fleet).snapshot()
    scheduler = Scheduler(fleet, together=False)
    scheduler.submit(gang("d", 5), 10.0, within="node")
    assert [*started(scheduler)["d"].values()] == [5]


@pytest.mark.parametrize("seed", range(40))
def test_groups_in_a_rack_against_enumeration(seed: int) -> None:
    """A gang starts if, and only if, one of the racks, and types, has the nodes for its groups."""
    rng = np.random.default_rng(seed)
    racks, nodes = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    fleet = Fleet.regular(
        racks,
        nodes,
        [int(x) for x in rng.integers(1, 9, nodes)],
        gpu_type=[str(x) for x in rng.choice(["A", "B"], nodes)],
    )
    scheduler, idle = Scheduler(fleet, together=False), fleet.gpus.tolist()
    for i in range(12):
        group, level, typed = int(rng.integers(1, 4)), str(rng.choice(["", "rack", "node"])), rng.random() < 0.5
        degree = group * int(rng.integers(1, 5))
        domains: Counter[tuple[Any, ...]] = Counter()
        for node in range(fleet.n_nodes):
            part = node // nodes if level == "rack" else node if level == "node" else 0
            domains[part, fleet.gpu_type[node] * typed] += idle[node] // group * group
        fits = max(domains.values()) >= degree
        try:
            seconds = dict.fromkeys(fleet.gpu_types, 10.0) if typed else 10.0
            scheduler.submit(gang(f"j{i}", degree), seconds, within=level, group=group)
        except InstanceError:
            assert not fits
            continue
        decision = scheduler.decide(60.0)
        assert bool(decision.starts) == fits
        for x in decision.starts:
            for node, gpus in x.nodes.items():
                idle[fleet.names.index(node)] -= len(gpus)
                assert not len(gpus) % group
        if not fits:
            scheduler.withdraw(f"j{i}")


class Anywhere:
    """Starts jobs on GPUs that break their terms."""

    def __init__(self, nodes: dict[int, tuple[int, ...]]) -> None:
        self.nodes = nodes

    def propose(self, view: Any) -> list[Any]:
        """Return the first job on the GPUs that it was made with."""
        return [(request.name, sum(map(len, self.nodes.values())), self.nodes) for request in view.waiting]


@pytest.mark.parametrize(
    ("nodes", "options", "words"),
    [
        ({0: (0, 1), 2: (0, 1)}, {"within": "rack"}, "2 parts of the level rack"),
        ({0: (0, 1, 2), 1: (0,)}, {"group": 2}, "3 workers are no groups of 2"),
        ({0: (0, 1), 1: (0, 1)}, {}, "of several types"),
    ],
)
def test_the_verifier_refuses_what_terms_forbid(
    nodes: dict[int, tuple[int, ...]], options: dict[str, Any], words: str
) -> None:
    """A policy's own choice of GPUs is looked at, too."""
    scheduler = Scheduler(Fleet.regular(2, 2, 4, gpu_type=("A", "B")), Anywhere(nodes))
    scheduler.submit(gang("a", 4), {"A": 5.0, "B": 5.0}, **{"mixed": bool(options)} | options)
    with pytest.warns(RuntimeWarning, match=words):
        decision = scheduler.decide(60.0)
    assert any(words in note for note in decision.notes)


def test_taints_keep_jobs_off() -> None:
    """A job stays off a node under maintenance unless it tolerates that."""
    scheduler = Scheduler(Fleet.regular(1, 2, 8, taints={"maintenance": ["node0"]}))
    scheduler.submit(gang("a", 8), 10.0, now=0.0)
    scheduler.submit(gang("b", 8), 10.0)
    scheduler.submit(gang("c", 8, tolerates=("maintenance",)), 20.0)
    assert started(scheduler) == {"a": {"node1": 8}, "c": {"node0": 8}}
    assert scheduler.explain("b").usable == 0
    scheduler = Scheduler(Fleet.regular(1, 2, 8, labels={"fast": ["node0"]}, taints={"maintenance": ["node0"]}))
    with pytest.raises(InstanceError, match="never fits"):
        scheduler.submit(gang("d", 8, requires=("fast",)), 10.0, now=0.0)
    scheduler.submit(gang("e", 4, requires=("fast",), tolerates=("maintenance",)), 20.0, now=0.0)
    scheduler.submit(gang("f", 8, tolerates=("maintenance",)), 30.0)
    assert started(scheduler) == {"e": {"node0": 4}, "f": {"node1": 8}}


CORES = Fleet.regular(1, 2, 8, cpu=10.0)


def test_tasks_without_gpus() -> None:
    """They hold cores and no GPU, beside gangs that hold all GPUs, and keep to what others were promised."""
    scheduler = Scheduler(CORES)
    scheduler.submit(gang("g", 16), 100.0, now=0.0)
    scheduler.submit(gang("c", 4, worker=Demand(0, cpu=4)), 50.0)
    scheduler.submit(gang("d", 4, worker=Demand(0, cpu=1)), 500.0)
    # c needs 16 of 20 cores, in fours: two a node; d has the four that are left
    decision = scheduler.decide(60.0)
    assert {x.job: dict(x.nodes) for x in decision.starts}["c"] == {"node0": (-1, -2), "node1": (-1, -2)}
    assert {*scheduler.running} == {"c", "g", "d"} and scheduler.idle == 0
    scheduler.submit(gang("e", 1, worker=Demand(0, cpu=3)), 10.0)
    assert started(scheduler) == {}
    told = scheduler.explain("e")
    assert told.earliest == 50.0 and "3 cores each" in str(told)
    restored = again(scheduler, CORES)
    for each in (scheduler, restored):
        each.finish("c", now=50.0)
        assert started(each) == {"e": {"node0": 1}}
        lost = each.fail_node("node0", now=51.0)
        assert {"e", "g"} <= {*lost}
        each.repair_node("node0")
        assert {"e", "g"} <= {*started(each)}
    assert restored.snapshot() == scheduler.snapshot()
    assert "e runs since" in str(scheduler.explain("e"))


def test_tasks_without_gpus_have_estimates_of_their_own() -> None:
    """Eight finished tasks of 40 s teach nothing of gangs, and all of the ninth."""
    scheduler, worker = Scheduler(CORES), Demand(0, cpu=1)
    for i in range(8):
        scheduler.submit(gang(f"c{i}", 1, worker=worker), now=100.0 * i)
        scheduler.decide(60.0)
        scheduler.finish(f"c{i}", now=100.0 * i + 40.0)
    scheduler.submit(gang("c", 1, worker=worker))
    scheduler.submit(gang("g", 1))
    seconds = {x.job: x.seconds for x in scheduler.decide(60.0).starts}
    assert 30.0 < seconds["c"] < 50.0  # learned, with what is usual counted still
    assert seconds["g"] > 3600.0  # the mean of what is usual


def test_tasks_without_gpus_go_where_there_are_none() -> None:
    """A node without GPUs takes them, in one rack if that is asked."""
    fleet = Fleet.regular(2, 2, gpus=(0, 4), cpu=4.0)
    scheduler = Scheduler(fleet)
    scheduler.submit(gang("a", 8, worker=Demand(0, cpu=1)), 5.0, now=0.0, within="rack")
    assert started(scheduler) in ({"a": {"node0": 4, "node1": 4}}, {"a": {"node2": 4, "node3": 4}})


def test_whole_nodes_with_cores_and_reservations() -> None:
    """Alone waits until small ends, for a node of its own; a task of cores may not sit on that node meanwhile."""
    scheduler = Scheduler(CORES)
    scheduler.submit(gang("small", 1), 100.0, now=0.0)
    scheduler.submit(gang("large", 8), 300.0)
    assert {*started(scheduler)} == {"small", "large"}
    scheduler.submit(gang("alone", 2, worker=Demand(1, cpu=2), whole_nodes=True), 20.0)
    scheduler.submit(gang("cores", 1, worker=Demand(0, cpu=1)), 250.0)
    scheduler.submit(gang("brief", 1, worker=Demand(0, cpu=1)), 60.0)
    # cores would be on small's node until 250 s; beside large it is in nobody's way
    small, large = (next(iter(scheduler._state.running[name].nodes)) for name in ("small", "large"))
    nodes = started(scheduler)
    assert nodes["cores"] == {f"node{large}": 1} and "alone" not in nodes and "brief" in nodes
    told = scheduler.explain("alone")
    assert told.earliest == 100.0 and told.why == "it does not fit"
    scheduler.finish("brief", now=60.0)
    scheduler.finish("small", now=100.0)
    assert started(scheduler) == {"alone": {f"node{small}": 2}}
    scheduler.submit(gang("next", 1), 1.0)
    assert started(scheduler) == {}  # six GPUs are idle on the node that alone has to itself


def test_parameter_servers_are_beside_the_workers() -> None:
    """Four workers of two cores with two servers of six: each worker sets six more aside, so two nodes of ten cores."""
    scheduler = Scheduler(Fleet.regular(1, 3, 8, cpu=16.0))
    servers = {"collective": "ps", "servers": 2, "server": Demand(0, cpu=6)}
    scheduler.submit(gang("ps", 4, worker=Demand(1, cpu=2), **servers), 10.0, now=0.0)
    (start,) = scheduler.decide(60.0).starts
    # eight cores a worker, two workers on a node of 16, a server beside each two
    assert [len(gpus) for gpus in start.nodes.values()] == [2, 2] and [*start.servers.values()] == [1, 1]
    scheduler.submit(gang("next", 1, worker=Demand(1, cpu=1)), 10.0)
    (start,) = scheduler.decide(60.0).starts
    assert [*start.nodes] == ["node2"]  # of the others no core is left
    restored = again(scheduler, Fleet.regular(1, 3, 8, cpu=16.0))
    for each in (scheduler, restored):
        each.finish("ps", now=10.0)
        each.submit(gang("large", 2, worker=Demand(1, cpu=16)), 10.0)
        assert sorted(each.decide(60.0).starts[0].nodes) == ["node0", "node1"]
    with pytest.raises(InstanceError, match="never fits"):
        scheduler.submit(gang("too many", 1, worker=Demand(1, cpu=5), **servers), 10.0)


@pytest.mark.parametrize("policy", ["heuristic", "patient"])
def test_types_and_places_are_weighed_together(policy: str) -> None:
    """Four H100s of four nodes are 1 + 3/4 times as slow as told, four A100s of one node 1.2 (1 + 3/40) times."""
    fleet = Fleet.regular(1, 6, gpus=(4, 1, 1, 1, 1, 1), gpu_type={"A100": 1, "H100": 5})
    scheduler = Scheduler(fleet, policy, speeds=Proximity(), together=False)
    scheduler.submit(gang("first", 1, gpu_types=("H100",)), 1.0, now=0.0)
    assert [*started(scheduler)] == ["first"]  # so that patience may have jobs wait
    scheduler.finish("first", now=1.0)
    scheduler.submit(gang("other", 1, gpu_types=("H100",)), 1e4)
    scheduler.submit(gang("a", 4), {"A100": 120.0, "H100": 100.0})
    starts = {x.job: x for x in scheduler.decide(60.0).starts}
    assert [*starts["a"].nodes] == ["node0"] and starts["a"].seconds == pytest.approx(120.0 * 1.075)
    assert scheduler._state.lasts(scheduler._state.running["a"].request, 4) == pytest.approx(120.0 * 1.075)
