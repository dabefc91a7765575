"""Encodings: no units, no names, no sizes, no NaN."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances import Cluster, DeviceType, OpGraph, PartitionProblem, StepProblem
from gangplan.instances.generators import generate
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.generators.moldable import moldable
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementPlan, PlacementProblem, SpeedModel
from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem
from gangplan.instances.topology import Level, TreeTopology
from gangplan.instances.workload import Workload
from gangplan.learned.encode import (
    Encoding,
    Moment,
    encode_partition,
    encode_placement,
    encode_schedule,
    encode_view,
)
from gangplan.simulator.engine import POLICIES, Scheduler, View, simulate
from gangplan.solvers.method import suite


def graph_problem(seed: int = 0, ops: int = 12, scale: float = 1.0, byte: float = 1.0) -> StepProblem:
    """Return a random job on two racks of two servers; seconds and bytes in units of one's own."""
    made = generate("layered", ops=ops, layers=4, devices=4, seed=seed)
    g = made.graph
    time = np.concatenate([g.time, g.time * 1.7])
    time[1, ::5] = np.inf
    fields = {f: getattr(g, f) for f in OpGraph.__dataclass_fields__}
    fields |= {"device_types": (*g.device_types, "slow"), "time": time * scale}
    for name in ("memory", "parameter_bytes", "activation_bytes", "edge_bytes"):
        fields[name] = fields[name] * byte
    speed = byte / scale
    levels = (Level("server", 1e11 * speed, 1e-6 * scale), Level("rack", 1e10 * speed, 5e-6 * scale))
    kinds = (DeviceType(g.device_types[0], memory=80e9 * byte), DeviceType("slow", memory=None))
    topology = TreeTopology(levels, np.array([[0, 0, 1, 1], [0, 0, 0, 0]]))
    return StepProblem(OpGraph(**fields), Cluster(kinds, np.array([0, 1, 0, 1]), topology))


def renamed(problem: StepProblem, op: Any, device: Any) -> StepProblem:
    """Return the problem in which op i is op[i] and device i is device[i]."""
    g, back, there = problem.graph, np.argsort(op), np.argsort(device)
    fields = {f: getattr(g, f) for f in OpGraph.__dataclass_fields__}
    fields |= {f: getattr(g, f)[back] for f in ("memory", "parameter_bytes", "activation_bytes", "colocation")}
    fields |= {"backward": g.backward[back], "time": g.time[:, back], "source": op[g.source], "target": op[g.target]}
    fields |= {"twin": np.where(g.twin >= 0, op[g.twin], -1)[back], "names": tuple(f"n{i}" for i in range(g.n_ops))}
    c = problem.cluster
    topology = TreeTopology(c.topology.levels, c.topology.group[:, there])
    return StepProblem(OpGraph(**fields), Cluster(c.device_types, c.type_of[there], topology))


def alike(a: Encoding, b: Encoding, orders: dict[str, Any] | None = None) -> None:
    """Check that b is a, where thing i of a type is thing orders[type][i] in b."""
    orders = {kind: np.arange(len(x)) for kind, x in a.nodes.items()} | (orders or {})
    assert a.columns == b.columns and a.weight_columns == b.weight_columns
    for kind, x in a.nodes.items():
        for i, name in enumerate(a.columns[kind]):
            assert np.allclose(b.nodes[kind][orders[kind], i], x[:, i], rtol=1e-5, atol=1e-6), (kind, name)
    assert set(a.edges) == set(b.edges)
    for relation in a.edges:
        source, target = (orders[kind][a.edges[relation][k]] for k, kind in enumerate(relation[::2]))
        rows = [np.column_stack([source, target, a.weights[relation].round(4)])]
        rows.append(np.column_stack([*b.edges[relation], b.weights[relation].round(4)]))
        x, y = (r[np.lexsort(r.T[::-1])] for r in rows)
        assert x.shape == y.shape and np.allclose(x, y, atol=2e-4), relation


