"""docs/hybrid.md says what benchmarks/hybrid.csv holds, and its tables count as they claim."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.hybrid import HybridRow, read
from benchmarks.hybrid_tables import gap, many, medium, optima, small, write_page

ROW = HybridRow("small", "step", "layered", 50, 1, "auto", 20.0, 0.1, "OPTIMAL", 2.0, 2.0, "0.01:3 0.05:2", "", 0.5)


def test_the_page_agrees_with_the_rows() -> None:
    """Nobody changed a figure by hand, or rows without the page."""
    assert read()
    assert write_page(check=True) == 0


@pytest.mark.parametrize(
    ("objective", "optimum", "expected"),
    [(2.0, 2.0, 0.0), (3.0, 2.0, 0.5), (None, 2.0, 1.0), (9.0, 2.0, 1.0), (0.0, 0.0, 0.0), (1.0, 0.0, 1.0)],
)
def test_gaps(objective: float | None, optimum: float, expected: float) -> None:
    """A gap is a share of the optimum, and 1 without a plan or beyond."""
    assert gap(objective, optimum) == pytest.approx(expected)


def test_only_proved_optima_count() -> None:
    """An instance that nobody proved is in no table."""
    tried = replace(ROW, deadline=0.1, objective=3.0, status="FEASIBLE")
    assert optima([ROW, tried]) == {ROW.instance: 2.0}
    assert "50.00%" in many([ROW, tried])
    assert "%" not in many([replace(ROW, status="FEASIBLE"), tried])


def test_methods_are_compared_on_the_same_instances() -> None:
    """An instance that one of the methods has not been given counts for none."""
    runs = [replace(ROW, deadline=0.1, method=m, objective=3.0) for m in ("auto", "heft", "cpsat")]
    other = [replace(row, seed=2, objective=2.0) for row in (ROW, *runs[:2])]
    assert "| `heft` | - | 50.00% |" in small([ROW, *runs, *other])
    assert "| `heft` | - | 25.00% |" in small([ROW, *runs[:2], *other])


def test_medium_counts_pairs() -> None:
    """A worse plan than CP-SAT's counts as worse, and one without a partner not at all."""
    auto = replace(ROW, set="medium", deadline=5.0, objective=2.2)
    other = replace(auto, method="cpsat", objective=2.0)
    assert "+10.00%" in medium([auto, other]) and "| 0% | 1 |" in medium([auto, other])
    assert "step" not in medium([auto])
