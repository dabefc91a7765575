"""Pictures of schedules: what they show is what the schedule says."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, SpeedModel
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.plot import compose_simulation, render_simulation
from gangplan.plot.simulation import SPANS
from gangplan.plot.simulation_boxes import boxes
from gangplan.plot.simulation_boxes import names as names_in
from gangplan.plot.simulation_classes import classify
from gangplan.plot.simulation_heat import MOST_NODES
from gangplan.plot.simulation_lanes import lanes
from gangplan.plot.simulation_time import distribution, ticks, unit, words
from gangplan.plot.simulation_words import jobs as texts
from gangplan.simulator.engine import Outages, Scheduler
from gangplan.simulator.engine import simulate as run_engine
from gangplan.simulator.metrics import Steps, held_gpus, means_of_groups, waiting_jobs
from gangplan.simulator.trace import Outcome, check, simulate


class Shortest:
    """Stop jobs for those that have less left to do."""

    preemptive = True

    def select(self, view: Any, jobs: Any) -> Any:
        """Order by the work left."""
        return view.left(jobs)


def drawn(seed: int, n: int = 40, most: int = 8, span: float = 60) -> Workload:
    """Make jobs of three queues."""
    rng = np.random.default_rng(seed)
    queue = tuple(rng.choice(["a", "b", "c"], n).tolist())
    names = tuple(f"job{i}" for i in range(n))
    return Workload(names, rng.uniform(0, span, n), rng.integers(1, most + 1, n), rng.exponential(9, n), queue=queue)


def stopped(seed: int) -> Outcome:
    """Make a schedule with preemption and failures."""
    how: dict[str, Any] = {"outages": Outages(mtbf=40.0, mttr=5.0, seed=seed), "preempt_cost": 1.0}
    return run_engine(drawn(seed), Fleet.regular(1, 3, 4), Scheduler((Shortest(),), "overtake", True), **how)


def shared(seed: int) -> Outcome:
    """Make a schedule of jobs with shares of GPUs, whose rates change with the company they have."""
    rng = np.random.default_rng(seed)
    work = drawn(seed, most=1)
    share = rng.choice([0.25, 0.5, 1.0], work.n_jobs)
    work = dataclasses.replace(work, share=share, model=("m",) * work.n_jobs)
    one = np.ones((1, 1))
    speeds = SpeedModel(("m",), ("A100",), one, np.ones(1), np.zeros(1), one * 0.1, one * 0.3)
    return run_engine(work, Fleet.regular(1, 2, 2), Scheduler((Everyone(),), shared=True), speeds=speeds)


class Everyone:
    """Let all jobs in."""

    def admit(self, job: int, view: Any) -> bool:
        """Say yes."""
        return True


@pytest.mark.parametrize("make", [stopped, shared, lambda seed: simulate(drawn(seed), 3, 4, discipline="overtake")])
@pytest.mark.parametrize("seed", range(4))
def test_lanes(make: Any, seed: int) -> None:
    """Boxes are as large as what jobs hold, each within its node and its time, and none lies on another."""
    outcome = make(seed)
    found = lanes(outcome)
    area = np.bincount(found.job, (found.end - found.start) * (found.high - found.low), outcome.workload.n_jobs)
    long = outcome.row_end - outcome.row_start
    held = np.bincount(outcome.row_job, outcome.row_gpus * outcome.row_share * long, outcome.workload.n_jobs)
    assert area == pytest.approx(held)
    node = np.maximum(outcome.row_node[found.row], 0)
    assert (found.low >= found.node_low[node] - 1e-9).all()
    assert (found.high <= found.node_high[node] + 1e-9).all()
    told = outcome.row_gpu[found.row] >= 0
    lane = (found.node_low[node] + outcome.row_gpu[found.row])[told]
    assert (found.low[told] >= lane - 1e-9).all()
    assert (found.high[told] <= lane + 1 + 1e-9).all()
    for i in range(len(found.job)):
        beside = np.minimum(found.end[i], found.end) - np.maximum(found.start[i], found.start) > 1e-9
        beside &= np.minimum(found.high[i], found.high) - np.maximum(found.low[i], found.low) > 1e-9
        assert np.flatnonzero(beside).tolist() == [i]


def test_gang_on_gpus_told_apart() -> None:
    """GPUs of a job side by side are one box, others are not, nor is what is restored one with what runs."""
    work = Workload(("a", "b"), np.zeros(2), [3, 1], np.array([4.0, 6.0]))
    rows = [(0, 0, 0, 4), (0, 1, 0, 4), (1, 2, 0, 6), (0, 3, 0, 4)]
    job, gpu, start, end = np.array(rows).T
    one, node = np.ones(4), np.zeros(4, np.int32)
    outcome = Outcome(
        work,
        np.array([4], np.int32),
        np.zeros(2),
        np.array([4.0, 6.0]),
        *(x.astype(np.int32) for x in (job, node, gpu, one)),
        *(x.astype(float) for x in (one, start, end, one)),
    )
    assert check(outcome) == []
    found = lanes(outcome)
    boxes_found = sorted(zip(found.job.tolist(), found.low.tolist(), found.high.tolist(), strict=True))
    assert boxes_found == [(0, 0, 2), (0, 3, 4), (1, 2, 3)]
    picture = compose_simulation({"x": outcome})
    assert sorted(text.split("<br>")[1] for text in texts(picture, picture.runs[0])) == [
        "2 GPUs of node 0",
        "GPU 2 of node 0",
        "GPU 3 of node 0",
    ]


def test_what_the_cases_of_lanes_cover() -> None:
    """They have jobs that are stopped, restored, share GPUs and change their rates without moving."""
    outcome = stopped(0)
    assert lanes(outcome).restoring.any()
    assert len(outcome.down_node)
    outcome = shared(0)
    assert (outcome.row_gpu >= 0).any()
    assert len(lanes(outcome).job) < len(outcome.row_job)


def test_means_against_steps() -> None:
    """Means of groups are those of each group's steps, with what never ends and what began before."""
    rng = np.random.default_rng(2)
    start = rng.uniform(-5, 20, 50)
    end = np.where(rng.random(50) < 0.1, np.inf, start + rng.exponential(4, 50))
    group, amount = rng.integers(0, 3, 50), rng.uniform(0, 2, 50)
    edges = np.linspace(1, 15, 40)
    found = means_of_groups(group, 4, amount, start, end, edges)
    for g in range(4):
        mine = group == g
        steps = Steps.of(np.concatenate([start[mine], end[mine]]), np.concatenate([amount[mine], -amount[mine]]))
        assert found[g] == pytest.approx(steps.means(edges), abs=1e-12)


