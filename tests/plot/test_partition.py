"""Pictures of partitions: what they show is what the plan is."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gangplan import plot
from gangplan.instances import PartitionPlan, PartitionProblem, verify
from gangplan.instances.generators import generate
from gangplan.plot.partition import BETWEEN, INSIDE, columns, rows
from gangplan.plot.scene import Boxes, Dots, Lines, Panel, Scene

from .parts import parts


def even(problem: PartitionProblem) -> PartitionPlan:
    """Return a contiguous plan that cuts the forward ops, which come in topological order, into equal parts."""
    graph, d = problem.graph, problem.cluster.n_devices
    forward = np.flatnonzero(~graph.backward)
    device = np.zeros(graph.n_ops, dtype=np.int32)
    device[forward] = np.arange(len(forward)) * d // len(forward)
    twinned = graph.twin >= 0
    device[graph.backward & twinned] = device[graph.twin[graph.backward & twinned]]
    plan = PartitionPlan(graph.names, device, device)
    assert verify(problem, plan).ok
    return plan


def scene(problem: PartitionProblem, plan: PartitionPlan, bound: float | None = None) -> Scene:
    """Return the picture of a plan."""
    return plot.picture(problem, plan, name="name", status="OPTIMAL", bound=bound)


def panel(picture: Scene, name: str) -> Panel:
    """Return the one panel of a name."""
    (found,) = (p for p in picture.panels if p.name == name)
    return found


SMALL = generate("resnet", depth=18, devices=4)
LARGE = generate("gpt", layers=60, devices=12)


@pytest.mark.parametrize("kind", ["bert", "resnet", "layered", "fork_join"])
def test_layout(kind: str) -> None:
    """Forward edges point right, backward ones left; no two ops share a place; the backward half lies below."""
    graph = generate(kind).graph
    column = columns(graph)
    y = rows(graph, column)
    u, v, back = graph.source, graph.target, graph.backward
    ahead, behind = ~back[u] & ~back[v], back[u] & back[v]
    assert (column[u[ahead]] < column[v[ahead]]).all()
    assert (column[u[behind]] > column[v[behind]]).all()
    assert len(set(zip(column.tolist(), y.tolist(), strict=True))) == graph.n_ops
    assert y[~back].min() > 0 > y[back].max()


def test_sources_stand_by_their_first_use() -> None:
    """An op without predecessor stands one column before the first that needs it."""
    graph = generate("layered", training=False, ops=60, layers=12, seed=4).graph
    column = columns(graph)
    for op in set(range(graph.n_ops)) - set(graph.target.tolist()):
        used = graph.target[graph.source == op]
        assert not len(used) or column[op] == column[used].min() - 1


def test_dots() -> None:
    """A small graph has a dot an op in its device's colour and a line an edge, dark between devices."""
    plan, graph = even(SMALL), SMALL.graph
    picture = scene(SMALL, plan, bound=1e-4)
    marks = panel(picture, "graph").marks
    by_name = {mark.name: mark for mark in parts(marks, Dots)}
    dots = [by_name[f"device {d} (A100)"] for d in range(4)]
    assert [len(mark.at) for mark in dots] == np.bincount(plan.device).tolist()
    assert len({mark.colour for mark in dots}) == 4
    assert all(f"device {d} (A100)" in text for d, mark in enumerate(dots) for text in mark.texts)
    cut = plan.device[graph.source] != plan.device[graph.target]
    lines = {mark.name: list(mark.paths) for mark in marks if isinstance(mark, Lines)}
    assert (len(lines[BETWEEN]), len(lines[INSIDE])) == (cut.sum(), graph.n_edges - cut.sum())
    assert sorted(path[0][0] for path in lines[BETWEEN]) == sorted(columns(graph)[graph.source[cut]].tolist())
    assert "136 ops on 4" in picture.title
    assert "OPTIMAL" in picture.subtitle
    assert "gap" in picture.subtitle


