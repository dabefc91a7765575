"""Pictures of simulated schedules: completion times, who holds what when, the queue, how full the nodes are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.quantities import counted, quantity, scale
from gangplan.instances.workload import Workload
from gangplan.simulator.metrics import means_of_groups, period, summary, waiting_jobs
from gangplan.simulator.metrics.groups import SIZE_NAMES, members
from gangplan.simulator.trace import Outcome

from .calendar import calendar_ticks, date
from .colours import BAND, FEW, INK, SHADE, colours
from .lanes import Lanes, lanes
from .scene import (
    LEFT,
    RIGHT,
    Axis,
    Boxes,
    Dots,
    FloatArray,
    Heat,
    IntArray,
    Key,
    Lines,
    Mark,
    Panel,
    Scene,
    names_in,
)

MOST_ROWS, MOST_LANES = 2000, 400
"""Maximum numbers of rows and GPUs for which jobs are drawn; with more, GPUs in use are."""
SPANS, MOST_NODES = 600, 80
"""Number of spans of time, of which figures are means; maximum number of rows of a heat map."""
SHADES = ("#e9edf2", "#b9d3ea", "#6fa8d6", "#2a72b5", "#0b3c6f")
"""Shades of a node, from idle to full."""
DOWN, RESTORING = "#8c3b3b", "#444b55"
"""Colours of a node that is down, and of a job that is being restored."""
ACROSS = RIGHT - LEFT
"""Inches of the axis of time."""
LANE, HEAT_ROW = 0.09, 0.1
"""Inches of a GPU's lane and of a row of a heat map."""
SPECTRUM = ("#56b4e9", "#009e73", "#b8a800", "#e69f00", "#d55e00", "#cc79a7", "#7a5c9e")
"""Colours of sizes, the small ones first; after Okabe and Ito (2008) as `FEW`."""
MOST_QUEUES = 20
"""Maximum number of queues that are coloured; more are users rather than clusters, and sizes say more."""
TICKS = (
    *((1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min"), (3600.0, "1 h"), (21600.0, "6 h")),
    *((86400.0, "1 d"), (604800.0, "7 d"), (2592000.0, "30 d"), (31536000.0, "365 d")),
)
"""Ticks of a logarithmic axis."""


@dataclass(frozen=True, slots=True)
class JobClasses:
    """Put jobs into a few classes that colours tell apart: entries of a legend, and that of each job, int (n,)."""

    keys: tuple[Key, ...]
    of: IntArray


@dataclass(frozen=True, slots=True)
class Span:
    """Hold the axis of time that schedules share, its first and last second, and the seconds of its unit."""

    first: float
    last: float
    factor: float
    axis: Axis

    @classmethod
    def of(cls, first: float, last: float, label: str, epoch: float | None = None) -> Span:
        """Return the axis from `first` to `last`, seconds; `label` is followed by the unit, or `epoch` is at 0."""
        last = last if last > first else first + 1.0
        factor, name = scale(last - first, "s")
        if epoch is not None:
            ticks = [((at - first) / factor, words) for at, words in calendar_ticks(first, last, epoch)]
            return cls(first, last, factor, Axis(0, (last - first) / factor, "", ticks, grid=True, link="time"))
        return cls(first, last, factor, Axis(0, (last - first) / factor, f"{label}, {name}", grid=True, link="time"))

    @property
    def edges(self) -> FloatArray:
        """The edges of spans, seconds, float (SPANS + 1,)."""
        return np.linspace(self.first, self.last, SPANS + 1)

    def at(self, seconds: FloatArray) -> FloatArray:
        """Return times on the axis."""
        return (np.clip(seconds, self.first, self.last) - self.first) / self.factor


def simulation_scene(outcomes: Mapping[str, Outcome], epoch: float | None = None) -> Scene:
    """Return the picture of schedules of one workload, by the name of their policy: what holds of all, then each.

    Panels are ``jct``, and for each policy ``jobs``, ``queue`` and, if GPUs were not only counted, ``nodes``. If the
    clock shows `epoch` at 0, seconds from 1970, the axis of time is the calendar's.
    """
    one = next(iter(outcomes.values()))
    periods = [period(outcome) for outcome in outcomes.values()]
    span = Span.of(min(p[0] for p in periods), max(p[1] for p in periods), "time since the first submission", epoch)
    classes = classify(one.workload)
    rows = [[_curves(outcomes)]]
    for policy, outcome in outcomes.items():
        first = (jobs_panel if small(outcome) else load_panel)(outcome, span, classes)
        rows += [[replace(first, heading=_heading(policy, outcome))], [queue_panel(outcome, span)]]
        rows += [[_heat(outcome, span)]] if outcome.row_node.min(initial=0) >= 0 else []
    room = one.room.tolist()
    several = len({tuple(outcome.room.tolist()) for outcome in outcomes.values()})
    alike = f"{len(room):,} {'node' if len(room) == 1 else 'nodes'} of {room[0]} GPUs"
    cluster = alike if len(set(room)) == 1 else f"{len(room):,} nodes, {one.n_gpus:,} GPUs"
    cluster = cluster if several == 1 else f"{several} clusters"
    began = "" if epoch is None else f" · from {date(span.first + epoch):%A %d %B %Y %H:%M}"
    only = " · GPUs only counted" if (one.row_node < 0).any() else ""
    return Scene(
        f"{one.workload.n_jobs:,} jobs on {cluster}",
        f"{words(span.last - span.first)} from the first submission to the last finish{began}{only}",
        rows,
    )


def _heading(policy: str, outcome: Outcome) -> str:
    m = summary(outcome)
    parts = [policy, f"mean JCT {words(m.mean_jct)}", f"p99 {words(m.p99_jct)}", f"mean wait {words(m.mean_wait)}"]
    parts += [f"utilisation {m.utilisation:.1%}", f"{m.blocking_rate:.1%} rejected" if m.blocking_rate else ""]
    parts += [f"{m.interruptions:.2g} interruptions a job" if m.interruptions else ""]
    return " · ".join(filter(None, parts))


def _curves(outcomes: Mapping[str, Outcome]) -> Panel:
    """Return the panel with the share of the jobs that are done within each time, of every policy."""
    found = {n: distribution((o.finish - o.workload.submit)[o.admitted]) for n, o in outcomes.items()}
    some = [x for x, _ in found.values() if len(x)]
    low, high = (min(x[0] for x in some), max(x[-1] for x in some)) if some else (1.0, 1.0)
    low, high = float(low) / 1.1, float(max(high, low * 5)) * 1.1
    marks: list[Mark] = []
    shades = dict(zip(outcomes, colours(len(outcomes)), strict=True))
    for policy, (x, y) in found.items():
        line = steps(np.array([low, *x, high]), np.array([0.0, *y, y.max(initial=0.0)]))
        told = [f"{policy}: {share:.1%} within {words(at)}" for at, share in zip(x.tolist(), y.tolist(), strict=True)]
        marks.append(Lines([line], shades[policy], 1.7, name=policy))
        marks.append(Dots(np.stack([x, y], axis=1), shape="", texts=told, name=policy))
    axis = Axis(low, high, "job completion time (JCT): from submission to finish", ticks(low, high), True, True)
    share = Axis(0, 1.01, "jobs done within it", [(k / 5, f"{k * 20}%") for k in range(6)], grid=True)
    keys = [Key(policy, (shade,), "line") for policy, shade in shades.items() if policy]
    return Panel("jct", axis, share, marks, keys)


def small(outcome: Outcome) -> bool:
    """Return whether each job of a schedule can be seen."""
    return len(outcome.row_job) <= MOST_ROWS and outcome.n_gpus <= MOST_LANES


def load_panel(outcome: Outcome, span: Span, classes: JobClasses) -> Panel:
    """Return the panel of GPUs in use over time by class, with those that there are."""
    edges, amount = span.edges, outcome.row_gpus * outcome.row_share
    time = (outcome.row_start, outcome.row_end, edges)
    stack = np.cumsum(means_of_groups(classes.of[outcome.row_job], len(classes.keys), amount, *time), axis=0)
    there = outcome.n_gpus - _down(outcome, np.zeros(len(outcome.room), dtype=np.int64), edges)[0]
    at, below = span.at(edges), np.zeros(SPANS)
    marks: list[Mark] = []
    for key, top in zip(classes.keys, stack, strict=True):
        told = [f"{key.label}: {amount:.4g} GPUs" for amount in (top - below).tolist()]
        marks.append(area(at, below, top, key.colours[0], told, key.label))
        below = top
    marks.append(Lines([steps(at, there)], INK, 0.9, dash=True, name="GPUs there are"))
    keys = [*classes.keys, Key("GPUs there are", look="dash")]
    y = Axis(0, float(there.max()) * 1.04, "GPUs in use", grid=True)
    return Panel("load", span.axis, y, marks, keys, height=2.6, width=ACROSS)


def queue_panel(outcome: Outcome, span: Span) -> Panel:
    """Return the panel of how many jobs wait over time."""
    at, waiting = span.at(span.edges), waiting_jobs(outcome).means(span.edges)
    marks = [area(at, np.zeros(SPANS), waiting, SHADE, [f"{count:.4g} jobs wait" for count in waiting.tolist()])]
    most = float(waiting.max())
    ticks = None if most > 2 else [(0, "0"), (1, "1"), (2, "2")][: 2 + (most > 1)]
    y = Axis(0, max(1.0, most * 1.05), "waiting", ticks, grid=True)
    return Panel("queue", span.axis, y, marks, height=0.75, width=ACROSS)


def area(at: FloatArray, low: FloatArray, high: FloatArray, shade: str, texts: list[str], name: str = "") -> Boxes:
    """Return what lies between two curves of steps as boxes, steps of the same height as one."""
    curves = np.round([low, high], 9)
    first = np.flatnonzero(np.append(True, (np.diff(curves) != 0).any(axis=0)))
    last = np.append(first[1:], len(low))
    boxes = np.stack([at[first], low[first], at[last] - at[first], (high - low)[first]], axis=1)
    seen = boxes[:, 3] > 1e-9
    return Boxes(boxes[seen], shade, [texts[i] for i in first[seen]], name, crisp=True)


def jobs_panel(outcome: Outcome, span: Span, classes: JobClasses) -> Panel:
    """Return the panel of jobs on nodes over time, a lane a GPU."""
    found, flat = lanes(outcome), bool((outcome.row_node < 0).any())
    low, high, end = found.node_low, found.node_high, span.axis.high
    start, wide = span.at(found.start), span.at(found.end) - span.at(found.start)
    at = np.stack([start, found.low, wide, found.high - found.low], axis=1)
    told = _texts(outcome, found, classes, span.first)
    height = float(np.clip(high[-1] * LANE, 1.6, 9.0))
    nodes = np.stack([np.zeros(len(low)), low, np.full(len(low), end), high - low], axis=1)
    names = [] if flat else node_ticks((low + high) / 2, list(map(str, range(len(low)))), height)
    y = Axis(float(high[-1]), 0.0, "GPUs" if flat else "node", names)
    panel = Panel("jobs", span.axis, y, [Boxes(nodes, BAND)], height=height, width=ACROSS)
    restored, down = Key("restored", (RESTORING,)), Key("node down", (DOWN,))
    kind = np.where(found.restoring, len(classes.keys), classes.of[found.job])
    of = [[*classes.keys, restored][k] for k in kind.tolist()]
    lane = "#ffffff" if height / high[-1] * 72 > 3 else ""
    panel = panel.add(Boxes(at, [key.colours[0] for key in of], told, [key.label for key in of], lane))
    if len(outcome.down_node):
        left, node = span.at(outcome.down_start), outcome.down_node
        gone = np.stack([left, low[node], span.at(outcome.down_end) - left, (high - low)[node]], axis=1)
        panel = panel.add(Boxes(gone, DOWN, [down.label] * len(gone), down.label))
    running = np.flatnonzero(~found.restoring)
    names_of = [[outcome.workload.names[j]] for j in found.job[running].tolist()]
    papers = [of[i].colours[0] for i in running.tolist()]
    roomy = panel.scale[0], panel.scale[1] * 1.3  # the name of a job on one GPU may fill its lane
    panel = panel.add(names_in(at[running], names_of, roomy, (5.5, 8.0), papers))
    extra = [restored] * bool(found.restoring.any()) + [down] * bool(len(outcome.down_node))
    return replace(panel, keys=[*classes.keys, *extra])


def _heat(outcome: Outcome, span: Span) -> Panel:
    """Return the panel of what share of the GPUs of each node, or of several, is held."""
    m, edges = len(outcome.room), span.edges
    each = -(-m // MOST_NODES)
    group = np.arange(m) // each
    count = int(group[-1]) + 1
    amount = outcome.row_gpus * outcome.row_share
    held = means_of_groups(group[outcome.row_node], count, amount, outcome.row_start, outcome.row_end, edges)
    total = np.bincount(group, weights=outcome.room, minlength=count)
    there = total[:, None] - _down(outcome, group, edges)
    share = np.divide(held, there, out=np.full(held.shape, np.nan), where=there > 1e-6 * total[:, None])
    names = [str(g * each) if each == 1 else f"{g * each}-{min(m, (g + 1) * each) - 1}" for g in range(count)]
    height = float(np.clip(count * HEAT_ROW, 0.7, 4.0))
    y = Axis(count, 0, "node" if each == 1 else "nodes", node_ticks(np.arange(count) + 0.5, names, height))
    heat = Heat(np.clip(share, 0.0, 1.0), (0, 0, span.axis.high, count), SHADES, DOWN, [f"held of {n}" for n in names])
    keys = [Key("0 to 100% of a node's GPUs held", SHADES, "ramp")]
    return Panel("nodes", replace(span.axis, grid=False), y, [heat], keys, height=height, width=ACROSS)


def _down(outcome: Outcome, group: IntArray, edges: FloatArray) -> FloatArray:
    """Return how many GPUs of each group are down, float (groups, spans), given the group of each node."""
    node = outcome.down_node
    time = (outcome.down_start, outcome.down_end, edges)
    return means_of_groups(group[node], int(group.max()) + 1, outcome.room[node], *time)


def classify(workload: Workload) -> JobClasses:
    """Return classes for the jobs of a workload: its queues, those with most work first, or sizes."""
    work: Counter[str] = Counter()
    for queue, seconds in zip(workload.queue, (workload.gpus * workload.duration).tolist(), strict=True):
        work[queue] += seconds
    if 1 < len(work) <= MOST_QUEUES:
        queues = [queue for queue, _ in work.most_common()]
        named = queues if len(queues) <= len(FEW) else queues[: len(FEW) - 1]
        number = {queue: i for i, queue in enumerate(named)}
        keys = [Key(queue or "no queue", (FEW[i],)) for i, queue in enumerate(named)]
        keys += [Key(f"{len(queues) - len(named)} others", (SHADE,))] * (len(queues) > len(named))
        return JobClasses(tuple(keys), np.array([number.get(queue, len(number)) for queue in workload.queue]))
    sizes, of = members(workload, "size")
    return JobClasses(tuple(Key(name, (SPECTRUM[SIZE_NAMES.index(name)],)) for name in sizes), of)


def _texts(o: Outcome, found: Lanes, classes: JobClasses, begin: float) -> list[str]:
    texts = []
    fields = (found.job, found.row, found.restoring, found.start, found.end, found.high - found.low)
    for job, row, restoring, start, end, tall in zip(*(x.tolist() for x in fields), strict=True):
        submit, node, gpu = float(o.workload.submit[job]), int(o.row_node[row]), int(o.row_gpu[row])
        share = f"{o.row_share[row]:.3g} of " if o.row_share[row] < 1 else ""
        held = f"GPU {gpu}" if gpu >= 0 and tall <= 1 else counted(round(tall), "GPU")
        first, wait = words(submit - begin, 4), words(float(o.start[job]) - submit)
        lines = [
            f"{o.workload.names[job]}{': restored' if restoring else ''}",
            share + held + (f" of node {node}" if node >= 0 else ""),
            f"{words(start - begin, 4)} to {words(end - begin, 4)}: {words(end - start)}",
            f"asked for {counted(int(o.workload.gpus[job]), 'GPU')}, {classes.keys[int(classes.of[job])].label}",
            f"submitted at {first}, waited {wait}, done after {words(float(o.finish[job]) - submit)}",
        ]
        if not restoring and o.row_rate[row] != 1:
            lines.append(f"at {o.row_rate[row]:.3g} of its speed")
        texts.append("<br>".join(lines))
    return texts


def steps(at: FloatArray, values: FloatArray) -> FloatArray:
    """Return the corners of a curve of steps: each value from its place to the next, of which there may be one more."""
    x = np.repeat(at, 2)[1:] if len(at) == len(values) else np.repeat(at, 2)[1:-1]
    return np.stack([x, np.repeat(values, 2)[: len(x)]], axis=1)


def node_ticks(at: NDArray[np.floating], names: list[str], inches: float) -> list[tuple[float, str]]:
    """Return ticks of nodes on an axis that is so long, no more than can be read."""
    every = max(1, int(np.ceil(len(at) * 0.14 / inches)))
    return list(zip(at.tolist(), names, strict=True))[::every]


def words(seconds: float, digits: int = 3) -> str:
    """Return a time with `digits` significant digits, in the unit that suits it."""
    return quantity(seconds, "s", digits)


def ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return the ticks of a logarithmic axis from `low` to `high` seconds."""
    short = [(10.0**k, f"{10.0**k:g} s") for k in range(int(np.floor(np.log10(low))), 0)]
    return [tick for tick in (*short, *TICKS) if low <= tick[0] <= high]


def distribution(jct: FloatArray, most: int = 1000) -> tuple[FloatArray, FloatArray]:
    """Return a curve of at most `most` steps: completion times, ascending, and the share of jobs done within each.

    A logarithmic axis has no 0: what takes no time is put at the shortest time there is.
    """
    ordered = np.sort(jct)
    n = len(ordered)
    rank = np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))
    positive = ordered[ordered > 0]
    return np.maximum(ordered[rank], positive[0] if len(positive) else 1.0), (rank + 1) / max(n, 1)
