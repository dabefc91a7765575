"""The contract of a method, as a test anyone can run: `check_solver` on tiny problems whose optimum is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances import Cluster, DeviceType, OpGraph, PartitionProblem, verify

from .enumeration import optimum
from .partition.bounds import impossible
from .partition.methods import Method, Reduced
from .result import OPTIMAL_GAP
from .run import Callback, Run

_LIMIT = 60.0


def check_solver(method: Method, *, problems: int = 12) -> None:
    """Run `method` on tiny problems of all its variants and compare with the optimum found by enumeration.

    Checked: every plan passes the verifier; no plan is better than the optimum and no bound above it; only problems
    without a plan are called infeasible; an exact method proves its answer; one seed and one worker give the same
    trace twice; a run that is told to stop, or has no time, gets no further plan.

    Args:
        method: what to check; it need not be registered.
        problems: how many per variant; about a third have no plan.

    Raises:
        AssertionError: saying what is wrong, in which variant and on which seed of `random_problem`.
    """
    for variant in method.variants:
        for seed in range(problems):
            problem = random_problem(seed, variant)
            _check(method, problem, f"{variant}, random_problem({seed})")


def _check(method: Method, problem: PartitionProblem, where: str) -> None:
    run, best = _run(method, problem), optimum(problem)
    if run.plan is not None:
        assert verify(problem, run.plan).objective == run.objective, f"{where}: the plan was changed after the offer"
    if best is None:
        assert run.plan is None, f"{where}: there is no plan, but the verifier passed one"
    else:
        slack = OPTIMAL_GAP * best
        assert not run.infeasible, f"{where}: called infeasible, but the optimum is {best:.9g}"
        assert run.objective is None or run.objective >= best - slack, f"{where}: {run.objective} is below {best:.9g}"
        assert run.bound is None or run.bound <= best + slack, f"{where}: bound {run.bound} is above {best:.9g}"
    if method.exact:
        proved = run.infeasible or (run.gap is not None and run.gap <= OPTIMAL_GAP)
        assert proved, f"{where}: exact, but left {run.objective} with bound {run.bound}; the optimum is {best}"
    again = _run(method, problem)
    assert _trace(run) == _trace(again), f"{where}: two runs with one seed differ: {_trace(run)} and {_trace(again)}"
    stopped = _run(method, problem, callback=lambda run: True)
    assert len(stopped.trace) <= 1, f"{where}: {len(stopped.trace)} plans, though the first was to be the last"
    late = _run(method, problem, time_limit=0.0)
    assert not late.trace, f"{where}: a plan without any time left"


def _run(
    method: Method, problem: PartitionProblem, *, time_limit: float = _LIMIT, callback: Callback = lambda run: None
) -> Run:
    run = Run(problem, time_limit=time_limit, callbacks=(callback,))
    reduced = Reduced(problem)
    # methods may count on this having been asked, as `solve` does
    if impossible(reduced.own) is not None:
        run.prove_infeasible()
    else:
        method.run(run, reduced)
    return run


def _trace(run: Run) -> list[tuple[float, str]]:
    return [(found.objective, found.by) for found in run.trace]


def random_problem(seed: int, variant: str = "contiguous", *, ops: int = 6, devices: int = 3) -> PartitionProblem:
    """Make a small problem in which every constraint may bind, the same for the same arguments.

    Accelerators of one or two types and perhaps a host; times from equal to very different; transfers from free to
    dear; ops that a type cannot run; colocated ops, twins of a backward pass and backward ops without one; memory
    from ample to too small, so some problems have no plan.

    Args:
        seed: of the local random generator.
        variant: of the problem.
        ops, devices: at most so many; at least one.
    """
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(min(2, ops), ops + 1)), int(rng.integers(1, devices + 1))
    types = ("gpu", "old", "cpu")
    u, v = np.triu_indices(n, 1)
    kept = rng.random(len(u)) < rng.choice([0.15, 0.4, 0.8])
    output = rng.choice([0.0, 1.0, 4.0]) * rng.integers(0, 5, n)
    memory = rng.integers(0, 5, n).astype(float)
    limit = float(memory.sum() * rng.choice([0.3, 0.5, 0.7, 2.0]))
    colocation, twin, backward = _classes(rng, n)
    graph = OpGraph(
        names=tuple(f"op{i}" for i in range(n)),
        device_types=types,
        time=_times(rng, n),
        memory=memory,
        parameter_bytes=np.zeros(n),
        activation_bytes=output,
        source=u[kept],
        target=v[kept],
        edge_bytes=output[u[kept]] * rng.choice([0.5, 1.0], int(kept.sum())),
        colocation=colocation,
        twin=twin,
        backward=backward,
    )
    shares = rng.permutation(types)[: int(rng.integers(1, 4))]
    present: list[Any] = [*shares, *rng.choice(shares, k)][:k]
    groups = [
        (DeviceType(name, memory=limit if limit and name != "cpu" else None, host=name == "cpu"), present.count(name))
        for name in types
    ]
    latency = float(rng.choice([0.0, 0.5]))
    return PartitionProblem(graph, Cluster.flat(*groups, bandwidth=2.0, latency=latency), variant)


def _times(rng: np.random.Generator, n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    spread = rng.choice([0.0, 1.0, 3.0])
    time = np.round(np.exp(rng.normal(0.0, spread, (3, n))) * 4, int(rng.choice([0, 3])))
    time[rng.random((3, n)) < rng.choice([0.0, 0.0, 0.15])] = np.inf
    # the graph must have a type for every op; the cluster need not have that type
    time[0, ~np.isfinite(time).any(axis=0)] = 1.0
    return np.asarray(time)


def _classes(rng: np.random.Generator, n: int) -> tuple[Any, Any, Any]:
    colocation, twin, backward = np.full(n, -1), np.full(n, -1), np.zeros(n, dtype=bool)
    style = rng.choice(["none", "classes", "training"])
    if style == "classes":
        colocation = rng.integers(-1, max(1, n // 2), n)
    if style == "training":
        # forward ops first, then the mirror image; some backward ops have lost their forward op
        half = n // 2
        backward[n - half :] = True
        for i in range(half):
            if rng.random() < 0.8:
                twin[i], twin[n - 1 - i] = n - 1 - i, i
                colocation[i] = colocation[n - 1 - i] = i
    return colocation, twin, backward
