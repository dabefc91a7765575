"""What is learned from: instances, and what each setting in the book makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.generators.families import make, seed_of
from gangplan.solvers.partition.step.model import prepare

from ..encode.encoding import Encoding
from .features import Case, case_of
from .play import costs
from .schema import BASE

Name = tuple[str, int, int]
"""Family, seed, most ops: see `gangplan.learned.labels.make`."""


@dataclass(frozen=True, slots=True)
class Example:
    """An instance, and the worth of all that the network may choose.

    Attributes:
        encoding: what the network sees.
        costs: what `search` makes of each setting, in units of the case, float64 (K,).
    """

    encoding: Encoding
    costs: FloatArray

    @property
    def regret(self) -> FloatArray:
        """By how much each setting is worse than the best one, as a share of that, float64 (K,)."""
        return np.asarray(self.costs / self.costs.min() - 1)


def names(families: Sequence[str], count: int, size: int, split: str, first: int = 0) -> list[Name]:
    """Return the names of instances of a split, the families in turn."""
    return [(families[i % len(families)], seed_of(split, first + i), size) for i in range(count)]


def case(name: Name, base: FloatArray | None = None, *, messages: bool = True) -> Case:
    """Return an instance ready for network and scheduler; see `case_of`."""
    family, seed, size = name
    return case_of(prepare(make("step", family, seed, size)), base, messages=messages)


def tabulate(chosen: Sequence[Name], book: FloatArray, *, messages: bool = True) -> list[Example]:
    """Return instances with what the settings of the book cost; those with nothing to decide are left out."""
    content = np.ascontiguousarray(book, dtype=np.float64).tobytes()
    found = []
    for name in chosen:
        worth = _costs(name, content, book.shape)
        if np.ptp(worth) > 0:
            found.append(Example(case(name, book[:BASE], messages=messages).encoding, worth))
    return found


@lru_cache(maxsize=10_000)
def _costs(name: Name, book: bytes, shape: tuple[int, int]) -> FloatArray:
    """Return the costs of an instance; both stages of a training ask for the small ones."""
    settings = np.frombuffer(book).reshape(shape)
    return costs(case(name, settings[:BASE], messages=False), settings)
