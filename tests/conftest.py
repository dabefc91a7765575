"""What all tests share."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from gangplan.hybrid.server import close_workers
from gangplan.solvers import processes

from . import seeds

DATA = Path(__file__).parents[2] / "shared" / "data"
NAMED = "GANGPLAN_TEST_NAMED"
"""The environment variable that tells workers whether tests are named on the command line: those are run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--all`, by which tests marked `long` run too."""
    parser.addoption("--all", action="store_true", help="run tests that are too long for CI as well")


def pytest_configure(config: pytest.Config) -> None:
    """Compile again the extension modules whose sources have changed, once for all workers; choose what is drawn."""
    if not hasattr(config, "workerinput"):
        build = [sys.executable, "setup.py", "build_ext", "--inplace"]
        done = subprocess.run(build, cwd=Path(__file__).parents[1], check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.exit(done.stdout + done.stderr, returncode=done.returncode)
        os.environ.setdefault(NAMED, str(config.args_source is config.ArgsSource.ARGS))
    seeds.choose(config.getoption("--all"))
    # there is a worker for each core: more threads of NumPy or PyTorch wait for one another, and keep the cores busy
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # a shared machine may pause any example; a time limit on each would only test the machine
    settings.register_profile("gangplan", deadline=None, max_examples=seeds.examples(100))
    settings.load_profile("gangplan")


def pytest_report_header() -> str:
    """Say which seeds are played, so that they can be played again."""
    return f"seeds: {seeds.CHOICE}={os.environ[seeds.CHOICE]}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have the garbage collector leave alone what the tests import: to look at it takes half a second each time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests marked `long` unless `--all` is given, and of those that are rarely run those not due."""
    items.sort(key=lambda item: not item.nodeid.startswith(seeds.LONGEST))
    if config.getoption("--all"):
        return
    named = os.environ[NAMED] == "True"
    due = [item.get_closest_marker("long") is None and (named or seeds.turn(item.nodeid)) for item in items]
    config.hook.pytest_deselected(items=[item for item, is_due in zip(items, due, strict=True) if not is_due])
    items[:] = [item for item, is_due in zip(items, due, strict=True) if is_due]


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
def ticking_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have clocks go on by a tenth of a millisecond each time they are read, however busy the machine is."""
    now = itertools.count(1)
    monkeypatch.setattr(time, "perf_counter", lambda: next(now) * 1e-4)


@pytest.fixture
def spent() -> Iterator[Callable[[], float]]:
    """Return what tells the processor time of this process, and of those of a solve, since the test began.

    It is what they compute. What the system takes to copy a test worker of a gigabyte for a fork is not a method's,
    and neither is half a second of the garbage collector's over what thousands of tests before left.
    """

    def total() -> float:
        close_workers()  # the system counts what they have taken when they have ended
        for child in processes._left:
            child.join(60.0)
        times = os.times()
        return times.user + times.children_user

    gc.collect()
    gc.freeze()
    before = total()
    yield lambda: total() - before


@pytest.fixture
def listens_to_ctrl_c() -> Iterator[None]:
    """Have child processes hear SIGINT, which a shell without job control makes background jobs ignore."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Keep torch to one thread, for other tests run at the same time; skip where there is no torch."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def load(one_thread: None) -> Callable[[str], Any]:
    """Return a call that loads a network by its name, ``gpt2`` being the documentation's example in miniature."""
    from gangplan.instances.torch_model.load import load_model

    networks = Path(__file__).parent / "instances" / "torch_model" / "networks.py"
    gpt2 = Path(__file__).parents[1] / "docs" / "examples" / "gpt2.py"
    return lambda name: load_model(f"{gpt2}:tiny" if name == "gpt2" else f"{networks}:{name}")


@pytest.fixture
def traced(one_thread: None) -> Callable[[Any, str], Any]:
    """Return a call that traces a model in one way only, ``export`` or ``fx``, and returns its ops."""
    from gangplan.instances.torch_model.cost import profile
    from gangplan.instances.torch_model.ops import Ops
    from gangplan.instances.torch_model.program import without_inplace
    from gangplan.instances.torch_model.trace import export, symbolic

    def call(model: Any, way: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own, on its LSTM
            found = profile({"export": export, "fx": symbolic}[way](model))
        return Ops(profile(without_inplace(found.program, found.values)))

    return call
