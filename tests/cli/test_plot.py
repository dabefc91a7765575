"""Pictures: what they show is what the plan is."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gangplan.plot
from gangplan.hybrid import solve
from gangplan.instances import InstanceError, PartitionPlan, PartitionProblem, verify
from gangplan.instances.generators import generate
from gangplan.plot import compose, render
from gangplan.plot.colours import colours, paler
from gangplan.plot.layout import columns, rows


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


SMALL = generate("resnet", depth=18, devices=4)
LARGE = generate("gpt", layers=60, devices=12)


@pytest.mark.parametrize("kind", ["bert", "resnet", "layered", "fork_join"])
def test_layout(kind: str) -> None:
    """Forward edges point right, backward ones left; no two ops share a place; the backward half lies below."""
    graph = generate(kind).graph
    column, y = columns(graph), None
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
    """A small graph has a dot an op and a line an edge, and the dark ones are those between devices."""
    plan = even(SMALL)
    picture = compose(SMALL, plan, name="resnet", status="OPTIMAL", bound=1e-4)
    drawing, graph = picture.drawing, SMALL.graph
    cut = plan.device[graph.source] != plan.device[graph.target]
    assert drawing.dots and len(drawing.x) == graph.n_ops
    assert (len(drawing.cut), len(drawing.inner)) == (cut.sum(), graph.n_edges - cut.sum())
    assert drawing.cut[:, 0, 0].tolist() == drawing.x[graph.source[cut]].tolist()
    assert drawing.cut[:, -1, 1] == pytest.approx(drawing.y[graph.target[cut]])
    assert "136 ops on 4" in picture.title and "OPTIMAL" in picture.subtitle and "gap" in picture.subtitle


def test_blocks() -> None:
    """A large graph has blocks that hold every op once, without overlap, and lines that stand for every cut edge."""
    plan = even(LARGE)
    drawing, graph = compose(LARGE, plan).drawing, LARGE.graph
    assert not drawing.dots and drawing.height.sum() == graph.n_ops
    held = np.bincount(drawing.device, weights=drawing.height)
    assert held.tolist() == np.bincount(plan.device).tolist()
    cut = plan.device[graph.source] != plan.device[graph.target]
    assert drawing.weight.sum() == cut.sum()
    for x in np.unique(drawing.x):
        pile = np.flatnonzero(drawing.x == x)
        edges = sorted((drawing.y[i] - drawing.height[i] / 2, drawing.y[i] + drawing.height[i] / 2) for i in pile)
        assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(edges))


def test_bars() -> None:
    """The bars are the verifier's loads and memory, in the order of the stages, in readable units."""
    plan = even(SMALL)
    turned = replace(plan, device=3 - plan.device)  # stage 0 is on device 3
    picture, verdict = compose(SMALL, turned, bound=1e-3), verify(SMALL, turned)
    assert [name.split()[0] for name in picture.devices] == ["3", "2", "1", "0"]
    factor = 1e-3 if picture.load.unit.startswith("ms") else 1e-6
    assert (picture.load.solid + picture.load.pale) * factor == pytest.approx(verdict.load[::-1])
    assert picture.load.pale * factor == pytest.approx(verdict.transfer[::-1])
    assert picture.load.limit * factor == pytest.approx(np.full(4, 1e-3))
    assert picture.memory is not None and picture.memory.unit == "MB"
    assert picture.memory.solid * 1e6 == pytest.approx(verdict.memory[::-1])
    assert picture.memory.limit * 1e6 == pytest.approx(np.full(4, 80e9))


def test_idle_and_unlimited() -> None:
    """Idle devices are counted, not drawn; without any memory limit there are no memory bars."""
    kinds = tuple(replace(kind, memory=None) for kind in SMALL.cluster.device_types)
    problem = replace(SMALL, cluster=replace(SMALL.cluster, device_types=kinds))
    zero = np.zeros(problem.graph.n_ops, dtype=np.int32)
    picture = compose(problem, PartitionPlan(problem.graph.names, zero, zero))
    assert (len(picture.devices), picture.idle, picture.memory) == (1, 3, None)
    render("x.png", problem, PartitionPlan(problem.graph.names, zero, zero))


@pytest.mark.parametrize("problem", [SMALL, LARGE], ids=["small", "large"])
def test_png(problem: PartitionProblem) -> None:
    """The PNG is one, of a size that a page can show, and the same each time."""
    first, second = (render("a.PNG", problem, even(problem), bound=1e-3) for _ in range(2))
    assert first[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", first[16:24])
    assert 1000 <= width <= 2000 and 500 <= height <= 1500
    assert first == second


@pytest.mark.parametrize("problem", [SMALL, LARGE], ids=["small", "large"])
def test_html(problem: PartitionProblem) -> None:
    """The page holds its own script, loads nothing, and escapes what came from a file."""
    page = render("a.html", problem, even(problem), name="<script>alert(1)</script>", bound=1e-3).decode()
    assert page.count("<script>alert(1)") == 0 and "&lt;script&gt;" in page
    assert '<script src="' not in page and "<link" not in page
    assert "Plotly.newPlot" in page and len(page) > 1_000_000


def test_one_op_one_device() -> None:
    """The smallest graph can be drawn both ways."""
    problem = generate("layered", training=False, ops=1, layers=1, degree=1, devices=1)
    zero = np.zeros(1, dtype=np.int32)
    for path in ("a.png", "a.html"):
        assert render(path, problem, PartitionPlan(problem.graph.names, zero, zero))


def test_solved_problem() -> None:
    """A solved problem whose result meets the bound is drawn with gap 0%."""
    problem = generate("fork_join", stages=3, devices=2)
    result = solve(problem, time_limit=20)
    assert result.plan is not None
    picture = compose(problem, result.plan, status=str(result.status), bound=result.bound)
    assert "gap 0%" in picture.subtitle


def test_infeasible_plan() -> None:
    """A plan that breaks a constraint is not drawn."""
    plan = even(SMALL)
    with pytest.raises(ValueError, match="contiguous"):
        compose(SMALL, replace(plan, stage=3 - plan.stage, device=plan.device))


@pytest.mark.parametrize("count", [1, 8, 9, 64])
def test_colours(count: int) -> None:
    """Every device has a colour of its own, and its paler one is another."""
    found = colours(count)
    assert len(set(found)) == count
    assert all(len(c) == 7 and paler(c) != c for c in found)


def test_extra_is_absent(problem: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra nothing is solved, and the line says what to install."""
    monkeypatch.setattr(gangplan.plot, "find_spec", lambda name: None)
    done = cli("solve", problem, "--plot", problem.with_name("plan.png"))
    assert (done.code, done.out) == (2, "")
    assert 'pip install "gangplan[plot]"' in done.err and done.err.count("\n") == 1
    with pytest.raises(InstanceError, match="plotly"):
        render("x.html", SMALL, even(SMALL))
