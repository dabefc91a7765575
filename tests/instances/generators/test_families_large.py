"""Large instances by name."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.instances import InstanceError
from gangplan.instances.documents import content_hash
from gangplan.instances.generators.families import LARGE, make_large, seed_of

CASES = [(problem, family) for problem, families in LARGE.items() for family in families]


@pytest.mark.parametrize(("problem", "family"), CASES)
def test_same_again_and_as_large_as_asked(problem: str, family: str) -> None:
    """The same arguments give the same instance, another seed another one, of nearly the size asked for."""
    for index in range(4):
        made: Any = make_large(problem, family, seed_of("train", index), 200)
        assert content_hash(made) == content_hash(make_large(problem, family, seed_of("train", index), 200))
        assert content_hash(made) != content_hash(make_large(problem, family, seed_of("train", index + 9), 200))
        parts = {"placement": lambda p: p.fleet.n_nodes, "schedule": lambda p: len(p.jobs)}
        assert 100 <= parts.get(problem, lambda p: p.graph.n_ops)(made) <= 200


@pytest.mark.parametrize(
    ("arguments", "field"),
    [(("rounds", "x", 0, 100), "problem"), (("step", "x", 0, 100), "family"), (("schedule", "moldable", 0, 8), "size")],
)
def test_wrong_arguments_are_named(arguments: Any, field: str) -> None:
    """The error names the argument."""
    with pytest.raises(InstanceError, match=field):
        make_large(*arguments)
