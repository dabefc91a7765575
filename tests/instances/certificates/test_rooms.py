"""Bounds of step time by order and memory: by hand, and against the optimum by enumeration."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gangplan.instances import Cluster, DeviceType, OpGraph, StepProblem, TreeTopology
from gangplan.instances.certificates import verify_bound
from gangplan.instances.certificates.exact import SLACK
from gangplan.instances.cluster import Level
from gangplan.solvers import Run
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.step.bounds import delay_bound
from gangplan.solvers.partition.step.model import prepare
from gangplan.solvers.partition.tiny import random_step as random_problem

from ...seeds import examples

GPU = DeviceType("gpu", memory=2.0)
ROOMS = {"argument": "rooms", "steps": 10**6}


def chain(ops: int, cluster: Cluster) -> StepProblem:
    """Return a chain of ops of a second, a byte of memory and an output of a byte each."""
    n = np.full(ops, -1)
    names = tuple(map(str, range(ops)))
    edges = np.arange(ops - 1), np.arange(1, ops)
    made = OpGraph(
        names, ("gpu",), np.ones((1, ops)), np.ones(ops), np.ones(ops), np.zeros(ops), *edges, np.ones(ops - 1),
        n, n, np.zeros(ops, dtype=bool),
    )  # fmt: skip
    return StepProblem(made, cluster)


def close(bound: Fraction | float, value: float) -> bool:
    """Return whether a bound is a value less some slack of the verifier."""
    return (1 - 100 * SLACK) * Fraction(value) < bound < value


def test_a_chain_that_no_device_holds() -> None:
    """Six ops in a row, two on a device, are sent twice: 6 s of work and 2 x 5 s, and 6 s if there is room for all."""
    problem = chain(6, Cluster.flat((GPU, 3), bandwidth=0.2))
    assert close(verify_bound(problem, ROOMS), 16)
    assert close(verify_bound(problem, ROOMS | {"steps": 0}), 6)
    assert close(verify_bound(problem, ROOMS | {"steps": -5}), 6)
    roomy = replace(problem, cluster=Cluster.flat((replace(GPU, memory=6.0), 3), bandwidth=0.2))
    assert close(verify_bound(roomy, ROOMS), 6)
    for unlimited in (Cluster.flat((replace(GPU, memory=None), 3), bandwidth=0.2), Cluster.flat((GPU, 1), bandwidth=1)):
        assert close(verify_bound(replace(problem, cluster=unlimited), ROOMS), 6)


def test_a_chain_that_no_server_holds() -> None:
    """Eight ops on two servers of two devices are sent twice in a server and once between them, 20 s; 19 are proved."""
    levels = Level("server", bandwidth=1.0, latency=0.0), Level("rack", bandwidth=0.1, latency=0.0)
    problem = chain(8, Cluster((GPU,), np.zeros(4, dtype=np.int32), TreeTopology.regular(levels, (2, 2))))
    # op 2 starts at 3 s, for 0 is not beside it; 4 at 14 s, for 0 is on the other server; 6 at 17 s, and 7 ends at 19 s
    assert close(verify_bound(problem, ROOMS), 19)
    # ops of a class are together: with 0 and 7 on one device the other six are on three, and more is sent
    both = np.array([0, -1, -1, -1, -1, -1, -1, 0])
    assert verify_bound(replace(problem, graph=replace(problem.graph, colocation=both)), ROOMS) > 0


def test_an_op_that_runs_nowhere() -> None:
    """An op without a device that runs it leaves no plan."""
    problem = chain(2, Cluster.flat((GPU, 2), bandwidth=1.0))
    nowhere = replace(problem.graph, device_types=("gpu", "old"), time=np.array([[1.0, inf], [1.0, 1.0]]))
    assert verify_bound(replace(problem, graph=nowhere), ROOMS) == inf


@settings(max_examples=examples(150))
@given(st.integers(0, 2**32))
def test_no_plan_beats_what_has_no_room(seed: int) -> None:
    """On problems of all kinds neither the certificate nor the solver's bound is above the optimum."""
    problem = random_problem(seed)
    best = optimum(problem)
    if best is not None:
        assert verify_bound(problem, ROOMS) <= best
        run = Run(problem, time_limit=60.0)
        delay_bound(run, prepare(problem))
        assert (run.bound or 0.0) <= best * (1 + 1e-9)


def tight(seed: int) -> StepProblem:
    """Return five ops on three or four devices of two servers, none of which holds all of them."""
    rng = np.random.default_rng(seed)
    levels = (
        Level("server", bandwidth=1.0, latency=0.0),
        Level("rack", bandwidth=float(rng.choice([0.2, 2])), latency=0.5),
    )
    k, memory = int(rng.integers(3, 5)), rng.integers(1, 4, 5).astype(float)
    gpu = replace(GPU, memory=float(max(memory.max(), memory.sum() * rng.choice([0.4, 0.6]))))
    group = np.array([np.arange(k) // 2, np.zeros(k)], dtype=np.int32)
    made = chain(5, Cluster((gpu,), np.zeros(k, dtype=np.int32), TreeTopology(levels, group)))
    source, target = np.triu_indices(5, 1)
    kept = (target == source + 1) & (rng.random(10) < 0.8) | (rng.random(10) < 0.3)
    graph = replace(
        made.graph, time=rng.integers(0, 4, (1, 5)).astype(float), memory=memory, source=source[kept],
        target=target[kept], edge_bytes=rng.integers(0, 4, 5)[source[kept]].astype(float),
        colocation=np.array([0, -1, -1, -1, 0 if rng.random() < 0.2 else -1]),
    )  # fmt: skip
    return replace(made, graph=graph, contention=bool(rng.random() < 0.2))


def test_rooms_say_more_than_paths() -> None:
    """Where memory is scarce it raises the bound of many small problems, and proves some optimal."""
    more = closed = 0
    for seed in range(30):
        problem = tight(seed)
        best = optimum(problem)
        if best is None or best <= 0:
            continue
        path, bound = (verify_bound(problem, ROOMS | {"steps": steps}) for steps in (0, 10**6))
        assert path <= bound <= best
        more += bound > path * (1 + 100 * SLACK)
        closed += bound > path * (1 + 100 * SLACK) and bound >= Fraction(best) * (1 - 100 * SLACK)
    assert more > 8 and closed > 3, (more, closed)
