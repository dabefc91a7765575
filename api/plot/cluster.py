"""The picture of a cluster under a placement: GPUs coloured by job, links by how busy they are, jobs by slowdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.instances.placement import Fleet, GangJob, PlacementPlan, PlacementProblem, SpeedModel
from gangplan.instances.quantities import short

from . import cluster_layout as lay
from . import cluster_words as words
from .cluster_layout import NAME, PAD, Tiles, band_tiles, gpu_tiles
from .cluster_words import Flows, flows
from .colours import FEW, GREY, INK, PALE, SHADE, colours, mixed
from .partition import Drawn
from .scene import CHARACTER, DPI, WIDTH, Axis, Boxes, Dots, Key, Lines, Mark, Panel, Scene, Words, fit, names_in

MOST_GPUS, MOST_UNITS, LEAST_UNITS = 12_000, 1_600, 16
"""GPUs that are drawn one by one. For more, nodes or groups of them are boxes: as many as are not too many."""
MOST_COLOURS = 24
"""Colours that can be told apart; with more jobs than these they are used again."""
ROOM, LARGEST = np.array([12.6, 8.6]), 0.25
"""Inches of the map, and of a GPU at most."""
SMALLEST_NAME, DETAIL = 5.0, 5.0
"""Points of names below which they are left out; pixels of a GPU from which white lines part it from the next."""
COLUMNS, LISTED, LINE = 6, 66, 0.2
"""Of the list of jobs, the most jobs in it, and inches of a line of it."""
UNUSED = "#c3c9d1"
"""Of links that no gang crosses."""
LOADS = ("#fadd8f", "#f3a33c", "#dd5a27", "#9b1b30", "#4d0a2b")
"""Of links, from nearly idle to always busy."""


def cluster_scene(entry: Drawn, speeds: bool = True, shades: Sequence[str] | None = None) -> Scene:
    """Return the picture of a placement: panels ``cluster`` and ``jobs``.

    Args:
        entry: what it shows.
        speeds: whether it is known what jobs send, and so how busy links are and how slow jobs.
        shades: the colour of each job; by default neighbours have different ones.
    """
    verdict, problem, plan = entry.verdict(), entry.problem, entry.plan
    flow = flows(problem, plan, verdict.rates)
    single, level = problem.fleet.n_gpus <= MOST_GPUS, _level(problem, flow)
    boxes, scale, named = _arrange(problem, plan, flow, level, single)
    units, unit, names = boxes[0], flow.members[level], words.of_levels(problem, level)
    tiles = gpu_tiles(problem, plan, units, named) if single else band_tiles(problem, plan, units, unit)
    job_texts = words.jobs(problem, plan, verdict.rates) if speeds else words.sizes(problem, plan)
    unit_texts = words.nodes(problem, plan) if level == 0 else words.groups(problem, plan, unit, names[0])
    colour = list(shades or job_colours(tiles, len(plan.jobs)))
    busy = Key("links, the upper edges of boxes: busy 0 to 100% of the time", LOADS, "ramp")
    keys, pixels = [*[busy] * speeds, Key("idle", (PALE,))], scale * DPI
    face = np.array([*colour, PALE, PALE], dtype=object)[tiles.job].tolist()
    paper, line = "#ffffff" if pixels > DETAIL else "", 0.9 if pixels > 14 else 0.4
    tile_texts = words.tiles(tiles, unit_texts, job_texts)
    panel = _frames(boxes, scale).add(Boxes(tiles.box, face, tile_texts, edge=paper, line=line))
    down = np.bincount(unit, weights=problem.fleet.usable, minlength=len(units)) == 0
    hatched = units[down] if single else tiles.box[tiles.job == lay.DOWN]
    if len(hatched):
        keys.append(Key("not usable", (PALE, SHADE), "hatch"))
        panel = panel.add(Boxes(hatched, "", edge=SHADE, line=0.6, hatch=True))
    if single:
        mark, row = lay.marks(problem, plan, units, named)
        look, told = [colour[j] for j in plan.job[row].tolist()], words.rows(problem, plan, row, job_texts)
        keys += [Key("parameter servers and other tasks without GPU", ("#999999",), "D")] * bool(len(mark))
        size = (mark[:, 2] * 0.6 * (scale * 72)).tolist()
        panel = panel.add(Dots(mark[:, :2], look, size, "D", INK, told) if len(mark) else None)
    else:
        keys.append(Key("jobs fill a box in proportion to their GPUs", ("#999999",)))
    links = [unit_texts]
    if speeds:
        panel = panel.add(*_all_links(flow, level, boxes, pixels))
        links = [words.link_texts(problem, flow, level + i, names[i]) for i in range(len(boxes) - 1)]
        links[0] = tuple(map("<br>".join, zip(unit_texts, links[0], strict=True)))
        keys += [Key("below: busiest link of its nodes", (LOADS[2],), "line")] * bool(level)
        keys.append(Key("unused link", (UNUSED,), "line"))
    tops = (each[:, :2] + each[:, 2:] * [0.5, 0] for each in boxes)
    panel = panel.add(*(Dots(top, shape="", texts=texts) for top, texts in zip(tops, links, strict=False)))
    panel = panel.add(_names(panel, tiles, plan.jobs, colour))
    if named:
        inset = (2 * PAD, PAD, NAME) if single else (2 * PAD, 0.0, lay.BAND_NAME)
        own = words.typed(problem, names[0]) if level == 0 else names[0]
        panel = panel.add(_captions(units, own, scale, inset, GREY))
    for each, of_group in zip(boxes[1:-1], names[1:-1], strict=True):
        panel = panel.add(_captions(each, of_group, scale, (lay.GAP, 0.15, lay.HEAD - 0.3), INK))
    panel, more = replace(panel, keys=keys), words.more(problem, plan, verdict)
    if not speeds:
        held = np.bincount(tiles.job[tiles.job >= 0], tiles.amount[tiles.job >= 0], len(plan.jobs)).astype(float)
        listing = _listing(plan.jobs, colour, held, job_texts, "jobs and their GPUs", ".6g")
        return Scene(words.title(problem), " · ".join(filter(None, more)), [[panel], [listing]])
    listing = _listing(plan.jobs, colour, verdict.rates.slowdown, job_texts, "jobs and their slowdowns", ".3f")
    below = "" if entry.bound is None else f"bound {short(entry.bound, 6)}"
    return Scene(words.title(problem), entry.worth(verdict.objective, below, *more), [[panel], [listing]])


def _frames(boxes: Sequence[FloatArray], scale: float) -> Panel:
    width, height = boxes[-1][0, 2:].tolist()
    axes = Axis(-0.05, width + 0.05), Axis(height + 0.05, -0.05)
    panel = Panel("cluster", *axes, (), left=0.2, width=width * scale, height=height * scale, below=0.1, bare=True)
    edge = 0.8 if scale * DPI > DETAIL else 0.4
    frames = [Boxes(each, "", edge="#9aa3ad", line=edge) for each in boxes[1:-1] or boxes[1:]]
    return panel.add(*frames, Boxes(boxes[0], "#f7f8fa", edge=PALE))


def fleet_scene(
    fleet: Fleet, held: Mapping[str, Mapping[str, Sequence[int]]], shades: Sequence[str] | None = None
) -> Scene:
    """Return the picture of a fleet whose GPUs jobs, coloured by `shades`, hold: by job and name of the node."""
    place = {node: i for i, node in enumerate(fleet.names)}
    rows: list[tuple[int, int, int]] = []
    grants: list[tuple[int, int]] = []
    taken: set[tuple[str, int]] = set()
    for j, (job, nodes) in enumerate(held.items()):
        for node, gpus in nodes.items():
            if node not in place:
                raise InstanceError(f"plan[{job!r}]", f"{node!r} is not a node of the fleet")
            for gpu in gpus:
                if not 0 <= gpu < fleet.gpus[place[node]] or (node, gpu) in taken:
                    raise InstanceError(f"plan[{job!r}]", f"GPU {gpu} of {node} is not there, or held twice")
                taken.add((node, gpu))
            grants += [(len(rows), gpu) for gpu in gpus]
            rows.append((j, place[node], len(gpus)))
    sizes = np.bincount([j for j, _, _ in rows], [n for _, _, n in rows], len(held)).astype(int).tolist()
    one, kinds = np.zeros((1, 1)), len(fleet.gpu_types)
    speeds = SpeedModel(("job",), fleet.gpu_types, np.ones((kinds, 1)), one[0], one[0], one, one)
    jobs = tuple(GangJob(job, "job", (n,)) for job, n in zip(held, sizes, strict=True))
    jobs = jobs or (GangJob("nobody", "job", (1,), value=1.0),)  # a batch has a job, if only one that is left out
    of, on, count = np.array(rows, dtype=np.int32).reshape(-1, 3).T
    held_by = np.array(grants, dtype=np.int32).reshape(-1, 2).T
    plan = PlacementPlan(tuple(job.name for job in jobs), of, on, count, count * 0, *held_by)
    scene = cluster_scene(Drawn(PlacementProblem(fleet, jobs, speeds), plan), speeds=False, shades=shades)
    if held:
        return scene
    told, rest = f"0 of {fleet.n_gpus:,} GPUs in use", [row for row in scene.rows if row[0].name != "jobs"]
    return Scene(scene.title.replace("1 job on", "no job on"), told, rest)


def _level(problem: PlacementProblem, flow: Flows) -> int:
    """Return the level of the tree whose members are the units, 0 for nodes: the lowest that is not too crowded."""
    if problem.fleet.n_gpus <= MOST_GPUS:
        return 0
    counts = [int(members.max()) + 1 for members in flow.members[: len(flow.bandwidth)]]
    level = next((i for i, n in enumerate(counts) if n <= MOST_UNITS), len(counts) - 1)
    return level - 1 if level and counts[level] < LEAST_UNITS else level


def _arrange(
    problem: PlacementProblem, plan: PlacementPlan, flow: Flows, level: int, single: bool
) -> tuple[list[FloatArray], float, bool]:
    """Return the boxes, inches of their unit, and whether units are named: only where names can be read."""
    first, parents = np.unique(flow.members[level], return_index=True)[1], []
    for members in flow.members[level + 1 :]:
        parents.append(members[first])
        first = np.unique(members, return_index=True)[1]
    cores_only = bool(plan.servers.any()) or any(problem.jobs[j].worker.gpu == 0 for j in set(plan.job.tolist()))
    named = True
    while True:
        size = lay.node_size(int(problem.fleet.gpus.max()), cores_only, named)
        boxes = lay.arrange(parents, size if single else (lay.BAND, lay.BAND + lay.BAND_NAME * named))
        scale = min(LARGEST, *ROOM / boxes[-1][0, 2:])
        if not named or fit("", 1.0, (NAME if single else lay.BAND_NAME) * scale, (SMALLEST_NAME, 9.0)):
            return boxes, scale, named
        named = False


def job_colours(tiles: Tiles, jobs: int) -> list[str]:
    """Return a colour for each job: jobs in one unit or in two that follow each other have others, if there are enough.

    Jobs that hold most choose first, the colour that fewest of their neighbours have, then the one used least.
    """
    placed = tiles.job >= 0
    on: dict[int, set[int]] = {}
    for unit, job in zip(tiles.unit[placed].tolist(), tiles.job[placed].tolist(), strict=True):
        on.setdefault(unit, set()).add(job)
    near: list[set[int]] = [set() for _ in range(jobs)]
    for unit, here in on.items():
        for job in here:
            near[job] |= here | on.get(unit - 1, set()) | on.get(unit + 1, set())
    palette = colours(min(MOST_COLOURS, max(jobs, len(FEW))))
    chosen, used = np.full(jobs, -1), np.zeros(len(palette))
    held = np.bincount(tiles.job[placed], weights=tiles.amount[placed], minlength=jobs)
    for j in np.argsort(-held, kind="stable").tolist():
        taken = np.bincount(chosen[[i for i in near[j] if chosen[i] >= 0]], minlength=len(palette))
        chosen[j] = np.lexsort((used, taken))[0]
        used[chosen[j]] += 1
    return [palette[c] for c in chosen.tolist()]


def _all_links(flow: Flows, level: int, boxes: Sequence[FloatArray], pixels: float) -> Iterator[Lines]:
    """Yield the links of boxes, whose units are of a level of the tree; of groups also the busiest link inside."""
    for i, each in enumerate(boxes[:-1], level):
        yield from _links(each, flow.busy(i), flow.gangs(i), pixels, thin=i == 0)
    if level:
        units, unit = boxes[0], flow.members[level]
        busy = np.zeros(len(units))
        np.maximum.at(busy, unit, flow.busy(0))
        below = units + (units[:, [3]] + 0.2) * [0, 1, 0, 0]
        yield from _links(below, busy, np.bincount(unit, flow.gangs(0)), pixels)


def _links(boxes: FloatArray, busy: FloatArray, gangs: NDArray[Any], pixels: float, thin: bool = False) -> list[Lines]:
    """Return the links of boxes as their upper edges, those that gangs cross on top and wider, if not `thin`, visible.

    A pixel of the map is a GPU's.
    """
    usual, used = float(np.clip(pixels / 8, 0.5, 2.4)), gangs > 0
    colour = np.where(used, np.array(mixed(busy, LOADS), dtype=object), UNUSED)
    width = np.maximum(np.where(used, usual * (1.4 + busy), usual * 0.6), np.where(used, 1.8, 0.8) * (not thin))
    edges = boxes[:, None, :2] + boxes[:, None, 2:] * np.array([[[0, 0]], [[1, 0]]]).reshape(1, 2, 2)
    return [Lines(edges[mine], colour[mine].tolist(), width[mine].tolist()) for mine in (~used, used)]


def _names(picture: Panel, tiles: Tiles, jobs: tuple[str, ...], colour: list[str]) -> Words | None:
    """Return the names of jobs on what they hold side by side."""
    joint, owner = lay.runs(tiles)
    papers = [colour[j] for j in owner.tolist()]
    return names_in(joint, [[jobs[j]] for j in owner.tolist()], picture.scale, (SMALLEST_NAME, 9.0), papers, halo=True)


def _captions(
    boxes: FloatArray, names: tuple[str, ...], scale: float, inset: tuple[float, float, float], colour: str
) -> Words | None:
    """Return names in the upper left corners of boxes: `inset` is where they begin and how high their strip is."""
    found = []
    for (x, y, width, _), name in zip(boxes.tolist(), names, strict=True):
        size = fit(name, (width - 1.5 * inset[0]) * scale, inset[2] * scale, (SMALLEST_NAME, 9.0))
        if size:
            found.append((x + inset[0], y + inset[1] + inset[2] / 2, name, size, colour))
    return Words.of(found, "left")


def _listing(
    jobs: tuple[str, ...],
    colour: list[str],
    slowdown: FloatArray,
    texts: tuple[str, ...],
    heading: str,
    digits: str,
) -> Panel:
    """Return the list of jobs with their slowdowns, or other numbers, column by column; of many the greatest."""
    placed = np.flatnonzero(np.isfinite(slowdown))
    listed = np.sort(placed[np.argsort(-slowdown[placed], kind="stable")[:LISTED]]).tolist()
    most = f": the {len(listed)} greatest of {len(placed):,}" if len(placed) > len(listed) else ""
    rows, step = max(1, -(-len(listed) // COLUMNS)), (WIDTH - 0.5) / COLUMNS
    at = np.array([[i // rows * step, i % rows + 0.5] for i in range(len(listed))]).reshape(-1, 2)
    letters = int((step - 0.9) * 72 / 9 / CHARACTER)
    names = [jobs[j] if len(jobs[j]) <= letters else f"{jobs[j][: letters - 1]}…" for j in listed]
    squares = np.concatenate([at - [0, 0.3], np.tile([0.12, 0.6], (len(at), 1))], axis=1)
    marks: list[Mark] = [
        Boxes(squares, [colour[j] for j in listed], [texts[j] for j in listed]),
        Words(at + np.array([0.2, 0]), names, align="left"),
        Words(at + np.array([step - 0.25, 0]), [f"{slowdown[j]:{digits}}" for j in listed], colour=GREY, align="right"),
    ]
    axes = Axis(0, WIDTH - 0.5), Axis(rows, 0)
    panel = Panel("jobs", *axes, marks, left=0.25, width=WIDTH - 0.5, height=rows * LINE, below=0, bare=True)
    return replace(panel, heading=heading + most)
