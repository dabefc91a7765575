"""Means of evaluations."""

from __future__ import annotations

import pytest

from gangplan.learned.policy.evaluation import means

ROWS = [
    {"method": "a", "family": "x", "seed": 0, "cost": 2.0, "proved": True},
    {"method": "b", "family": "x", "seed": 0, "cost": 1.0, "proved": True},
    {"method": "a", "family": "y", "seed": 1, "cost": 4.0, "proved": False},
    {"method": "b", "family": "y", "seed": 1, "cost": None, "proved": False},
]


def test_a_mean_and_its_interval_for_each_method() -> None:
    """Numbers are averaged by method over all families, with Student's interval where there are two values."""
    a, b = means(ROWS)
    assert (a["method"], a["rows"], b["rows"]) == ("a", 2, 2) and "seed" not in a and "family" not in a
    # half the width for two values: 12.706 times their distance by two
    assert a["cost"] == (3.0, pytest.approx(12.706, rel=1e-3)) and b["cost"] == (1.0, None)
    assert "proved" not in a
