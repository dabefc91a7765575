"""Convolutional networks, counted by hand and compared with profiles."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gangplan.instances import DeviceType, InstanceError
from gangplan.instances.generators import GENERATORS, generate

SLOW = DeviceType("slow", flops=1.0, memory_bandwidth=1e30)


@pytest.mark.parametrize(
    ("kind", "options", "gmacs"),
    [("resnet", {}, 4.089), ("vgg", {}, 15.47), ("inception", {"auxiliary": False}, 5.713)],
)
def test_image_flops(kind: str, options: dict[str, Any], gmacs: float) -> None:
    """Convolutions and dense layers take as many multiply-adds an image as torchvision publishes."""
    graph = GENERATORS[kind](batch=1, **options).graph(SLOW, training=False, efficiency=1.0)
    heavy = [i for i, name in enumerate(graph.names) if re.search(r"/(conv|dense|shortcut)\d*$", name)]
    assert graph.time[0, heavy].sum() / 2 == pytest.approx(gmacs * 1e9, rel=1e-3)


@pytest.mark.parametrize("kind", ["resnet", "vgg", "inception"])
@pytest.mark.parametrize("field", ["image", "batch", "classes"])
def test_sizes_are_counts(kind: str, field: str) -> None:
    """Half an image, or none, is refused by its name."""
    for wrong in (0, 2.5):
        with pytest.raises(InstanceError, match=f"{field}: {wrong} is not"):
            GENERATORS[kind](**{field: wrong})


def test_auxiliary_classifier() -> None:
    """The auxiliary classifier adds ops and changes none, and its backward pass waits for the loss too."""
    with_it, without = (generate("inception", auxiliary=choice).graph for choice in (True, False))
    assert set(without.names) < set(with_it.names)
    added = [name for name in with_it.names if name not in without.names]
    assert all(name.startswith("auxiliary/") for name in added)
    for graph in (with_it, without):
        heads = set(range(graph.n_ops)) - set(graph.target.tolist())
        assert {graph.names[i] for i in heads} == {"stem/1/conv"}
