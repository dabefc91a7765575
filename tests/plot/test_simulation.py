"""Pictures of schedules: what they show is what the schedule says."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan import plot
from gangplan.instances.placement import Fleet, SpeedModel
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.workload import Workload
from gangplan.plot.lanes import lanes
from gangplan.plot.scene import Boxes, Heat, Lines, Panel, Words
from gangplan.plot.simulation import MOST_NODES, SPANS, classify, distribution, simulation_scene, ticks, words
from gangplan.simulator.engine import EngineScheduler, Outages
from gangplan.simulator.engine import simulate as run_engine
from gangplan.simulator.metrics import Steps, held_gpus, means_of_groups, waiting_jobs
from gangplan.simulator.trace import Outcome, check, simulate

from .parts import parts


def panel(outcome: Outcome, name: str) -> Panel:
    """Return the first panel of a name of the picture of one schedule."""
    return next(p for p in plot.picture({"srtf": outcome}, name="trace").panels if p.name == name)


def jobs_in(found: Panel) -> list[Boxes]:
    """Return the boxes that a pointer is told of."""
    return parts(found.marks, Boxes)


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
    return run_engine(drawn(seed), Fleet.regular(1, 3, 4), EngineScheduler((Shortest(),), "overtake", True), **how)


def shared(seed: int) -> Outcome:
    """Make a schedule of jobs with shares of GPUs, whose rates change with the company they have."""
    rng = np.random.default_rng(seed)
    work = drawn(seed, most=1)
    share = rng.choice([0.25, 0.5, 1.0], work.n_jobs)
    work = dataclasses.replace(work, share=share, model=("m",) * work.n_jobs)
    one = np.ones((1, 1))
    speeds = SpeedModel(("m",), ("A100",), one, np.ones(1), np.zeros(1), one * 0.1, one * 0.3)
    return run_engine(work, Fleet.regular(1, 2, 2), EngineScheduler((Everyone(),), shared=True), speeds=speeds)


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
    told = [text for mark in jobs_in(panel(outcome, "jobs")) for text in mark.texts]
    assert sorted(text.split("<br>")[1] for text in told) == [
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


def tops(found: Panel) -> list[np.ndarray]:
    """Return the upper ends of the areas of a panel, those below them included, a value a span of time."""
    middle, below = (np.arange(SPANS) + 0.5) * found.x.high / SPANS, np.zeros(SPANS)
    stack = []
    for mark in jobs_in(found):
        x, y, width, height = mark.at.T[:, :, None]
        over = (x <= middle) & (middle < x + width)
        assert (over.sum(axis=0) <= 1).all()
        low = np.where(over, y, np.inf).min(axis=0)
        assert (np.isinf(low) | (np.abs(low - below) < 1e-9)).all()  # the one begins where the other ends
        below = np.where(over, y + height, below).max(axis=0)
        stack.append(below)
    return stack


def test_figures_over_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stack adds up to what is held, the heat to that too, the queue to the jobs that wait."""
    monkeypatch.setattr("gangplan.plot.simulation.MOST_ROWS", 0)
    outcome = stopped(1)
    load, queue, nodes = (panel(outcome, name) for name in ("load", "queue", "nodes"))
    last = np.concatenate([outcome.row_end, outcome.workload.submit]).max()
    edges = np.linspace(outcome.workload.submit.min(), last, SPANS + 1)
    stack = tops(load)
    assert len(stack) == 3
    assert stack[-1] == pytest.approx(held_gpus(outcome).means(edges), abs=1e-9)
    assert tops(queue)[0] == pytest.approx(waiting_jobs(outcome).means(edges))
    (heat,) = (mark for mark in nodes.marks if isinstance(mark, Heat))
    down = np.zeros((len(outcome.room), SPANS))
    for node, start, end in zip(outcome.down_node, outcome.down_start, outcome.down_end, strict=True):
        down[node] += np.maximum(0, np.minimum(end, edges[1:]) - np.maximum(start, edges[:-1])) / np.diff(edges)
    assert (np.isnan(heat.values) == (down > 1 - 1e-6)).all()
    assert np.isnan(heat.values).any()
    held = np.nan_to_num(heat.values) * (1 - down) * outcome.room[:, None]
    assert held.sum(axis=0) == pytest.approx(stack[-1], abs=1e-6)
    (there,) = (np.asarray(m.paths)[0] for m in load.marks if isinstance(m, Lines) and m.dash)
    assert there[::2, 1] == pytest.approx((outcome.room[:, None] * (1 - down)).sum(axis=0))


def test_many() -> None:
    """Beyond what can be seen there are areas in place of boxes, and nodes are put together."""
    outcome = simulate(drawn(0, n=3000, span=500), 100, 8, consolidate=True)
    picture = simulation_scene({"fifo": outcome})
    assert [p.name for p in picture.panels][:4] == ["jct", "load", "queue", "nodes"]
    nodes = panel(outcome, "nodes")
    assert [name for _, name in nodes.y.ticks or ()][:2] == ["0-1", "4-5"]
    assert nodes.y.low == 50 <= MOST_NODES


