"""Check answers to exercises: on fresh instances, beside a referee, and with a sentence on what is wrong."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Set
from copy import deepcopy
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

Call = Callable[..., Any]
SEED = "GANGPLAN_CHECK_SEED"
LONGEST = 160  # characters of a value in a sentence


class Check:
    """Judge the answer to an exercise: a decorator of a function that asserts what has to hold, which runs at once.

    The function gets this object. A wrong answer is an `AssertionError` with a sentence; whatever else is raised, such
    as `TypeError` for an answer of another kind, becomes such a sentence. Names of the function are its own, so that a
    notebook's are left alone.

    Args:
        form: what an answer looks like, which is said where it has no such form.

    Attributes:
        rng: draws instances, by a seed that nobody knows: the operating system's, or GANGPLAN_CHECK_SEED of the
            environment, with which a run can be repeated.
    """

    def __init__(self, form: str = "look at the question again") -> None:
        seed = os.environ.get(SEED)
        self.form, self.rng = form, np.random.default_rng(int(seed) if seed else None)

    def __call__(self, judge: Callable[[Check], None]) -> None:
        """Run the function that judges; raise `AssertionError` if the answer is wrong."""
        try:
            judge(self)
        except AssertionError:
            raise
        except Exception as error:
            told = f"the check cannot use this answer ({type(error).__name__}: {_shown(error)}); {self.form}"
            raise AssertionError(told) from None

    def ask(self, function: Call, *given: Any) -> Any:
        """Return what a function of the student returns, which gets the arguments themselves, no copies."""
        try:
            return function(*given)
        except Exception as error:
            raise AssertionError(f"{_call(function, given)} raises {type(error).__name__}: {_shown(error)}") from None

    def against(self, function: Call, referee: Call, draws: Iterable[Any], why: str = "", close: float = 1e-6) -> None:
        """Compare a function with a referee, on the arguments of each draw; either gets a copy of them.

        Numbers agree within `close`, relative above 1. A list, a tuple, an array and an iterator of the same values are
        one, and so is whatever has the elements of a set.
        """
        for given in draws:
            found, true = self.ask(function, *deepcopy(given)), referee(*deepcopy(given))
            said = f"{_call(function, given)} returns {'nothing' if found is None else _shown(found)}"
            assert _agree(found, true, close), f"{said}, and it is {_shown(true)}{why and ': '}{why}"

    def number(self, value: Any, what: str = "the answer") -> float:
        """Return a student's number, or say that it is none, or not finite."""
        found = _number(value)
        assert math.isfinite(found), f"{what} is {_shown(value)}, and a finite number is asked for"
        return found


def _number(value: Any) -> float:
    """Return a number as a float, what is none or too large as NaN."""
    value = value.item() if getattr(value, "ndim", 1) == 0 else value  # of NumPy or torch
    try:
        return float(value) if isinstance(value, (Real, Decimal)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan


def _agree(found: Any, true: Any, close: float) -> bool:
    """Say whether a student's value is the referee's."""
    if isinstance(true, Set):
        return isinstance(found, Iterable) and bool(set(found) == true)
    if isinstance(true, (list, tuple, np.ndarray)):
        row = list(found) if isinstance(found, Iterable) and not isinstance(found, (str, Mapping)) else [None]
        return len(row) == len(true) and all(_agree(x, y, close) for x, y in zip(row, true, strict=True))
    if true is None or isinstance(true, (str, bool, np.bool_)):
        return found is true or (isinstance(found, (str, bool, np.bool_)) and bool(found == true))
    return bool(abs(_number(found) - true) <= close * max(1.0, abs(true)))


def _call(function: Call, given: Iterable[Any]) -> str:
    return f"{getattr(function, '__name__', 'the function')}({', '.join(map(_shown, given))})"


def _shown(value: Any) -> str:
    """Return a value in short and on one line, an array as its list."""
    text = " ".join(str(value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value).split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
