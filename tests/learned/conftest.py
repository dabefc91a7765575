"""Small scenarios of PAC-ML's policy, made by our own generators."""

from __future__ import annotations

import pytest
import torch

from gangplan.learned.ramp.scenarios import Scenario, various


@pytest.fixture(scope="session")
def one_thread() -> None:
    """Keep torch to one thread: the matrices are small, and the tests run side by side."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def scenario(one_thread: None) -> Scenario:
    """Return three made networks on the published cluster of 4 x 4 x 2 servers."""
    return various((4, 4, 2), 0, ("physical",), sets=1, kinds=3)


@pytest.fixture(scope="session")
def small(one_thread: None) -> Scenario:
    """Return two made networks on 4 x 2 x 2 servers, where no degree has many blocks and 16 has one."""
    return various((4, 2, 2), 1, ("as-published",), sets=1, kinds=2)
