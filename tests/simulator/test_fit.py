"""Compiled kernels of the engine: to the bit what numba's said before them, and what they say as plain Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, SpeedModel
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.workload import Workload
from gangplan.simulator import fit
from gangplan.simulator.engine import POLICIES, EngineScheduler, Outages, kernels, simulate
from gangplan.simulator.engine.simulate import prepare
from gangplan.simulator.envs.observe import Observer
from gangplan.simulator.trace import DegreeOptions, Outcome
from gangplan.solvers import native

from ..solvers.uncompiled import from_source

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's kernels of commit feefd4b9 made of `cases`."""
HALF = 0.5 * np.ones((2, 2))
SPEEDS = SpeedModel(
    ("a", "b"), ("A100", "K80"), [[0.1, 0.2], [0.3, 0.9]], [1e9, 5e9], [0.5, 0.0], HALF * [[0.2, 0.6], [0.4, 0.2]], HALF
)


def digest(*arrays: Any) -> str:
    """Return twelve digits that say whether arrays are the same to the bit."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in arrays)).hexdigest()[:12]


def drawn(rng: np.random.Generator, jobs: int, most: int, shared: bool, beside: bool) -> Workload:
    """Draw jobs that tie, queue and block one another, some of no duration."""
    gpus = rng.integers(1, most + 1, jobs)
    return Workload(
        tuple(map(str, range(jobs))),
        np.sort(rng.integers(0, 3 * jobs // 2, jobs)).astype(float),
        gpus,
        rng.choice([rng.integers(0, 20, jobs).astype(float), rng.uniform(0.0, 50.0, jobs)]),
        queue=tuple(rng.choice(["x", "y"], jobs).tolist()),
        model=tuple(rng.choice(["a", "b"], jobs).tolist()),
        share=rng.choice([0.1, 0.25, 0.3, 1.0], jobs) if shared else None,
        cpu=gpus * rng.choice([0.0, 1.0, 3.3, 6.1], jobs) if beside else None,
        memory=gpus * rng.choice([0.0, 0.1, 2.7], jobs) if beside else None,
    )


def scheduler(policy: str, *how: Any) -> EngineScheduler:
    """Return a scheduler by its policy's name, discipline, consolidation, preemption and sharing."""
    return EngineScheduler((POLICIES[policy](),), *how)


def cases(seeds: int) -> Iterator[tuple[str, Any]]:
    """Yield names and arguments of `simulate`: every policy and discipline, placed and counted, shared or not."""
    fleet = Fleet.regular(2, 2, [4, 2, 7, 4], gpu_type=["A100", "K80", "A100", "K80"], cpu=24.0, memory=11.0)
    for policy in POLICIES:
        for discipline in ("head", "overtake", "easy", "conservative"):
            for shared in (False, True):
                for seed in range(seeds):
                    rng = np.random.default_rng(seed)
                    try:
                        how = scheduler(policy, discipline, bool(rng.integers(2)), None, shared or None)
                    except InstanceError:
                        continue  # this discipline does not go with what the policy does
                    jobs = drawn(rng, int(rng.integers(1, 60)), 4, shared, bool(rng.integers(2)))
                    kinds = [None, SPEEDS, None if how.shared else Proximity()]
                    more = {
                        "options": DegreeOptions.scaling(jobs, (1, 2, 4)) if policy == "optimus" else None,
                        "speeds": kinds[int(rng.integers(3))],
                        "outages": Outages(mtbf=60.0, mttr=5.0, seed=seed) if rng.random() < 0.3 else None,
                        "preempt_cost": float(rng.choice([0.0, 0.7])),
                        "told": jobs.duration * 1.5 if rng.random() < 0.3 else None,
                    }
                    yield f"{policy} {discipline} {'shared' if shared else 'whole'}", (jobs, fleet, how, more)


