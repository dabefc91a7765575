"""Column generation step by step: patterns of nodes, their prices, and the bound that these prove."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.instances import InstanceError
from gangplan.instances.certificates.nodes import NodeFamilies
from gangplan.instances.placement import PlacementProblem
from gangplan.solvers.placement.columns import Columns
from gangplan.solvers.placement.gpu_assignment import rows_of
from gangplan.solvers.placement.patterns import choose
from gangplan.solvers.placement.prepare import suits_patterns
from gangplan.solvers.placement.quick import quick

from .step import Recorder, Step, begin


def column_generation(problem: PlacementProblem) -> Iterator[Step]:
    """Yield the rounds of the library's column generation, and last the plan chosen among the columns.

    A column says what is on one node. A round solves the master problem (a linear programme that chooses columns),
    takes its prices, and adds columns that cost less than their gangs pay. The prices of a step are what each gang
    pays; `bound` is Lagrange's at the best prices so far. The last step lets CP-SAT choose columns within the gap; its
    prices are the best, in the order of a certificate ("covers"): one for each family, by the name of its first gang.

    Raises:
        InstanceError: if the problem is of another kind, columns do not say all there is of it (see
            `gangplan.solvers.placement.prepare.suits_patterns`), or there is no plan.
    """
    run, batch = begin(problem, (PlacementProblem,), "column generation")
    if not suits_patterns(batch):
        words = "column generation needs the goal slowdown, gangs of one size and whole GPUs, and nobody running"
        raise InstanceError("problem", words)
    if run.plan is None:
        quick(run, batch)

    def steps() -> Iterator[Step]:
        columns, recorder = Columns(run, batch), Recorder("Column generation")
        names, unit = [job.name for job in problem.jobs], batch.unit
        family = {j: f for f, jobs in enumerate(columns.kin.members) for j in jobs}
        if run.plan is not None:
            columns.start(rows_of(batch, run.plan))
        text = f"First fit's plan gives the first {len(columns.patterns)} columns: what is on each node"
        yield recorder.step(text, problem, run.plan, run.bound)
        for turn in columns.rounds():
            pays = [float(x) / unit for x in columns.master.gangs(turn.prices)]
            text = f"The master problem costs {turn.value / unit:.6g}; "
            if turn.done:
                text += "no column costs less than it is paid: done"
            elif turn.added:
                text += f"{turn.added} columns cost less than they are paid"
            else:
                text += "no column is found at prices drawn towards those of the best bound"
            prices = {name: pays[family[j]] for j, name in enumerate(names) if j in family}
            yield recorder.step(text, problem, run.plan, run.bound, prices)
        if columns.best is None:
            return
        choose(run, columns)
        pays = [max(0.0, float(x) / unit) for x in columns.master.gangs(columns.best)]
        firsts = [x.first for x in NodeFamilies(problem).families]
        best = {names[j]: pays[family[j]] if j in family else 0.0 for j in firsts}
        text = (
            f"Whole columns chosen out of {len(columns.patterns)} and all others within the gap; best prices by family"
        )
        yield recorder.step(text, problem, run.plan, run.bound, best)

    return steps()
