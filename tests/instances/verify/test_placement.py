"""The verifier of placements and the cost model, on cases small enough to work out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances import Cluster, DeviceType, InstanceError, Level, TreeTopology, dump, load, verify
from gangplan.instances.placement import (
    Demand,
    Expected,
    Fleet,
    GangJob,
    PlacementPlan,
    PlacementProblem,
    Running,
    SpeedModel,
    Task,
)
from gangplan.instances.verify.placement import fragments

FLEET = Fleet.regular(racks=2, nodes=2, gpus=4, cpu=8, memory=100.0, link=10.0, nic=2.0, uplink=1.0)
"""Two racks of two nodes of four GPUs; 10 B/s within a node, 2 B/s a node's NIC, 1 B/s a rack's uplink."""
SPEEDS = SpeedModel(
    models=("a", "b"),
    gpu_types=("A100",),
    compute=np.array([[1.0, 2.0]]),
    gradient=np.array([4.0, 0.0]),
    overlap=np.array([0.0, 0.0]),
    host=np.array([[0.5, 0.25], [0.125, 0.0]]),
    gpu=np.array([[3.0, 2.0], [1.0, 0.75]]),
)


def batch(*jobs: GangJob, **changes: Any) -> PlacementProblem:
    """Build a problem of these jobs."""
    return PlacementProblem(**{"fleet": FLEET, "jobs": jobs, "speeds": SPEEDS} | changes)


def plan(problem: PlacementProblem, *rows: tuple[int, int, int, int, list[int]]) -> PlacementPlan:
    """Build a plan of rows (job, node, workers, servers, GPUs held)."""
    job, node, workers, servers, cards = (list(x) for x in zip(*rows, strict=True)) if rows else ([],) * 5
    grants = [(r, card) for r, held in enumerate(cards) for card in held]
    return PlacementPlan(
        tuple(j.name for j in problem.jobs), job, node, workers, servers, [r for r, _ in grants], [c for _, c in grants]
    )


A4, B2 = GangJob("x", "a", (4,)), GangJob("y", "b", (2,))


@pytest.mark.parametrize(
    ("collective", "rows", "sync"),
    [
        # four in a ring send 2 * 3/4 * 4 = 6 B each: over the node's links, its NICs, the uplinks
        ("ring", [(0, 0, 4, 0)], 0.6),
        ("ring", [(0, 0, 2, 0), (0, 1, 2, 0)], 3.0),
        ("ring", [(0, 0, 2, 0), (0, 2, 2, 0)], 6.0),
        # a tree sends and receives all of it: 8 B
        ("tree", [(0, 0, 2, 0), (0, 1, 2, 0)], 4.0),
        # two in a node: 4 B at 10 B/s; two nodes: 4 B at 2 B/s
        ("hierarchical", [(0, 0, 2, 0), (0, 1, 2, 0)], 0.4 + 2.0),
        # two racks, one node each: 4 B through uplinks of 1 B/s
        ("hierarchical", [(0, 0, 2, 0), (0, 2, 2, 0)], 0.4 + 4.0),
        # 3 and 1: 2 * 2/3 * 4 B within the larger node
        ("hierarchical", [(0, 0, 3, 0), (0, 1, 1, 0)], 16 / 3 / 10 + 2.0),
    ],
)
def test_all_reduce(collective: str, rows: list[Any], sync: float) -> None:
    """Synchronisation takes what the slowest link on the way takes, or the sum of the phases."""
    problem = batch(replace(A4, collective=collective))
    held = [list(range(row[2])) for row in rows]
    verdict = verify(problem, plan(problem, *((*row, cards) for row, cards in zip(rows, held, strict=True))))
    assert verdict.violations == ()
    assert verdict.rates.sync[0] == pytest.approx(sync)
    assert verdict.rates.step[0] == pytest.approx(1.0 + sync)
    # alone it is best on one node: 1 s of compute and 0.6 (ring, hierarchical) or 0.8 (tree) s of synchronisation
    best = 1.8 if collective == "tree" else 1.6
    assert verdict.objective == pytest.approx((1 + sync) / best)


@pytest.mark.parametrize(
    ("rows", "sync"),
    [
        # three workers push 4 B each to the one server beside them, 10 B/s
        ([(0, 0, 3, 1)], 1.2),
        # the server apart: 12 B come out of the workers' node and into the server's, at 2 B/s
        ([(0, 0, 3, 0), (0, 1, 0, 1)], 6.0),
        # one of three workers beside it: 8 B into the server's node, which beats 4 B inside
        ([(0, 0, 2, 0), (0, 1, 1, 1)], 4.0),
        # the uplink of 1 B/s carries 12 B
        ([(0, 0, 3, 0), (0, 3, 0, 1)], 12.0),
    ],
)
def test_parameter_server(rows: list[Any], sync: float) -> None:
    """Gradients go up and parameters come down at once; the busiest link decides."""
    problem = batch(GangJob("x", "a", (3,), collective="ps", servers=1))
    verdict = verify(problem, plan(problem, *((*row, list(range(row[2]))) for row in rows)))
    assert verdict.violations == ()
    assert verdict.rates.sync[0] == pytest.approx(sync)


def test_links_are_shared() -> None:
    """A NIC that two gangs cross gives each half."""
    problem = batch(GangJob("x", "a", (2,)), GangJob("y", "a", (2,)), GangJob("z", "a", (1,)))
    cards = [0]
    apart = plan(
        problem, (0, 0, 1, 0, cards), (0, 1, 1, 0, cards), (1, 2, 1, 0, cards), (1, 3, 1, 0, cards), (2, 0, 1, 0, [1])
    )
    assert verify(problem, apart).rates.sync == pytest.approx([2.0, 2.0, 0.0])
    # both through node 0: 4 B at 1 B/s; z stays in its node and asks for nothing
    meet = plan(
        problem, (0, 0, 1, 0, cards), (0, 1, 1, 0, cards), (1, 0, 1, 0, [1]), (1, 1, 1, 0, [1]), (2, 2, 1, 0, cards)
    )
    assert verify(problem, meet).rates.sync == pytest.approx([4.0, 4.0, 0.0])


def test_links_are_loaded_by_duty() -> None:
    """A gang has a NIC for itself while the others do not load it: by their duties, not by its own."""
    problem = batch(
        GangJob("x", "a", (2,)),
        GangJob("y", "b", (2,)),
        GangJob("z", "b", (2,), collective="ps", servers=1),
        speeds=replace(SPEEDS, gradient=np.array([4.0, 4.0]), duty=np.array([0.75, 0.25]), host=np.zeros((2, 2))),
    )
    rows = [(j, node, 1, 0, [j]) for j in range(3) for node in range(2)]
    rows[4] = (2, 0, 1, 1, [2])
    verdict = verify(problem, plan(problem, *rows))
    # 4 B at 2 B/s, times 1.5, 2 and 2; z's second worker sends 4 B to the server on node 0
    assert verdict.rates.sync == pytest.approx([3.0, 4.0, 4.0])
    assert load(dump(problem)).speeds.duty.tolist() == [0.75, 0.25]


def test_interference() -> None:
    """Jobs slow one another on a host, and more on a GPU; a worker elsewhere does not help."""
    problem = batch(GangJob("x", "a", (1,), Demand(0.5)), GangJob("y", "b", (1,), Demand(0.5)))
    for rows, steps in (
        ([(0, 0, 1, 0, [0]), (1, 1, 1, 0, [0])], [1.0, 2.0]),
        ([(0, 0, 1, 0, [0]), (1, 0, 1, 0, [1])], [1.25, 2.25]),
        ([(0, 0, 1, 0, [0]), (1, 0, 1, 0, [0])], [3.0, 4.0]),
    ):
        assert verify(problem, plan(problem, *rows)).rates.step == pytest.approx(steps)


def test_overlap_hides_synchronisation() -> None:
    """A share of the compute runs beside the synchronisation, which shows only where it is longer."""
    speeds = replace(SPEEDS, overlap=np.array([0.5, 0.0]))
    problem = batch(A4, speeds=speeds)
    near = verify(problem, plan(problem, (0, 0, 4, 0, [0, 1, 2, 3])))
    assert near.rates.step[0] == pytest.approx(0.5 + 0.6)
    far = verify(problem, plan(problem, (0, 0, 2, 0, [0, 1]), (0, 1, 2, 0, [0, 1])))
    assert far.rates.step[0] == pytest.approx(0.5 + 3.0)


def test_degrees() -> None:
    """The slowdown of a job with a menu is measured by its best degree: worker steps a second."""
    problem = batch(GangJob("y", "b", (1, 2, 4)))
    one = verify(problem, plan(problem, (0, 0, 1, 0, [0])))
    assert one.objective == pytest.approx(4.0)
    assert verify(problem, plan(problem, (0, 0, 4, 0, [0, 1, 2, 3]))).objective == pytest.approx(1.0)


def test_goals() -> None:
    """Weights count, a job left out costs its value, throughput counts what is lost of it."""
    jobs = replace(A4, weight=2.0), replace(B2, value=7.0)
    slow = plan(batch(*jobs), (0, 0, 2, 0, [0, 1]), (0, 1, 2, 0, [0, 1]))
    assert verify(batch(*jobs), slow).objective == pytest.approx(2 * 4 / 1.6 + 7)
    assert verify(batch(*jobs, goal="throughput"), slow).objective == pytest.approx(2 * (1 - 1.6 / 4) + 7)


@pytest.mark.parametrize(
    ("rows", "cost"),
    [
        # 4 GPUs are 6 pairs: all in a node; two nodes of a rack, with 4 pairs across; two racks
        ([(0, 0, 4, 0)], 6 / 40),
        ([(0, 0, 2, 0), (0, 1, 2, 0)], 2 / 40 + 4 / 4),
        ([(0, 0, 2, 0), (0, 4, 2, 0)], 2 / 40 + 4 / 2),
        # 2, 1 and 1: a pair in node 0, two with node 1, three with the other rack
        ([(0, 0, 2, 0), (0, 1, 1, 0), (0, 4, 1, 0)], 1 / 40 + 2 / 4 + 3 / 2),
    ],
)
def test_communication(rows: list[Any], cost: float) -> None:
    """A pair of GPUs on TopDRL's cluster pays 1/40, 1/4 or 1/2; jobs count by weight, one left out by its value."""
    fleet = Fleet.regular(racks=2, nodes=4, gpus=4, link=40e9, nic=4e9, uplink=2e9)
    jobs = replace(A4, weight=3.0), replace(B2, value=5.0)
    problem = batch(*jobs, fleet=fleet, goal="communication")
    held = [(*row, list(range(row[2]))) for row in rows]
    assert verify(problem, plan(problem, *held)).objective == pytest.approx(3 * cost + 5)
    # uplinks faster than NICs are not what holds a pair up
    wide = replace(problem, fleet=Fleet.regular(racks=2, nodes=4, gpus=4, link=40e9, nic=4e9, uplink=16e9))
    racks = [row[1] // 4 for row in rows]
    same = verify(wide, plan(wide, *held)).objective
    pairs = 4 if len(rows) == 2 else 3
    assert same == pytest.approx(3 * (cost - (pairs * (1 / 2 - 1 / 4) if max(racks) else 0)) + 5)
    # workers of two GPUs each: 28 pairs; shares and servers: a pair of shares is one of GPUs
    two = batch(GangJob("x", "a", (2,), Demand(2)), fleet=fleet, goal="communication")
    apart = plan(two, (0, 0, 1, 0, [0, 1]), (0, 1, 1, 0, [0, 1]))
    assert verify(two, apart).objective == pytest.approx(2 / 40 + 4 / 4)
    half = batch(GangJob("x", "a", (2,), Demand(0.5), "ps", 1), fleet=fleet, goal="communication")
    assert verify(half, plan(half, (0, 0, 2, 0, [0, 0]), (0, 4, 0, 1, []))).objective == pytest.approx(1 / 40)


def test_fragmentation() -> None:
    """What is left over is counted by the share of the tasks to come that cannot use it."""
    jobs = GangJob("x", "a", (3,), Demand(1, cpu=1)), GangJob("y", "a", (1,), Demand(0.6, cpu=1, memory=60.0))
    fleet = replace(Fleet.regular(1, 3, 4, cpu=8, memory=100.0), usable=[True, True, False])
    mix = (
        Expected(Task(Demand(0.5)), 3.0),
        Expected(Task(Demand(2, cpu=5)), 2.0),
        Expected(Task(Demand(1, memory=50.0)), 1.0),
        Expected(Task(Demand(1), ("T4",)), 1.0),
        Expected(Task(Demand(0, cpu=100)), 3.0),
    )
    problem = batch(*jobs, fleet=fleet, goal="fragmentation", mix=mix)
    apart = plan(problem, (0, 0, 3, 0, [0, 1, 2]), (1, 1, 1, 0, [3]))
    # node 0 has 1 GPU and 5 cores: the pair does not fit, nor does T4. Node 1 has 3.4 and 7 cores, 40 bytes:
    # 0.4 is too little for a half; the pair uses 3 of it; the third kind lacks memory
    first, second = 0.2 * 1 + 0.1 * 1, 0.3 * 0.4 + 0.2 * 0.4 + 0.1 * 3.4 + 0.1 * 3.4
    assert verify(problem, apart).objective == pytest.approx(first + second)
    assert fragments(problem, apart) == pytest.approx([first, second, 0.0])
    # all on node 0: 0.4 of a GPU that nobody but nobody wants, and node 1 is idle: only T4 cannot use it
    same = plan(problem, (0, 0, 3, 0, [0, 1, 2]), (1, 0, 1, 0, [3]))
    assert verify(problem, same).objective == pytest.approx(0.7 * 0.4 + 0.1 * 4)


def test_fragmentation_expects_the_batch() -> None:
    """Without a mix the workers of the batch are what is to come, each on the GPUs that its model runs on."""
    speeds = replace(SPEEDS, gpu_types=("A100", "T4"), compute=np.array([[1.0, 2.0], [np.inf, 4.0]]))
    fleet = replace(FLEET, gpu_types=("A100", "T4"), gpu_type=[0, 0, 1, 1])
    problem = batch(A4, replace(B2, worker=Demand(0.5)), fleet=fleet, speeds=speeds, goal="fragmentation")
    assert problem.expected() == (
        Expected(Task(Demand(), ("A100",)), 4 / 6),
        Expected(Task(Demand(0.5)), 2 / 6),
    )
    # both halves share a GPU of node 1; of the two T4 nodes two thirds of the tasks have no use
    found = plan(problem, (0, 0, 4, 0, [0, 1, 2, 3]), (1, 1, 2, 0, [0, 0]))
    assert verify(problem, found).objective == pytest.approx(8 * 4 / 6)


@pytest.mark.parametrize(
    ("jobs", "rows", "words"),
    [
        ([A4, B2], [(0, 0, 4, 0, [0, 1, 2, 3])], "gang: job y is left out, and it must be placed"),
        ([A4], [(0, 0, 3, 0, [0, 1, 2])], "gang: job x has 3 workers, it runs with 4"),
        (
            [GangJob("x", "a", (1,), collective="ps", servers=2)],
            [(0, 0, 1, 1, [0])],
            "gang: job x has 1 parameter servers",
        ),
        ([A4], [(0, 0, 4, 0, [0, 1, 2, 4])], "GPUs: GPU 4 of node0 is given out, it has 4"),
        ([A4], [(0, 0, 4, 0, [0, 1, 2, 2])], "GPUs: 2 of GPU 2 of node0 are given out"),
        ([A4], [(0, 0, 4, 0, [0, 1, 2])], "GPUs: job x holds 3 on node0, its workers there need 4"),
        (
            [GangJob("x", "a", (3,), Demand(0.4))],
            [(0, 0, 3, 0, [1, 1, 1])],
            "GPUs: 1.2 of GPU 1 of node0 are given out",
        ),
        (
            [GangJob("x", "a", (4,), Demand(1, cpu=3))],
            [(0, 0, 4, 0, [0, 1, 2, 3])],
            "cpu: the tasks on node0 need 12 cores",
        ),
        (
            [GangJob("x", "a", (1,), Demand(1, memory=101))],
            [(0, 0, 1, 0, [0])],
            "memory: the tasks on node0 need 101 bytes",
        ),
        (
            # NICs have 2 B/s: two workers of 0.5 and two servers of 0.75 are too much for one
            [GangJob("x", "a", (2,), Demand(1, nic=0.5), "ps", 2, Demand(0, nic=0.75))],
            [(0, 0, 2, 2, [0, 1])],
            "nic: the tasks on node0 need 2.5 bytes/s, it has 2",
        ),
        (
            [replace(A4, most_per_node=2)],
            [(0, 0, 4, 0, [0, 1, 2, 3])],
            "spread: job x has 4 workers on node0, at most 2",
        ),
        (
            [replace(B2, whole_nodes=True), replace(B2, name="z")],
            [(0, 0, 2, 0, [0, 1]), (1, 0, 2, 0, [2, 3])],
            "whole nodes: job y shares node0 with z",
        ),
        (
            [replace(B2, apart=("z",)), replace(B2, name="z")],
            [(0, 0, 2, 0, [0, 1]), (1, 0, 2, 0, [2, 3])],
            "apart: jobs y and z are both on node0",
        ),
        ([A4], [(0, 9, 4, 0, [0, 1, 2, 3])], "job x is on node 9, the fleet has 4"),
        ([A4], [(0, 0, 2, 0, [0, 1]), (0, 0, 2, 0, [2, 3])], "job x has several rows on node 0"),
    ],
)
def test_violations(jobs: list[GangJob], rows: list[Any], words: str) -> None:
    """A broken constraint is named."""
    problem = batch(*jobs)
    verdict = verify(problem, plan(problem, *rows))
    assert verdict.objective is None
    assert any(found.startswith(words) for found in verdict.violations), verdict.violations


def test_selectors_and_unusable_nodes() -> None:
    """A job stays on nodes that carry its labels, and off those that are down."""
    fleet = replace(FLEET, labels=("ssd",), labelled=[[True, False, False, True]], usable=[True, True, True, False])
    problem = batch(replace(B2, requires=("ssd",)), fleet=fleet)
    assert verify(problem, plan(problem, (0, 0, 2, 0, [0, 1]))).ok
    lacks = verify(problem, plan(problem, (0, 1, 2, 0, [0, 1]))).violations
    assert lacks == ("selector: job y is on node1, which lacks the label ssd",)
    assert verify(problem, plan(problem, (0, 3, 2, 0, [0, 1]))).violations == (
        "node: job y is on node3, which is not usable",
    )


def test_running_jobs() -> None:
    """A pinned job stays; a movable one pays for going."""
    stay = Running("y", ("node1",), (2,))
    problem = batch(B2, running=(stay,))
    assert verify(problem, plan(problem, (0, 1, 2, 0, [0, 1]))).objective == pytest.approx(1.0)
    assert verify(problem, plan(problem, (0, 0, 2, 0, [0, 1]))).violations == (
        "pinned: job y runs already and may not move",
    )
    free = batch(B2, running=(replace(stay, movable=True, migration=5.0),))
    assert verify(free, plan(free, (0, 0, 2, 0, [0, 1]))).objective == pytest.approx(6.0)
    assert verify(free, plan(free, (0, 1, 2, 0, [2, 3]))).objective == pytest.approx(1.0)


def test_documents() -> None:
    """Problem and plan survive JSON."""
    mix = (Expected(Task(Demand(0.5, nic=1.0), ("A100",)), 2.0),)
    problem = batch(
        replace(A4, value=1.0), B2, running=(Running("y", ("node1",), (2,)),), goal="fragmentation", mix=mix
    )
    again = load(dump(problem))
    assert dump(again) == dump(problem)
    answer = plan(problem, (1, 1, 2, 0, [0, 1]))
    assert verify(again, load(dump(answer))).objective == verify(problem, answer).objective


def test_fleet_of_cluster() -> None:
    """The groups of a cluster's lowest level are the nodes; hosts count as no GPU."""
    levels = Level("server", 10.0), Level("rack", 2.0), Level("pod", 1.0)
    types = DeviceType("A100"), DeviceType("cpu", host=True)
    cluster = Cluster(types, np.array([0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1]), TreeTopology.regular(levels, (3, 2, 2)))
    fleet = Fleet.of(cluster)
    assert fleet.gpus.tolist() == [2, 2, 2, 2]
    assert [level.name for level in fleet.topology.levels] == ["rack", "pod"]
    assert fleet.topology.group[0].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: batch(A4, goal="speed"),
            "goal: 'speed' is not one of slowdown, throughput, communication, fragmentation",
        ),
        (lambda: Expected(Task(Demand()), 0.0), "share: 0.0 is not positive"),
        (lambda: replace(SPEEDS, duty=[0.5, 1.5]), r"duty\[1\]: 1.5 is more than 1"),
        (lambda: Demand(1.5), "gpu: 1.5 is neither whole nor a share of one"),
        (lambda: Demand(3e9), "gpu: 3000000000 is more than 10000000 devices"),
        (lambda: GangJob("x", "a", (2, 2)), r"workers\[1\]: 2 does not ascend"),
        (lambda: GangJob("x", "a", (2,), servers=1), "servers: 1 does not go with the collective ring"),
        (lambda: batch(GangJob("x", "c", (2,))), r"jobs\[0\].model: 'c' has no speed"),
        (lambda: batch(A4, A4), r"jobs\[1\].name: 'x' is a duplicate"),
        (lambda: batch(replace(A4, requires=("ssd",))), r"jobs\[0\].requires\[0\]: 'ssd' is no label"),
        (lambda: batch(replace(A4, apart=("q",))), r"jobs\[0\].apart\[0\]: 'q' is no other job"),
        (
            lambda: batch(A4, running=(Running("x", ("node0",), (3,)),)),
            r"running\[0\].workers: 3 workers and 0 parameter servers",
        ),
        (
            lambda: batch(A4, running=(Running("x", ("nowhere",), (4,)),)),
            r"running\[0\].nodes\[0\]: 'nowhere' is no node",
        ),
        (lambda: replace(FLEET, gpus=[1, 2]), "gpus: has 2 entries where 4 are expected"),
    ],
)
def test_bad_problems(make: Any, words: str) -> None:
    """A problem that makes no sense is refused with field and value."""
    with pytest.raises(InstanceError, match=words):
        make()
