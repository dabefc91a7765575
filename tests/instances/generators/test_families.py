"""Instances by name are drawn anew for each seed, within their size, and no seed is in two splits."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from gangplan.instances import InstanceError, content_hash
from gangplan.instances.generators.families import FAMILIES, SPLITS, make, seed_of


def test_splits_are_apart() -> None:
    """No seed is in two splits, and every family is drawn anew for each seed."""
    ends = sorted((seed_of(split, 0), seed_of(split, (1 << 29) - 1)) for split in SPLITS)
    assert all(last < first for (_, last), (first, _) in pairwise(ends))
    with pytest.raises(InstanceError, match="index"):
        seed_of("train", 1 << 29)
    for problem, families in FAMILIES.items():
        for family in families:
            hashes = [content_hash(make(problem, family, seed_of(s, i), 12)) for s in SPLITS for i in range(3)]
            assert len(set(hashes)) == 9
            assert content_hash(make(problem, family, seed_of("test", 2), 12)) == hashes[-1]


@pytest.mark.parametrize("problem", FAMILIES)
def test_sizes(problem: str) -> None:
    """No instance is larger than asked for, and the largest are about as large."""
    sizes = []
    for seed in range(40):
        made: Any = make(problem, FAMILIES[problem][seed % len(FAMILIES[problem])], seed, 24)
        nodes = made.fleet.n_nodes if problem == "placement" else len(getattr(made, "jobs", ()))
        sizes.append(nodes or made.graph.n_ops)
    assert max(sizes) <= 24
    assert max(sizes) >= 20
    assert min(sizes) < 16
