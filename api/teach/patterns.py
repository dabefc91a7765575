"""Column generation step by step: patterns of nodes, their prices, and the bound that these prove."""

from __future__ import annotations

from collections.abc import Iterator

from gangplan.instances import InstanceError
from gangplan.instances.certificates.nodes import NodeFamilies
from gangplan.instances.placement import PlacementProblem
from gangplan.solvers.placement.pattern_bound import PatternBound
from gangplan.solvers.placement.patterns import NodePatterns, choose
from gangplan.solvers.placement.prepare import suits_patterns
from gangplan.solvers.placement.quick import quick

from .step import Recorder, Step, begin


def column_generation(problem: PlacementProblem) -> Iterator[Step]:
    """Yield the rounds of the library's column generation, and last the plan chosen among the columns.

    A column says what is on one node. A round solves the master problem (a linear programme that chooses columns),
    takes its prices, and adds columns that cost less than their gangs pay. The prices of a step are the best so far of
    each gang; `bound` is Lagrange's at these. The last step lets CP-SAT choose columns within the gap; its prices are
    those in the order of a certificate ("covers"): one for each family, by the name of its first gang.

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
        relaxation, recorder = PatternBound(run, batch), Recorder("Column generation")
        names = [job.name for job in problem.jobs]
        yield recorder.step(
            "First fit's plan; the first columns have a gang alone on a node", problem, run.plan, run.bound
        )
        for turn in relaxation.rounds():
            text = f"The master problem costs {turn.value:.6g}; "
            if turn.done:
                text += "no column costs less than it is paid: done"
            elif turn.added:
                text += f"{turn.added} columns cost less than they are paid"
            else:
                text += "no column is found at prices near those of the best bound"
            prices = dict(zip(names, relaxation.prices().tolist(), strict=True))
            yield recorder.step(text, problem, run.plan, run.bound, prices)
        if not run.stopped:
            choose(run, NodePatterns(run, batch, relaxation.prices()))
        pays = relaxation.prices().tolist()
        best = {names[x.first]: pays[x.first] for x in NodeFamilies(problem).families}
        text = "Whole columns chosen out of all within the gap; best prices by family"
        yield recorder.step(text, problem, run.plan, run.bound, best)

    return steps()
