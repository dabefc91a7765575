"""Worlds: jobs that no block could serve are left out, a pod is a world of its own, and others are drawn by seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gangplan.instances import InstanceError, RampTopology
from gangplan.learned.ramp.elsewhere import PODS, SET, elsewhere
from gangplan.learned.ramp.pods import SERVERS, pods
from gangplan.learned.ramp.worlds import World
from gangplan.simulator.ramp import Fractions, JobType, arrivals

DATA = Path(__file__).parent.parent.parent.parent / "shared" / "data" / "pipedream"


def test_hopeless_jobs_are_left_out(world: World) -> None:
    """What is left can be done in time, at the times of arrival of the case; filled up, there are as many as asked."""
    (name,) = world.sets
    case = arrivals(world.types, "B", 5, n=300, load=0.7)
    episode = world.episode(name, case)
    jct, sequential = world.menus.jct.min(axis=1), world.menus.sequential
    assert (jct[episode.kind] <= episode.beta * sequential[episode.kind]).all()
    lost = jct[case.model] > case.fraction * sequential[case.model]
    assert episode.hopeless == lost.sum() > 0 and len(episode.kind) == 300 - lost.sum()
    # the first one that counts is at 0
    submit = case.submit[~lost]
    assert np.allclose(np.cumsum(episode.gap), submit - submit[0])
    full = world.draw(name, "B", 5, 300, load=0.7, fill=True)
    assert len(full.kind) == len(full.beta) == len(full.gap) == 300


def test_users_that_nobody_can_serve(world: World) -> None:
    """Where no job at all is possible an episode cannot be filled up, and says so."""
    (name,) = world.sets
    slow = tuple(kind for kind in world.types if kind.jct.min() > 0.12 * kind.sequential)
    impatient = Fractions(location=0.1, upper=0.11)
    with pytest.raises(InstanceError, match="fractions"):
        World(world.topology, {name: slow}).draw(name, impatient, 0, 20, fill=True)


def test_a_pod_is_a_world(world: World) -> None:
    """A pod gets its share of the jobs, and each of its shapes the times that the cluster's shape has."""
    topology = RampTopology(8, 8, 2)
    from gangplan.simulator.ramp import Blocks

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
