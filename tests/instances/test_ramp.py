"""RAMP's blocks and collectives, against the lists of the paper and sums done by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangplan.instances import InstanceError, RampTopology
from gangplan.instances.ramp import (
    block_shapes,
    blocks,
    collective_cost,
    collective_seconds,
    coordinates,
    server_index,
    span,
)

RAMP = RampTopology()
TOPOLOGIES = st.builds(RampTopology, *[st.integers(1, 5)] * 3)


@pytest.mark.parametrize(
    ("size", "shapes"),
    [
        (1, [(1, 1, 1)]),
        (2, [(2, 1, 1), (1, 1, 2), (1, 2, 1)]),
        (4, [(2, 2, 1), (4, 1, 1), (2, 1, 2)]),
        (6, [(3, 1, 2), (3, 2, 1)]),
        (8, [(2, 2, 2), (4, 1, 2), (4, 2, 1)]),
        (16, [(4, 4, 1)]),
    ],
)
def test_shapes_of_the_paper(size: int, shapes: list[tuple[int, int, int]]) -> None:
    """The published degrees have the published shapes, in their order."""
    assert block_shapes(RAMP, size) == shapes


@pytest.mark.parametrize("size", [10, 12, 14])
def test_degrees_without_a_block(size: int) -> None:
    """Of 10, 12 and 14 servers there is neither a box nor a diagonal."""
    assert block_shapes(RAMP, size) == []
    assert list(blocks(RAMP, size)) == []


@given(TOPOLOGIES, st.integers(1, 20))
def test_blocks_lie_within_the_cluster(topology: RampTopology, size: int) -> None:
    """Every block has `size` different servers, all of the cluster, and no box shape is larger than the cluster."""
    for shape in block_shapes(topology, size):
        assert np.prod(shape) == size
        limits = (topology.communication_groups, topology.racks, topology.servers)
        assert all(a <= b for a, b in zip(shape, limits, strict=True))
    for block in blocks(topology, size):
        assert len(set(block.tolist())) == size
        assert block.min() >= 0
        assert block.max() < topology.n_devices


def test_order_of_blocks() -> None:
    """Blocks of two: boxes by shape and origin, servers fastest, then the diagonals, in both servers of the racks."""
    found = [b.tolist() for b in blocks(RAMP, 2)]
    # (2,1,1): groups 0 and 1, rack 0: devices 0 and 8
    assert found[:3] == [[0, 8], [1, 9], [2, 10]]
    # 3 x 4 x 2 of (2,1,1), 4 x 4 x 1 of (1,1,2), 4 x 3 x 2 of (1,2,1), 3 x 3 x 2 diagonals
    assert len(found) == 24 + 16 + 24 + 18
    assert found[24] == [0, 1]
    assert found[40] == [0, 2]
    assert found[64:66] == [[0, 10], [1, 11]]


def test_rows_in_a_cluster_of_few_racks() -> None:
    """Four communication groups of one rack hold rows of four, which no square or tall shape gives."""
    assert [b.tolist() for b in blocks(RampTopology(4, 1, 1), 4)] == [[0, 1, 2, 3]]


@given(TOPOLOGIES, st.integers(1, 24))
def test_shapes_are_what_the_docstring_says(topology: RampTopology, size: int) -> None:
    """Of each size = a b with b within a rack, (sqrt a, sqrt a, b), (a, 1, b) and (a, b, 1) are there if they fit."""
    limits = topology.communication_groups, topology.racks, topology.servers
    wanted = set()
    for b in range(1, topology.servers + 1):
        if size % b == 0:
            a = size // b
            wanted |= {(a, 1, b), (a, b, 1)} | {(r, r, b) for r in range(1, a + 1) if r * r == a}
    found = block_shapes(topology, size)
    assert len(set(found)) == len(found)
    assert set(found) == {s for s in wanted if all(x <= most for x, most in zip(s, limits, strict=True))}


def test_a_wide_cluster_is_a_block() -> None:
    """Three groups of one rack of two servers hold a block of all six, and of published shapes 4 x 4 x 2 keeps each."""
    assert block_shapes(RampTopology(3, 1, 2), 6) == [(3, 1, 2)]
    published = {6: [(3, 1, 2), (3, 2, 1)], 8: [(2, 2, 2), (4, 1, 2), (4, 2, 1)], 16: [(4, 4, 1)], 12: []}
    assert {size: block_shapes(RAMP, size) for size in published} == published


@given(TOPOLOGIES)
def test_coordinates_round_trip(topology: RampTopology) -> None:
    """Coordinates and device numbers are the same in both directions."""
    device = np.arange(topology.n_devices)
    assert server_index(topology, *coordinates(topology, device)).tolist() == device.tolist()


def test_collective_of_two_by_hand() -> None:
    """Two servers of two groups: 2 x (250 ns + half over all four transceivers) + half added up."""
    m = 1e9 / 2
    # additions: 1 round of m / 2 values at min(2e12 x 1 / (2 x 3), 130e12) = 1/3 e12 per second
    expected = 2 * (250e-9 + m / 4e11) + m / 2 / (2e12 / 6)
    assert collective_seconds(RAMP, np.array([0, 8]), 1e9) == pytest.approx(expected, rel=1e-12)


def test_collective_of_sixteen_by_hand() -> None:
    """A 4 x 4 x 1 block takes two steps of four: one transceiver each, 2 rounds at 2e12 x 2 / 10 per second."""
    block = next(blocks(RAMP, 16))
    assert span(RAMP, block) == (4, 4, 1)
    first, second = 1e9 / 4, 1e9 / 16
    expected = sum(2 * (250e-9 + m / 1e11) + 2 * m / 2 / (4e12 / 10) for m in (first, second))
    assert collective_seconds(RAMP, block, 1e9) == pytest.approx(expected, rel=1e-12)


def test_collective_of_three_groups_by_hand() -> None:
    """A 3 x 1 x 2 block: a step of three at two transceivers, then one of two at four."""
    block = next(blocks(RAMP, 6))
    first, second = 6e8 / 3, 6e8 / 6
    three = 2 * (250e-9 + first / 2e11) + 2 * first / 2 / (4e12 / 8)
    two = 2 * (250e-9 + second / 4e11) + second / 2 / (2e12 / 6)
    assert collective_seconds(RAMP, block, 6e8) == pytest.approx(three + two, rel=1e-12)


def test_servers_of_one_rack_reduce_for_nothing() -> None:
    """By the published formula a (1, 1, 2) block has no subgroup of two, and so no cost: kept as it is."""
    assert collective_cost(RAMP, (1, 1, 2)) == (0.0, 0.0)


@given(TOPOLOGIES, st.integers(1, 8), st.floats(0, 1e12), st.floats(0, 1e12))
def test_collectives_grow_with_size(topology: RampTopology, size: int, a: float, b: float) -> None:
    """No collective of more bytes is faster; one of no bytes, or on one server, takes no time."""
    for block in blocks(topology, size):
        small, large = (collective_seconds(topology, block, x) for x in sorted((a, b)))
        assert 0 <= small <= large < np.inf
        assert collective_seconds(topology, block, 0.0) == 0.0
        break
    assert collective_seconds(topology, np.array([0, 0]), 1e9) == 0.0


def test_bad_arguments() -> None:
    """A bad size or shape is named with its value."""
    with pytest.raises(InstanceError, match="size: 0 is not positive"):
        block_shapes(RAMP, 0)
    with pytest.raises(InstanceError, match=r"size: -1\.0 is negative"):
        collective_seconds(RAMP, np.array([0, 1]), -1.0)
    with pytest.raises(InstanceError, match="shape: racks: 0 is not positive"):
        collective_cost(RAMP, (1, 0, 1))
