"""Classes by rule, and the shape in which libraries of job shops publish what is known."""

from __future__ import annotations

import json
from dataclasses import replace

from gangplan.hybrid.bench.best_known import EASY, best_known, class_of, standing, text_of, why
from gangplan.hybrid.bench.library import Record
from gangplan.hybrid.bench.suite import Instance

ONE = Instance("a", "schedule", "f", "toy", "g", {"jobs": 6, "seed": 0}, "h", 4.0, 4.0, "auto", "auto", EASY)
HALF = Record("a", "h", 4.0, {"p": 1}, {}, "3", {"c": 1}, {"by": "prices"})


def test_classes() -> None:
    """Closed within ten seconds is easy; later, or by somebody who gives no time, hard; with a gap it is open."""
    assert class_of(ONE, None) == "easy"
    assert class_of(replace(ONE, seconds=EASY + 0.1), None) == class_of(replace(ONE, seconds=None), None) == "hard"
    assert class_of(replace(ONE, bound=3.9), None) == class_of(replace(ONE, bound=None), HALF) == "open"
    none = replace(ONE, value=None, by="", bound=None, bound_by="")
    assert class_of(none, None) == class_of(none, Record("a", "other", status="INFEASIBLE")) == "open"
    assert class_of(none, Record("a", "h", status="INFEASIBLE")) == "easy"


def test_standings() -> None:
    """A proof is claimed until the certificate on file proves the plan on file; why it is not is said."""
    whole = replace(HALF, bound="4")
    assert standing(ONE, None) == standing(ONE, HALF) == "optimal (claimed)"
    assert standing(ONE, whole) == "optimal (certified)" and why(ONE, whole) == why(replace(ONE, bound=3.0), HALF) == ""
    none = replace(ONE, value=None, by="", bound=None, bound_by="")
    assert standing(none, Record("a", "h", bound="inf", certificate={"c": 1})) == "infeasible (certified)"
    assert standing(none, Record("a", "h", status="INFEASIBLE")) == "infeasible (claimed)"
    assert why(ONE, None) == "not in a pass yet" and why(ONE, HALF) == "prices proves less"
    assert why(ONE, replace(HALF, certificate={})) == "certificate too long"
    assert why(ONE, replace(HALF, value=5.0)) == "optimal plan not on file"
    assert why(ONE, replace(HALF, bound="", certificate={})) == "no argument"


def test_the_shape() -> None:
    """Name, optimum or null, bounds, what is counted, as others have them; a certified bound is never rounded up."""
    found = json.loads(text_of(best_known([ONE, replace(ONE, id="b", bound=3.0)], {"a": replace(HALF, bound="10/3")})))
    assert [x["name"] for x in found] == ["a", "b"] and [x["optimum"] for x in found] == [4.0, None]
    assert found[1]["bounds"] == {"upper": 4.0, "lower": 3.0, "certified": None} and found[0]["jobs"] == 6
    assert found[0]["bounds"]["certified"] < 10 / 3 and found[0]["path"] == "schedule-f.jsonl.gz"
