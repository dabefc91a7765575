"""Inner functions are translated once, sort as numpy does, and read what they are given by reference."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gangplan.solvers.compiled.kernel import Floats, by_reference, inner
from gangplan.solvers.compiled.routines import argsort

plain: Any = njit


class Pair(NamedTuple):
    """Two arrays."""

    first: Floats
    second: Floats


@inner
def scaled(pair: Pair, i: int, twice: bool) -> Any:
    """Return a product."""
    return pair.first[i] * pair.second[i] * (2.0 if twice else 1.0)


@plain
def total(pair: Any, n: Any) -> Any:
    """Return what `scaled` comes to, called with constants and with variables."""
    reference = by_reference(pair)
    found = scaled(reference, 0, True)
    for i in range(1, n):
        found += scaled(reference, i, i == 1)
    return found


def test_an_inner_function_is_translated_once() -> None:
    """Constants, variables and flags make one specialisation, and what comes of it is right."""
    pair = Pair(np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]))
    assert total(pair, 3) == 2 * 4.0 + 2 * 10.0 + 18.0
    compiled: Any = scaled
    assert len(compiled.signatures) == 1


def test_a_reference_is_the_tuple_itself_in_python() -> None:
    """What is not compiled, as with no time for that, runs as Python."""
    pair = Pair(np.zeros(1), np.ones(1))
    assert by_reference(pair) is pair


@plain
def ours(keys: Any, stable: Any) -> Any:
    """Return our order."""
    return argsort(keys, stable)


@plain
def numbas(keys: Any) -> Any:
    """Return numba's order."""
    return np.argsort(keys)


def test_orders_are_those_of_numba_and_numpy() -> None:
    """Equal keys and all lengths: exchanges are those of numba's quicksort, the stable order is numpy's."""
    rng = np.random.default_rng(1)
    for n in [*range(40), 500, 3000]:
        for kinds in (2, 10, 10**6):
            keys = rng.integers(0, kinds, n).astype(float)
            keys[rng.random(n) < 0.1] = np.inf
            assert (ours(keys, True) == np.argsort(keys, kind="stable")).all()
            assert (ours(keys, False) == numbas(keys)).all()