def sound(encoding: Encoding) -> None:
    """Check that all numbers are finite and of use to a network, and that edges join what there is."""
    for kind, x in encoding.nodes.items():
        assert x.shape[1] == len(encoding.columns[kind]) and np.isfinite(x).all()
        worst = encoding.columns[kind][int(np.abs(x).max(axis=0, initial=0.0).argmax())]
        assert np.abs(x).max(initial=0.0) <= 1e6, (kind, worst)
    for (a, _, b), edges in encoding.edges.items():
        assert (edges >= 0).all() and (edges < [[len(encoding.nodes[a])], [len(encoding.nodes[b])]]).all()
    for weights in encoding.weights.values():
        assert np.isfinite(weights).all()


def test_ops_and_devices_have_no_names() -> None:
    """With ops and devices in another order the encoding is the same but for the order, a part of the plan included."""
    rng, problem = np.random.default_rng(0), graph_problem()
    n = problem.graph.n_ops
    op, device, plan = rng.permutation(n), rng.permutation(4), rng.integers(-1, 4, n)
    there = np.where(plan >= 0, device[plan], -1)[np.argsort(op)]
    a, b = encode_partition(problem, plan), encode_partition(renamed(problem, op, device), there)
    racks = np.arange(3)  # servers keep their labels
    alike(a, b, {"ops": op, "devices": device, "racks": racks})
    sound(a)
    with pytest.raises(AssertionError):  # the check itself
        alike(a, b, {"ops": op})


@pytest.mark.parametrize(("second", "byte"), [(10.0, 1.0), (1000.0, 1.0), (1.0, 1024.0), (0.1, 8.0)])
def test_partition_has_no_units(second: float, byte: float) -> None:
    """Milliseconds for seconds and bits for bytes change nothing."""
    plan = np.arange(graph_problem().graph.n_ops) % 5 - 1
    alike(encode_partition(graph_problem(), plan), encode_partition(graph_problem(0, 12, second, byte), plan))


def test_partition_by_hand() -> None:
    """Two ops of 1 and 3 s in a row on two devices, one placed: the columns are what their names say."""
    none = np.full(2, -1)
    graph = OpGraph(
        ("a", "b"), ("gpu",), [[1.0, 3.0]], [2.0, 4.0], [0, 0], [4, 0], [0], [1], [4.0], none, none, none > 0
    )
    problem = PartitionProblem(graph, Cluster.flat((DeviceType("gpu", memory=8.0), 2), bandwidth=2.0))
    found = encode_partition(problem, np.array([-1, 1]))
    ops = {name: found.nodes["ops"][:, i].tolist() for i, name in enumerate(found.columns["ops"])}
    assert ops["load"] == [0.5, 1.5] and ops["room"] == [0.25, 0.5]  # an even load is 2 s, a device holds 8
    assert ops["send_load"] == [1.0, 0.0]  # 4 bytes at 2 bytes/s
    assert ops["before"] == [0.0, 0.25] and ops["after"] == [1.0, 0.75]
    devices = {name: found.nodes["devices"][:, i].tolist() for i, name in enumerate(found.columns["devices"])}
    assert devices["load"] == [0.0, 1.5] and devices["held"] == [0.0, 0.5]
    assert found.edges["ops", "on", "devices"].tolist() == [[1], [1]]
    assert found.edges["ops", "rev_feed", "ops"].tolist() == [[1], [0]]


def test_numbers_do_not_grow_with_size() -> None:
    """A graph fifty times larger has ops, devices and edges in the same range: what was trained small runs large."""
    for small, large in (
        (encode_partition(graph_problem(0, 12)), encode_partition(graph_problem(0, 600))),
        (encode_placement(gangs(4, 1, 4), gang=0), encode_placement(gangs(64, 8, 40), gang=0)),
        (encode_schedule(moldable(8, 2)), encode_schedule(moldable(400, 100))),
    ):
        for kind in small.nodes:
            most = [float(np.abs(x.nodes[kind]).max(initial=0.0)) for x in (small, large)]
            assert most[1] <= 3 * most[0] + 4, kind


