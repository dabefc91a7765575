"""Schedules by PyJobShop (Lan and Berkhout 2025, arXiv 2502.13483): a task a job, a mode a degree and place."""

from __future__ import annotations

import numpy as np
import pyjobshop

from gangplan.solvers import Run
from gangplan.solvers.schedule.grain import Scale
from gangplan.solvers.schedule.plain import plan_of, ways
from gangplan.solvers.schedule.prepare import ShiftedRun, prepare


def solve(run: Run) -> None:
    """Minimise weighted flow times or the makespan.

    Raises:
        NotImplementedError: of other problems, or where jobs may be left out.
    """
    if run.problem.objective != "schedule":
        raise NotImplementedError("PyJobShop schedules jobs")
    p = prepare(run.problem)
    if np.isfinite(p.price).any():
        raise NotImplementedError("PyJobShop has no price for a job that is left out")
    if (np.diff(p.first) == 0).any():
        run.prove_infeasible("pyjobshop")  # a job without modes is an error to PyJobShop
        return
    scale, model = Scale(p), pyjobshop.Model()
    nodes = [model.add_renewable(p.per) for _ in range(p.nodes)]
    tasks = []
    for j in range(p.n):
        release, late = scale.down(float(p.release[j])), float(p.deadline[j])
        job = model.add_job(1 if p.makespan else scale.slope[j], release)
        due = {} if np.isinf(late) else {"latest_end": scale.down(late)}
        tasks.append(model.add_task(job, earliest_start=release, **due))
    every = ways(p)
    for j, o, place in every:
        ticks = scale.down(float(p.seconds[o]))
        model.add_mode(tasks[j], [nodes[v] for v, _ in place], ticks, [gpus if ticks else 0 for _, gpus in place])
    if p.makespan:
        model.set_objective(weight_makespan=scale.slope[0])
    else:
        model.set_objective(weight_total_flow_time=1)
    if run.stopped:
        return
    found = model.solve(
        "ortools", run.remaining(), display=False, num_workers=run.workers, random_seed=run.seed,
        presolve_inclusion_work_limit=0,
    )  # fmt: skip
    shifted = ShiftedRun(run, p)
    if found.best.tasks:
        chosen = [(*every[task.mode], float(task.start)) for task in found.best.tasks]
        plan = plan_of(p, chosen)
        if plan is not None:
            shifted.offer(plan, "pyjobshop")
        rounded = 0 if scale.whole or p.makespan else sum(scale.slope)
        shifted.raise_bound((found.lower_bound - rounded) * scale.unit + scale.constant, "pyjobshop")


solve.objectives = ("schedule",)  # type: ignore[attr-defined]
