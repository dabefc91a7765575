"""Plain models of step time: each constraint on a case by hand."""

from __future__ import annotations

import pytest

from gangplan import solve
from gangplan.instances import StepProblem
from gangplan.solvers import Run
from gangplan.solvers.partition.step.plain import plain_cpsat

from .conftest import cluster, graph

CASES = {
    # (D) three ops of 2 s on two devices: two of them share one
    "one at a time": (graph([2, 2, 2], []), None, 4.0),
    # (P) b beside a, c on the other device, 1 s away: 1 + 1 + 4; all on one take 1 + 4 + 4
    "sent": (graph([1, 4, 4], [(0, 1), (0, 2)], output=1.0), None, 6.0),
    # ... 10 s away nothing is worth sending
    "dear": (graph([1, 4, 4], [(0, 1), (0, 2)], output=10.0), None, 9.0),
    # (M) a and b do not fit on one device, so b waits for what is sent: 1 + 10 + 4
    "memory": (graph([1, 4], [(0, 1)], output=10.0, memory=[2, 2]), 3.0, 15.0),
    # b and c go together, so they run one after the other: 4 + 4, a beside or apart
    "colocated": (graph([1, 4, 4], [], colocation=[-1, 0, 0]), None, 8.0),
    # three ops of 2 bytes on two devices of 3
    "too large": (graph([1, 1, 1], [], memory=[2, 2, 2]), 3.0, None),
}


@pytest.mark.parametrize("name", ["milp", "plain_cpsat", "plain_milp"])
@pytest.mark.parametrize("case", CASES)
def test_case(case: str, name: str) -> None:
    """The optimum of the comment is found and proved, or that there is none."""
    ops, memory, best = CASES[case]
    result = solve(StepProblem(ops, cluster(2, memory=memory)), time_limit=60, method=name, workers=1)
    assert result.status == ("INFEASIBLE" if best is None else "OPTIMAL")
    assert result.objective == (None if best is None else pytest.approx(best, rel=1e-6))


def test_contention_is_left_out() -> None:
    """Where links are contended for, a run says so, and `solve` has a note."""
    problem = StepProblem(graph([1, 4, 4], [(0, 1), (0, 2)], output=1.0), cluster(2), contention=True)
    with pytest.raises(NotImplementedError, match="contention"):
        plain_cpsat(Run(problem, time_limit=5))
    assert any("plain_cpsat left out" in note for note in solve(problem, 5, method="plain_cpsat", workers=1).notes)
