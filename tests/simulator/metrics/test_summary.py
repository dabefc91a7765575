"""Figures of schedules: by hand, against plain loops, and by laws that hold for every schedule."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementPlan, PlacementProblem, SpeedModel
from gangplan.instances.placement.rate import communication as of_plan
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import EngineScheduler, Outages
from gangplan.simulator.engine import simulate as run_engine
from gangplan.simulator.metrics import (
    Steps,
    available_gpus,
    finish_time_fairness,
    fragments,
    held_gpus,
    period,
    present_jobs,
    summary,
    waiting_jobs,
)
from gangplan.simulator.metrics.nodes import costs
from gangplan.simulator.metrics.summary import company
from gangplan.simulator.spans import spans
from gangplan.simulator.trace import DegreeOptions, Outcome, check, simulate


def work(*jobs: tuple[float, int, float]) -> Workload:
    """Build a workload of (submit, GPUs, duration)."""
    submit, gpus, duration = zip(*jobs, strict=True)
    return Workload(tuple(map(str, range(len(jobs)))), np.array(submit, float), list(gpus), np.array(duration, float))


def schedule(workload: Workload, room: list[int], *rows: tuple[float, ...], **more: Any) -> Outcome:
    """Build a right outcome of rows (job, node, GPUs, start, end), and optionally (rate, share, which GPU)."""
    job, node, gpus, begin, end, rate, share, gpu = np.array([(*r, *(1, 1, -1)[len(r) - 5 :]) for r in rows], float).T
    start, finish = np.full(workload.n_jobs, np.inf), np.full(workload.n_jobs, -np.inf)
    np.minimum.at(start, job.astype(int), begin)
    np.maximum.at(finish, job.astype(int), end)
    outcome = Outcome(
        workload,
        np.array(room, dtype=np.int32),
        start,
        np.where(np.isfinite(start), finish, np.inf),
        job.astype(np.int32),
        node.astype(np.int32),
        gpu.astype(np.int32),
        gpus.astype(np.int32),
        share,
        begin,
        end,
        rate,
        **more,
    )
    assert check(outcome) == []
    return outcome


@pytest.fixture
def three() -> Outcome:
    """Return three jobs on two nodes of 4 GPUs, the third of which waits for the first."""
    jobs = work((0, 4, 10), (0, 2, 20), (5, 4, 5))
    return schedule(jobs, [4, 4], (0, 0, 4, 0, 10), (1, 1, 2, 0, 20), (2, 0, 4, 10, 15))


@pytest.fixture
def failure() -> Outcome:
    """Return a job that loses a second of work when its node fails, and takes two to be restored."""
    down = {"down_node": np.zeros(1, np.int32), "down_start": np.array([4.0]), "down_end": np.array([6.0])}
    rows = ((0, 0, 2, 0, 4), (0, 0, 2, 6, 8, 0.0), (0, 0, 2, 8, 15))
    return schedule(work((0, 2, 10)), [2], *rows, **down, cost=2.0, interval=3.0)


class Shortest:
    """Stop jobs for those that have less left to do."""

    preemptive = True

    def select(self, view: Any, jobs: Any) -> Any:
        """Order by the work left."""
        return view.left(jobs)


def some(seed: int) -> Outcome:
    """Make a schedule with preemption and failures of jobs that often tie."""
    rng = np.random.default_rng(seed)
    n = 40
    jobs = work(
        *zip(rng.integers(0, 60, n).tolist(), rng.integers(1, 9, n).tolist(), rng.integers(0, 20, n), strict=True)
    )
    fleet = Fleet.regular(1, 3, 4)
    outages = Outages(mtbf=40.0, mttr=5.0, seed=seed)
    how: dict[str, Any] = {"outages": outages, "preempt_cost": 1.0, "checkpoint_interval": 4.0}
    return run_engine(jobs, fleet, EngineScheduler((Shortest(),), "overtake", True), **how)


def test_by_hand(three: Outcome) -> None:
    """Three jobs: every figure as worked out on paper."""
    fleet = Fleet.regular(1, 2, 4, link=1e9, nic=5e8)
    found = summary(three, fleet)
    wanted = {
        "jobs": 3,
        "blocking_rate": 0.0,
        "mean_jct": 40 / 3,  # stays of 10, 20, 10
        "median_jct": 10.0,
        "p95_jct": 19.0,  # 90% of the way from the second to the third
        "p99_jct": 19.8,
        "mean_wait": 5 / 3,
        "p99_wait": 4.9,
        "makespan": 20.0,
        "throughput": 3 / 20,
        "work_rate": 100 / 20,
        "utilisation": 100 / 160,
        "goodput": 1.0,
        # two thirds of the jobs cannot use node 1's two; until 15 no others are free, then node 0's four
        "fragmentation": (15 * 2 / 3 + 5 * (2 * 2 / 3) / 6) / 20,
        "mean_slowdown": 4 / 3,
        "p99_slowdown": 1.98,
        # 2.5 jobs beside the first: 3.2 GPUs would take 12.5 s; 2 beside the second; 2.5 beside the third, 6.25 s
        "mean_rho": (10 / 12.5 + 1 + 10 / 6.25) / 3,
        "worst_rho": 1.6,
        "interruptions": 0.0,
        "communication": (10 * 6 + 20 * 1 + 5 * 6) / 35,  # four GPUs are six pairs
    }
    assert dataclasses.asdict(found) == pytest.approx(wanted)


def test_failure(failure: Outcome) -> None:
    """What was restored or lost is no goodput, and a node that is down is not there to be used."""
    found = summary(failure)
    assert found.goodput == pytest.approx(20 / 26)  # held for 4 + 2 + 7 seconds, of which 10 led to the end
    assert found.utilisation == pytest.approx(1.0)  # 15 seconds less the 2 that it was down
    assert found.interruptions == 1
    assert found.fragmentation == 0.0
    assert waiting_jobs(failure).at(np.array([0.0, 3.9, 4.0, 5.9, 6.0])).tolist() == [0, 0, 1, 1, 0]


def test_rejected() -> None:
    """Jobs that were rejected count for nothing but the blocking rate; without any job the rest is 0."""
    jobs = work((0, 2, 10), (1, 1, 5), (2, 2, 4))
    found = summary(schedule(jobs, [2], (0, 0, 2, 0, 10)))
    assert (found.jobs, found.blocking_rate, found.mean_jct, found.worst_rho) == (1, pytest.approx(2 / 3), 10, 1)
    rows = np.zeros(0)
    none = dataclasses.replace(
        schedule(jobs, [2], (0, 0, 2, 0, 10)),
        **{name: np.full(3, np.inf) for name in ("start", "finish")},
        **{name: rows.astype(int) for name in ("row_job", "row_node", "row_gpu", "row_gpus")},
        **dict.fromkeys(("row_share", "row_start", "row_end", "row_rate"), rows),
    )
    assert (summary(none).blocking_rate, summary(none).mean_jct) == (1.0, 0.0)
    assert present_jobs(none).value.tolist() == []


def test_shared_gpus() -> None:
    """A GPU that anybody holds a part of is not free, and held GPUs count by their shares."""
    half = {"share": np.array([0.5, 0.5, 1.0])}
    jobs = dataclasses.replace(work((0, 1, 4), (2, 1, 4), (0, 2, 1)), **half)
    rows = ((0, 0, 1, 0, 4, 1, 0.5, 0), (1, 0, 1, 2, 6, 1, 0.5, 0), (2, 1, 2, 0, 1, 1, 1, -1))
    found = schedule(jobs, [2, 2], *rows)
    free, useless = fragments(found)
    assert free.at(np.array([0.0, 1.0, 2.0, 4.0, 6.0])).tolist() == [1, 3, 3, 3, 4]
    # a third of the jobs asks for two GPUs: the one beside the shared GPU is of no use to it
    assert useless.at(np.array([0.0, 1.0, 5.9, 6.0])).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    assert held_gpus(found).at(np.array([0.0, 1.5, 3.0, 5.0])).tolist() == [2.5, 0.5, 1.0, 0.5]


def test_gang_larger_than_a_node() -> None:
    """A gang larger than the largest node needs nodes of that size, wholly free."""
    jobs = work((0, 12, 1), (0, 1, 4))
    found = schedule(jobs, [8, 4, 8], (0, 0, 8, 0, 1), (0, 2, 4, 0, 1), (1, 1, 1, 0, 4))
    free, useless = fragments(found)
    assert free.at(np.array([0.5, 2.0])).tolist() == [7, 19]
    assert useless.at(np.array([0.5, 2.0])).tolist() == pytest.approx([7 / 2, 3 / 2])


def test_communication_of_gangs_apart() -> None:
    """Pairs pay for where they meet, for as long as they run there."""
    fleet = Fleet.regular(2, 1, 2, link=1e9, nic=5e8, uplink=2.5e8)
    found = schedule(work((0, 2, 4)), [2, 2], (0, 0, 1, 0, 1), (0, 1, 1, 0, 1), (0, 0, 2, 1, 4))
    # racks of one node: the pair meets above them, at 4 s, for one second, then on one node at 1 s for three
    assert summary(found, fleet).communication == pytest.approx((4 + 3) / 4)
    with pytest.raises(InstanceError, match=r"fleet.*has 3 nodes, the schedule is of 2"):
        summary(found, Fleet.regular(1, 3, 2))


def test_communication_is_that_of_placement() -> None:
    """A schedule's gangs cost what the goal of placement says of a plan that puts them there."""
    fleet = Fleet.regular(2, 2, 4, link=40e9, nic=4e9, uplink=2e9)
    rng = np.random.default_rng(1)
    for _ in range(20):
        node = rng.permutation(4)[: rng.integers(1, 5)]
        held = rng.integers(1, 5, len(node))
        rows = [(0, int(n), int(k), 0.0, 1.0) for n, k in zip(node, held, strict=True)]
        found = schedule(work((0, int(held.sum()), 1)), [4] * 4, *rows)
        one = np.ones((1, 1))
        speeds = SpeedModel(("m",), ("A100",), one, np.ones(1), np.zeros(1), one, one)
        problem = PlacementProblem(fleet, (GangJob("j", "m", (int(held.sum()),), Demand(1.0)),), speeds)
        assert costs(found, fleet, spans(found)) == pytest.approx(of_plan(problem, _plan(node, held)))


