"""Distances in trees and in RAMP, against sums done by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gangplan.instances import Cluster, DeviceType, InstanceError, Level, RampTopology, TreeTopology

SERVER, RACK, POD = Level("server", 100.0, 0.5), Level("rack", 10.0, 1.0), Level("pod", 1.0, 2.0)
TREE = TreeTopology.regular((SERVER, RACK, POD), (2, 2, 2))


@pytest.mark.parametrize(
    ("a", "b", "level"),
    [(0, 0, 0), (0, 1, 0), (1, 2, 1), (0, 3, 1), (3, 4, 2), (0, 7, 2), (6, 7, 0)],
)
def test_level_between(a: int, b: int, level: int) -> None:
    """Devices 0-1, 2-3, 4-5, 6-7 share a server, 0-3 and 4-7 a rack, and all the pod."""
    assert TREE.level_between(np.array([a]), np.array([b])).tolist() == [level]
    assert TREE.level_between(np.array([b]), np.array([a])).tolist() == [level]


def test_tree_transfer_seconds() -> None:
    """A transfer takes the latency of the joining level and size over its bandwidth; none on one device."""
    a, b = np.array([0, 0, 0, 0]), np.array([0, 1, 2, 4])
    # 50 bytes: 0; .5 + 50/100; 1 + 50/10; 2 + 50/1
    assert TREE.transfer_seconds(a, b, np.full(4, 50.0)).tolist() == [0.0, 1.0, 6.0, 52.0]


def test_slowest_link_is_the_slowest_of_both() -> None:
    """The one price for all pairs has the least bandwidth and the greatest latency of any level."""
    tree = TreeTopology.regular((Level("server", 1.0, 0.0), Level("rack", 5.0, 3.0)), (2, 2))
    assert tree.slowest_link() == (1.0, 3.0)


def test_uneven_tree() -> None:
    """Servers need not be of one size: devices 0-2 share one, 3 is alone in another."""
    tree = TreeTopology((SERVER, RACK), np.array([[0, 0, 0, 1], [0, 0, 0, 0]]))
    assert tree.level_between(np.array([0, 0]), np.array([2, 3])).tolist() == [0, 1]


def test_ramp_transfer_seconds() -> None:
    """RAMP takes 50 ns + 2 x 100 ns + size over one channel between any two servers (PAC-ML's one-to-one formula)."""
    ramp = RampTopology()
    assert ramp.n_devices == 32
    seconds = ramp.transfer_seconds(np.array([0, 5]), np.array([31, 5]), np.array([4e11, 4e11]))
    assert seconds.tolist() == pytest.approx([1 + 250e-9, 0.0], rel=1e-15)


def test_broken_trees_are_refused() -> None:
    """A server in two racks, and a top level that leaves devices apart, are named."""
    with pytest.raises(InstanceError, match=r"group\[1\]: server 0 lies in racks 0 and 1"):
        TreeTopology((SERVER, RACK), np.array([[0, 0], [0, 1]]))
    with pytest.raises(InstanceError, match=r"group\[0\]: the top level does not join all devices"):
        TreeTopology((SERVER,), np.array([[0, 1]]))
    with pytest.raises(InstanceError, match="levels: the tree has no level"):
        TreeTopology((), np.zeros((0, 2), dtype=int))


def test_cluster_counts_and_large_size() -> None:
    """A cluster of 100,000 devices is two arrays, and its counts add up."""
    gpu, host = DeviceType("gpu"), DeviceType("host", host=True)
    cluster = Cluster.flat((gpu, 99_000), (host, 1_000), bandwidth=1e9)
    assert cluster.counts().tolist() == [99_000, 1_000]
    assert cluster.type_of.nbytes + cluster.topology.group.nbytes < 1e6
    with pytest.raises(InstanceError, match="is more than"):
        Cluster.flat((gpu, 10**12), bandwidth=1e9)


def test_arrays_are_read_only() -> None:
    """Data cannot be changed after it was validated, not even through the array it was made from."""
    group = np.zeros((1, 2), dtype=np.int32)
    tree = TreeTopology((SERVER,), group)
    group[0, 1] = 7
    assert tree.group.tolist() == [[0, 0]]
    with pytest.raises(ValueError, match="read-only"):
        tree.group[0, 0] = 1
