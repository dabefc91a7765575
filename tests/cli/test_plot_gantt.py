"""Gantt charts: what they show is what the timeline says."""

from __future__ import annotations

import json
import re
import struct
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances import (
    Cluster,
    DeviceType,
    LatencyPlan,
    LatencyProblem,
    Level,
    OpGraph,
    PartitionPlan,
    PartitionProblem,
    StepPlan,
    StepProblem,
    TreeTopology,
    verify,
)
from gangplan.instances.generators import generate
from gangplan.instances.timeline import timeline
from gangplan.plot import Entry, compose_gantt, render, render_gantt
from gangplan.plot.chart import COLOURS, STYLES, Chart

GPU = DeviceType("A100", memory=80e9)
LEVELS = (Level("server", 300e9), Level("rack", 25e9, 5e-6))


def cluster(each: int) -> Cluster:
    """Return two servers of A100s."""
    return Cluster((GPU,), np.zeros(2 * each, dtype=np.int32), TreeTopology.regular(LEVELS, (each, 2)))


def in_parts(problem: StepProblem | PartitionProblem) -> np.ndarray:
    """Return the device of each op: equal runs of forward ops in topological order, backward ops with their twins."""
    graph, d = problem.graph, problem.cluster.n_devices
    device = np.zeros(graph.n_ops, dtype=np.int32)
    forward = [i for i in graph.topological_order().tolist() if not graph.backward[i]]
    device[forward] = np.arange(len(forward)) * d // len(forward)
    twinned = graph.backward & (graph.twin >= 0)
    device[twinned] = device[graph.twin[twinned]]
    for label in set(graph.colocation[graph.colocation >= 0].tolist()):
        members = np.flatnonzero(graph.colocation == label)
        device[members] = device[members[0]]
    return device


def one_after_the_other(problem: StepProblem) -> StepPlan:
    """Return a plan that runs ops in topological order, each when its inputs are there and its device is free."""
    graph, device = problem.graph, in_parts(problem)
    start, finish = np.zeros(graph.n_ops), np.zeros(graph.n_ops)
    inputs: dict[int, list[int]] = defaultdict(list)
    for u, v in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        inputs[v].append(u)
    free = np.zeros(problem.cluster.n_devices)
    for v in graph.topological_order().tolist():
        arrivals = [finish[u] + float(problem.delay(u, device[u], device[v])) for u in inputs[v]]
        start[v] = max([free[device[v]], *arrivals])
        finish[v] = free[device[v]] = start[v] + problem.time()[0, v]
    return StepPlan(graph.names, device, start)


def gpt(layers: int, each: int) -> tuple[StepProblem, StepPlan]:
    """Return a GPT's training step on two servers, and a plan."""
    problem = StepProblem(generate("gpt", layers=layers).graph, cluster(each))
    return problem, one_after_the_other(problem)


SMALL = gpt(1, 1)
LARGE = gpt(24, 4)


def chart(problem: StepProblem, plan: StepPlan, bound: float | None = None) -> Chart:
    """Return the one chart of a plan."""
    (found,) = compose_gantt([Entry(problem, plan, bound=bound)]).charts
    return found


@pytest.mark.parametrize("case", [SMALL, LARGE], ids=["small", "large"])
def test_bars(case: tuple[StepProblem, StepPlan]) -> None:
    """Bars lie where the timeline has them, inside their rows, without overlap; the darkest are the critical ones."""
    problem, plan = case
    drawn, shown = timeline(problem, plan), chart(problem, plan)
    assert shown.start * 1e-3 == pytest.approx([b.start for b in drawn.bars])
    assert (shown.start + shown.width) * 1e-3 == pytest.approx([b.finish for b in drawn.bars])
    assert shown.end * 1e-3 == pytest.approx(verify(problem, plan).objective)
    low, high = shown.y - shown.height / 2, shown.y + shown.height / 2
    assert all(a <= b for a, b in zip(high, low[1:], strict=False))
    row = np.array([b.row for b in drawn.bars])
    assert (shown.at - shown.tall / 2 >= low[row] - 1e-9).all()
    assert (shown.at + shown.tall / 2 <= high[row] + 1e-9).all()
    lanes = defaultdict(list)
    for y, x, width in zip(shown.at.round(6), shown.start, shown.width, strict=True):
        lanes[y].append((x, x + width))
    assert all(a[1] <= b[0] + 1e-9 for lane in lanes.values() for a, b in pairwise(sorted(lane)))
    assert [STYLES[s] for s in shown.style] == [(b.kind, b.critical) for b in drawn.bars]


