"""States of TopDRL's cluster in which there is something to decide."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gangplan.instances.placement import Fleet
from gangplan.instances.placement.proximity import Proximity
from gangplan.simulator.gangs.arrays import Cluster, Jobs, State, begin, cluster_of, jobs_of
from gangplan.simulator.gangs.mixes import Mix
from gangplan.systems.topdrl.select.candidates import Scratch, scratch_of
from gangplan.systems.topdrl.select.episodes import RULES, observe, play
from gangplan.systems.topdrl.select.features import WIDTH
from gangplan.systems.topdrl.select.rollouts import least_work

World = tuple[Jobs, Cluster, State, Scratch]


@pytest.fixture
def make_world() -> Callable[..., World]:
    """Return what makes jobs of a mix, a cluster, and the state when at least so many have arrived."""

    def make(seed: int = 0, arrived: int = 40, racks: int = 2, scale: float = 1.0, **mix: float) -> World:
        proximity = Proximity()
        cluster = cluster_of(Fleet.regular(racks, 4, 4), proximity)
        jobs = jobs_of(Mix(**{"jobs": 60, "step": scale, **mix}).draw(seed), proximity)  # type: ignore[arg-type]
        state, s = begin(jobs, cluster), scratch_of(cluster, WIDTH)
        if arrived == 1:
            return jobs, cluster, state, s
        for until in range(arrived, len(jobs.submit)):  # and on until there is a choice
            play(jobs, cluster, state, s, least_work(), RULES[1], False, until)
            if observe(jobs, cluster, state, s) > 1:
                break
        return jobs, cluster, state, s

    return make