def extremes() -> Iterator[tuple[str, Any]]:
    """Yield the same for one job, hundreds of jobs on a node, jobs of many nodes, and nodes without GPUs."""
    rng = np.random.default_rng(1)
    one = Workload(("a",), np.zeros(1), np.array([1]), np.zeros(1))
    many = drawn(rng, 700, 3, False, True)
    share = np.full(300, 0.01)
    parts = Workload(tuple(map(str, range(300))), np.zeros(300), np.ones(300, int), np.arange(300.0), share=share)
    for discipline in ("head", "overtake", "easy", "conservative"):
        for consolidate in (False, True):
            how = scheduler("sjf", discipline, consolidate)
            yield "one job", (one, Fleet.regular(1, 1, 1), how, {})
            yield "many jobs on a node", (many, Fleet.regular(1, 2, 200, cpu=900.0, memory=300.0), how, {})
            yield "jobs of many nodes", (drawn(rng, 90, 27, False, False), Fleet.regular(1, 9, [1, 8, 0] * 3), how, {})
            yield "much of the node", (drawn(rng, 90, 300, False, False), Fleet.regular(1, 70, 5), how, {})
            if discipline in ("head", "overtake"):
                how = scheduler("fifo", discipline, consolidate, None, True)
                yield "many jobs on a GPU", (parts, Fleet.regular(1, 2, 1), how, {})
    for preemptive in ("srtf", "tiresias"):
        for discipline in ("head", "overtake"):
            fleet = Fleet.regular(1, 3, 100, cpu=300.0, memory=90.0)
            yield "stops", (many, fleet, scheduler(preemptive, discipline, True), {"preempt_cost": 0.1})


def played(case: Any) -> str:
    """Return the digest of a schedule."""
    jobs, fleet, how, more = case
    done = simulate(jobs, fleet, how, **more)
    arrays = [f.name for f in fields(Outcome) if f.name.startswith("row_")]
    return digest(done.start, done.finish, *(getattr(done, name) for name in arrays))


def recorded(some: Iterator[tuple[str, Any]]) -> dict[str, str]:
    """Return the digests of cases by name, those of one name in one."""
    found: dict[str, str] = {}
    for name, case in some:
        found[name] = digest(np.frombuffer((found.get(name, "") + played(case)).encode(), np.uint8))
    return found


def seen(seed: int) -> str:
    """Return the digest of what an agent sees at each instant of a trace."""
    rng = np.random.default_rng(seed)
    fleet = Fleet.regular(1, 3, [130, 4, 4], cpu=400.0, memory=1e3)
    jobs = drawn(rng, 160, 2, bool(seed % 2), False)
    loop = prepare(jobs, fleet, EngineScheduler((POLICIES["srtf"](),), shared=bool(seed % 2) or None))
    observer, found = Observer(fleet, None, 1e3), []
    select = loop.decider.decide

    def watched() -> None:
        select()
        found.append(observer.nodes(loop.s))

    loop.decider.decide = watched  # type: ignore[method-assign]
    loop.run()
    return digest(*found)


@pytest.mark.parametrize("policy", POLICIES)
def test_outcomes_are_those_recorded(policy: str) -> None:
    """Every policy makes the schedules that it made with numba's kernels."""
    golden = json.loads(GOLDEN.read_text())
    found = recorded(x for x in cases(4) if x[0].split()[0] == policy)
    assert found == {name: value for name, value in golden.items() if name.split()[0] == policy} != {}


def test_extremes_are_those_recorded() -> None:
    """One job, hundreds on a node and on a GPU, and gangs of many nodes are placed as with numba's kernels."""
    golden, found = json.loads(GOLDEN.read_text()), recorded(extremes())
    assert found == {name: golden[name] for name in found}


@pytest.mark.parametrize("seed", range(4))
def test_what_is_seen_is_that_recorded(seed: int) -> None:
    """Jobs of each node and when the first of them ends are those that numba's kernel told, on 130 GPUs too."""
    assert seen(seed) == json.loads(GOLDEN.read_text())[f"seen {seed}"]