def test_figures_over_time() -> None:
    """The stack adds up to what is held, the heat to that too, the queue to the jobs that wait."""
    outcome = stopped(1)
    picture = compose_simulation({"srtf": outcome})
    run = picture.runs[0]
    edges = picture.first + picture.edges * picture.factor
    assert run.stack.shape == (3, SPANS)
    assert run.stack.sum(axis=0) == pytest.approx(held_gpus(outcome).means(edges), abs=1e-9)
    assert run.waiting == pytest.approx(waiting_jobs(outcome).means(edges))
    assert run.heat is not None
    share = run.heat.share
    down = np.zeros((len(outcome.room), SPANS))
    for node, start, end in zip(outcome.down_node, outcome.down_start, outcome.down_end, strict=True):
        down[node] += np.maximum(0, np.minimum(end, edges[1:]) - np.maximum(start, edges[:-1])) / np.diff(edges)
    assert (np.isnan(share) == (down > 1 - 1e-6)).all()
    assert np.isnan(share).any()
    held = np.nan_to_num(share) * (1 - down) * outcome.room[:, None]
    assert held.sum(axis=0) == pytest.approx(run.stack.sum(axis=0), abs=1e-2)  # shares have four digits
    assert run.there == pytest.approx((outcome.room[:, None] * (1 - down)).sum(axis=0))


def test_many() -> None:
    """Beyond what can be seen there are areas in place of boxes, and nodes are put together."""
    work = drawn(0, n=3000, span=500)
    run = compose_simulation({"fifo": simulate(work, 100, 8, consolidate=True)}).runs[0]
    assert run.lanes is None
    assert run.heat is not None
    assert run.heat.names[:2] == ("0-1", "2-3")
    assert len(run.heat.names) == 50 <= MOST_NODES


def test_boxes_and_names() -> None:
    """Colours part the boxes, each has its words, and only what fits is named."""
    outcome = stopped(2)
    picture = compose_simulation({"srtf": outcome}, name="trace")
    run = picture.runs[0]
    assert run.lanes is not None
    parts = {part.name: part for part in boxes(picture, run)}
    assert set(parts) == {"a", "b", "c", "restored", "node down"}
    at = np.concatenate([part.at for part in parts.values()])
    assert sorted(at.tolist()) == list(range(len(run.lanes.job)))
    told = texts(picture, run)
    for name in "abc":
        mine = set(run.lanes.job[parts[name].at].tolist())
        assert {outcome.workload.queue[j] for j in mine} == {name}
        assert all(name == told[i].split("<br>")[3][-1] for i in parts[name].at.tolist())
    few, many = (len(list(names_in(picture, run, across, 6.0))) for across in (300.0, 3000.0))
    assert few < many <= len(run.lanes.job)
    assert list(names_in(picture, run, 3000.0, 1.0)) == []
    assert picture.title == "trace: 40 jobs on 3 nodes of 4 GPUs"