def _plan(node: np.ndarray, held: np.ndarray) -> PlacementPlan:
    order = np.argsort(node)
    node, held = node[order].astype(np.int32), held[order].astype(np.int32)
    count = len(node)
    return PlacementPlan(
        jobs=("j",),
        job=np.zeros(count, np.int32),
        node=node,
        workers=held,
        servers=np.zeros(count, np.int32),
        grant_row=np.repeat(np.arange(count), held).astype(np.int32),
        grant_gpu=np.concatenate([np.arange(k) for k in held]).astype(np.int32),
    )


def test_counted() -> None:
    """Where GPUs are only counted, what depends on nodes is not known."""
    found = summary(simulate(work((0, 1, 2), (0, 3, 4)), 2, 2), Fleet.regular(1, 2, 2))
    assert (found.fragmentation, found.communication) == (None, None)


def test_menu() -> None:
    """On its own part of the cluster a job takes its best degree."""
    options = DegreeOptions(np.array([0, 2, 3]), np.array([1, 4, 4]), np.array([12.0, 4.0, 6.0]))
    jobs = work((0, 4, 4), (0, 4, 6))
    found = schedule(jobs, [4], (0, 0, 1, 6, 18, 1 / 3), (1, 0, 4, 0, 6), options=options)
    # the first has 24 / 18 jobs beside it: on 3 GPUs, four would take 4 * 4 / 3 s and one 12
    # the second has 2: on 2 GPUs it takes 12
    assert finish_time_fairness(found).tolist() == pytest.approx([18 / (4 * 4 / 3), 6 / 12])