@pytest.mark.parametrize("policy", ["fifo", "srtf", "tiresias", "gandiva", "optimus"])
def test_the_source_does_what_is_compiled(policy: str) -> None:
    """Run as Python on strict arrays, kernels make the schedules that they make compiled."""
    some = [x for x in cases(2) if x[0].split()[0] == policy]
    wanted = recorded(iter(some)), seen(1)
    with from_source(native, fit, kernels):
        assert (recorded(iter(some)), seen(1)) == wanted


def nodes(**other: Any) -> fit.Nodes:
    """Return three jobs and two nodes with cores and memory, some of it other than that."""
    given: dict[str, Any] = {
        "degree": np.ones(3, np.int64), "unit": np.ones((3, 3)), "kind": np.zeros(3, np.int64), "span": np.ones(3),
        "free": np.ones((2, 3)), "whole": np.ones((2, 3)), "ok": np.ones((1, 2), bool), "consolidate": False,
    }  # fmt: skip
    return fit.Nodes(**given | other)


@pytest.mark.parametrize(
    "other",
    [
        {"degree": np.ones(4, np.int64)}, {"unit": np.ones((3, 2))}, {"kind": np.array([0, 1, 0])},
        {"kind": np.array([0, -1, 0])}, {"span": np.ones(2)}, {"free": np.ones((1, 3))}, {"whole": np.ones((2, 1))},
        {"ok": np.ones((1, 3), bool)},
    ],
)  # fmt: skip
def test_wrong_nodes_are_refused(other: Any) -> None:
    """Arrays that are not of three jobs, two nodes, three resources and one class are refused."""
    assert nodes().place(2, 2) == 2
    with pytest.raises(ValueError, match="are not"):
        nodes(**other)


def test_wrong_sizes_are_refused() -> None:
    """Whoever calls with jobs, nodes or rows that there are not is told, and nothing is read or written."""
    two, three, ones, one = np.arange(2), np.arange(3), np.ones(3), np.ones((1, 1), bool)
    held, reservation = fit.Held(three, 0 * three, two, two), fit.EasyShadow(nodes(), three)
    for job in (-1, 3):
        for call in (
            lambda job: nodes().place(job, 1),
            lambda job: nodes().room(job, False),
            lambda job: nodes().change(held, job, 1),
            lambda job: reservation.reserve(job, two, ones, nodes(), held),
            lambda job: kernels.FreeShares(np.ones((2, 4))).find(job, 1, 0.5, nodes()),
        ):
            with pytest.raises((IndexError, ValueError)):
                call(job)
    for wrong in (
        lambda: nodes().change(fit.Held(two, two, two, two), 0, 1),
        lambda: fit.Held(two, three, two, two),
        lambda: fit.EasyShadow(nodes(), two),
        lambda: reservation.reserve(0, two, np.ones(2), nodes(), held),
        lambda: fit.next_claim(three, 0, np.ones(2), three, two, nodes(), held, nodes()),
        lambda: fit.next_spare(three, 0, 0.0, nodes(free=np.ones((1, 3)), whole=np.ones((1, 3)), ok=one), reservation),
        lambda: fit.occupants(two, held, np.ones(2), 0.0, 2),
        lambda: kernels.FreeShares(np.ones((3, 4))).find(0, 1, 0.5, nodes()),
        lambda: kernels.FreeProfile(nodes(), 0.0, 1, two, np.ones(2), np.ones(2), three, two, three),
        lambda: kernels.FreeProfile(nodes(), 0.0, 1, two, np.ones(2), np.ones(2), three, two, two).reserve(two),
    ):
        with pytest.raises((IndexError, ValueError)):
            wrong()


def test_a_trace_of_a_core_fits() -> None:
    """A job that asks for so little that a node has it more often than 64 bits can count is placed."""
    jobs = Workload(("a", "b"), np.zeros(2), np.array([1, 1]), np.ones(2), cpu=np.array([1e-18, 1.0]))
    done = simulate(jobs, Fleet.regular(1, 1, 2, cpu=96.0), scheduler("fifo", "head", True))
    assert done.start.tolist() == [0.0, 0.0]
