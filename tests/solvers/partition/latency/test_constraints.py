"""Each constraint x each method, on cases whose optimum is argued in a comment."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import pytest

from gangplan import solve
from gangplan.instances import Cluster, DeviceType, LatencyProblem, verify
from gangplan.solvers.partition.latency.methods import METHODS
from gangplan.solvers.partition.referee import optimum
from gangplan.solvers.partition.tiny import graph_of

pytestmark = pytest.mark.usefixtures("in_this_process")

# name: (arguments of `make`, optimum)
CASES: dict[str, tuple[dict[str, Any], float | None]] = {
    # one call does a and b one after the other, and what moves between them is free
    "one call": ({"time": [1, 2], "edges": [(0, 1, 9)], "gpus": 1}, 3),
    # one op a GPU: a computes 1 and sends 4, b receives 4 and computes 2. With a on the host it is 10 + 4 + 2
    "sent and received": ({"time": [1, 2], "edges": [(0, 1, 4)], "cpus": 1, "size": [1, 1], "memory": 1}, 11),
    # the same with hosts of half the speed of a GPU: a and b there take 2 + 2, any call pays 4 for a transfer
    "hosts are free of transfers": (
        {"time": [[1, 1], [2, 2]], "edges": [(0, 1, 4)], "cpus": 1, "size": [1, 1], "memory": 1},
        4,
    ),
    # a fills a GPU. On the other b and c receive a's output once, though both use it: 1 + 1 | 1 + 2 + 2
    "received once": (
        {"time": [1, 2, 2], "edges": [(0, 1, 1), (0, 2, 1)], "size": [2, 1, 1], "memory": 2},
        7,
    ),
    # ... with a third GPU they run at the same time and receive it each: 1 + 1 | 1 + 2, where a sends it once
    "side by side": (
        {"time": [1, 2, 2], "edges": [(0, 1, 1), (0, 2, 1)], "size": [2, 1, 1], "memory": 2, "gpus": 3},
        5,
    ),
    # c needs a's and b's outputs and receives both: 3 + 1 | 1 + 1 + 3; the shorter b | is ready before a
    "received from each": (
        {"time": [3, 1, 3], "edges": [(0, 2, 1), (1, 2, 1)], "size": [1, 1, 1], "memory": 1, "gpus": 3},
        9,
    ),
    # latency 1: a sends 1 + 1, b receives 1 + 1; the edge to c has no bytes and so no latency: 4 + 2 | 2 + 4 + 4
    "latency": (
        {"time": [4, 4, 4], "edges": [(0, 1, 1), (1, 2, 0)], "latency": 1.0, "size": [2, 1, 1], "memory": 2},
        16,
    ),
    # b runs on hosts only and a, c may not be one call around it: one of them goes to the host, 3 + 2 + 30
    "a call waits for no one within": (
        {"time": [[3, inf, 3], [30, 2, 30]], "edges": [(0, 1, 0), (1, 2, 0)], "gpus": 1, "cpus": 1},
        35,
    ),
    # ... with two GPUs each is a call: 3 + 2 + 3
    "two calls": (
        {"time": [[3, inf, 3], [30, 2, 30]], "edges": [(0, 1, 0), (1, 2, 0)], "gpus": 2, "cpus": 1},
        8,
    ),
    # calls {a, d} and {b, c} would wait for one another, so all four are one call
    "no circle of calls": (
        {"time": [1, 1, 1, 1], "edges": [(0, 1, 0), (2, 3, 0)], "colocation": [0, 1, 1, 0]},
        4,
    ),
    # ... nor may they if nothing takes any time, and here they do not fit on one GPU
    "no circle without time": (
        {
            "time": [0, 0, 0, 0],
            "edges": [(0, 1, 0), (2, 3, 0)],
            "colocation": [0, 1, 1, 0],
            "size": [1, 1, 1, 1],
            "memory": 2,
        },
        None,
    ),
    # ... but on a host they are no calls: each op runs when its inputs are there, {a, d} or {b, c} in no time
    "a class on hosts is no call": (
        {
            "time": [1, 1, 1, 1],
            "edges": [(0, 1, 0), (2, 3, 0)],
            "colocation": [0, 1, 1, 0],
            "size": [1, 1, 1, 1],
            "memory": 2,
            "cpus": 1,
        },
        20,
    ),
    # both run on hosts only, at the same time on the one host: max(4, 5)
    "hosts have cores enough": ({"time": [[inf, inf], [4, 5]], "edges": [], "cpus": 1}, 5),
    # two GPUs take an op each, the third op takes 3 on the host; nothing waits
    "memory": (
        {"time": [[1, 1, 1], [3, 3, 3]], "edges": [], "cpus": 1, "size": [1, 1, 1], "memory": 1},
        3,
    ),
    # three ops for hosts, room for one on each of two
    "memory of hosts": (
        {
            "time": [[inf] * 3, [3, 3, 3]],
            "edges": [],
            "cpus": 2,
            "size": [1, 1, 1],
            "memory": 1,
            "host_memory": 1,
        },
        None,
    ),
    # ... of three hosts each takes one, one after the other, and moving between hosts is free
    "hosts with little memory": (
        {
            "time": [[inf] * 3, [3, 3, 3]],
            "edges": [(0, 1, 5), (1, 2, 5)],
            "cpus": 3,
            "size": [1, 1, 1],
            "memory": 1,
            "host_memory": 1,
        },
        9,
    ),
    # nothing runs b
    "homeless": ({"time": [[3, inf], [3, 2]], "edges": [(0, 1, 0)]}, None),
    # a and c go together and do not fit with b, so they are on the host, and b between them a call: 20 + 3 + 20
    "colocation": (
        {
            "time": [2, 3, 2],
            "edges": [(0, 1, 0), (1, 2, 0)],
            "colocation": [4, -1, 4],
            "size": [1, 1, 1],
            "memory": 2,
            "cpus": 1,
        },
        43,
    ),
    # a takes no time on a host, has no output worth a transfer and waits for nothing: it stands by there
    "free of charge": ({"time": [0, 2, 2], "edges": [(0, 1, 0), (1, 2, 3), (0, 2, 0)], "gpus": 1, "cpus": 1}, 4),
}


@pytest.mark.parametrize(("memory", "time"), [(1.0, 0.0), (4.0, 7.0), (4.0, inf)])
@pytest.mark.parametrize("name", METHODS)
def test_what_is_free_goes_where_it_is_free(name: str, memory: float, time: float) -> None:
    """Ops that cost nothing on one host stay there, whatever the accelerators and the other hosts are."""
    none = np.full(2, -1)
    graph = graph_of(
        ("gpu", "cpu", "other"), np.array([[5.0, 5.0], [0.0, 1.0], [time, time]]), np.full(2, 2.0), np.zeros(2),
        (none[:0], none[:0]),
    )  # fmt: skip
    hosts = (DeviceType("cpu", host=True), 1), (DeviceType("other", memory=memory, host=True), 1)
    problem = LatencyProblem(graph, Cluster.flat((DeviceType("gpu", memory=4.0), 3), *hosts, bandwidth=1.0))
    result = solve(problem, time_limit=30, method=name, workers=1)
    # all on the first host, or b on the second where that takes no time and has the memory; here it has not
    assert result.plan is None or result.plan.device[0] == 3
    if METHODS[name].exact:
        assert result.status == "OPTIMAL" and result.objective == 1.0


@pytest.fixture(params=CASES)
def case(request: Any, make: Callable[..., LatencyProblem]) -> tuple[LatencyProblem, float | None]:
    """Return a problem and its optimum."""
    arguments, best = CASES[request.param]
    return make(**arguments), best


def test_optimum_by_enumeration(case: tuple[LatencyProblem, float | None]) -> None:
    """The referee agrees with the argument in the comment."""
    problem, best = case
    assert optimum(problem) == best


@pytest.mark.parametrize("name", METHODS)
def test_method(name: str, case: tuple[LatencyProblem, float | None]) -> None:
    """Exact methods find the optimum or prove that there is no plan; the others keep to what is feasible."""
    problem, best = case
    result = solve(problem, time_limit=30, method=name, workers=1)
    if METHODS[name].exact:
        assert result.status == ("INFEASIBLE" if best is None else "OPTIMAL")
        assert result.objective == (None if best is None else pytest.approx(best, rel=1e-6))
    elif best is None:
        assert result.plan is None
    else:
        assert result.status != "INFEASIBLE"
        assert result.objective is None or result.objective >= best * (1 - 1e-6)
        assert result.bound is None or result.bound <= best * (1 + 1e-6)
    if result.plan is not None:
        assert verify(problem, result.plan).objective == result.objective