@pytest.mark.parametrize("objective", ["throughput", "step", "latency", "stages"])
def test_odd_graphs(objective: str) -> None:
    """Graphs of free ops, without edges, memory or limits, with classes and hosts, give numbers."""
    tools = suite(objective)
    for variant in tools.variants:
        for seed in range(15):
            sound(encode_partition(tools.random_problem(seed, variant)))
    zero, none = np.zeros(1), np.full(1, -1)
    for time in (0.0, 1e-30, 1e290):
        graph = OpGraph(("a",), ("gpu",), [[time]], zero, zero, zero, [], [], [], none, none, [False])
        sound(encode_partition(PartitionProblem(graph, Cluster.flat((DeviceType("gpu"), 3), bandwidth=1e-3))))


def batch() -> PlacementProblem:
    """Return gangs of all sorts on nodes of two types."""
    return gangs(
        10, 2, 4, gpu_types="A100,V100", menus=0.3, shares=0.3, selectors=0.3, spread=0.3, apart=0.5, whole_nodes=0.2,
        optional=0.3, running=0.5, down=0.1, seed=3,
    )  # fmt: skip


def half_placed(problem: PlacementProblem) -> PlacementPlan:
    """Return a plan of three gangs on a few nodes."""
    k = [0, 0, 1, 2, 2, 2]
    rows = np.array([[j, i, 1, int(problem.jobs[j].servers > 0)] for i, j in enumerate(k)])
    return PlacementPlan(tuple(x.name for x in problem.jobs), *rows.T)


def test_nodes_and_jobs_have_no_names() -> None:
    """With nodes and jobs in another order the encoding is the same but for the order."""
    rng, problem = np.random.default_rng(1), batch()
    fleet, m, k = problem.fleet, problem.fleet.n_nodes, len(problem.jobs)
    node, job = rng.permutation(m), rng.permutation(k)
    back, there = np.argsort(node), np.argsort(job)
    moved = replace(
        fleet,
        names=tuple(fleet.names[i] for i in back),
        labelled=fleet.labelled[:, back],
        topology=TreeTopology(fleet.topology.levels, fleet.topology.group[:, back]),
        **{f: np.asarray(getattr(fleet, f))[back] for f in ("gpu_type", "gpus", "cpu", "memory", "link", "usable")},
    )
    jobs = tuple(problem.jobs[i] for i in there)
    other = replace(problem, fleet=moved, jobs=jobs)
    plan = half_placed(problem)
    same = PlacementPlan(tuple(x.name for x in jobs), job[plan.job], node[plan.node], plan.workers, plan.servers)
    orders = {"nodes": node, "jobs": job}
    for gang in (None, 2, 5):
        theirs = None if gang is None else int(job[gang])
        alike(encode_placement(problem, plan, gang), encode_placement(other, same, theirs), orders)
        alike(encode_placement(problem, None, gang), encode_placement(other, None, theirs), orders)


def test_placement_has_no_units() -> None:
    """Ten times as long seconds change nothing."""
    problem = batch()
    fleet, s = problem.fleet, problem.speeds
    levels = tuple(replace(x, bandwidth=x.bandwidth / 10, latency=x.latency * 10) for x in fleet.topology.levels)
    slow = replace(fleet, link=fleet.link / 10, topology=TreeTopology(levels, fleet.topology.group))
    other = replace(problem, fleet=slow, speeds=replace(s, compute=s.compute * 10))
    for gang in (None, 4):
        alike(encode_placement(problem, half_placed(problem), gang), encode_placement(other, half_placed(other), gang))


