"""The cluster under a placement, ready to draw; the two renderers draw the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances import verify
from gangplan.instances.placement import PlacementPlan, PlacementProblem

from . import cluster_words as words
from .cluster_colours import job_colours
from .cluster_layout import Layout, arrange
from .cluster_lines import links
from .cluster_links import Flows, flows
from .cluster_tiles import BAND, BAND_NAME, NAME, Tiles, band_tiles, gpu_tiles, marks, node_size, runs
from .layout import FloatArray, IntArray

MOST_GPUS, MOST_UNITS, LEAST_UNITS = 12_000, 1_600, 16
"""GPUs that are drawn one by one. For more, nodes or groups of them are boxes: as many as are not too many."""
ROOM, LARGEST = (12.6, 8.6), 0.25
"""Inches of the map, and of a GPU at most."""
SMALLEST_NAME = 5.0
"""Points of the names of nodes, below which they are left out."""
CHARACTER = 0.62
"""Width of a character in its size."""


@dataclass(frozen=True, slots=True)
class ClusterPicture:
    """A placement; lengths in the unit of the layout, y down.

    Attributes:
        title, subtitle: what it is, and how good.
        layout: where the units lie: nodes, or the groups that stand for theirs; and the groups above them.
        scale: inches of a unit of length.
        units, groups: what these are called; the second per level.
        named: whether the boxes of units have room for their names.
        single: whether a unit is a node with its GPUs, and not filled in proportion.
        usable: whether any node of each unit is.
        unit_texts: all there is to say of each.
        tiles, tile_texts: the GPUs, or what each job has of a unit.
        runs, run_job: rectangles of tiles side by side that one job holds, float (r, 4), and whose.
        marks, mark_job, mark_texts: tasks without a GPU: middle and size, float (k, 3).
        lines, busy, gangs, line_texts: the links, float (l, 2, 2), the share of the time each is busy, and how many
            gangs cross it. Where units are not single, the last ones are their left sides, for the busiest link inside.
        jobs, job_texts, colours: of each job its name, all there is to say, and its colour.
        slowdown: of each job, infinite if it is left out.
    """

    title: str
    subtitle: str
    layout: Layout
    scale: float
    units: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    named: bool
    single: bool
    usable: tuple[bool, ...]
    unit_texts: tuple[str, ...]
    tiles: Tiles
    tile_texts: tuple[str, ...]
    runs: FloatArray
    run_job: IntArray
    marks: FloatArray
    mark_job: IntArray
    mark_texts: tuple[str, ...]
    lines: FloatArray
    busy: FloatArray
    gangs: IntArray
    line_texts: tuple[str, ...]
    jobs: tuple[str, ...]
    job_texts: tuple[str, ...]
    colours: tuple[str, ...]
    slowdown: FloatArray

    def size(self, text: str, width: float, height: float, largest: float = 9.0) -> float:
        """Return the points in which `text` fits into a box, at most `largest`; 0 where it would be too small."""
        inches = min(height * 0.8, width * 0.94 / (CHARACTER * max(1, len(text)))) * self.scale
        return min(largest, inches * 72) if inches * 72 >= SMALLEST_NAME else 0.0

    def slowest(self, most: int) -> list[int]:
        """Return the placed jobs in their order; of more than `most` those that are slowed down most."""
        placed = np.flatnonzero(np.isfinite(self.slowdown))
        found: list[int] = np.sort(placed[np.argsort(-self.slowdown[placed], kind="stable")[:most]]).tolist()
        return found


def compose_cluster(
    problem: PlacementProblem,
    plan: PlacementPlan,
    *,
    name: str = "",
    status: str | None = None,
    bound: float | None = None,
) -> ClusterPicture:
    """Lay out a cluster, give out its GPUs and measure its links.

    Args:
        problem: what the plan answers.
        plan: a feasible plan.
        name: of the batch, for the title.
        status: of the result, for the title.
        bound: no plan is better than this.

    Raises:
        ValueError: if the plan violates a constraint.
    """
    verdict = verify(problem, plan)
    if verdict.objective is None or verdict.rates is None:
        raise ValueError(f"an infeasible plan cannot be drawn: {verdict.violations[0]}")
    fleet, found = problem.fleet, verdict.rates
    flow = flows(problem, plan, found)
    single = fleet.n_gpus <= MOST_GPUS
    level = 0 if single else _level(flow)
    unit = flow.members[level]
    layout, scale, named = _arrange(problem, plan, flow, level, single)
    names = words.of_levels(problem, level)
    of_job = words.jobs(problem, plan, found)
    if single:
        tiles = gpu_tiles(problem, plan, layout.units, named)
        mark, row = marks(problem, plan, layout.units, named)
    else:
        tiles = band_tiles(problem, plan, layout.units, unit)
        mark, row = np.zeros((0, 3)), np.zeros(0, dtype=np.int64)
    of_unit = words.nodes(problem, plan) if level == 0 else words.groups(problem, plan, unit, names[0])
    joint, run_job = runs(tiles)
    lines, busy, gangs, line_texts = links(problem, flow, level, layout, names)
    return ClusterPicture(
        title=f"{name + ': ' if name else ''}{words.title(problem)}",
        subtitle=words.subtitle(problem, plan, verdict, status, bound),
        layout=layout,
        scale=scale,
        units=words.typed(problem, names[0]) if level == 0 else names[0],
        groups=tuple(names[1:]),
        named=named,
        single=single,
        usable=tuple((np.bincount(unit, weights=fleet.usable) > 0).tolist()),
        unit_texts=of_unit,
        tiles=tiles,
        tile_texts=words.tiles(tiles, of_unit, of_job),
        runs=joint,
        run_job=run_job,
        marks=mark,
        mark_job=plan.job[row].astype(np.int64),
        mark_texts=words.rows(problem, plan, row, of_job),
        lines=lines,
        busy=busy,
        gangs=gangs,
        line_texts=line_texts,
        jobs=plan.jobs,
        job_texts=of_job,
        colours=tuple(job_colours(tiles, len(plan.jobs))),
        slowdown=found.slowdown,
    )


def _level(flow: Flows) -> int:
    """Return the level of the tree whose members are the units, 0 for nodes: the lowest that is not too crowded."""
    counts = [flow.count(level) for level in range(len(flow.bandwidth))]
    level = next((i for i, n in enumerate(counts) if n <= MOST_UNITS), len(counts) - 1)
    return level - 1 if level and counts[level] < LEAST_UNITS else level


def _arrange(
    problem: PlacementProblem, plan: PlacementPlan, flow: Flows, level: int, single: bool
) -> tuple[Layout, float, bool]:
    """Return the layout, inches of its unit, and whether units are named: only where names can be read."""
    first = np.unique(flow.members[level], return_index=True)[1]
    parents = []
    for members in flow.members[level + 1 :]:
        parents.append(members[first])
        first = np.unique(members, return_index=True)[1]
    cores_only = bool(plan.servers.any()) or any(problem.jobs[j].worker.gpu == 0 for j in set(plan.job.tolist()))
    for named in (True, False):
        size = (
            node_size(int(problem.fleet.gpus.max()), cores_only, named) if single else (BAND, BAND + BAND_NAME * named)
        )
        layout = arrange(parents, size, ROOM, LARGEST)
        scale = min(LARGEST, ROOM[0] / layout.width, ROOM[1] / layout.height)
        if (NAME if single else BAND_NAME) * scale * 72 * 0.8 >= SMALLEST_NAME:
            return layout, scale, True
    return layout, scale, False
