"""Ruin and recreate step by step: gangs go, and come back where the batch gains most."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose, isfinite

from gangplan.instances import InstanceError
from gangplan.instances.placement import PlacementPlan, PlacementProblem
from gangplan.solvers.placement.build import order_of
from gangplan.solvers.placement.build import start as running_jobs
from gangplan.solvers.placement.gpu_assignment import plan_of, rows_of
from gangplan.solvers.placement.ruin_recreate.engine import RuinRecreate

from .step import Recorder, Step, begin, named


def ruin_and_recreate(
    problem: PlacementProblem, rounds: int = 60, seed: int = 0, start: PlacementPlan | None = None
) -> Iterator[Step]:
    """Yield the rounds of the library's search for placements that took gangs off, see `solvers.placement`.

    The plan of a step is where all gangs are then; it may cost more than the best so far, since at first a result that
    is hardly worse is kept (record-to-record travel, Dueck 1993). Numbers are drawn anew in each round, so this is not
    the walk that `solve` takes with the same seed.

    Args:
        problem: the gangs and the fleet.
        rounds: at most; the search ends once no gang costs more than it must.
        seed: of the draws.
        start: a plan to begin with; by default gangs are inserted one by one, the largest first.

    Raises:
        InstanceError: if the problem is of another kind, `rounds` negative, `start` no plan of it, or there is no plan.
    """
    run, batch = begin(problem, (PlacementProblem,), "ruin and recreate", seed)
    if rounds < 0:
        raise InstanceError("rounds", f"{rounds} is negative")
    engine, recorder = RuinRecreate(batch), Recorder("Ruin and recreate")
    names = [job.name for job in problem.jobs]
    if start is not None:
        rows, text = rows_of(batch, start), "Begin with the plan that is given"
        if start.jobs != tuple(names):
            raise InstanceError("start", "is a plan for other jobs")
    else:
        running = running_jobs(batch).rows
        queue = [j for j in order_of(batch) if not running[j]]
        rows, cost = engine.insert(running, queue, seed)
        text = f"Insert {named([names[j] for j in queue] or ['nobody'])}, each where the batch then costs least"
        if not isfinite(cost):
            if run.plan is None:
                lost = names[engine.failed or 0]
                raise InstanceError("problem", f"insertion finds no place for {lost}: give a start")
            rows, text = rows_of(batch, run.plan), "Insertion finds no place for all: begin with the plan of first fit"

    def steps() -> Iterator[Step]:
        first = recorder.step(text, problem, plan_of(batch, rows), run.bound)
        yield first
        record = before = first.objective or 0.0
        for walk in engine.walk(rows, rounds, seed, 1):
            gone = [names[j] for j in walk.gone()]
            if not gone:  # the gang whose turn it was costs no more than it must
                continue
            found, now = walk.now.found, walk.current()
            told = f"{named(gone)} {'go' if len(gone) > 1 else 'goes'}, and "
            if not isfinite(found):
                told += "cannot come back as cheaply: undone"
            elif found < record * (1 - 1e-9):
                told += f"back in, the batch costs {found:.6g} instead of {record:.6g}: the best so far"
                record = found
            elif isclose(found, before, rel_tol=1e-9):
                told += f"back in, the batch costs {found:.6g} as before"
            elif isclose(found, now, rel_tol=1e-9):
                told += f"back in, the batch costs {found:.6g}: hardly worse than the best, {record:.6g}, and kept"
            else:
                told += f"back in, the batch would cost {found:.6g}: undone"
            step = recorder.step(told, problem, plan_of(batch, walk.here()), run.bound)
            before = step.objective or 0.0
            yield step

    return steps()
