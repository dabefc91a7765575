"""Timelines: what runs when is what the verifier timed."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest

from gangplan.instances import (
    Cluster,
    DeviceType,
    GraphProblem,
    LatencyPlan,
    LatencyProblem,
    Level,
    OpGraph,
    PartitionPlan,
    StagesPlan,
    StagesProblem,
    StepPlan,
    StepProblem,
    TreeTopology,
    verify,
    with_objective,
)
from gangplan.instances.generators import generate
from gangplan.instances.partition import Links
from gangplan.instances.timeline import Timeline, critical_chain, timeline
from gangplan.instances.verify.verdict import needed

GPU, CPU = DeviceType("A100", memory=80e9), DeviceType("cpu", host=True)


def two_servers(each: int = 2) -> Cluster:
    """Return two servers of A100s: 300 GB/s inside, 25 GB/s and 5 us between."""
    levels = (Level("server", 300e9), Level("rack", 25e9, 5e-6))
    return Cluster((GPU,), np.zeros(2 * each, dtype=np.int32), TreeTopology.regular(levels, (each, 2)))


def scheduled(problem: StepProblem, device: np.ndarray) -> StepPlan:
    """Return the plan that runs ops and sends outputs in topological order, each as early as what was put before."""
    graph, links = problem.graph, Links(problem.cluster)
    seconds = problem.time()[problem.cluster.type_of[device], np.arange(graph.n_ops)]
    start, finish = np.zeros(graph.n_ops), np.zeros(graph.n_ops)
    inputs: dict[int, list[int]] = defaultdict(list)
    for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        inputs[v].append(u)
    free: dict[object, float] = defaultdict(float)
    there: dict[tuple[int, int], float] = {}
    moves = []
    for v in graph.topological_order().tolist():
        d = int(device[v])
        ready = free[d]
        for u in inputs[v]:
            a = int(device[u])
            if a != d and (u, d) not in there:
                took = float(problem.delay(u, a, d))
                at = float(finish[u])
                if problem.contention and took > 0:
                    at = max([at, *(free[d, x] for d, x in [("link", x) for x in links.route(a, d)])])
                    free.update({("link", x): at + took for x in links.route(a, d)})
                    moves.append((u, d, at))
                there[u, d] = at + took
            ready = max(ready, float(finish[u]) if a == d else there[u, d])
        start[v], finish[v] = ready, ready + seconds[v]
        free[d] = finish[v]
    sent, receiver, sent_at = (list(x) for x in zip(*moves, strict=True)) if moves else ([], [], [])
    return StepPlan(graph.names, device, start, sent, receiver, sent_at)


def spread(problem: GraphProblem, seed: int = 0) -> np.ndarray:
    """Return a random device for every op, the same within a colocation class."""
    graph, rng = problem.graph, np.random.default_rng(seed)
    device = rng.integers(problem.cluster.n_devices, size=graph.n_ops)
    grouped = graph.colocation >= 0
    device[grouped] = device[
        np.unique(graph.colocation, return_index=True)[1][np.unique(graph.colocation, return_inverse=True)[1]]
    ][grouped]
    return device.astype(np.int32)


def gpt(contention: bool) -> StepProblem:
    """Return the training step of a small GPT on two servers."""
    return StepProblem(generate("gpt", layers=2).graph, two_servers(), contention)


def check(drawn: Timeline, objective: float) -> None:
    """Assert what holds for every timeline."""
    slack = 1e-9 * objective
    assert drawn.makespan == pytest.approx(objective, rel=1e-12)
    lanes = defaultdict(list)
    for bar in drawn.bars:
        assert 0 <= bar.start <= bar.finish + slack
        lanes[bar.row, bar.lane].append((bar.start, bar.finish))
    for spans in lanes.values():
        assert all(a[1] <= b[0] + slack for a, b in pairwise(sorted(spans)))
    for r, row in enumerate(drawn.rows):
        assert row.lanes == 1 + max(lane for x, lane in lanes if x == r)
    critical = [drawn.bars[i] for i in drawn.chain]
    assert critical and all(bar.critical for bar in critical)
    assert all(a.finish <= b.start + slack for a, b in pairwise(critical))
    assert critical[-1].finish == drawn.makespan


@pytest.mark.parametrize("contention", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_step(contention: bool, seed: int) -> None:
    """Each op has its bar on its device and each transfer that takes time its bars on links, at the plan's times."""
    problem = gpt(contention)
    graph = problem.graph
    plan = scheduled(problem, spread(problem, seed))
    verdict = verify(problem, plan)
    assert verdict.objective is not None, verdict.violations[:3]
    drawn = timeline(problem, plan)
    check(drawn, verdict.objective)
    ops = {bar.label: bar for bar in drawn.bars if bar.kind != "transfer"}
    assert len(ops) == graph.n_ops
    for i, name in enumerate(graph.names):
        bar = ops[name]
        assert drawn.rows[bar.row].device == plan.device[i] and not drawn.rows[bar.row].link
        assert bar.start == plan.start[i] and bar.kind == ("backward" if graph.backward[i] else "forward")
    assert all(row.lanes == 1 for row in drawn.rows if contention or not row.link)
    moved = {(bar.label, bar.receiver) for bar in drawn.bars if bar.kind == "transfer"}
    op, to = needed(problem, plan.device)
    assert moved == {(graph.names[u], d) for u, d in zip(op.tolist(), to.tolist(), strict=True)}
    shared = [row.name for row in drawn.rows if row.link and row.device is None]
    assert shared == (["server 0 out", "server 0 in", "server 1 out", "server 1 in"] if contention else [])


