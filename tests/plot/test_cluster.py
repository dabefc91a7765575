"""Pictures of placements: what they show is what the plan and the cost model say."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gangplan import plot
from gangplan.hybrid import solve
from gangplan.instances import InstanceError, Level, TreeTopology, verify
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementPlan, PlacementProblem, SpeedModel
from gangplan.plot import Drawn
from gangplan.plot import cluster as drawing
from gangplan.plot.cluster import LOADS, MOST_COLOURS, UNUSED, _arrange, _links, cluster_scene, fleet_scene, job_colours
from gangplan.plot.cluster_layout import BAND, DOWN, IDLE, gpu_tiles, marks
from gangplan.plot.cluster_words import flows, link_texts, of_levels, typed
from gangplan.plot.colours import mixed
from gangplan.plot.scene import Boxes, Dots, Lines, Panel, Scene, Words
from gangplan.units import percent

SPEED = SpeedModel(("m",), ("A100",), [[1.0]], [4.0], [0.0], [[0.0]], [[0.0]])
"""A step of a second that ends with 4 bytes of gradient."""


def first_fit(problem: PlacementProblem) -> PlacementPlan:
    """Return the plan of the simplest policy."""
    plan = solve(problem, time_limit=20, method="first_fit").plan
    assert isinstance(plan, PlacementPlan)
    return plan


def job(name: str, workers: int, **more: Any) -> GangJob:
    """Return a gang of the one model."""
    return GangJob(name, "m", (workers,), **more)


def small(*jobs: GangJob) -> PlacementProblem:
    """Return a batch on two racks of two nodes of two GPUs, 10 B/s a node and 5 B/s a rack."""
    return PlacementProblem(Fleet.regular(2, 2, 2, nic=10.0, uplink=5.0, link=1e6), jobs, SPEED)


def parts(problem: PlacementProblem, plan: PlacementPlan) -> SimpleNamespace:
    """Return what a picture of single GPUs is made of."""
    rates = verify(problem, plan).rates
    assert rates is not None
    flow = flows(problem, plan, rates)
    boxes, _, named = _arrange(problem, plan, flow, 0, True)
    tiles = gpu_tiles(problem, plan, boxes[0], named)
    mark, row = marks(problem, plan, boxes[0], named)
    levels, names = range(len(flow.bandwidth)), of_levels(problem, 0)
    return SimpleNamespace(
        boxes=boxes,
        tiles=tiles,
        busy=np.concatenate([flow.busy(i) for i in levels]),
        gangs=np.concatenate([flow.gangs(i) for i in levels]),
        line_texts=[text for i in levels for text in link_texts(problem, flow, i, names[i])],
        colours=job_colours(tiles, len(plan.jobs)),
        marks=mark,
        mark_job=plan.job[row],
    )


def panel(picture: Scene, name: str) -> Panel:
    """Return the last panel of a name."""
    return [p for p in picture.panels if p.name == name][-1]


def told(picture: Scene) -> list[str]:
    """Return all that a pointer is told of the map."""
    return [t for mark in panel(picture, "cluster").marks if isinstance(mark, Boxes | Dots) for t in mark.texts]


CROSSING = small(job("a", 4), job("b", 2, collective="ps", servers=1))
"""A ring on nodes 0 and 2, workers on node 1 with their server on node 3, so that both cross the racks."""
CROSSED = PlacementPlan(
    ("a", "b"), [0, 0, 1, 1], [0, 2, 1, 3], [2, 2, 2, 0], [0, 0, 0, 1], [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1]
)
SHARED = gangs(jobs=30, racks=3, nodes=4, gpus=4, load=0.8, gpu_types="A100,V100", shares=0.8, down=0.2, seed=3)
CROWDED = gangs(jobs=64, racks=4, nodes=8, load=0.9)


def test_links_of_two_gangs() -> None:
    """Links are busy for what the gangs send in a step, over the step and the bandwidth."""
    # each gang has 2.5 B/s of an uplink. The ring sends 2 (4 - 1) / 4 * 4 = 6 B in 2.4 s, and its step is 3.4 s. Two
    # workers send their server 8 B in 3.2 s, and their step is 4.2 s.
    picture = parts(CROSSING, CROSSED)
    ring, server = 6 / 3.4, 8 / 4.2
    assert picture.busy == pytest.approx([ring / 10, server / 10, ring / 10, server / 10] + [(ring + server) / 5] * 2)
    assert picture.gangs.tolist() == [1, 1, 1, 1, 2, 2]
    assert "link of node3: busy 19.0% of the time, 1.905 B/s of 10 B/s<br>1 gang: b" in picture.line_texts
    assert any(text.startswith("link of rack 0: busy 73.4%") and "b, a" in text for text in picture.line_texts)


@pytest.mark.parametrize(
    ("collective", "node", "rack"),
    [
        ("ring", [6, 6, 6, 6], 6),  # 2 (4 - 1) / 4 of the gradient
        ("tree", [8, 8, 8, 8], 8),
        # 2 (2 - 1) / 2 of it in the rack, and as much between the racks, which a leader sends through its own link too
        ("hierarchical", [8, 8, 8, 8], 4),
        # to and from 2 servers, on the outer nodes, half a gradient each: that of the worker beside it stays there
        ("ps", [8, 4, 4, 8], 8),
    ],
)
def test_links_of_a_gang_alone(collective: str, node: list[float], rack: float) -> None:
    """Alone, a gang sends the bytes of its collective, and the slowest link is busy while it synchronises."""
    servers = 2 * (collective == "ps")
    problem = small(job("a", 4, collective=collective, servers=servers))
    p = [servers // 2, 0, 0, servers // 2]
    plan = PlacementPlan(("a",), [0] * 4, [0, 1, 2, 3], [1] * 4, p, [0, 1, 2, 3], [0] * 4)
    rates = verify(problem, plan).rates
    assert rates is not None
    seconds = parts(problem, plan).busy * rates.step[0]
    assert seconds == pytest.approx([b / 10 for b in node] + [rack / 5] * 2)
    # the two levels of a hierarchy follow each other
    assert rates.sync[0] == pytest.approx(4 / 10 + 4 / 5 if collective == "hierarchical" else max(seconds))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["first_fit", "load_balance"])
def test_no_link_is_too_busy(seed: int, method: str) -> None:
    """No link is busy for more than all of the time, and those that gangs cross are for some of it."""
    problem = gangs(jobs=12, racks=3, nodes=3, gpus=4, load=0.9, seed=seed)
    plan = solve(problem, time_limit=20, method=method).plan
    picture = parts(problem, plan)
    assert picture.busy.max() <= 1 + 1e-9
    assert ((picture.busy > 0) == (picture.gangs > 0)).all() and picture.gangs.any()


@pytest.mark.parametrize("problem", [SHARED, CROWDED], ids=["shared", "crowded"])
def test_each_gpu_once(problem: PlacementProblem) -> None:
    """The parts of a GPU fill its square side by side, each as wide as its job's share; no two GPUs overlap."""
    plan, fleet = first_fit(problem), problem.fleet
    tiles = parts(problem, plan).tiles
    squares = set()
    for node in range(fleet.n_nodes):
        for gpu in range(fleet.gpus[node]):
            mine = np.flatnonzero((tiles.unit == node) & (tiles.gpu == gpu))
            box = tiles.box[mine][np.argsort(tiles.box[mine, 0])]
            assert box[:, 2].sum() == pytest.approx(1.0) and (box[:, 3] == 1).all() and np.ptp(box[:, 1]) == 0
            assert box[:-1, 0] + box[:-1, 2] == pytest.approx(box[1:, 0])
            squares.add((round(float(box[0, 0]), 6), round(float(box[0, 1]), 6)))
    assert len(squares) == fleet.n_gpus
    held = np.bincount(tiles.job[tiles.job >= 0], weights=tiles.amount[tiles.job >= 0], minlength=len(problem.jobs))
    assert held == pytest.approx([x.worker.gpu * x.gang for x in problem.jobs])
    down = ~np.asarray(fleet.usable)
    assert (set(tiles.unit[tiles.job == DOWN].tolist())) == set(np.flatnonzero(down).tolist())
    assert tiles.amount[tiles.job == IDLE].sum() == pytest.approx(fleet.gpus[~down].sum() - held.sum())