def test_what_a_gang_sees() -> None:
    """Of four nodes one is full, one too small for both workers, one fits, and one a foe is on."""
    fleet = replace(Fleet.regular(2, 2, 4, cpu=8.0), names=("full", "small", "fits", "foe"))
    speeds = SpeedModel(("m",), ("A100",), [[1.0]], [1e9], [0.5], [[0.3]], [[0.5]])
    jobs = tuple(GangJob(x, "m", (2,), Demand(2.0, 1.0), apart=("d",) if x == "a" else ()) for x in "abcd")
    problem = PlacementProblem(fleet, jobs, speeds)
    plan = PlacementPlan(tuple("abcd"), [1, 2, 3], [0, 1, 3], [2, 1, 1], [0, 0, 0])
    found = encode_placement(problem, plan, 0)
    nodes = {name: found.nodes["nodes"][:, i].tolist() for i, name in enumerate(found.columns["nodes"])}
    assert nodes["allowed"] == [0, 1, 1, 0] and nodes["fits_all"] == [0, 0, 1, 0]
    assert nodes["fits"] == [0.0, 0.5, 1.0, 0.0] and nodes["free"] == [0.0, 0.5, 1.0, 0.5]
    assert nodes["suffers"] == pytest.approx([np.log(1.3), np.log(1.3), 0.0, np.log(1.3)])
    assert found.edges["jobs", "apart", "jobs"].tolist() == [[0], [3]]


@pytest.mark.parametrize("seed", range(30))
def test_odd_clusters(seed: int) -> None:
    """Nodes without GPUs, cores or types that suit, jobs that run nowhere, and times without deadlines give numbers."""
    problem = suite("placement").random_problem(seed, "")
    for gang in (None, *range(len(problem.jobs))):
        sound(encode_placement(problem, gang=gang))
    sound(encode_schedule(suite("schedule").random_problem(seed, "")))


def schedule(scale: float = 1.0) -> tuple[ScheduleProblem, Moment]:
    """Return jobs on RAMP blocks with deadlines and values, two of them running."""
    made = moldable(9, 4, 4, capacity="ramp", fraction=0.5, optional=0.5, seed=2)
    jobs = tuple(
        replace(
            x,
            durations=tuple(s * scale for s in x.durations),
            release=x.release * scale,
            deadline=None if x.deadline is None else x.deadline * scale,
            value=None if x.value is None else x.value * scale,
        )
        for x in made.jobs
    )
    rows = (((0, 1), (1, 1)), ((5,), (1,)))
    now = made.jobs[4].release
    return replace(made, jobs=jobs), Moment(now * scale, (0,), (1, 2), ((now + 7) * scale, (now + 90) * scale), rows)


def test_schedule_has_no_units() -> None:
    """Ten times as long seconds change nothing."""
    a, b = (encode_schedule(*schedule(x)) for x in (1.0, 10.0))
    alike(a, b)
    sound(a)


def test_jobs_have_no_names() -> None:
    """With the jobs in another order the encoding is the same but for the order."""
    (problem, moment), order = schedule(), np.random.default_rng(4).permutation(9)
    jobs = tuple(problem.jobs[i] for i in np.argsort(order))
    moved = replace(moment, done=[int(order[0])], running=[int(order[i]) for i in moment.running])
    a, b = encode_schedule(problem, moment), encode_schedule(replace(problem, jobs=jobs), moved)
    place = np.argsort(np.argsort(order[1:]))  # job 0 is done and not shown
    spans = [encode.edges["options", "of", "jobs"][1] for encode in (a, b)]
    options = np.concatenate([np.flatnonzero(spans[1] == place[j]) for j in dict.fromkeys(spans[0].tolist())])
    alike(a, b, {"jobs": place, "options": options})


