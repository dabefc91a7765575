"""A training step of a split job: published completion times, hand cases, and a slow simulator to agree with."""

from __future__ import annotations

from functools import cache
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.instances import InstanceError, OpGraph, RampTopology
from gangplan.instances.graph import with_backward
from gangplan.instances.readers import parse, read
from gangplan.instances.readers.pipedream import listed_order
from gangplan.instances.splitting import SplitGraph, split
from gangplan.systems.pacml.jobs import first_fit
from gangplan.systems.pacml.step import delays, training_step

RAMP = RampTopology()
STEPS = 50
DEGREES = (1, 2, 4, 6, 8, 16)
PUBLISHED = {
    "alexnet": (36061.15, 18031.03, 9015.95, 6010.88, 4508.41, 2254.76),
    "gnmt": (4470.80, 2235.57, 1117.92, 745.36, 560.48, 308.39),
    "resnet18": (36668.35, 18336.34, 9170.04, 6114.39, 4586.86, 2295.82),
    "squeezenet1_0": (38000.15, 19002.78, 9503.33, 6336.61, 4753.55, 2379.20),
    "vgg16": (34525.35, 17267.73, 8638.72, 5761.84, 4324.16, 2168.24),
}
SPEEDUP = {"alexnet": 11.3, "gnmt": 10.2, "resnet18": 5.78, "squeezenet1_0": 5.79, "vgg16": 2.75}


@cache
def real(path: Path, degree: int) -> SplitGraph:
    """Return a profile split in the order of its file."""
    graph = read(path, keep_inputs=True).graph
    return split(graph, degree, order=listed_order(path.read_text(), graph))


def placed(s: SplitGraph) -> np.ndarray:
    """Return the servers of first fit on an empty cluster."""
    servers = first_fit(s, RAMP)
    assert servers is not None
    return servers


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("model", PUBLISHED)
def test_published_completion_times(data: Path, model: str, degree: int) -> None:
    """The completion time of 50 steps in the published units is the published one, to its last digit."""
    s = real(data / "pipedream" / f"{model}.txt", degree)
    step = training_step(s, placed(s), RAMP, units="as-published")
    assert step.seconds * STEPS == pytest.approx(PUBLISHED[model][DEGREES.index(degree)], abs=0.00501)


@pytest.mark.parametrize("model", PUBLISHED)
def test_physical_speedups(data: Path, model: str) -> None:
    """In physical units degree 16 is as fast as listed for chains, and slower, never faster, where there are branches.

    The listed speed-ups take 1000 times the published communication, which is what is left of the completion time
    without compute. A step is the longest of many paths, and in resnet18 and squeezenet1_0 another path is the
    longest when transfers take 1000 times as long.
    """
    s = real(data / "pipedream" / f"{model}.txt", 16)
    servers = placed(s)
    alone = s.graph.time.sum()
    step = training_step(s, servers, RAMP).seconds
    published = training_step(s, servers, RAMP, units="as-published").seconds
    free = SplitGraph(s.graph, s.copies, s.seconds, s.memory, 0 * s.edge_bytes, 0 * s.sync_bytes)
    compute = training_step(free, servers, RAMP).seconds
    listed = alone / (compute + published - 1e3 * compute)
    assert listed == pytest.approx(SPEEDUP[model], rel=2.5e-3)
    assert alone / step <= listed * (1 + 1e-3)
    hidden = {"resnet18": 0.01, "squeezenet1_0": 0.07}
    assert alone / step == pytest.approx(SPEEDUP[model], rel=hidden.get(model, 2.5e-3))


@pytest.mark.parametrize(("degree", "occupied"), [(1, 1), (2, 2), (4, 4), (6, 6), (8, 10), (16, 21)])
def test_servers_of_gnmt(data: Path, degree: int, occupied: int) -> None:
    """On an empty cluster gnmt takes 10 servers at degree 8 and 21 at 16, for its small ops split less."""
    servers = placed(real(data / "pipedream" / "gnmt.txt", degree))
    assert len(set(servers.tolist())) == occupied


def test_degree_without_a_block(data: Path) -> None:
    """gnmt_large at 16 has ops of 10 to 14 sub-ops, for which the cluster has no block: no placement."""
    s = real(data / "pipedream" / "gnmt_large.txt", 16)
    assert {10, 12, 14} & set(s.copies.tolist())
    assert first_fit(s, RAMP) is None


def chain(time: list[float], edges: list[tuple[int, int]], memory: float = 0.0) -> OpGraph:
    """Return the forward graph of the ops, in seconds, each of `memory` bytes."""
    n = len(time)
    return OpGraph(
        names=tuple(f"op{i}" for i in range(n)),
        device_types=("gpu",),
        time=np.array([time]),
        **{f: np.full(n, memory) for f in ("memory", "parameter_bytes", "activation_bytes")},
        source=np.array([u for u, _ in edges], dtype=np.int32),
        target=np.array([v for _, v in edges], dtype=np.int32),
        edge_bytes=np.full(len(edges), memory),
    )


