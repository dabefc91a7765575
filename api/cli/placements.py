"""Batches of gangs on the command line: read, shown, and their plans job by job."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances import content_hash
from gangplan.instances.placement import PlacementPlan, PlacementProblem
from gangplan.instances.quantities import quantity
from gangplan.instances.verify import PlacementVerdict

from ..units import column, percent
from .output import facts, table

ROWS = 64
"""Jobs shown; of more, those that are slowed down most."""


def problem_blocks(file: str, problem: PlacementProblem) -> list[Any]:
    """Return the description of a batch."""
    fleet, jobs = problem.fleet, problem.jobs
    least = sum(job.gang * job.worker.gpu for job in jobs)
    usable = int(fleet.gpus[np.asarray(fleet.usable)].sum())
    levels = ", ".join(f"{level.name} {quantity(level.bandwidth, 'B')}/s" for level in fleet.topology.levels)
    head = facts(
        [
            ("file", file),
            ("holds", f"a batch of gangs: {problem.goal}"),
            ("jobs", f"{len(jobs)}, {len(problem.running)} of them running"),
            (
                "demand",
                f"{least:g} GPUs at least, {percent(least / usable)} of {usable}"
                if usable
                else f"{least:g} GPUs, of none",
            ),
            ("nodes", f"{fleet.n_nodes} with {fleet.n_gpus} GPUs: {', '.join(fleet.gpu_types)}"),
            ("links", f"nodes {quantity(float(fleet.link.max()), 'B')}/s, {levels}"),
            ("content", content_hash(problem)),
        ]
    )
    rows = [
        (
            job.name,
            job.model,
            " or ".join(map(str, job.workers)),
            f"{job.worker.gpu:g}",
            job.collective,
            f"{job.weight:g}",
        )
        for job in jobs[:ROWS]
    ]
    blocks: list[Any] = [head, table(("job", "model", "workers", "GPUs each", "collective", "weight"), rows, left=2)]
    return blocks + ([f"{len(jobs) - ROWS} more jobs are not shown"] if len(jobs) > ROWS else [])


def plan_blocks(problem: PlacementProblem, plan: PlacementPlan, verdict: PlacementVerdict) -> list[Any]:
    """Return the table of the jobs of a feasible plan, and a line on what is left out."""
    assert verdict.rates is not None
    slowdown = verdict.rates.slowdown
    placed = np.unique(plan.job)
    shown = np.sort(placed[np.argsort(-slowdown[placed], kind="stable")[:ROWS]])
    rates = verdict.rates
    numbers = [column(1e3 * x[shown]) for x in (rates.compute, rates.sync, rates.step)] + [column(slowdown[shown])]
    rows = []
    for i, j in enumerate(shown.tolist()):
        mine = plan.job == j
        names = [problem.fleet.names[n] for n in plan.node[mine][:2].tolist()]
        more = int(mine.sum()) - len(names)
        rows.append(
            (
                problem.jobs[j].name,
                problem.jobs[j].model,
                ", ".join(names) + (f", {more} more" if more else ""),
                f"{plan.workers[mine].sum()}",
                *(x[i] for x in numbers),
            )
        )
    columns = ("job", "model", "nodes", "workers", "compute, ms", "sync, ms", "step, ms", "slowdown")
    rest = [
        f"{len(placed) - len(shown)} less slowed jobs are not shown" if len(placed) > len(shown) else "",
        f"{len(problem.jobs) - len(placed)} jobs are left out" if len(placed) < len(problem.jobs) else "",
        f"{verdict.gpus.sum():g} of {problem.fleet.n_gpus} GPUs are in use",
    ]
    return [table(columns, rows, left=3), "; ".join(filter(None, rest))]
