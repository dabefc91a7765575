"""Gantt charts: what they show is what the timeline says."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gangplan import plot
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
from gangplan.plot.gantt import COLOURS, _shorter, gantt_scene
from gangplan.plot.partition import Drawn
from gangplan.plot.scene import Boxes, Lines, Panel, Words, names_in

from .parts import parts

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


def chart(problem: StepProblem, plan: StepPlan, bound: float | None = None) -> tuple[Panel, Panel]:
    """Return the chart of a plan, and what stands beside it."""
    left, right = gantt_scene([Drawn(problem, plan, bound=bound)]).panels
    return left, right


def bars(panel: Panel) -> list[Boxes]:
    """Return what runs."""
    return parts(panel.marks, Boxes)


@pytest.mark.parametrize("case", [SMALL, LARGE], ids=["small", "large"])
def test_bars(case: tuple[StepProblem, StepPlan]) -> None:
    """Bars lie where the timeline has them, inside their rows, without overlap; the darkest are the critical ones."""
    problem, plan = case
    drawn, (shown, _) = timeline(problem, plan), chart(problem, plan)
    rows = next(mark.at for mark in shown.marks if isinstance(mark, Boxes))
    lanes = defaultdict(list)
    count = 0
    for kind, shades in COLOURS.items():
        for critical, colour in enumerate(shades):
            mine = [bar for bar in drawn.bars if (bar.kind, bar.critical) == (kind, bool(critical))]
            at = np.concatenate([mark.at for mark in bars(shown) if mark.colour == colour] or [np.zeros((0, 4))])
            assert at[:, 0] * 1e-3 == pytest.approx([bar.start for bar in mine])
            assert (at[:, 0] + at[:, 2]) * 1e-3 == pytest.approx([bar.finish for bar in mine])
            row = rows[[bar.row for bar in mine]]
            assert (at[:, 1] >= row[:, 1] - 1e-9).all()
            assert (at[:, 1] + at[:, 3] <= row[:, 1] + row[:, 3] + 1e-9).all()
            for x, y, width, _ in at.tolist():
                lanes[round(y, 6)].append((x, x + width))
            count += len(at)
    assert count == len(drawn.bars)
    assert all(a[1] <= b[0] + 1e-9 for lane in lanes.values() for a, b in pairwise(sorted(lane)))


def test_side() -> None:
    """Beside the bars stand what share of the makespan each device works, and what share of its memory it uses."""
    problem, plan = SMALL
    verdict, (shown, side) = verify(problem, plan), chart(problem, plan)
    assert [name for _, name in shown.y.ticks or () if "A100" in name] == ["0 (A100)", "1 (A100)"]
    told = {text: mark.align for mark in side.marks if isinstance(mark, Words) for text in mark.texts}
    compute = (verdict.load - verdict.transfer) / verdict.objective
    assert {f"{share:.0%}" for share in compute} <= {text for text, align in told.items() if align == "right"}
    shares = {f"{used / 80e9:.1%}" for used in verdict.memory}
    assert {text.split()[-1] for text, align in told.items() if align == "left" and text != "memory"} == shares
    (boxes,) = (mark for mark in side.marks if isinstance(mark, Boxes))
    assert boxes.at[1::2, 2] / boxes.at[::2, 2] == pytest.approx(verdict.memory / 80e9)


def test_steps_of_the_chain() -> None:
    """Lines lead from the end of a critical bar to the start of the next, forward in time."""
    shown, _ = chart(*LARGE)
    steps = np.array(
        [path for mark in shown.marks if isinstance(mark, Lines) and "chain" in mark.name for path in mark.paths]
    )
    assert len(steps) > 0
    assert (steps[:, 1, 0] >= steps[:, 0, 0] - 1e-9).all()
    at = np.concatenate([mark.at for mark in bars(shown)])
    ends = {(round(x + w, 6), round(y + h / 2, 6)) for x, y, w, h in at.tolist()}
    assert all((round(x, 6), round(y, 6)) in ends for x, y in steps[:, 0].tolist())


def test_title() -> None:
    """The title says what, the subtitle how good, with idle devices counted; the bound is a line with its value."""
    problem = replace(SMALL[0], cluster=cluster(2))
    picture = plot.picture(problem, SMALL[1], name="gpt", status="FEASIBLE", bound=1e-3)
    assert picture.title == f"gpt: {problem.graph.n_ops} ops on 4 \u00d7 A100"
    assert re.fullmatch(r"FEASIBLE · step · [\d.]+ ms · gap [\d.]+% · 2 devices idle", picture.subtitle)
    label = "bound 1 ms: no plan is better"
    (line,) = (m for m in picture.panels[0].marks if isinstance(m, Lines) and m.name == label)
    assert [x for x, _ in next(iter(line.paths))] == pytest.approx([1.0, 1.0])
    assert label in {key.label for key in picture.panels[0].keys}


def test_names_where_they_fit() -> None:
    """A name is given room in proportion to its bar, never more than its row is high; else its last parts are tried."""
    problem, plan = LARGE
    shown, _ = chart(problem, plan)
    (words,) = (mark for mark in shown.marks if isinstance(mark, Words))
    assert "logits" in words.texts
    at = np.concatenate([mark.at for mark in bars(shown)])
    for (x, y), text, size in zip(words.at.tolist(), words.texts, words.size, strict=True):
        inside = (at[:, 0] <= x) & (x <= at[:, 0] + at[:, 2]) & (at[:, 1] <= y) & (y <= at[:, 1] + at[:, 3])
        width, height = at[inside][0, 2:] * shown.scale * 72
        assert size <= height
        assert size * 0.6 * len(text) <= width


def test_short_names() -> None:
    """Of a name that does not fit, the last parts that do are shown, and nothing where a part would be cut."""
    found = [
        names_in(
            np.array([[0.0, 0.0, 1.0, 1.0]]), [list(_shorter("layer1/attention/up.proj"))], (width, 1.0), (6.0, 6.0)
        )
        for width in (1.4, 1.1, 0.6, 0.4, 0.28, 0.1)
    ]
    assert [words.texts[0] if words else "" for words in found] == [
        "layer1/attention/up.proj",
        "attention/up.proj",
        "up.proj",
        "up.proj",
        "proj",
        "",
    ]


def test_links_of_many_devices_are_left_out() -> None:
    """Where rows would be too many, those of single devices' links go, and the subtitle says so."""
    problem, plan = gpt(24, 20)
    picture = gantt_scene([Drawn(problem, plan)])
    shown = picture.panels[0]
    assert len(shown.y.ticks or ()) == len(set(plan.device.tolist()))
    assert "links of devices not shown" in picture.subtitle
    assert {mark.name for mark in bars(shown)} == {"forward", "backward"}


