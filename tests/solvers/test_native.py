"""What kernels share: random numbers as numpy's, a heap, and the same from its source as it stands."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from gangplan.solvers import native

from .uncompiled import uncompiled

BOTH = pytest.mark.parametrize("module", [native, uncompiled(native)], ids=["compiled", "source"])


def test_one_of_them_is_compiled() -> None:
    """The module that is imported is an extension module."""
    assert native.__file__.endswith(".so")


@BOTH
@pytest.mark.parametrize("seed", [0, 7, 2**31 - 1, 2**32 + 7])
def test_random_numbers_are_numpys(module: ModuleType, seed: int) -> None:
    """A seed gives what it gives `numpy.random.RandomState`, whatever the range of whole numbers."""
    ours, theirs = module.Random(seed), np.random.RandomState(seed % 2**32)
    for n in (1, 2, 3, 624, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 10**12, 2**63 - 1) * 40:
        assert ours.below(n) == theirs.randint(n)
        assert ours.uniform() == theirs.random_sample()
    assert ours.below(0) == ours.below(-5) == 0


@BOTH
def test_a_heap_gives_the_highest_first(module: ModuleType) -> None:
    """Items come by value, of equals the first in place, also where some come while others wait."""
    rng = np.random.default_rng(0)
    value, place = rng.integers(10, size=200).astype(float), rng.permutation(200)
    heap, waiting = module.Heap(value, place), set[int]()
    for v in rng.permutation(200).tolist():
        heap.push(v)
        waiting.add(v)
        if rng.random() < 0.4:
            top = heap.pop()
            assert top == min(waiting, key=lambda x: (-value[x], place[x]))
            waiting.remove(top)
    assert [heap.pop() for _ in sorted(waiting)] == sorted(waiting, key=lambda x: (-value[x], place[x]))