def test_shares_of_a_gpu() -> None:
    """Two jobs with a quarter and a half of a GPU leave a quarter of it."""
    half, quarter = Demand(0.5), Demand(0.25)
    problem = small(job("a", 1, worker=half), job("b", 1, worker=quarter))
    plan = PlacementPlan(("a", "b"), [0, 1], [0, 0], [1, 1], [0, 0], [0, 1], [1, 1])
    picture = parts(problem, plan)
    mine = (picture.tiles.unit == 0) & (picture.tiles.gpu == 1)
    assert dict(zip(picture.tiles.job[mine].tolist(), picture.tiles.box[mine, 2].tolist(), strict=True)) == {
        0: 0.5,
        1: 0.25,
        IDLE: 0.25,
    }
    assert any(
        text.startswith("0.5 of GPU 1: a: m<br>1 worker of 0.5 GPU")
        for text in told(cluster_scene(Drawn(problem, plan)))
    )


def inside(box: np.ndarray, outer: np.ndarray) -> bool:
    """Return whether `box` lies in `outer`."""
    return bool((box[:2] >= outer[:2]).all() and (box[:2] + box[2:] <= outer[:2] + outer[2:]).all())


def apart(boxes: np.ndarray) -> bool:
    """Return whether no two boxes overlap."""
    low, high = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    over = (low[:, None] < high[None] - 1e-9).all(axis=2) & (low[None] < high[:, None] - 1e-9).all(axis=2)
    return int(over.sum()) == len(boxes)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_boxes_lie_in_each_other(depth: int) -> None:
    """Nodes lie in their racks, these in their groups, at any depth, and siblings do not overlap."""
    problem = gangs(jobs=10, racks=6, nodes=4, gpus=2, load=0.5)
    node = np.arange(24)
    # groups have other sizes, and numbers that do not begin at 0
    rack = np.where(node < 15, 3 + node // 4, 5 + node // 4)
    groups = np.stack([rack, 7 + node // 15, 1 + node // 15, node * 0]).astype(np.int32)
    levels = tuple(Level(name, 1e9) for name in ("rack", "pod", "hall", "site"))
    topology = TreeTopology(levels[-depth:], groups[-depth:])
    problem = replace(problem, fleet=replace(problem.fleet, topology=topology))
    below, *groups = parts(problem, first_fit(problem)).boxes
    for level, (group, boxes) in enumerate(zip(topology.group, groups, strict=True)):
        index = np.unique(group, return_inverse=True)[1]
        mine = index if level == 0 else index[np.unique(topology.group[level - 1], return_index=True)[1]]
        assert all(inside(box, boxes[g]) for box, g in zip(below, mine.tolist(), strict=True))
        assert apart(below)
        below = boxes


def test_colours() -> None:
    """Up to as many jobs as there are colours have one each; of more, those of a node or of two in a row differ."""
    few = gangs(jobs=MOST_COLOURS, racks=2, nodes=4, load=0.9)
    assert len(set(parts(few, first_fit(few)).colours)) == MOST_COLOURS
    plan = first_fit(CROWDED)
    colours = parts(CROWDED, plan).colours
    assert len(set(colours)) == MOST_COLOURS
    on = [set(plan.job[(plan.node == n) & (plan.workers > 0)].tolist()) for n in range(32)]
    for here, there in pairwise(on):
        assert len({colours[j] for j in here | there}) == len(here | there)


def test_load_colours() -> None:
    """A link, the upper edge of a box, has a colour of its scale; an unused one has its own, below."""
    found = parts(CROSSING, CROSSED)
    busy, gangs = np.array([0.0, 1.0, 0.5, 0.0, 0.0, 0.0]), np.array([1, 1, 2, 0, 0, 0])
    unused, used = _links(np.concatenate(found.boxes[:2]), busy, gangs, 20.0)
    (left, right), box = next(iter(used.paths)), found.boxes[0][0]
    assert (*left, *right) == (box[0], box[1], box[0] + box[2], box[1])
    assert (unused.colour, used.colour) == ([UNUSED] * 3, [LOADS[0], LOADS[-1], LOADS[2]])
    assert max(unused.width) < min(used.width)


def test_tasks_without_gpu() -> None:
    """Each row with parameter servers or workers without GPU has a mark in its node, in its job's colour."""
    cores = job("c", 3, worker=Demand(0.0, 1.0))
    problem = small(*CROSSING.jobs, cores)
    plan = PlacementPlan(
        ("a", "b", "c"),
        [*CROSSED.job, 2, 2],
        [*CROSSED.node, 3, 1],
        [*CROSSED.workers, 2, 1],
        [*CROSSED.servers, 0, 0],
        CROSSED.grant_row,
        CROSSED.grant_gpu,
    )
    picture = parts(problem, plan)
    nodes = [
        int(np.flatnonzero([inside(np.array([x, y, 0, 0]), u) for u in picture.boxes[0]])[0])
        for x, y, _ in picture.marks
    ]
    assert sorted(zip(nodes, picture.mark_job.tolist(), strict=True)) == [(1, 2), (3, 1), (3, 2)]
    assert len({(x, y) for x, y, _ in picture.marks.tolist()}) == 3
    texts = " ".join(told(cluster_scene(Drawn(problem, plan))))
    assert "1 parameter server on node3" in texts
    assert "2 workers without GPU on node3" in texts


def test_many_gpus_are_drawn_by_rack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where GPUs are too many, racks are boxes that their jobs fill, with their uplinks and busiest nodes."""
    monkeypatch.setattr(drawing, "MOST_GPUS", 40)
    monkeypatch.setattr(drawing, "MOST_UNITS", 10)
    monkeypatch.setattr(drawing, "LEAST_UNITS", 2)
    plan = first_fit(SHARED)
    rates = verify(SHARED, plan).rates
    assert rates is not None
    fine, picture = flows(SHARED, plan, rates), cluster_scene(Drawn(SHARED, plan))
    boxes = [mark for mark in panel(picture, "cluster").marks if isinstance(mark, Boxes)]
    (filled,) = (mark for mark in boxes if mark.texts)
    units = next(mark.at for mark in boxes if mark.colour == "#f7f8fa")
    inside_of = [[inside(box, unit + np.array([0, 0, 0, 1e-9])) for unit in units] for box in filled.at]
    of = np.argmax(inside_of, axis=1)
    assert all(map(any, inside_of))
    assert np.bincount(of, weights=filled.at[:, 3]) == pytest.approx([BAND] * 3)
    assert all(apart(filled.at[of == unit]) for unit in range(3))
    held = [float(text.split()[0]) for text in filled.texts]
    assert np.bincount(of, weights=held) == pytest.approx([16] * 3, rel=1e-3)
    links = [text for text in told(picture) if "busy" in text]
    shares = [float(text.split("busy ")[1].split("%")[0]) / 100 for text in links]
    assert shares == pytest.approx(fine.busy(1), abs=6e-4)
    edges = [mark for mark in panel(picture, "cluster").marks if isinstance(mark, Lines)]
    inside_racks = [shade for mark in edges[-2:] for shade in mark.colour]
    busiest = fine.busy(0).reshape(3, 4).max(axis=1)
    assert sorted(inside_racks) == sorted(mixed(busiest[busiest > 0], LOADS) + [UNUSED] * int((busiest == 0).sum()))


@pytest.mark.parametrize("gpus", [0, 1])
def test_smallest(gpus: int) -> None:
    """A cluster of one node can be drawn, even without GPU and with nothing placed."""
    problem = PlacementProblem(Fleet.regular(1, 1, gpus), (job("a", 1, value=1.0),), SPEED)
    plan = PlacementPlan(("a",), [0] * gpus, [0] * gpus, [1] * gpus, [0] * gpus, [0] * gpus, [0] * gpus)
    picture = cluster_scene(Drawn(problem, plan))
    assert parts(problem, plan).tiles.job.tolist() == [0] * gpus
    assert picture.title == "1 job on 1 node with " + ("1 \u00d7 A100" if gpus else "no GPU")
    assert picture.render("a.png")


def test_title() -> None:
    """The title says what, the subtitle how good and how full."""
    plan = first_fit(SHARED)
    picture = plot.picture(SHARED, plan, name="batch", status="FEASIBLE", bound=50.0)
    objective = verify(SHARED, plan).objective
    assert objective is not None
    assert picture.title == "batch: 30 jobs on 12 nodes with 32 \u00d7 A100 + 16 \u00d7 V100"
    words = f"FEASIBLE · {objective:.7g} weighted slowdowns in sum · gap {percent(1 - 50 / objective)} · bound 50"
    assert picture.subtitle.startswith(words)
    assert "of 48 GPUs in use" in picture.subtitle
    assert picture.subtitle.endswith("2 nodes not usable")
    (hatched,) = (mark for mark in panel(picture, "cluster").marks if isinstance(mark, Boxes) and mark.hatch)
    assert len(hatched.at) == 2
    assert typed(SHARED, SHARED.fleet.names)[4] == "node4 (V100)"


def test_list_of_jobs() -> None:
    """The list has each job that is placed, with its slowdown; one that is left out is counted in the subtitle."""
    problem = small(job("a", 4), job("b", 8, value=1.0))
    plan = PlacementPlan(("a", "b"), [0, 0], [0, 1], [2, 2], [0, 0], [0, 0, 1, 1], [0, 1, 0, 1])
    rates, picture = verify(problem, plan).rates, cluster_scene(Drawn(problem, plan))
    assert rates is not None
    names, slowdowns = (mark.texts for mark in panel(picture, "jobs").marks if isinstance(mark, Words))
    assert (list(names), list(slowdowns)) == (["a"], [f"{rates.slowdown[0]:.3f}"])
    assert "1 job left out" in picture.subtitle


def test_fleet() -> None:
    """Of a fleet whose GPUs jobs hold, as a scheduler says it, each job's GPUs are counted, and there are no links."""
    fleet = Fleet.regular(2, 2, 4)
    a, b = fleet.names[:2]
    picture = plot.picture(fleet, {"x": {a: (0, 2), b: (1,)}, "y": {b: (0,)}}, name="now")
    assert (picture.title, picture.subtitle) == ("now: 2 jobs on 4 nodes with 16 \u00d7 A100", "4 of 16 GPUs in use")
    names, held = (mark.texts for mark in panel(picture, "jobs").marks if isinstance(mark, Words))
    assert (list(names), list(held)) == (["x", "y"], ["3", "1"])
    assert not [mark for mark in panel(picture, "cluster").marks if isinstance(mark, Lines)]
    with pytest.raises(InstanceError, match="'nowhere' is not a node"):
        fleet_scene(fleet, {"x": {"nowhere": (0,)}})
    with pytest.raises(InstanceError, match="held twice"):
        fleet_scene(fleet, {"x": {a: (0,)}, "y": {a: (0,)}})


def test_infeasible_plan() -> None:
    """A plan that breaks a constraint is not drawn."""
    with pytest.raises(ValueError, match="gang"):
        cluster_scene(Drawn(CROSSING, replace(CROSSED, workers=[2, 1, 2, 0])))


def test_what_a_pointer_is_told() -> None:
    """A pointer is told of every GPU, node, link and mark."""
    assert len(told(cluster_scene(Drawn(CROSSING, CROSSED)))) == 8 + 6 + 1