def test_side() -> None:
    """Beside the bars stand what share of the makespan each device works, and what share of its memory it uses."""
    problem, plan = SMALL
    verdict, shown = verify(problem, plan), chart(problem, plan)
    devices = [i for i, link in enumerate(shown.link) if not link]
    assert [shown.names[i] for i in devices] == ["0 (A100)", "1 (A100)"]
    compute = (verdict.load - verdict.transfer) / verdict.objective
    assert shown.busy[devices] == pytest.approx(compute)
    assert shown.filled[devices] == pytest.approx(verdict.memory / 80e9)
    assert [bool(words) for words in shown.memory] == [not link for link in shown.link]
    assert shown.memory[0].endswith("B")


def test_steps_of_the_chain() -> None:
    """Lines lead from the end of a critical bar to the start of the next, forward in time."""
    problem, plan = LARGE
    shown = chart(problem, plan)
    assert len(shown.steps) > 0
    assert (shown.steps[:, 1, 0] >= shown.steps[:, 0, 0] - 1e-9).all()
    ends = {(round(x, 6), round(y, 6)) for x, y in zip(shown.start + shown.width, shown.at, strict=True)}
    assert all((round(x, 6), round(y, 6)) in ends for x, y in shown.steps[:, 0].tolist())


def test_title() -> None:
    """The title says what, the subtitle how good, with idle devices counted."""
    problem = replace(SMALL[0], cluster=cluster(2))
    picture = compose_gantt([Entry(problem, SMALL[1], status="FEASIBLE", bound=1e-3)], name="gpt")
    assert picture.title == f"gpt: {problem.graph.n_ops} ops on 4 \u00d7 A100"
    assert re.fullmatch(r"FEASIBLE · step · [\d.]+ ms · gap [\d.]+% · 2 devices idle", picture.subtitle)
    assert picture.charts[0].bound == pytest.approx(1.0)


def test_names_where_they_fit() -> None:
    """A name is given room in proportion to its bar, never more than its row is high; else its last parts are tried."""
    problem, plan = LARGE
    shown = chart(problem, plan)
    every = range(len(shown.labels))
    texts = [shown.name(i, shown.end, 1000.0, 30.0, (6.0, 9.0)) for i in every]
    assert {""} < set(texts) and "logits" in texts
    for i, text in enumerate(texts):
        assert text in shown.labels[i]
        if text:
            size = shown.size(i, text, shown.end, 1000.0, 30.0, 9.0)
            assert 6.0 <= size <= min(9.0, shown.tall[i] * 30.0)
            assert size * 0.6 * len(text) <= shown.width[i] / shown.end * 1000


def test_short_names() -> None:
    """Of a name that does not fit, the last parts that do are shown, and nothing where a part would be cut."""
    graph = generate("layered", training=False, ops=1, layers=1, degree=1, devices=1).graph
    problem = StepProblem(replace(graph, names=("layer1/attention/up.proj",)), Cluster.flat((GPU, 1), bandwidth=1e9))
    plan = StepPlan(problem.graph.names, [0], [0.0])
    shown = chart(problem, plan)
    found = [shown.name(0, shown.end, across, 100.0, (6.0, 6.0)) for across in (100, 80, 40, 30, 20, 10)]
    assert found == ["layer1/attention/up.proj", "attention/up.proj", "up.proj", "up.proj", "proj", ""]


def test_links_of_many_devices_are_left_out() -> None:
    """Where rows would be too many, those of single devices' links go, and the subtitle says so."""
    problem, plan = gpt(24, 20)
    picture = compose_gantt([Entry(problem, plan)])
    (shown,) = picture.charts
    assert not any(shown.link) and len(shown.names) == len(set(plan.device.tolist()))
    assert "links of devices not shown" in picture.subtitle
    assert {STYLES[s][0] for s in shown.style} == {"forward", "backward"}


def test_several_plans_share_the_axis() -> None:
    """Plans below one another are drawn to one scale, up to the last finish of any or the greatest bound."""
    problem, plan = SMALL
    late = replace(plan, start=plan.start + 0.01)
    pipe = PartitionProblem(problem.graph, problem.cluster)
    stages = PartitionPlan(plan.ops, plan.device, plan.device)
    entries = [Entry(problem, plan, "one"), Entry(problem, late, "two", bound=1e-3), Entry(pipe, stages, "three")]
    picture = compose_gantt(entries)
    first, second, third = picture.charts
    assert second.end - first.end == pytest.approx(10.0)
    assert picture.horizon == pytest.approx(second.end)
    assert third.end * 1e-3 == pytest.approx(verify(pipe, stages).objective)
    assert [c.heading.split(" · ")[0] for c in picture.charts] == ["one", "two", "three"]
    assert "throughput, contiguous" in third.heading and "per sample" in third.heading


