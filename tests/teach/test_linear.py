"""Relaxations, their duals, and cuts: what they say holds of every plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan import generate, teach
from gangplan.instances import Cluster, DeviceType, InstanceError, Level, PartitionProblem, TreeTopology
from gangplan.instances.schedule import MoldableJob, Pool, ScheduleProblem
from gangplan.solvers.partition.tiny import graph_of

from .tiny import OBJECTIVES, tiny


def three(count: int = 3, devices: int = 2) -> PartitionProblem:
    """Return so many ops of 2 s on equal devices: three on two take 4 s, two of them beside each other."""
    none = np.zeros(0, dtype=int)
    graph = graph_of(("gpu",), np.full((1, count), 2.0), np.ones(count), np.ones(count), (none, none))
    topology = TreeTopology.regular((Level("node", 1.0),), (devices,))
    cluster = Cluster((DeviceType("gpu"),), np.zeros(devices, dtype=np.int32), topology)
    return PartitionProblem(graph, cluster, variant="free")


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_weak_duality(objective: str) -> None:
    """The bound is at most the optimum, and it is what the duals add up to with the ends of the columns."""
    for problem, best in tiny(objective, 3):
        found = teach.relaxation(problem)
        assert found.bound <= best * (1 + 1e-6)
        programme = found.programme
        reduced = np.array([column.cost for column in programme.columns])
        total = 0.0
        for row in programme.rows:
            if y := found.duals.get(row.name, 0.0):
                total += y * ((row.least if y > 0 else row.most) or 0.0)
                for j, a in row.terms.items():
                    reduced[j] -= y * a
        for column, r in zip(programme.columns, reduced.tolist(), strict=True):
            total += r * (column.low if r > 0 else column.high)
        assert total * programme.unit == pytest.approx(found.bound, rel=1e-6, abs=1e-6 * best)


def test_by_hand() -> None:
    """Three ops of 2 s are shared by two devices, 3 s each; the two loads have a dual of a half each."""
    found = teach.relaxation(three())
    assert (found.bound, found.values["Z"]) == (pytest.approx(3.0), pytest.approx(3.0))
    assert [found.duals[f"L[gpu{d}]"] for d in range(2)] == [pytest.approx(-0.5)] * 2
    assert [found.duals[f"A[op{v}]"] for v in range(3)] == [pytest.approx(1.0)] * 3
    assert found.fractional and "fractional of" in repr(found)


def test_infeasible() -> None:
    """A relaxation without a solution has an infinite bound."""
    job = MoldableJob("x", (1,), (10.0,))
    problem = ScheduleProblem((job, replace(job, name="y")), Pool(1))
    programme = teach.milp(problem)
    row = replace(programme.rows[0], name="never", least=2.0, most=None)
    assert teach.relaxation(programme, rows=[row]).bound == float("inf")


def test_cuts_by_hand() -> None:
    """With a plan of 5.9 s no device takes all three: x0 + x1 + x2 <= 2; with one of 3.9 s no two: there is none."""
    assert [cut.after.bound for cut in teach.cuts(three(), 5.9)] == []  # half of each op is no violation
    (cut,) = teach.cuts(three(), 3.9)
    assert (cut.kind, cut.violation, len(cut.row.terms)) == ("clique", pytest.approx(0.5), 3)
    assert cut.after.bound == float("inf")


def test_cuts_cut_off_no_optimum() -> None:
    """Bounds rise from cut to cut, each cut was violated, and with all of them the optimum is the same."""
    count = 0
    for problem, best in tiny("throughput", 25):
        before, rows = teach.relaxation(problem, best), []
        for cut in teach.cuts(problem, best):
            assert cut.violation > 0
            assert cut.after.bound >= before.bound * (1 - 1e-9)
            before, count = cut.after, count + 1
            rows.append(cut.row)
        if rows:
            *_, last = teach.branch_and_bound(problem, rows=rows)
            assert last.incumbent == pytest.approx(best, rel=1e-6)
    assert count > 5


def test_symmetry() -> None:
    """Naming equal devices cuts nodes, and keeps the optimum; of a pipeline nothing is known."""
    problem = three(5, 3)
    plain, named = ([*teach.branch_and_bound(problem, rows=rows)] for rows in ((), teach.symmetry(problem)))
    assert plain[-1].incumbent == named[-1].incumbent == pytest.approx(4.0)
    assert len(named) < len(plain)
    assert [row.name for row in teach.symmetry(problem)] == ["S[op0,gpu1]", "S[op0,gpu2]", "S[op1,gpu2]"]
    with pytest.raises(InstanceError, match="symmetry"):
        teach.symmetry(generate("layered", ops=4, layers=2, devices=2, training=False))