def test_classes() -> None:
    """Few queues are classes; none or very many give way to sizes."""
    work = drawn(0)
    assert set(classify(work).names) == {"a", "b", "c"}
    many = dataclasses.replace(work, queue=tuple(f"q{i % 12}" for i in range(40)))
    found = classify(many)
    work_of = {q: float(np.sum((many.gpus * many.duration)[np.array(many.queue) == q])) for q in set(many.queue)}
    assert found.names == (*sorted(work_of, key=lambda q: -work_of[q])[:7], "5 others")
    assert np.bincount(found.of(many)).tolist()[-1] == sum(q not in found.names for q in many.queue)
    sizes = dataclasses.replace(work, queue=("",) * 40, gpus=np.array([1, 3, 4, 64] * 10))
    found = classify(sizes)
    assert found.names == ("1 GPU", "3-4 GPUs", "more than 32 GPUs")
    assert found.of(sizes).tolist() == [0, 1, 1, 2] * 10


def test_times() -> None:
    """Times are in units for people, and a logarithmic axis has a handful of ticks."""
    assert [words(x) for x in (0.25, 90.0, 7200.0, 3.2e5, 4e8)] == ["0.25 s", "90 s", "2 h", "3.7 days", "4,630 days"]
    assert unit(150.0) == (60.0, "min")
    assert ticks(0.02, 3.0) == ([0.1, 1.0], ["0.1 s", "1 s"])
    assert ticks(50.0, 700.0)[1] == ["1 min", "2 min", "5 min", "10 min"]
    assert ticks(50.0, 1e6)[1] == ["1 min", "10 min", "1 h", "6 h", "1 day", "7 days"]


def test_distribution() -> None:
    """A curve of many jobs has few points, all of them on the true one, first and last included."""
    jct = np.random.default_rng(0).lognormal(5, 2, 5000)
    x, y = distribution(jct, most=100)
    assert len(x) == 100
    assert y == pytest.approx([(jct <= at).mean() for at in x])
    assert (x[-1], y[-1]) == (jct.max(), 1.0)
    assert distribution(np.array([0.0, 0.0, 4.0]))[0].tolist() == [4.0, 4.0, 4.0]
    assert distribution(np.zeros(2))[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", ["png", "html"])
@pytest.mark.parametrize("case", ["stopped", "shared", "counted", "many", "rejected", "moment"])
def test_files(kind: str, case: str) -> None:
    """Every kind of schedule makes both kinds of files."""
    work = drawn(0)
    outcomes = {
        "stopped": lambda: stopped(0),
        "shared": lambda: shared(0),
        "counted": lambda: simulate(work, 3, 4),
        "many": lambda: simulate(drawn(0, n=3000, span=500), 10, 8, consolidate=True),
        "rejected": lambda: run_engine(work, Fleet.regular(1, 3, 4), Scheduler((Nobody(),))),
        "moment": lambda: simulate(Workload(("x",), np.zeros(1), [1], np.zeros(1)), 1, 1, consolidate=True),
    }
    content = render_simulation(f"x.{kind}", {"<i>p": outcomes[case](), "q": outcomes[case]()}, name="<b>t")
    if kind == "png":
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", content[16:24])
        assert width == 1430
        assert height > 900
    else:
        page = content.decode()
        assert "&lt;b&gt;t" in page
        assert "<i>p" not in page
        assert "prefers-color-scheme" in page


class Nobody:
    """Reject every job."""

    def admit(self, job: int, view: Any) -> bool:
        """Say no."""
        return False


def test_other_endings() -> None:
    """A picture is PNG or HTML."""
    with pytest.raises(InstanceError, match=r"plot: '.svg' is not one of .png, .html"):
        render_simulation("x.svg", {"fifo": simulate(drawn(0), 3, 4)})


def test_cross_check_is_drawn_job_by_job(data: Path) -> None:
    """The trace of the cross-check, 1,000 jobs on 20 x 8 GPUs, is small enough to show every job."""
    work = read_trace(data / "crosscheck" / "philly_ee9e8c_1000.csv").workload
    run = compose_simulation({"fifo": simulate(work, 20, 8, consolidate=True)}).runs[0]
    assert run.lanes is not None
    assert np.unique(run.lanes.job).tolist() == np.flatnonzero(work.duration > 0).tolist()