def test_boxes_and_names() -> None:
    """Colours part the boxes, each has its words, and only what fits is named."""
    outcome = stopped(2)
    found, parts = panel(outcome, "jobs"), lanes(outcome)
    boxes = {mark.name: mark for mark in jobs_in(found)}
    assert set(boxes) == {"a", "b", "c", "restored", "node down"} == {key.label for key in found.keys}
    assert sum(len(mark.at) for name, mark in boxes.items() if name != "node down") == len(parts.job)
    queue_of = dict(zip(outcome.workload.names, outcome.workload.queue, strict=True))
    for name in "abc":
        assert {queue_of[text.split("<br>")[0]] for text in boxes[name].texts} == {name}
        assert all(text.split("<br>")[3].endswith(f", {name}") for text in boxes[name].texts)
    (words_in,) = (mark for mark in found.marks if isinstance(mark, Words))
    assert 0 < len(words_in.texts) < len(parts.job)
    picture = plot.picture({"srtf": outcome}, name="trace")
    assert picture.title == "trace: 40 jobs on 3 nodes of 4 GPUs"


def test_one_legend() -> None:
    """Several schedules have one legend, of all that any of them has, and share the axis of time."""
    picture = simulation_scene({"srtf": stopped(1), "fifo": simulate(drawn(1), 3, 4, consolidate=True)})
    legends = [{key.label for key in p.keys} for p in picture.panels if p.name == "jobs"]
    assert legends == [{"a", "b", "c", "restored", "node down"}, set()]
    assert len({p.x.high for p in picture.panels if p.x.link == "time"}) == 1
    jct = picture.panels[0]
    assert [key.label for key in jct.keys] == ["srtf", "fifo"]


def test_classes() -> None:
    """Few queues are classes; none or very many give way to sizes."""
    work = drawn(0)
    assert {key.label for key in classify(work).keys} == {"a", "b", "c"}
    many = dataclasses.replace(work, queue=tuple(f"q{i % 12}" for i in range(40)))
    found = classify(many)
    work_of = {q: float(np.sum((many.gpus * many.duration)[np.array(many.queue) == q])) for q in set(many.queue)}
    names = [key.label for key in found.keys]
    assert names == [*sorted(work_of, key=lambda q: -work_of[q])[:7], "5 others"]
    assert np.bincount(found.of).tolist()[-1] == sum(q not in names for q in many.queue)
    sizes = dataclasses.replace(work, queue=("",) * 40, gpus=np.array([1, 3, 4, 64] * 10))
    found = classify(sizes)
    assert [key.label for key in found.keys] == ["1 GPU", "3-4 GPUs", "more than 32 GPUs"]
    assert found.of.tolist() == [0, 1, 1, 2] * 10


def test_times() -> None:
    """Times are in units for people, and a logarithmic axis has a handful of ticks."""
    assert [words(x) for x in (0.25, 90.0, 7200.0, 3.2e5, 4e8)] == ["250 ms", "90 s", "2 h", "3.7 d", "4630 d"]
    assert ticks(0.02, 3.0) == [(0.1, "0.1 s"), (1.0, "1 s")]
    assert [text for _, text in ticks(50.0, 700.0)] == ["1 min", "10 min"]
    assert [text for _, text in ticks(50.0, 1e6)] == ["1 min", "10 min", "1 h", "6 h", "1 d", "7 d"]


def test_distribution() -> None:
    """A curve of many jobs has few points, all of them on the true one, first and last included."""
    jct = np.random.default_rng(0).lognormal(5, 2, 5000)
    x, y = distribution(jct, most=100)
    assert len(x) == 100
    assert y == pytest.approx([(jct <= at).mean() for at in x])
    assert (x[-1], y[-1]) == (jct.max(), 1.0)
    assert distribution(np.array([0.0, 0.0, 4.0]))[0].tolist() == [4.0, 4.0, 4.0]
    assert distribution(np.zeros(2))[0].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("case", ["shared", "counted", "rejected", "moment"])
def test_kinds_of_schedules(case: str) -> None:
    """Every kind of schedule can be drawn."""
    work = drawn(0)
    outcomes = {
        "shared": lambda: shared(0),
        "counted": lambda: simulate(work, 3, 4),
        "rejected": lambda: run_engine(work, Fleet.regular(1, 3, 4), EngineScheduler((Nobody(),))),
        "moment": lambda: simulate(Workload(("x",), np.zeros(1), [1], np.zeros(1)), 1, 1, consolidate=True),
    }
    picture = plot.picture({"<i>p": outcomes[case](), "q": outcomes[case]()}, name="<b>t")
    assert ("GPUs only counted" in picture.subtitle) == (case == "counted")
    assert picture.render("x.png")[:8] == b"\x89PNG\r\n\x1a\n"


class Nobody:
    """Reject every job."""

    def admit(self, job: int, view: Any) -> bool:
        """Say no."""
        return False


def test_cross_check_is_drawn_job_by_job(data: Path) -> None:
    """The trace of the cross-check, 1,000 jobs on 20 x 8 GPUs, is small enough to show every job."""
    work = read_trace(data / "crosscheck" / "philly_ee9e8c_1000.csv").workload
    told = [text for mark in jobs_in(panel(simulate(work, 20, 8, consolidate=True), "jobs")) for text in mark.texts]
    shown = {text.split("<br>")[0] for text in told}
    assert shown == {work.names[j] for j in np.flatnonzero(work.duration > 0).tolist()}
