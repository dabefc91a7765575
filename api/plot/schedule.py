"""Gantt charts of schedules: jobs over time with their GPUs, releases and deadlines; of many jobs the GPUs in use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gangplan.instances.quantities import counted
from gangplan.instances.schedule import NodePool, SchedulePlan, ScheduleProblem, total
from gangplan.instances.workload import Workload
from gangplan.simulator.trace import Outcome

from ..units import utilisation
from .colours import BAND, INK, SHADE
from .partition import Drawn
from .scene import LEFT, RIGHT, Axis, Boxes, Dots, FloatArray, Key, Lines, Panel, Scene, names_in
from .simulation import JobClasses, Span, classify, jobs_panel, load_panel, queue_panel, small, words

MOST_JOBS, ROW = 48, 0.24
"""Jobs that have a row each, and inches of it; of more, lanes show who holds which GPUs."""
LATE = "#b4342d"
"""Of deadlines, and of jobs that are left out."""


def schedule_scene(entries: Sequence[Drawn]) -> Scene:
    """Return the picture of schedules on one axis of time: panels ``jobs`` if they are few, ``load`` and ``queue``."""
    finished = []
    for entry in entries:
        verdict = entry.verdict()
        finished.append((verdict.finish, describe(entry, verdict.objective, verdict.finish)))
    problem = entries[0].problem
    times = [job.release for job in problem.jobs]
    times += [float(t) for finish, _ in finished for t in finish[~np.isnan(finish)]]
    due = [job.deadline for job in problem.jobs if job.deadline is not None and job.deadline <= 1.3 * max(times)]
    span = Span.of(0.0, 1.02 * max([*times, *due]), "time")
    rows: list[list[Panel]] = []
    for entry, (finish, told) in zip(entries, finished, strict=True):
        outcome, classes = as_outcome(entry.problem, entry.plan, finish)
        panels = [load_panel(outcome, span, classes), queue_panel(outcome, span)]
        if len(problem.jobs) <= MOST_JOBS:
            panels.insert(0, _rows(entry, span, finish, classes))
        elif small(outcome):
            panels.insert(0, jobs_panel(outcome, span, classes))
        panels[0] = replace(panels[0], heading=f"{entry.name} · {told}" if len(entries) > 1 else "")
        if len(panels) == 3:
            panels[1] = replace(panels[1], height=1.4)
        rows += [[replace(panel, width=RIGHT - LEFT)] for panel in panels]
    jobs, capacity = len(problem.jobs), problem.capacity
    where = counted(total(capacity), "GPU")
    if isinstance(capacity, NodePool):
        where = f"{capacity.nodes:,} nodes of {counted(capacity.gpus, 'GPU')}"
    title = f"{jobs:,} {'job' if jobs == 1 else 'jobs'} on {where}"
    return Scene(title, finished[0][1] if len(entries) == 1 else f"{len(entries)} plans on one axis of time", rows)


def describe(entry: Drawn, objective: float, finish: FloatArray) -> str:
    """Return what a schedule is worth, in words."""
    problem, runs = entry.problem, entry.plan.degree >= 0
    last = float(np.nanmax(finish)) if runs.any() else 0.0
    used = f"utilisation {utilisation(problem, entry.plan, finish):.1%} to {words(last)}" if last else ""
    left = f"{int((~runs).sum())} left out" if not runs.all() else ""
    return entry.worth(objective, left, used)


def as_outcome(problem: ScheduleProblem, plan: SchedulePlan, finish: FloatArray) -> tuple[Outcome, JobClasses]:
    """Return what a plan would be as a simulated schedule, and the classes of its jobs by number of GPUs."""
    chosen = dict(_chosen(plan))
    size = np.array([job.degrees[chosen.get(j, 0)] for j, job in enumerate(problem.jobs)])
    lasts = np.array([job.durations[chosen.get(j, 0)] for j, job in enumerate(problem.jobs)])
    release = np.array([job.release for job in problem.jobs])
    capacity, runs = problem.capacity, plan.degree >= 0
    start, end = np.where(runs, plan.start, np.inf), np.where(runs, finish, np.inf)
    if len(plan.job):
        job, node, held = plan.job, plan.node, plan.gpus
        nodes = (capacity.nodes, capacity.gpus) if isinstance(capacity, NodePool) else (total(capacity), 1)
        room = np.full(nodes[0], nodes[1], dtype=np.int32)
    else:
        job = np.flatnonzero(runs).astype(np.int32)
        node, held, room = job * 0 - 1, size[job].astype(np.int32), np.array([total(capacity)])
    work, ones = Workload(plan.jobs, release, size, lasts), np.ones(len(job))
    none = np.full(len(job), -1, dtype=np.int32)
    return Outcome(work, room, start, end, job, node, none, held, ones, start[job], end[job], ones), classify(work)


def _chosen(plan: SchedulePlan) -> list[tuple[int, int]]:
    """Return the jobs that run, and which of its degrees each has."""
    return [(j, d) for j, d in enumerate(plan.degree.tolist()) if d >= 0]


def _rows(entry: Drawn, span: Span, finish: FloatArray, classes: JobClasses) -> Panel:
    """Return the panel with a row a job: from its release to its start a line, then a box; its deadline a mark."""
    problem, plan = entry.problem, entry.plan
    runs = plan.degree >= 0
    order = np.lexsort((np.where(runs, plan.start, [job.release for job in problem.jobs]), ~runs))
    row = np.argsort(order)
    names = [problem.jobs[j].name for j in order.tolist()]
    ticks = [(y + 0.5, name if len(name) <= 14 else f"{name[:13]}…") for y, name in enumerate(names)]
    height = max(ROW * len(names), 0.7)
    panel = Panel("jobs", span.axis, Axis(len(names), 0.0, ticks=ticks), (), height=height, width=RIGHT - LEFT)
    odd = np.array([[0.0, y, span.axis.high, 1.0] for y in range(1, len(names), 2)]).reshape(-1, 4)
    release = np.array([job.release for job in problem.jobs])
    at = np.stack([release, np.where(runs, plan.start, release)], axis=1)
    waits = [[(x, y + 0.5), (z, y + 0.5)] for (x, z), y in zip(span.at(at).tolist(), row.tolist(), strict=True)]
    released = np.stack([span.at(release), row + 0.5], axis=1)
    told = [f"{job.name}<br>released at {words(job.release, 4)}" for job in problem.jobs]
    panel = panel.add(
        Boxes(odd, BAND),
        Lines(waits, SHADE, 1.2, name="waits from its release on"),
        Dots(released, SHADE, 6.0, "|", SHADE, told, "waits from its release on"),
    )
    keys = [*classes.keys, Key("waits from its release on", (SHADE,), "line")]
    boxes = np.stack([span.at(plan.start), row + 0.1, span.at(finish) - span.at(plan.start), np.full(len(row), 0.8)], 1)
    mine, of = np.flatnonzero(runs), [classes.keys[k] for k in classes.of[runs].tolist()]
    told, shades = [_text(entry, j, finish) for j in mine.tolist()], [key.colours[0] for key in of]
    panel = panel.add(Boxes(boxes[mine], shades, told, [key.label for key in of]))
    texts = [[counted(n, "GPU"), str(n)] for n in [problem.jobs[j].degrees[d] for j, d in _chosen(plan)]]
    panel = panel.add(names_in(boxes[mine], texts, panel.scale, paper=shades))
    due = [(j, job.deadline) for j, job in enumerate(problem.jobs) if job.deadline is not None]
    later = sum(deadline > span.last for _, deadline in due)
    due = [(j, deadline) for j, deadline in due if deadline <= span.last]
    if due or later:
        x = span.at(np.array([deadline for _, deadline in due], dtype=np.float64))
        told = [f"{problem.jobs[j].name}<br>deadline {words(deadline, 4)}" for j, deadline in due]
        at = np.stack([x, row[np.array([j for j, _ in due], dtype=np.int64)] + 0.5], axis=1)
        panel = panel.add(Dots(at, LATE, 7.0, "D", "#ffffff", told, "deadline"))
        keys.append(Key("deadline" + (f", {later} later ones are not shown" if later else ""), (LATE,), "D"))
    if not runs.all():
        out = np.flatnonzero(~runs)
        told = [f"{problem.jobs[j].name}<br>left out" for j in out.tolist()]
        panel = panel.add(Dots(released[out], LATE, 7.0, "x", LATE, told, "left out"))
        keys.append(Key("left out", (LATE,), "x"))
    if problem.goal == "makespan" and entry.bound is not None:
        end = float(span.at(np.array(entry.bound)))
        keys.append(Key("bound: no plan is better", look="dash"))
        panel = panel.add(Lines([[(end, 0.0), (end, len(names))]], INK, 1.3, dash=True, name=keys[-1].label))
    return replace(panel, keys=keys)


def _text(entry: Drawn, j: int, finish: FloatArray) -> str:
    job, plan = entry.problem.jobs[j], entry.plan
    start, end = float(plan.start[j]), float(finish[j])
    choice = "" if len(job.degrees) == 1 else f", one of {', '.join(map(str, job.degrees))}"
    lines = [job.name, counted(job.degrees[plan.degree[j]], "GPU") + choice]
    lines.append(f"{words(start, 4)} to {words(end, 4)}: {words(end - start)}")
    lines.append(f"released at {words(job.release, 4)}, waited {words(start - job.release)}")
    if job.deadline is not None:
        lines.append(f"deadline {words(job.deadline, 4)}: {words(job.deadline - end)} to spare")
    if nodes := plan.node[plan.job == j].tolist():
        some = ", ".join(map(str, nodes[:12])) + "…" * (len(nodes) > 12)
        lines.append(f"on {'node' if len(nodes) == 1 else 'nodes'} {some}")
    return "<br>".join(lines)