def test_contention_shows_every_link() -> None:
    """A transfer between servers is on four links at once, one inside a server on two."""
    problem = gpt(True)
    plan = scheduled(problem, spread(problem))
    drawn = timeline(problem, plan)
    bars = defaultdict(list)
    for bar in drawn.bars:
        if bar.kind == "transfer":
            bars[bar.label, bar.sender, bar.receiver].append(bar)
    for (_, a, b), shown in bars.items():
        assert len(shown) == (2 if a // 2 == b // 2 else 4)
        assert len({(bar.start, bar.finish, bar.critical) for bar in shown}) == 1
    assert len(plan.sent) == len(bars)


def chain_graph(times: list[float], edges: list[tuple[int, int]], size: float = 1.0) -> OpGraph:
    """Return a graph for one device type by its times and edges, every output of `size` bytes."""
    n, m = len(times), len(edges)
    zero, none = np.zeros(n), np.full(n, -1)
    source, target = ([e[k] for e in edges] for k in (0, 1))
    names = tuple("abcdefgh"[:n])
    sizes = np.full(m, size)
    return OpGraph(names, ("gpu",), [times], zero, zero, zero, source, target, sizes, none, none, [False] * n)


def test_chain_by_hand() -> None:
    """The chain names the op that the last one waited for: through a transfer, or because the device was busy."""
    # a (2 s) feeds b on the other device over 1 s; c (5 s) there runs from 1 on and keeps b waiting until 6
    graph = chain_graph([2.0, 1.0, 5.0], [(0, 1)])
    cluster = Cluster.flat((DeviceType("gpu"), 2), bandwidth=1.0)
    problem = StepProblem(graph, cluster)
    late = timeline(problem, StepPlan(graph.names, [0, 1, 1], [0.0, 6.0, 1.0]))
    assert [late.bars[i].label for i in late.chain] == ["c", "b"]
    # without c in the way b waits for the transfer, and that for a
    early = timeline(problem, StepPlan(graph.names, [0, 1, 0], [0.0, 3.0, 2.0]))
    assert [early.bars[i].label for i in early.chain] == ["a", "c"]  # c ends at 7, b at 4
    short = chain_graph([2.0, 1.0, 1.0], [(0, 1)])
    plan = StepPlan(short.names, [0, 1, 0], [0.0, 3.0, 2.0])
    chain = timeline(StepProblem(short, cluster), plan)
    assert [(chain.bars[i].kind, chain.bars[i].label) for i in chain.chain] == [
        ("forward", "a"),
        ("transfer", "a"),
        ("forward", "b"),
    ]
    assert sum(bar.critical for bar in chain.bars) == 4  # the transfer is drawn where it leaves and where it arrives


def test_chain_of_items_without_length() -> None:
    """Items of no length that wait for one another in a circle do not hold up the walk."""
    assert critical_chain([1.0, 1.0], [[1], [0]], 0.0) == [1, 0]
    assert critical_chain([], [], 0.0) == []


def test_transfers_of_one_moment_lie_in_lanes() -> None:
    """Without contention two outputs that leave together lie side by side."""
    graph = chain_graph([1.0, 1.0, 1.0], [(0, 1), (0, 2)], size=4.0)
    problem = StepProblem(graph, Cluster.flat((DeviceType("gpu"), 3), bandwidth=1.0))
    drawn = timeline(problem, StepPlan(graph.names, [0, 1, 2], [0.0, 5.0, 5.0]))
    assert [(row.name, row.lanes) for row in drawn.rows] == [
        ("0 (gpu)", 1),
        ("out", 2),
        ("1 (gpu)", 1),
        ("in", 1),
        ("2 (gpu)", 1),
        ("in", 1),
    ]
    check(drawn, 6.0)


def test_empty_outputs_are_not_drawn() -> None:
    """An output without bytes takes no time and has no bar."""
    graph = chain_graph([1.0, 1.0], [(0, 1)], size=0.0)
    problem = StepProblem(graph, Cluster.flat((DeviceType("gpu"), 2), bandwidth=1.0))
    drawn = timeline(problem, StepPlan(graph.names, [0, 1], [0.0, 1.0]))
    assert [bar.kind for bar in drawn.bars] == ["forward", "forward"]
    assert [drawn.bars[i].label for i in drawn.chain] == ["a", "b"]


def latency_problem() -> LatencyProblem:
    """Return five ops in a row, the last two beside one another, on two accelerators and a host."""
    graph = chain_graph([1.0, 2.0, 3.0, 4.0, 5.0], [(0, 1), (1, 2), (2, 3), (2, 4)])
    values = {f: getattr(graph, f) for f in OpGraph.__dataclass_fields__}
    values |= {"device_types": ("A100", "cpu"), "time": np.vstack([graph.time, 10 * graph.time])}
    cluster = Cluster((GPU, CPU), [0, 0, 1], TreeTopology.regular((Level("host", 1.0),), (3,)))
    return LatencyProblem(OpGraph(**values), cluster)


def test_latency() -> None:
    """A call is its transfers in, its compute and its transfers out; host ops that overlap lie in lanes."""
    problem = latency_problem()
    plan = LatencyPlan(problem.graph.names, [0, 0, 1, 2, 2])
    verdict = verify(problem, plan)
    drawn = timeline(problem, plan)
    check(drawn, verdict.objective or 0.0)
    # call 0: 3 s and b out (1 s); call 1: b in, 3 s, c out; then d and e on the host, 40 and 50 s
    assert [(b.row, b.kind, b.start, b.finish, b.lane) for b in drawn.bars] == [
        (0, "call", 0.0, 3.0, 0),
        (0, "transfer", 3.0, 4.0, 0),
        (1, "transfer", 4.0, 5.0, 0),
        (1, "call", 5.0, 8.0, 0),
        (1, "transfer", 8.0, 9.0, 0),
        (2, "forward", 9.0, 49.0, 0),
        (2, "forward", 9.0, 59.0, 1),
    ]
    assert [b.critical for b in drawn.bars] == [True] * 5 + [False, True]
    assert (drawn.makespan, drawn.rows[2].lanes, drawn.idle) == (59.0, 2, 0)


def test_throughput() -> None:
    """Of a pipeline the bars of a device add up to its load, and the busiest device is the critical one."""
    problem = generate("resnet", depth=18, devices=3)
    graph = problem.graph
    device = np.zeros(graph.n_ops, dtype=np.int32)
    forward = np.flatnonzero(~graph.backward)
    device[forward] = np.arange(len(forward)) * 3 // len(forward)
    device[graph.twin[forward]] = device[forward]
    plan = PartitionPlan(graph.names, 2 - device, device)
    verdict = verify(problem, plan)
    drawn = timeline(problem, plan)
    check(drawn, verdict.objective or 0.0)
    assert [row.device for row in drawn.rows] == [2, 1, 0]
    for r, row in enumerate(drawn.rows):
        last = max(bar.finish for bar in drawn.bars if bar.row == r)
        assert last == pytest.approx(verdict.load[row.device])
    assert sum(bar.count for bar in drawn.bars if bar.kind != "transfer") == graph.n_ops
    assert {drawn.rows[bar.row].device for bar in drawn.bars if bar.critical} == {int(verdict.load.argmax())}


@pytest.mark.parametrize("bandwidth", [300e9, 1e8])
def test_stages(bandwidth: float) -> None:
    """A stage's row is as long as a device of it is busy; where moves set the pace, they have the last finish."""
    graph = generate("vgg", depth=11).graph
    problem = StagesProblem(graph, Cluster.flat((GPU, 5), bandwidth=bandwidth))
    forward = np.flatnonzero(~graph.backward)
    stage = np.zeros(graph.n_ops, dtype=np.int32)
    stage[forward[len(forward) // 2 :]] = 1
    stage[graph.twin[forward]] = stage[forward]
    plan = StagesPlan(graph.names, stage, [0, 0, 0, 1, -1], [1, 1])
    verdict = verify(problem, plan)
    assert verdict.ok, verdict.violations[:3]
    drawn = timeline(problem, plan)
    check(drawn, verdict.objective or 0.0)
    for r, (name, device) in enumerate([("stage 0: 3 \u00d7 A100", 0), ("stage 1: 1 \u00d7 A100", 3)]):
        assert (drawn.rows[r].name, drawn.rows[r].device) == (name, device)
        last = max(bar.finish for bar in drawn.bars if bar.row == r)
        assert last == pytest.approx(verdict.load[device])
    assert ("moves" in [row.name for row in drawn.rows]) == (bandwidth < 1e9)
    assert drawn.idle == 1


def test_infeasible_plan() -> None:
    """A plan that breaks a constraint has no timeline."""
    problem = with_objective(generate("layered", ops=4, layers=2, degree=1, devices=2), "step")
    zero = np.zeros(problem.graph.n_ops)
    with pytest.raises(ValueError, match="no timeline: precedence"):
        timeline(problem, StepPlan(problem.graph.names, zero.astype(np.int32), zero))
