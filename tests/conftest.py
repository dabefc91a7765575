"""What all tests share."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from gangplan.hybrid.compiling import alone, compile_all
from gangplan.solvers import processes
from gangplan.solvers.method import OBJECTIVES

# a shared machine may pause any example; a time limit on each would only test the machine
settings.register_profile("gangplan", deadline=None)
settings.load_profile("gangplan")

DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """Compile once what short solves leave out as long as it is not; workers begin at different ends."""
    second = os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0"
    for objective in reversed(OBJECTIVES) if second else OBJECTIVES:
        with alone(objective, wait=True):
            compile_all(objective)


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder of real data beside the repository, or skip the test where there is none."""
    if not DATA.is_dir():
        pytest.skip("../shared/data is absent")
    return DATA


@pytest.fixture
def processor_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have clocks count this process's processor time, of which a busy machine takes none.

    It is for methods that run in this process and sleep nowhere: a limit is kept if the clock says so.
    """
    monkeypatch.setattr(time, "perf_counter", time.process_time)


@pytest.fixture
def spent() -> Iterator[Callable[[], float]]:
    """Return what tells the processor time of this process, and of those of a solve, since the test began.

    It is what they compute. What the system takes to copy a test worker of a gigabyte for a fork is not a method's,
    and neither is half a second of the garbage collector's over what thousands of tests before left.
    """

    def total() -> float:
        for child in processes._left:
            child.join(60.0)
        times = os.times()
        return times.user + times.children_user

    gc.collect()
    gc.freeze()
    before = total()
    yield lambda: total() - before
    gc.unfreeze()


@pytest.fixture
def listens_to_ctrl_c() -> Iterator[None]:
    """Have child processes hear SIGINT, which a shell without job control makes background jobs ignore."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)
