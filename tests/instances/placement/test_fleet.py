"""Fleets made from other fleets."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from gangplan import InstanceError
from gangplan.instances.documents import from_data, to_data
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
        taints=("t",),
        tainted=[np.arange(6) == 5],
    )
    nodes = [4, 3, 0, 5]
    some = fleet.at(nodes)
    assert some.names == ("node4", "node3", "node0", "node5")
    for field in fields(Fleet):
        value = getattr(fleet, field.name)
        if isinstance(value, np.ndarray):
            assert (getattr(some, field.name) == value[..., nodes]).all(), field.name
    assert (some.topology.group == fleet.topology.group[:, nodes]).all()


def test_nodes_that_differ_by_name() -> None:
    """Types, GPUs, labels and taints are given where the fleet is made, and come back from a document."""
    fleet = Fleet.regular(
        2,
        3,
        gpus=(8, 4, 8),
        gpu_type={"A100": 2, "H100": 1},
        labels={"ssd": ["node0", 5], "ib": slice(3)},
        taints={"old": np.arange(6) == 4},
    )
    assert fleet.gpu_types == ("A100", "H100")
    assert fleet.gpu_type.tolist() == [0, 0, 1, 0, 0, 1] and fleet.gpus.tolist() == [8, 4, 8, 8, 4, 8]
    assert fleet.admits(("ssd",), ()).nonzero()[0].tolist() == [0, 5]
    assert fleet.admits(("ib",), ()).nonzero()[0].tolist() == [0, 1, 2]
    assert fleet.admits((), ()).nonzero()[0].tolist() == [0, 1, 2, 3, 5]
    assert fleet.admits((), ("old",)).all()
    assert Fleet.regular(1, 4, gpu_type=("A", "B")).gpu_type.tolist() == [0, 1, 0, 1]
    again = from_data(Fleet, to_data(fleet))
    assert again.taints == ("old",) and (again.tainted == fleet.tainted).all()
    assert "taints" not in to_data(Fleet.regular(1, 1))  # so that hashes of documents stay as they were


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"labels": {"ssd": ["node9"]}}, "labels.ssd[0]"),
        ({"taints": {"t": [7]}}, "taints.t[0]"),
        ({"gpu_type": {"A": 1}}, "gpu_type"),
        ({"gpus": ()}, "gpus"),
    ],
)
def test_what_is_no_node(options: dict[str, Any], field: str) -> None:
    """A name or number that no node has is named."""
    with pytest.raises(InstanceError) as error:
        Fleet.regular(1, 3, **options)
    assert error.value.field == field