def test_several_plans_share_the_axis() -> None:
    """Plans below one another are drawn to one scale, up to the last finish of any or the greatest bound."""
    problem, plan = SMALL
    late = replace(plan, start=plan.start + 0.01)
    pipe = PartitionProblem(problem.graph, problem.cluster)
    stages = PartitionPlan(plan.ops, plan.device, plan.device)
    entries = [Drawn(problem, plan, "one"), Drawn(problem, late, "two", bound=1e-3), Drawn(pipe, stages, "three")]
    picture = gantt_scene(entries)
    charts = [panel for panel in picture.panels if not panel.bare]
    ends = [max((mark.at[:, 0] + mark.at[:, 2]).max() for mark in bars(panel)) for panel in charts]
    assert ends[1] - ends[0] == pytest.approx(10.0)
    assert [panel.x.high for panel in charts] == pytest.approx([ends[1] * 1.012] * 3)
    assert ends[2] * 1e-3 == pytest.approx(verify(pipe, stages).objective)
    assert [panel.heading.split(" · ")[0] for panel in charts] == ["one", "two", "three"]
    assert "throughput, contiguous" in charts[2].heading
    assert "per pass" in charts[2].heading
    keys = [key.label for panel in charts for key in panel.keys]
    assert len(keys) == len({*keys}) and {"forward", "the end", "bound: no plan is better"} <= {*keys}
    assert keys.index("forward") < len(charts[0].keys)


def test_texts() -> None:
    """Every bar tells its op, its times and its bytes."""
    problem, plan = SMALL
    texts = [text for mark in bars(chart(problem, plan)[0]) for text in mark.texts]
    assert len(texts) == len(timeline(problem, plan).bars)
    for name in problem.graph.names:
        assert any(text.startswith(f"{name}<br>") for text in texts)
    moved = [text for text in texts if text.startswith("output of ")]
    assert moved
    assert all("device 0 to 1" in text or "device 1 to 0" in text for text in moved)
    assert all(" to " in text and re.search(r"[kMG]?B moved", text) for text in moved)


def test_latency() -> None:
    """A call is drawn with its transfers, in the unit of a file that names none."""
    none, zero = np.full(2, -1), np.zeros(2)
    times = [[3.0, np.inf], [9.0, 2.0]]
    graph = OpGraph(("a", "b"), ("A100", "cpu"), times, zero, zero, zero, [0], [1], [1.0], none, none, [False, False])
    kinds = (DeviceType("A100", memory=1.0), DeviceType("cpu", host=True))
    problem = LatencyProblem(graph, Cluster.flat((kinds[0], 1), (kinds[1], 1), bandwidth=1.0))
    shown, side = gantt_scene([Drawn(problem, LatencyPlan(("a", "b"), [0, 1]), bound=6.0)]).panels
    assert shown.x.label == "time, in the unit of the file"
    assert {mark.name: mark.at[:, [0, 2]].tolist() for mark in bars(shown)} == {
        "call": [[0.0, 3.0]],
        "transfer": [[3.0, 1.0]],
        "forward": [[4.0, 2.0]],
    }
    assert not any("moved" in text for mark in bars(shown) for text in mark.texts)  # its bytes are times
    assert "latency 6" in {key.label for key in shown.keys}
    assert "memory" not in {text for mark in side.marks if isinstance(mark, Words) for text in mark.texts}


def test_infeasible_plan() -> None:
    """A plan that breaks a constraint is not drawn."""
    problem, plan = SMALL
    with pytest.raises(ValueError, match="no timeline"):
        gantt_scene([Drawn(problem, replace(plan, start=np.zeros(len(plan.ops))))])