def test_shortest_first_and_interrupted() -> None:
    """A long op gives way to a shorter one that arrives, and not to one that is longer than what is left of it."""
    # server 0 has op0 (10 s), op1 (2 s) and, from server 1, op3 (3 s) at 1, op5 (4 s) at 10 and op7 (6 s) at 11:
    # op1 0-2, op3 2-5, op0 5-10 with 5 left, op5 10-14, op0 14-19, op7 19-25
    s = split(chain([10, 2, 1, 3, 9, 4, 1, 6], [(2, 3), (2, 4), (4, 5), (4, 6), (6, 7)]), 1)
    step = training_step(s, np.array([0, 0, 1, 0, 1, 0, 1, 0]), RAMP)
    assert step.start.tolist() == [5.0, 0.0, 0.0, 2.0, 1.0, 10.0, 10.0, 19.0]
    assert step.finish.tolist() == [19.0, 2.0, 1.0, 5.0, 10.0, 14.0, 11.0, 25.0]
    assert step.seconds == 25.0


def test_transfers_by_hand() -> None:
    """A transfer takes 250 ns and its bytes over one channel, at the same time as others and as compute."""
    s = split(chain([1, 1, 1], [(0, 1), (0, 2)], memory=4e11), 1)
    step = training_step(s, np.array([0, 1, 2]), RAMP)
    assert step.start.tolist() == pytest.approx([0, 2 + 250e-9, 2 + 250e-9], rel=1e-12)
    assert step.seconds == pytest.approx(3 + 250e-9, rel=1e-12)


def test_collectives_and_gradients_by_hand() -> None:
    """One op and its twin in two parts: a collective between them, and gradients exchanged after the last."""
    s = split(with_backward(chain([2.0], [], memory=8e11), np.array([[4.0]]), np.array([8e11])), 2)

    # the four edges carry 8e11/4 each; both collectives are of two servers in two groups
    def collective(size: float) -> float:
        return 2 * (250e-9 + size / 2 / 4e11) + size / 2 / 2 / (2e12 / 6)

    servers = np.array([0, 8, 0, 8], dtype=np.int32)
    cost = delays(s, servers, RAMP)
    across = collective(8e11)
    np.testing.assert_allclose(cost.edge[0], [[0, across], [across, 0]], rtol=1e-12)
    # each sub-op sends the other mem/2, so the pair's collective is of mem
    np.testing.assert_allclose(cost.sync, [0, 0, across, across], rtol=1e-12)
    assert training_step(s, servers, RAMP).seconds == pytest.approx(1 + across + 2 + across, rel=1e-12)


def test_edges_to_other_servers_are_no_collective() -> None:
    """Where sub-ops and those of the child are on different servers, each pair has a transfer of its own."""
    s = split(chain([1, 1], [(0, 1)], memory=8e11), 2)
    edge = delays(s, np.array([0, 8, 0, 9], dtype=np.int32), RAMP).edge[0]
    np.testing.assert_allclose(edge, [[0, 0.5 + 250e-9], [0.5 + 250e-9] * 2], rtol=1e-12)


def test_degree_one_is_the_sequential_sum(data: Path) -> None:
    """Unsplit, a model runs on one server, one op after the other."""
    for path in sorted((data / "pipedream").glob("*net18.txt")):
        s = real(path, 1)
        assert training_step(s, placed(s), RAMP).seconds == pytest.approx(s.graph.time.sum(), rel=1e-12)


