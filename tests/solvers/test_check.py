"""The contract of a method: every registered one keeps it, and the check notices those that do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gangplan.instances import PartitionPlan
from gangplan.solvers import Run
from gangplan.solvers.check import check_solver
from gangplan.solvers.method import OBJECTIVES, suite
from gangplan.solvers.partition.throughput.methods import METHODS, Method, ReducedThroughput

PROBLEMS = {"schedule": 30, "step": 20, "placement": 20, "stages": 15, "layout": 6}
"""More than twelve where that many do not have all goals, capacities and kinds of links among them; fewer of those that
take a second to enumerate."""


@pytest.mark.parametrize(("objective", "name"), [(x, name) for x in OBJECTIVES for name in suite(x).methods])
def test_every_method_keeps_the_contract(objective: str, name: str) -> None:
    """Each registered method passes the check that third parties run on theirs."""
    check_solver(suite(objective).methods[name], objective, problems=PROBLEMS.get(objective, 12))


def _too_good(run: Run, reduced: ReducedThroughput) -> None:
    METHODS["pipeline"].run(run, reduced)
    if run.objective is not None:
        run.objective /= 2


def _bound_too_high(run: Run, reduced: ReducedThroughput) -> None:
    run.raise_bound(float(reduced.own.work.sum()) * 100 + 1, "liar")


def _never_feasible(run: Run, reduced: ReducedThroughput) -> None:
    run.prove_infeasible()


def _deaf(run: Run, reduced: ReducedThroughput) -> None:
    run.stop_reason, run.deadline = None, float("inf")
    METHODS["pipedream"].run(run, reduced)


def _infeasible(run: Run, reduced: ReducedThroughput) -> None:
    n = run.problem.graph.n_ops
    run.offer(PartitionPlan(run.problem.graph.names, [run.problem.cluster.n_devices - 1] * n, [0] * n), "everything")


class _Moody:
    calls = 0

    def __call__(self, run: Run, reduced: ReducedThroughput) -> None:
        self.calls += 1
        METHODS["local_search" if self.calls % 2 else "pipedream"].run(run, reduced)


@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        (_too_good, "changed after the offer"),
        (_bound_too_high, "is above"),
        (_never_feasible, "called infeasible"),
        (_deaf, "without any time left"),
        (_infeasible, "made an infeasible plan"),
        (_Moody(), "two runs with one seed differ"),
    ],
)
def test_bad_methods_are_caught(run: object, complaint: str) -> None:
    """A method that lies, does not stop, or differs from run to run is told what is wrong."""
    with pytest.raises(AssertionError, match=complaint):
        check_solver(Method(run, variants=("contiguous",)))  # type: ignore[arg-type]


def test_a_heuristic_is_not_exact() -> None:
    """Calling a heuristic exact is noticed."""
    with pytest.raises(AssertionError, match="exact, but left"):
        check_solver(replace(METHODS["pipedream"], exact=True))
