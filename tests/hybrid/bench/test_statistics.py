"""What GapBench says of its rows."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.hybrid.bench.statistics import interval


def test_more_seeds_of_a_deterministic_method_say_nothing_new() -> None:
    """The interval of ten equal seeds is that of one; of seeds that differ it is wider than of their means."""
    gaps = np.random.default_rng(0).exponential(0.1, 20)
    one = [(f"{i}", float(gap)) for i, gap in enumerate(gaps)]
    assert interval(one * 10) == pytest.approx(interval(one))
    spread = [(name, gap + off) for name, gap in one for off in (-0.5, 0.0, 0.5)]
    (mean, low, high), (_, below, above) = interval(one), interval(spread)
    assert low < mean < high and below < low and high < above