def random_job(seed: int) -> tuple[SplitGraph, np.ndarray]:
    """Return a random training job of up to twelve ops, split, on random servers."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    edges = [(u, v) for v in range(n) for u in range(v) if rng.random() < 0.4]
    # no two alike, for ties depend on rounding, but some of no time at all
    time, back = (np.where(rng.random(n) < 0.2, 0, rng.random(n) * 1e-4) for _ in range(2))
    memory = float(rng.integers(0, 3)) * 1e6
    graph = with_backward(chain(time.tolist(), edges, memory), back[None], np.full(n, memory))
    s = split(graph, int(rng.choice([1, 2, 4])))
    return s, rng.integers(0, rng.integers(1, 6), s.n_sub_ops).astype(np.int32) * 5


def slowly(s: SplitGraph, servers: np.ndarray) -> np.ndarray:
    """Return when each sub-op ends, advancing time to the next event and looking at everything there is."""
    cost, first = delays(s, servers, RAMP), s.first.tolist()
    n = s.n_sub_ops
    left = np.repeat(s.seconds, s.copies)
    inputs: list[list[tuple[int, float]]] = [[] for _ in range(n)]
    for e, (u, v) in enumerate(zip(s.graph.source.tolist(), s.graph.target.tolist(), strict=True)):
        for (i, j), delay in np.ndenumerate(cost.edge[e]):
            inputs[first[v] + j].append((first[u] + i, delay))
    finish = np.full(n, inf)
    now = 0.0
    while np.isinf(finish).any():
        arrival = [max((finish[a] + delay for a, delay in ends), default=0.0) for ends in inputs]
        ready = [b for b in range(n) if np.isinf(finish[b]) and arrival[b] <= now + 1e-15]
        running = {
            q: min((b for b in ready if servers[b] == q), key=lambda b: (left[b], b)) for q in set(servers[ready])
        }
        later = [a - now for b, a in enumerate(arrival) if np.isinf(finish[b]) and now + 1e-15 < a < inf]
        tick = min([left[b] for b in running.values()] + later)
        now += tick
        for b in running.values():
            left[b] -= tick
            if left[b] <= 1e-15:
                finish[b] = now
    return finish


@given(st.integers(0, 2**32 - 1).map(random_job))
def test_agrees_with_a_slow_simulator(job: tuple[SplitGraph, np.ndarray]) -> None:
    """The end of the step is that of a simulator that looks at all ops at each event, on any placement."""
    s, servers = job
    step = training_step(s, servers, RAMP)
    np.testing.assert_allclose(np.sort(step.finish), np.sort(slowly(s, servers)), rtol=1e-9, atol=1e-12)


@given(st.integers(0, 2**32 - 1).map(random_job))
def test_no_step_beats_its_bounds(job: tuple[SplitGraph, np.ndarray]) -> None:
    """A step lasts at least as long as the busiest server computes, and no op starts before its inputs have come."""
    s, servers = job
    step = training_step(s, servers, RAMP)
    seconds = np.repeat(s.seconds, s.copies)
    assert step.seconds >= np.bincount(servers, weights=seconds).max() * (1 - 1e-12)
    assert (step.finish - step.start >= seconds * (1 - 1e-9) - 1e-15).all()
    cost, first = delays(s, servers, RAMP), s.first
    for e, (u, v) in enumerate(zip(s.graph.source, s.graph.target, strict=True)):
        sent = step.finish[first[u] : first[u + 1], None] + cost.edge[e]
        assert (step.start[first[v] : first[v + 1]] >= sent.max(axis=0)).all()


PROFILE = """\
a -- Conv -- forward_compute_time=4.0, backward_compute_time=8.0, activation_size=3e9, parameter_size=1e9
b -- Conv -- forward_compute_time=4.0, backward_compute_time=8.0, activation_size=3e9, parameter_size=1e9
\ta -- b
"""


def test_first_fit_by_hand() -> None:
    """A job goes to the first free box, stays on its parent's servers, and elsewhere once these are full."""
    s = split(parse(PROFILE).graph, 2)
    assert first_fit(s, RAMP).tolist() == [0, 8] * 4  # type: ignore[union-attr]
    free = np.ones(32, dtype=bool)
    free[[0, 3]] = False
    # (2,1,1) at (0,0,1): devices 1 and 9
    assert first_fit(s, RAMP, free=free).tolist() == [1, 9] * 4  # type: ignore[union-attr]
    # each op with its twin needs 4e9 on each of two servers
    assert first_fit(s, RAMP, memory=5e9).tolist() == [0, 8, 1, 9, 1, 9, 0, 8]  # type: ignore[union-attr]
    assert first_fit(s, RAMP, memory=3e9) is None
    # one communication group, one rack and a diagonal
    only = np.zeros(32, dtype=bool)
    only[[0, 10]] = True
    assert first_fit(s, RAMP, free=only).tolist() == [0, 10] * 4  # type: ignore[union-attr]
    only[10] = False
    assert first_fit(s, RAMP, free=only) is None


def test_bad_arguments() -> None:
    """A bad argument is named with its value."""
    s = split(parse(PROFILE).graph, 2)
    with pytest.raises(InstanceError, match="units: 'ms' is not one of physical, as-published"):
        training_step(s, placed(s), RAMP, units="ms")  # type: ignore[arg-type]
    with pytest.raises(InstanceError, match="servers: has 2 entries where 8 are expected"):
        training_step(s, np.array([0, 1]), RAMP)
    with pytest.raises(InstanceError, match=r"servers\[7\]: 32 is not one of the 32 servers"):
        training_step(s, np.array([0] * 7 + [32]), RAMP)
    with pytest.raises(InstanceError, match="free: has 3 entries for 32 servers"):
        first_fit(s, RAMP, free=np.ones(3, dtype=bool))
    with pytest.raises(InstanceError, match=r"memory: 0\.0 is not positive"):
        first_fit(s, RAMP, memory=0.0)
    uneven = SplitGraph(s.graph, np.array([2, 2, 4, 2]), s.seconds, s.memory, s.edge_bytes, s.sync_bytes)
    with pytest.raises(InstanceError, match=r"copies\[2\]: 4 is not that of the op's twin"):
        first_fit(uneven, RAMP)
