"""Worlds: a pod is a world of its own, and worlds beside the published are drawn by seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gangplan.instances import RampTopology
from gangplan.learned.ramp.elsewhere import PODS, SET, elsewhere
from gangplan.learned.ramp.pods import SERVERS, pods
from gangplan.learned.ramp.worlds import World
from gangplan.simulator.ramp import Blocks, Fractions, JobType, arrivals

DATA = Path(__file__).parent.parent.parent.parent / "shared" / "data" / "pipedream"


def test_a_pod_is_a_world(world: World) -> None:
    """A pod gets its share of the jobs, and each of its shapes the times that the cluster's shape has."""
    topology = RampTopology(8, 8, 2)
    blocks = Blocks(topology)
    kind = JobType.of(world.types[0].graph, name="a", blocks=blocks)
    pod = pods(blocks, choose=True)[0]
    part = World(topology, {SET: (kind,)}, pod)
    assert part.tables.n == SERVERS == len(pod.servers)
    assert np.array_equal(part.menus.jct[0], kind.jct[pod.shape])
    gap = part.draw(SET, Fractions(location=0.9), 0, 50).gap[1:]
    whole = arrivals((kind,), Fractions(location=0.9), 0, n=50)
    assert np.allclose(gap, np.diff(whole.submit) * blocks.n_servers / SERVERS)


@pytest.mark.skipif(not DATA.is_dir(), reason="there is no PipeDream data")
def test_elsewhere_goes_by_its_seed() -> None:
    """The same seed gives the same world and episodes; another seed another one."""
    (one, draw), (two, again), (other, _) = (elsewhere(DATA, "physical", seed, 2_000_000) for seed in (3, 3, 4))
    assert np.array_equal(one.menus.jct, two.menus.jct) and not np.array_equal(one.menus.jct, other.menus.jct)
    first, second = (x(np.random.default_rng(1), 30) for x in (draw, again))
    assert np.array_equal(first.beta, second.beta) and len(first.kind) == 30
    size = one.topology.communication_groups, one.topology.racks, one.topology.servers
    assert (one.pod is not None) == (size in PODS)