def test_blocks_are_counted() -> None:
    """With one server of 16 taken, 15 blocks of one server are free, and none of all 16."""
    made = moldable(1, 4, 4, capacity="ramp")
    job = replace(made.jobs[0], degrees=(1, 16), durations=(9.0, 1.0), release=0.0)
    problem = replace(made, jobs=(job, replace(job, name="other")))
    found = encode_schedule(problem, Moment(0.0, (), (1,), (9.0,), (((3,), (1,)),)))
    options = {name: found.nodes["options"][:, i].tolist() for i, name in enumerate(found.columns["options"])}
    assert options["blocks"] == [15 / 16, 0.0] and options["startable"] == [1, 0]


def test_view_of_the_simulator() -> None:
    """A policy sees in the simulator what it would see of the same jobs as a problem."""
    seen: list[tuple[Encoding, Encoding]] = []
    jobs = Workload(("a", "b", "c"), [0.0, 1.0, 2.0], [3, 2, 4], [10.0, 20.0, 5.0])

    class Look:
        def select(self, view: View, queue: Any) -> Any:
            if view.now == 2.0:
                made = [
                    MoldableJob(*x)
                    for x in zip("abc", [(3,), (2,), (4,)], [(10.0,), (20.0,), (5.0,)], (0.0, 1.0, 2.0), strict=True)
                ]
                there = Moment(2.0, (), (0,), (10.0,), (((0,), (3,)),))
                problem = ScheduleProblem(tuple(made), Pool(4), "mean_jct")
                seen.append((encode_view(view, np.array([1, 2])), encode_schedule(problem, there)))
            return view.workload.submit[queue]

    simulate(jobs, Fleet.regular(1, 1, 4), Scheduler((Look(), POLICIES["fifo"]())))
    assert seen
    for view, problem in seen:
        sound(view)
        for one in (view, problem):  # a pool has no network
            del one.nodes["racks"]
            for relation in [x for x in one.edges if "racks" in x]:
                del one.edges[relation]
        assert len(view.nodes["options"]) == 2
        alike(problem, view, {"jobs": np.array([2, 0, 1])})


def test_batches_of_several_sizes() -> None:
    """PyG puts encodings of several sizes into one batch, and gives each back."""
    from torch_geometric.data import Batch

    for encodings in (
        [encode_partition(graph_problem(0, ops)) for ops in (8, 40)],
        [encode_placement(gangs(3, 1, 4)), encode_placement(batch(), gang=1)],
        [encode_schedule(moldable(5)), encode_schedule(*schedule())],
    ):
        together = Batch.from_data_list([x.data() for x in encodings])
        for kind in encodings[0].nodes:
            assert together[kind].x.shape[0] == sum(len(x.nodes[kind]) for x in encodings)
        for i, one in enumerate(encodings):
            back = together.get_example(i)
            for kind, x in one.nodes.items():
                assert np.array_equal(back[kind].x.numpy(), x)
            for relation, edges in one.edges.items():
                assert np.array_equal(back[relation].edge_index.numpy(), edges)
                assert back[relation].edge_attr.shape == one.weights[relation].shape


def test_levels_of_a_tree() -> None:
    """Servers lie within racks, racks within the pod; each device is in its server alone."""
    levels = (Level("server", 1e11), Level("rack", 1e10), Level("pod", 1e9))
    kind = DeviceType("A100")
    base = graph_problem().graph
    fields = {f: getattr(base, f) for f in OpGraph.__dataclass_fields__}
    graph = OpGraph(**fields | {"device_types": ("A100", "slow")})
    cluster = Cluster((kind,), np.zeros(8, dtype=int), TreeTopology.regular(levels, (2, 2, 2)))
    found = encode_partition(PartitionProblem(graph, cluster))
    assert found.edges["devices", "in", "racks"].tolist() == [[*range(8)], [0, 0, 1, 1, 2, 2, 3, 3]]
    assert found.edges["racks", "within", "racks"].tolist() == [[0, 1, 2, 3, 4, 5], [4, 4, 5, 5, 6, 6]]