@pytest.mark.parametrize("seed", range(8))
def test_laws(seed: int) -> None:
    """Little's law holds exactly, whoever is present waits or runs, and nobody holds what is not there."""
    found = some(seed)
    assert len(found.down_node) and summary(found).interruptions > 0
    first, last = period(found)
    ran = found.admitted
    jct = (found.finish - found.workload.submit)[ran]
    mean = float(present_jobs(found).means(np.array([first, last]))[0])
    assert mean == pytest.approx(len(jct) / (last - first) * jct.mean(), rel=1e-12)
    parts = spans(found)
    running = Steps.of(np.concatenate([parts.start, parts.end]), np.repeat([1.0, -1.0], len(parts.start)))
    times = np.linspace(first, last, 997)
    assert (waiting_jobs(found).at(times) + running.at(times)).tolist() == present_jobs(found).at(times).tolist()
    assert (held_gpus(found).at(times) <= available_gpus(found).at(times)).all()
    found_figures = summary(found)
    assert 0 < found_figures.goodput < 1
    assert 0 < found_figures.utilisation <= 1


@pytest.mark.parametrize("seed", range(4))
def test_fragments_against_loops(seed: int) -> None:
    """Free and useless GPUs are those that a loop over nodes, GPUs and jobs counts."""
    found = some(seed)
    free, useless = fragments(found)
    first, last = period(found)
    for t in np.random.default_rng(seed).uniform(first, last, 60):
        held = np.zeros(len(found.room))
        here = (found.row_start <= t) & (t < found.row_end)
        np.add.at(held, found.row_node[here], found.row_gpus[here])
        left = found.room - held
        left[found.down_node[(found.down_start <= t) & (t < found.down_end)]] = 0
        lost = [sum(n for n in left.tolist() if n < min(g, 4)) for g in found.workload.gpus.tolist()]
        assert free.at(np.array([t]))[0] == left.sum()
        assert useless.at(np.array([t]))[0] == pytest.approx(np.mean(lost))


def test_company_against_loops() -> None:
    """The mean number of jobs during each stay is what pairs of stays have in common."""
    rng = np.random.default_rng(3)
    submit = rng.uniform(0, 50, 30)
    finish = submit + rng.exponential(10, 30)
    wanted = [
        sum(max(0.0, min(f, g) - max(s, r)) for r, g in zip(submit, finish, strict=True)) / (f - s)
        for s, f in zip(submit, finish, strict=True)
    ]
    assert company(submit, finish).tolist() == pytest.approx(wanted)


def test_steps() -> None:
    """Changes of one instant are one change; before the first there is nothing, after the last it stays."""
    found = Steps.of(np.array([3.0, 1.0, 3.0, np.inf]), np.array([1, 2, -3, 5]))
    assert (found.time.tolist(), found.value.tolist()) == ([1, 3], [2, 0])
    assert found.at(np.array([0.0, 1.0, 2.9, 3.0])).tolist() == [0, 2, 2, 0]
    assert found.integral(np.array([0.0, 2.0, 9.0])).tolist() == [0, 2, 4]
    assert found.means(np.array([0.0, 2.0, 2.0, 4.0])).tolist() == [1, 0, 1]
