"""Checks of exercises: fresh instances, a referee beside, and one sentence whatever an answer does."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gangplan.teach import Check


def judge(form: str = "") -> Any:
    """Return a decorator that returns what a check says: None or its sentence."""

    def run(body: Any) -> str | None:
        try:
            Check(form)(body)
        except AssertionError as error:
            return str(error)
        return None

    return run


def test_fresh_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two checks draw different instances, unless the environment names the seed."""
    monkeypatch.delenv("GANGPLAN_CHECK_SEED", raising=False)
    assert Check().rng.integers(1 << 60) != Check().rng.integers(1 << 60)
    monkeypatch.setenv("GANGPLAN_CHECK_SEED", "60")
    assert Check().rng.integers(1 << 60) == Check().rng.integers(1 << 60)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (lambda check: None, None),
        (lambda check: 1 / 0, "the check cannot use this answer (ZeroDivisionError: division by zero); a number"),
        (lambda check: check.ask(lambda x: {}[x], 3), "<lambda>(3) raises KeyError: 3"),
        (lambda check: check.ask(float, 10**400), "raises OverflowError: int too large to convert to float"),
        (lambda check: check.against(abs, abs, [(-2,)]), None),
        (lambda check: check.against(abs, lambda x: x, [(-2,)], "sign"), "abs(-2) returns 2, and it is -2: sign"),
        (lambda check: check.against(print, abs, [()]), "the check cannot use this answer (TypeError"),
        (lambda check: check.against(lambda x: None, abs, [(-2,)]), "returns nothing, and it is 2"),
        (lambda check: check.number("2"), "the answer is 2, and a finite number is asked for"),
        (lambda check: check.number(10**400), "..., and a finite number is asked for"),
        (lambda check: check.number(True, "it"), "it is True, and a finite number is asked for"),
    ],
)
def test_sentences(body: Any, says: str | None) -> None:
    """A right answer is met with silence, a wrong one and an exception with a sentence."""
    said = judge("a number")(body)
    assert said is None if says is None else said is not None and says in said


@pytest.mark.parametrize(
    ("found", "true", "agree"),
    [
        (3, 3.0, True), (Fraction(3), 3, True), (Decimal(3), 3, True), (np.float64(3), 3, True),
        (np.array(3), 3, True), (3 + 1e-9, 3, True), (3.01, 3, False), ("3", 3, False), (True, 1, False),
        (None, 3, False), (float("nan"), 3, False), (10**400, 3, False), ((1, 2), [1, 2], True),
        (np.array([1, 2]), [1, 2], True), (iter([1, 2]), [1, 2], True), ([2, 1], [1, 2], False),
        ([1], [1, 2], False), ("12", [1, 2], False), ([2, 1, 2], {1, 2}, True), ([1], {1, 2}, False),
        (np.True_, True, True), (1, True, False), (None, None, True),
        (0, None, False), ("no", "no", True), (("x", None), ("x", None), True),
    ],
)  # fmt: skip
def test_agreement(found: Any, true: Any, agree: bool) -> None:
    """The same values agree whatever holds them, others do not."""
    said = judge()(lambda check: check.against(lambda: found, lambda: true, [()]))
    assert (said is None) == agree, said


def test_copies() -> None:
    """A function that changes what it is given changes nothing for the referee and the sentence."""
    said = judge()(lambda check: check.against(lambda x: x.clear(), sorted, [([2, 1],)]))
    assert said == "<lambda>([2, 1]) returns nothing, and it is [1, 2]"
