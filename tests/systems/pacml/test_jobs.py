"""Blocks of a RAMP cluster, and what a kind of job takes on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gangplan.instances import InstanceError, RampTopology
from gangplan.instances.ramp import blocks as blocks_in_order
from gangplan.instances.ramp import span
from gangplan.instances.readers import parse
from gangplan.instances.schedule import ramp_blocks
from gangplan.systems.pacml.jobs import Blocks, JobType, first_fit, read_types
from gangplan.systems.pacml.step import training_step

PROFILE = """\
a -- Conv -- forward_compute_time=4.0, backward_compute_time=8.0, activation_size=3e8, parameter_size=1e8
b -- Conv -- forward_compute_time=0.015, backward_compute_time=0.02, activation_size=3e8, parameter_size=1e8
c -- Conv -- forward_compute_time=0.0, backward_compute_time=0.0, activation_size=1e8, parameter_size=1e8
\ta -- b
\tb -- c
"""


def kind(blocks: Blocks, **options: object) -> JobType:
    """Return the type of a small model with ops that split into 1, 2 and as many parts as there are."""
    return JobType.of(parse(PROFILE, keep_inputs=True).graph, name="small", blocks=blocks, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(4, 4, 2), (8, 4, 2), (3, 5, 4), (2, 2, 16), (1, 1, 1)])
def test_blocks_are_those_of_first_fit(shape: tuple[int, int, int]) -> None:
    """All blocks of each degree are there, once, in the order in which they are tried one by one."""
    topology = RampTopology(*shape)
    blocks = Blocks(topology, (1, 2, 3, 4, 6, 8, 16))
    for i, degree in enumerate(blocks.degrees):
        np.testing.assert_array_equal(blocks.of(i), ramp_blocks(topology, degree))
        listed = dict.fromkeys(tuple(sorted(block.tolist())) for block in blocks_in_order(topology, degree))
        np.testing.assert_array_equal(ramp_blocks(topology, degree), np.array(list(listed)).reshape(-1, degree))
    for b in range(blocks.n_blocks):
        members = blocks.members(b)
        assert blocks.shapes[blocks.shape[b]] == (blocks.degree[b], span(topology, members))
        assert blocks.size[b] == blocks.degrees[blocks.degree[b]] == len(members)
        assert (blocks.servers[b, len(members) :] == -1).all()


def test_free_and_touching_blocks() -> None:
    """Free blocks, and blocks with a server in common, are those found by looking at every block."""
    blocks = Blocks(RampTopology())
    sets = [set(blocks.members(b).tolist()) for b in range(blocks.n_blocks)]
    rng = np.random.default_rng(0)
    for _ in range(20):
        free = rng.random(32) < 0.7
        assert blocks.fits(free).tolist() == [all(free[s] for s in members) for members in sets]
        b = int(rng.integers(blocks.n_blocks))
        assert blocks.touching(b).tolist() == [c for c, members in enumerate(sets) if members & sets[b]]


def test_many_servers() -> None:
    """A cluster of 4,096 servers has its blocks at once, each of its degree's size and within the cluster."""
    blocks = Blocks(RampTopology(16, 16, 16))
    assert blocks.n_blocks == 104_748
    assert ((blocks.servers >= 0).sum(axis=1) == blocks.size).all()
    assert blocks.servers.max() == 4095


def test_bad_degrees() -> None:
    """Degrees ascend and there is one."""
    with pytest.raises(InstanceError, match=r"degrees\[1\]: 2 does not ascend"):
        Blocks(RampTopology(), (4, 2))
    with pytest.raises(InstanceError, match="degrees: names no degree"):
        Blocks(RampTopology(), ())


@pytest.mark.parametrize("units", ["physical", "as-published"])
@pytest.mark.parametrize("shape", [(4, 4, 2), (6, 3, 2)])
def test_placement_is_published_first_fit(units: str, shape: tuple[int, int, int]) -> None:
    """On any free servers a job gets those that first fit gives it, and the time of a step there."""
    topology = RampTopology(*shape)
    job = kind(Blocks(topology), units=units)
    rng = np.random.default_rng(1)
    placed = 0
    for _ in range(200):
        free, degree = rng.random(topology.n_devices) < rng.uniform(0.2, 1), int(rng.integers(6))
        found, wanted = job.published(degree, free), first_fit(job.splits[degree], topology, free=free)
        assert (found is None) == (wanted is None)
        if found is not None and wanted is not None:
            placed += 1
            assert found.servers.tolist() == sorted(set(wanted.tolist()))
            step = training_step(job.splits[degree], wanted, topology, units=units)  # type: ignore[arg-type]
            assert found.jct == pytest.approx(50 * step.seconds, rel=1e-12)
    assert 50 < placed < 200


def test_placement_where_memory_binds() -> None:
    """Ops that exceed a server's memory together are spread as first fit spreads them."""
    text = PROFILE.replace("e8", "e10")
    job = JobType.of(parse(text, keep_inputs=True).graph, name="large")
    free = np.ones(32, dtype=bool)
    free[[0, 9]] = False
    wanted = first_fit(job.splits[1], RampTopology(), free=free)
    found = job.published(1, free)
    assert job.tight[1] and wanted is not None and found is not None
    assert found.servers.tolist() == sorted(set(wanted.tolist()))
    assert len(found.servers) > 2


def test_time_in_one_block_of_each_shape() -> None:
    """The time kept inside a block is that of first fit on its servers alone, whichever block of the shape it is."""
    blocks = Blocks(RampTopology())
    job = kind(blocks)
    for b in range(0, blocks.n_blocks, 7):
        free = np.zeros(32, dtype=bool)
        free[blocks.members(b)] = True
        split = job.splits[blocks.degree[b]]
        placed = first_fit(split, blocks.topology, free=free)
        assert placed is not None
        assert job.kept(b) == pytest.approx(50 * training_step(split, placed, blocks.topology).seconds, rel=1e-12)
    assert job.sequential == pytest.approx(50 * 12.035e-3)


def test_gnmt_at_eight(data: Path) -> None:
    """gnmt finds no place in a (2, 2, 2) box, and by first fit on an empty cluster holds 10 servers."""
    (gnmt,) = read_types(data / "pipedream", ["gnmt"], units="as-published")
    eight = {shape: jct for (i, shape), jct in zip(gnmt.blocks.shapes, gnmt.jct.tolist(), strict=True) if i == 4}
    assert eight[2, 2, 2] == np.inf and eight[4, 1, 2] == pytest.approx(560.48, abs=0.5)
    found = gnmt.published(4, np.ones(32, dtype=bool))
    assert found is not None and len(found.servers) == 10
    assert found.jct == pytest.approx(560.48, abs=0.00501)


def test_bad_profiles(tmp_path: Path) -> None:
    """An absent folder, an absent profile and a name twice are named."""
    (tmp_path / "small.txt").write_text(PROFILE)
    with pytest.raises(InstanceError, match="is not a folder"):
        read_types(tmp_path / "none")
    with pytest.raises(InstanceError, match=r"models\[1\]: 'vgg16' has no profile vgg16.txt"):
        read_types(tmp_path, ["small", "vgg16"])
    with pytest.raises(InstanceError, match=r"models\[1\]: 'small' is a duplicate"):
        read_types(tmp_path, ["small", "small"])
    with pytest.raises(InstanceError, match="models: names no model"):
        read_types(tmp_path, [])
    assert read_types(tmp_path, ["small"])[0].name == "small"
