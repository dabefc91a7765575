"""Small scenarios of PAC-ML's policies, made by our own generators."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch

from gangplan.instances import RampTopology
from gangplan.instances.generators import generate
from gangplan.systems.pacml.jobs import Blocks, JobType
from gangplan.systems.pacml.learned.values import Scenario
from gangplan.systems.pacml.step import Units


@pytest.fixture(scope="session")
def make_scenario() -> Callable[..., Scenario]:
    """Return what makes a scenario of a size and a seed: jobs of 5 to 50 s on one server, as the published ones."""
    torch.set_num_threads(1)  # the matrices are small, and the tests run side by side

    @cache
    def make(size: tuple[int, int, int], seed: int, units: Units = "physical", kinds: int = 2) -> Scenario:
        rng, topology = np.random.default_rng(seed), RampTopology(*size)
        blocks, types = Blocks(topology), list[JobType]()
        for k in range(kinds):
            kind = str(rng.choice(("gpt", "bert", "resnet", "vgg", "gnmt", "inception")))
            graph = generate(kind, training=True, devices=1, device_type=str(rng.choice(("V100", "A100")))).graph
            seconds = float(np.exp(rng.uniform(np.log(5.0), np.log(50.0))))
            steps = max(1, round(seconds / float(graph.time[0].sum())))
            types.append(JobType.of(graph, name=f"{kind} {k}", blocks=blocks, units=units, steps=steps))
        return Scenario(topology, {units: tuple(types)})

    return make


@pytest.fixture(scope="session")
def scenario(make_scenario: Callable[..., Scenario]) -> Scenario:
    """Return three made networks on the published cluster of 4 x 4 x 2 servers."""
    return make_scenario((4, 4, 2), 0, kinds=3)


@pytest.fixture(scope="session")
def small(make_scenario: Callable[..., Scenario]) -> Scenario:
    """Return two made networks on 4 x 2 x 2 servers, where no degree has many blocks and 16 has one."""
    return make_scenario((4, 2, 2), 1, "as-published")
