"""What GapBench says of its rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.hybrid.bench.rows import SKIPPED, UNSUITED, BenchRow
from gangplan.hybrid.bench.statistics import Results, holm, interval, paired, permuted, times_longer
from gangplan.hybrid.bench.suite import Instance


def test_more_seeds_of_a_deterministic_method_say_nothing_new() -> None:
    """The interval of ten equal seeds is that of one; of seeds that differ it is wider than of their means."""
    gaps = np.random.default_rng(0).exponential(0.1, 20)
    one = [(f"{i}", float(gap)) for i, gap in enumerate(gaps)]
    assert interval(one * 10) == pytest.approx(interval(one))
    spread = [(name, gap + off) for name, gap in one for off in (-0.5, 0.0, 0.5)]
    (mean, low, high), (_, below, above) = interval(one), interval(spread)
    assert low < mean < high and below < low and high < above


def row(name: str, method: str, value: float | None, status: str = "FEASIBLE", deadline: float = 1.0) -> BenchRow:
    """Return a row of the objective step."""
    return BenchRow(name, "h", "step", "f", "toy", 1, method, 0, deadline, 1, status, value)


KNOWN = [Instance(x, "step", "f", "toy", "g", {}, "h", 1.0, 1.0, "auto", "auto") for x in "abc"]


def test_every_mean_is_over_the_same_instances() -> None:
    """What some method was not given counts for none, what one skipped counts 100%, and who is unsuited is named."""
    rows = [row(x, "auto", 1.0) for x in "abc"] + [row("a", "late", 2.0), row("b", "late", None, SKIPPED)]
    rows += [row(x, "other", None, UNSUITED) for x in "ab"]
    results = Results.of(rows, KNOWN)
    assert {(x.instance, x.method): results.gap(x) for x in results.rows} == {
        ("a", "auto"): 0.0, ("b", "auto"): 0.0, ("a", "late"): 0.5, ("b", "late"): 1.0
    }  # fmt: skip
    assert results.left[0].startswith("1 of 3 pairs of instance and seed of step are left out: late")
    assert results.left[1:] == ("Left out of objectives that they declared beforehand not to be theirs: other.",)
    again = Results.of([*rows, row("a", "auto", 1.0, deadline=9.0)], KNOWN)
    assert {x.instance for x in again.rows} == {"a"}  # at every deadline
    more = Results.of([*rows, replace(row("a", "auto", 3.0), seed=1)], KNOWN)
    assert more.rows == results.rows and more.left[0].startswith("2 of 4 pairs")  # as of the paired tests


def test_a_bound_that_a_plan_disproves_claims_nothing() -> None:
    """A method that calls its own plan optimal, where a better one is known, has claimed no optimum."""
    rows = [
        replace(row("a", "auto", 1.0, "OPTIMAL"), bound=1.0),
        replace(row("a", "boasts", 2.0, "OPTIMAL"), bound=2.0),
    ]
    results = Results.of(rows, KNOWN)
    assert [(x.method, x.status, x.bound) for x in results.rows] == [
        ("auto", "OPTIMAL", 1.0),
        ("boasts", "FEASIBLE", None),
    ]
    (refused,) = results.refused
    assert refused.method == "boasts" and refused.notes == "a verified plan disproves its bound of 2"
    assert results.left == ("boasts claimed 1 bounds that a verified plan disproves: they count as none.",)


def test_to_decline_is_no_shortcut() -> None:
    """Who gives up at once counts with the limit, not with the moment that it took."""
    rows = [replace(row("a", "auto", 1.0, "OPTIMAL"), cpu=0.5), row("a", "late", None, SKIPPED)]
    rows += [replace(row("b", x, 1.0, "OPTIMAL"), cpu=0.5) for x in ("auto", "late")]
    assert times_longer(rows, "auto")["late"] == (2, 2, 1, pytest.approx(2**0.5))


def test_paired_tests() -> None:
    """Of five differences of one sign two of 32 signs are as far from 0; no difference is none; many are sampled."""
    assert permuted([1.0] * 5) == 2 / 32 and permuted([0.0] * 5) == 1.0 and permuted([3.0, -1.0]) == 1.0
    many = [0.1 + 0.5 * (i % 3) for i in range(40)]
    assert permuted(many) < 1e-3 and permuted([x * (-1) ** i for i, x in enumerate(many)]) > 0.05
    rows = [row(x, "auto", 1.0) for x in "abc"] + [row(x, "late", 2.0) for x in "abc"]
    assert paired(Results.of(rows, KNOWN), rows, "auto")["late"] == (3, 0.5, 0.5, 0.5, 0.25)


def test_holm() -> None:
    """The least p is multiplied by the number of tests, the next by one less, and none is below one before it."""
    assert holm({"x": 0.02, "y": 0.01, "z": 0.5, "w": 0.9}) == {"y": 0.04, "x": 0.06, "z": 1.0, "w": 1.0}
    assert holm({"x": 0.03, "y": 0.029}) == {"y": 0.058, "x": 0.058}