@pytest.mark.parametrize("case", [SMALL, LARGE], ids=["small", "large"])
def test_png(case: tuple[StepProblem, StepPlan]) -> None:
    """The PNG is one, of a size that a page can show, and the same each time."""
    first, second = (render("a.png", *case, name="gpt", bound=1e-3) for _ in range(2))
    assert first[:8] == b"\x89PNG\r\n\x1a\n" and first == second
    width, height = struct.unpack(">II", first[16:24])
    assert 1000 <= width <= 2000 and 250 <= height <= 1500


def traces(page: str) -> list[dict[str, Any]]:
    """Return the traces of the figure in a page."""
    start = page.index("[", page.index("Plotly.newPlot("))
    found: list[dict[str, Any]] = json.JSONDecoder().raw_decode(page[start:])[0]
    return found


def test_html() -> None:
    """The page holds its own script, loads nothing, and every bar tells its op, its times and its bytes."""
    problem, plan = SMALL
    page = render("a.html", problem, plan, name="<script>alert(1)</script>", bound=1e-3).decode()
    assert page.count("<script>alert(1)") == 0 and "&lt;script&gt;" in page
    assert '<script src="' not in page and "<link" not in page
    bars = [t for t in traces(page) if t["type"] == "bar" and "hovertext" in t]
    texts = [text for t in bars for text in t["hovertext"]]
    assert len(texts) == len(timeline(problem, plan).bars)
    assert {t["marker"]["color"] for t in bars} <= set(COLOURS)
    for name in problem.graph.names:
        assert any(text.startswith(f"{name}<br>") for text in texts)
    moved = [text for text in texts if text.startswith("output of ")]
    assert moved and all("device 0 to 1" in text or "device 1 to 0" in text for text in moved)
    assert all(" to " in text and re.search(r"[kMG]?B moved", text) for text in moved)
    lines = {t["name"] for t in traces(page) if t["type"] == "scatter" and "name" in t}
    assert {"bound 1 ms: no plan is better"} < lines and any(x.startswith("makespan ") for x in lines)


def test_names_are_escaped() -> None:
    """An op whose name is markup is shown as it is written."""
    none, zero = np.full(2, -1), np.zeros(2)
    names = ("<b>bold</b>", "b")
    graph = OpGraph(names, ("A100",), [[1.0, 1.0]], zero, zero, zero, [0], [1], [1e9], none, none, [False, False])
    problem = StepProblem(graph, cluster(1))
    page = render("a.html", problem, StepPlan(names, [0, 1], [0.0, 2.0])).decode()
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold" in page.replace("\\u003c", "<").replace("\\u003e", ">").replace("\\u0026", "&")


def test_latency() -> None:
    """A call is drawn with its transfers, in the unit of a file that names none."""
    none, zero = np.full(2, -1), np.zeros(2)
    times = [[3.0, np.inf], [9.0, 2.0]]
    graph = OpGraph(("a", "b"), ("A100", "cpu"), times, zero, zero, zero, [0], [1], [1.0], none, none, [False, False])
    kinds = (DeviceType("A100", memory=1.0), DeviceType("cpu", host=True))
    problem = LatencyProblem(graph, Cluster.flat((kinds[0], 1), (kinds[1], 1), bandwidth=1.0))
    plan = LatencyPlan(("a", "b"), [0, 1])
    picture = compose_gantt([Entry(problem, plan, bound=6.0)])
    (shown,) = picture.charts
    assert picture.axis == "time, in the unit of the file"
    assert (shown.start.tolist(), shown.width.tolist()) == ([0.0, 3.0, 4.0], [3.0, 1.0, 2.0])
    assert [STYLES[s][0] for s in shown.style] == ["call", "transfer", "forward"]
    assert not any("moved" in text for text in shown.texts)  # its bytes are times
    assert not any(shown.memory) and shown.end_words == "latency 6"
    assert render("a.png", problem, plan) and render("a.html", problem, plan)


def test_infeasible_plan() -> None:
    """A plan that breaks a constraint is not drawn."""
    problem, plan = SMALL
    with pytest.raises(ValueError, match="no timeline"):
        render_gantt("a.png", [Entry(problem, replace(plan, start=np.zeros(len(plan.ops))))])


@pytest.mark.parametrize("ending", ["png", "html"])
def test_solve_draws_a_step(problem: Path, cli: Any, ending: str) -> None:
    """`solve --plot` draws a step over time, with the bound that was proved."""
    target = problem.with_name(f"step.{ending}")
    done = cli("solve", problem, "--objective", "step", "--method", "heft", "--json", "--plot", target)
    assert done.code == 0, done.err
    content = target.read_bytes()
    if ending == "png":
        assert content[:4] == b"\x89PNG"
    else:
        assert b"makespan " in content and b"no plan is better" in content
