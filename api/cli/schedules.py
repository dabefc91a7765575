"""Jobs over time on the command line: problems and their plans described, job by job."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances import RampTopology, content_hash
from gangplan.instances.quantities import quantity, scale
from gangplan.instances.schedule import Capacity, NodePool, SchedulePlan, ScheduleProblem, total
from gangplan.instances.verify import ScheduleVerdict

from ..units import column, percent
from .output import facts, table

ROWS = 64
"""Jobs shown; of more, those that are released first."""


def capacity_words(capacity: Capacity) -> str:
    """Return what jobs run on."""
    if isinstance(capacity, NodePool):
        return f"{capacity.nodes} nodes of {capacity.gpus} GPUs, jobs consolidated"
    if isinstance(capacity, RampTopology):
        sides = f"{capacity.communication_groups} x {capacity.racks} x {capacity.servers}"
        return f"blocks of a RAMP cluster of {sides} servers"
    return f"{total(capacity)} GPUs, counted"


def problem_blocks(file: str, problem: ScheduleProblem) -> list[Any]:
    """Return the description of a problem."""
    jobs = problem.jobs
    work = sum(min(d * p for d, p in zip(job.degrees, job.durations, strict=True)) for job in jobs)
    due = sum(job.deadline is not None for job in jobs)
    may = sum(problem.price(j) is not None for j in range(len(jobs)))
    head = facts(
        [
            ("file", file),
            ("holds", f"moldable jobs over time: {problem.goal}"),
            ("jobs", f"{len(jobs)}, {due} with a deadline, {may} that may be left out"),
            ("capacity", capacity_words(problem.capacity)),
            (
                "released",
                f"from {quantity(min(x.release for x in jobs), 's')} to {quantity(max(x.release for x in jobs), 's')}",
            ),
            ("least work", f"{quantity(work / total(problem.capacity), 's')} of all GPUs"),
            ("content", content_hash(problem)),
        ]
    )
    shown = sorted(jobs, key=lambda job: job.release)[:ROWS]
    rows = [
        (
            job.name,
            " or ".join(map(str, job.degrees)),
            f"{job.release:.6g}",
            f"{job.durations[0]:.6g}",
            f"{job.durations[-1]:.6g}",
            f"{job.weight:g}",
            "-" if job.deadline is None else f"{job.deadline:.6g}",
        )
        for job in shown
    ]
    columns = ("job", "GPUs", "release, s", "longest, s", "shortest, s", "weight", "deadline, s")
    more = [f"{len(jobs) - ROWS} jobs released later are not shown"] if len(jobs) > ROWS else []
    return [head, table(columns, rows, left=2), *more]


def plan_blocks(problem: ScheduleProblem, plan: SchedulePlan, verdict: ScheduleVerdict) -> list[Any]:
    """Return the table of the jobs of a feasible plan, and a line on what is left out."""
    runs = np.flatnonzero(plan.degree >= 0)
    shown = runs[np.argsort(plan.start[runs], kind="stable")[:ROWS]]
    latest = float(np.nanmax(verdict.finish)) if len(runs) else 0.0
    factor, unit = scale(latest, "s")
    rows = []
    for j in shown.tolist():
        job = problem.jobs[j]
        nodes = plan.node[plan.job == j]
        where = ", ".join(map(str, nodes[:8].tolist())) + (f" and {len(nodes) - 8} more" if len(nodes) > 8 else "")
        finish = float(verdict.finish[j])
        times = column((plan.start[j] / factor, finish / factor, (finish - job.release) / factor, latest / factor))[:3]
        rows.append((job.name, where or "-", f"{job.degrees[plan.degree[j]]}", *times))
    out = len(problem.jobs) - len(runs)
    rest = [
        f"{len(runs) - len(shown)} jobs that start later are not shown" if len(runs) > len(shown) else "",
        f"{out} jobs are left out" if out else "",
        f"GPUs are in use {percent(utilisation(problem, plan, verdict))} of the time to the last completion",
    ]
    columns = ("job", "nodes", "GPUs", *(f"{name}, {unit}" for name in ("start", "end", "JCT")))
    return [table(columns, rows, left=2), "; ".join(filter(None, rest))]


def utilisation(problem: ScheduleProblem, plan: SchedulePlan, verdict: ScheduleVerdict) -> float:
    """Return the share of the GPU-seconds from 0 to the last completion that are in use."""
    used = sum(
        problem.jobs[j].degrees[plan.degree[j]] * problem.jobs[j].durations[plan.degree[j]]
        for j in np.flatnonzero(plan.degree >= 0).tolist()
    )
    last = float(np.nanmax(verdict.finish)) if (plan.degree >= 0).any() else 0.0
    return used / (last * total(problem.capacity)) if last else 0.0