def test_blocks() -> None:
    """A large graph has blocks that hold every op once, without overlap, and thicker lines for more edges."""
    plan = even(LARGE)
    marks = panel(scene(LARGE, plan), "graph").marks
    blocks = sorted(parts(marks, Boxes), key=lambda mark: int(mark.name.split()[1]))
    assert [mark.at[:, 3].sum() for mark in blocks] == np.bincount(plan.device).tolist()
    at = np.concatenate([mark.at for mark in blocks])
    for x in np.unique(at[:, 0]):
        edges = sorted((y, y + height) for y, height in at[at[:, 0] == x][:, [1, 3]].tolist())
        assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(edges))
    (lines,) = (mark for mark in marks if isinstance(mark, Lines))
    pairs = {(plan.device[u], plan.device[v]) for u, v in zip(LARGE.graph.source, LARGE.graph.target, strict=True)}
    assert len(list(lines.paths)) >= len({pair for pair in pairs if pair[0] != pair[1]})


def test_bars() -> None:
    """The bars are the verifier's loads and memory, in the order of the stages, in readable units."""
    plan = even(SMALL)
    turned = replace(plan, device=3 - plan.device)  # stage 0 is on device 3
    picture, verdict = scene(SMALL, turned, bound=1e-3), verify(SMALL, turned)
    load, memory = panel(picture, "load"), panel(picture, "memory")
    assert load.y.label in {"busy, ms per pass", "busy, \u00b5s per pass"}
    factor = 1e-3 if "ms" in load.y.label else 1e-6
    compute, transfer = (mark for mark in load.marks if isinstance(mark, Boxes))
    assert transfer.hatch
    assert (compute.at[:, 3] + transfer.at[:, 3]) * factor == pytest.approx(verdict.load[::-1])
    assert transfer.at[:, 3] * factor == pytest.approx(verdict.transfer[::-1])
    assert transfer.at[:, 1] == pytest.approx(compute.at[:, 3])
    (bound,) = (mark for mark in load.marks if isinstance(mark, Lines))
    assert [y * factor for _, y in next(iter(bound.paths))] == pytest.approx([1e-3, 1e-3])
    assert [word.split("\n")[0] for _, word in load.x.ticks or ()] == ["3", "2", "1", "0"]
    (held,) = (mark for mark in memory.marks if isinstance(mark, Boxes))
    assert memory.y.label == "memory, MB"
    assert held.at[:, 3] * 1e6 == pytest.approx(verdict.memory[::-1])
    assert [key.label for key in memory.keys] == ["capacity 80 GB, off the scale"]


def test_capacity_on_the_scale() -> None:
    """A limit that bars come near is drawn at each bar, and the axis reaches it."""
    kinds = tuple(replace(kind, memory=1e9) for kind in SMALL.cluster.device_types)
    problem = replace(SMALL, cluster=replace(SMALL.cluster, device_types=kinds))
    memory = panel(scene(problem, even(problem)), "memory")
    (limits,) = (mark for mark in memory.marks if isinstance(mark, Lines))
    assert [path[0][1] for path in limits.paths] == pytest.approx([1e3] * 4)
    assert memory.y.high > 1e3


def test_idle_and_unlimited() -> None:
    """Idle devices are counted, not drawn; without any memory limit there are no memory bars."""
    kinds = tuple(replace(kind, memory=None) for kind in SMALL.cluster.device_types)
    problem = replace(SMALL, cluster=replace(SMALL.cluster, device_types=kinds))
    zero = np.zeros(problem.graph.n_ops, dtype=np.int32)
    picture = scene(problem, PartitionPlan(problem.graph.names, zero, zero))
    assert [p.name for p in picture.panels] == ["graph", "load"]
    assert panel(picture, "load").x.label.endswith("; 3 more idle")


def test_gap_of_nothing() -> None:
    """A plan that meets the bound has a gap of 0%."""
    plan = even(SMALL)
    assert scene(SMALL, plan, bound=verify(SMALL, plan).objective).subtitle.endswith("gap 0%")


def test_infeasible_plan() -> None:
    """A plan that breaks a constraint is not drawn."""
    plan = even(SMALL)
    with pytest.raises(ValueError, match="contiguous"):
        scene(SMALL, replace(plan, stage=3 - plan.stage, device=plan.device))
