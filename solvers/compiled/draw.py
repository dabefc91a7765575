"""Draw random numbers in compiled code, from the one generator that it has; each of them is compiled once."""

from __future__ import annotations

import numpy as np

from .kernel import lean


@lean
def sow(seed: int) -> None:
    """Begin anew with a seed."""
    np.random.seed(seed)  # noqa: NPY002


@lean
def below(n: int) -> int:
    """Return a whole number from 0 to n - 1."""
    return np.random.randint(n)  # noqa: NPY002


@lean
def uniform() -> float:
    """Return a number from 0 to 1, which it never is."""
    return np.random.random()  # noqa: NPY002


@lean
def normal() -> float:
    """Return a number with mean 0 and deviation 1."""
    return np.random.normal()  # noqa: NPY002
