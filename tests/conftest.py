"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from gangplan.hybrid.compiling import compile_all
from gangplan.solvers.method import OBJECTIVES

# a shared machine may pause any example; a time limit on each would only test the machine
settings.register_profile("gangplan", deadline=None)
settings.load_profile("gangplan")

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """Compile once what short solves leave out as long as it is not."""
    for objective in OBJECTIVES:
        compile_all(objective)


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder of real data beside the repository, or skip the test where there is none."""
    if not DATA.is_dir():
        pytest.skip("../shared/data is absent")
    return DATA


@pytest.fixture
def listens_to_ctrl_c() -> Iterator[None]:
    """Have child processes hear SIGINT, which a shell without job control makes background jobs ignore."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)
