"""Fleets made from other fleets."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from gangplan.instances.placement import Fleet


def test_some_nodes_in_another_order() -> None:
    """Each node keeps all that it has, whatever it is, and its place in the tree."""
    rng = np.random.default_rng(0)
    fleet = replace(
        Fleet.regular(3, 2),
        gpu_types=("A", "B"),
        gpu_type=rng.integers(2, size=6),
        gpus=np.arange(6),
        cpu=np.arange(6.0),
        memory=np.arange(6.0),
        link=np.arange(1.0, 7.0),
        labels=("x", "y"),
        labelled=rng.random((2, 6)) < 0.5,
        usable=np.arange(6) != 3,
    )
    nodes = [4, 3, 0, 5]
    some = fleet.at(nodes)
    assert some.names == ("node4", "node3", "node0", "node5")
    for field in fields(Fleet):
        value = getattr(fleet, field.name)
        if isinstance(value, np.ndarray):
            assert (getattr(some, field.name) == value[..., nodes]).all(), field.name
    assert (some.topology.group == fleet.topology.group[:, nodes]).all()
