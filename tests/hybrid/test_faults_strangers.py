"""Strangers in the portfolio that lie, crash, sleep and fork, by a seed: the answer is as without them, in time."""

from __future__ import annotations

import ctypes
import faulthandler
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
import pytest

from gangplan import PartitionPlan, solve, verify
from gangplan.hybrid import Entry, register, unregister
from gangplan.instances.generators import generate
from gangplan.solvers import Run
from gangplan.solvers.method import Method
from gangplan.solvers.processes import can_serve

pytestmark = pytest.mark.skipif(not can_serve(), reason="strangers run in processes of their own")

LIMIT = 20.0
"""Seconds a solve gets; it ends with the proof, unless a stranger sleeps away its share."""
CALLER = os.getpid()
"""Process of the tests."""
SLEEP = 0.02
"""Share of the time of a stranger."""


def claim(value: Callable[[Run], float], run: Run) -> None:
    """Claim a bound, with a plan or without."""
    run.raise_bound(value(run), "stranger")


def offer(plan: Callable[[Run], Any], run: Run) -> None:
    """Offer what is no plan of the problem."""
    run.offer(plan(run), "stranger")


def overwrite(run: Run) -> None:
    """Pretend that all is proved."""
    run.objective = run.bound = 0.0
    run.plan, run.stop_reason, run.deadline = "a plan", "proved", math.inf


def scribble(run: Run) -> None:
    """Change the problem, as far as it lets itself be changed."""
    for array in (run.problem.graph.time, run.problem.graph.memory):
        array.setflags(write=True)
        np.multiply(array, 1e-3, out=array)


def patch(run: Run) -> None:
    """Change what all runs do."""
    Run.offer = lambda self, plan, by: True  # type: ignore[method-assign]
    Run.raise_bound = lambda self, value, by: None  # type: ignore[method-assign]


def fork(run: Run) -> None:
    """Come back twice."""
    os.fork()


def leave_somebody(run: Run) -> None:
    """Begin a process that does not end."""
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdout=subprocess.DEVNULL)


def close_all(run: Run) -> None:
    """Close every file, the way to the caller among them."""
    os.closerange(3, 4096)


def shout(run: Run) -> None:
    """Write nonsense to whoever listens."""
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\0\0\0\5hello")
        except OSError:
            continue


def half_a_message(run: Run) -> None:
    """Announce a message, and never send it."""
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b"\0\0\1\0x")
        except OSError:
            continue
    time.sleep(3600)


def lie_in_the_books(run: Run) -> None:
    """Say what is no number of seconds, and no words."""
    run.phases["x"] = math.nan
    run.notes.append(5)  # type: ignore[arg-type]


def abort(run: Run) -> None:
    """End in native code."""
    faulthandler.disable()
    os.abort()


def ignore_signals(run: Run) -> None:
    """Ignore what can be ignored, and sleep."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(3600)


def raises(error: BaseException, run: Run) -> None:
    """Raise an error."""
    raise error


def recurse(run: Run) -> None:
    """Never come back."""
    recurse(run)


def everywhere(run: Run) -> PartitionPlan:
    """Return a plan on devices that are not there."""
    n = run.problem.graph.n_ops
    return PartitionPlan(run.problem.graph.names, [99] * n, [0] * n)


def kill_the_server(run: Run) -> None:
    """End who has begun it, but not the tests."""
    if os.getppid() != CALLER:
        os.kill(os.getppid(), signal.SIGKILL)


def crash(run: Run) -> None:
    """Read from where nothing is."""
    faulthandler.disable()
    ctypes.string_at(0)


def overflow(run: Run) -> None:
    """Use up the stack of native code."""
    faulthandler.disable()
    sys.setrecursionlimit(10**9)
    reduce(lambda *_: overflow(run), (1, 2))


def talk_on_the_streams(run: Run) -> None:
    """Close the standard streams, then print."""
    os.closerange(0, 3)
    print("x" * 10**6)


class Unreadable:
    """What fails where it is read."""

    def __reduce__(self) -> Any:
        """Return how to make another one."""
        return int, ("x",)


def send(run: Run, *message: Any) -> None:
    """Say something to the caller."""
    run.callbacks[0].send(*message)  # type: ignore[attr-defined]


ACTS: list[Callable[[Run], None]] = [
    *(partial(claim, lambda run, x=x: x) for x in (math.inf, -math.inf, math.nan, 1e9, 1e-300)),
    partial(claim, lambda run: (run.objective or 1.0) * (1 - 1e-7)),
    partial(claim, lambda run: (run.objective or 1.0) * (1 + 1e-7)),
    *(partial(offer, lambda run, x=x: x) for x in (None, "a plan", 7)),
    partial(offer, everywhere),
    lambda run: run.prove_infeasible(),
    *(partial(raises, error) for error in (ValueError("v"), SystemExit(0), KeyboardInterrupt(), MemoryError())),
    *(
        overwrite,
        scribble,
        patch,
        fork,
        leave_somebody,
        close_all,
        shout,
        half_a_message,
        lie_in_the_books,
        abort,
        ignore_signals,
        recurse,
    ),
    *(partial(raises, error) for error in (TimeoutError(), StopIteration())),
    lambda run: raises(Exception(threading.Lock()), run),  # made there, or no method could be sent
    *(kill_the_server, overflow, talk_on_the_streams),
    lambda run: run.prove("a certificate"),
    lambda run: send(run, "plan", Unreadable(), "stranger", 1.0),
    lambda run: send(run, "end", (), {}, {}, False),
    crash,
    lambda run: os._exit(0),
    lambda run: os.kill(os.getpid(), signal.SIGKILL),
    lambda run: time.sleep(3600),
]


def stranger(seed: int) -> Callable[[Run, Any], None]:
    """Return a method that does one to three things that it should not, drawn by a seed."""
    draw = random.Random(seed)
    acts = [draw.randrange(len(ACTS)) for _ in range(draw.randint(1, 3))]

    def method(run: Run, prepared: Any) -> None:
        for act in acts:
            ACTS[act](run)

    return method


def fault(seed: int) -> str | None:
    """Return what is wrong with an answer that two strangers had a part in, `None` if nothing is."""
    problem = generate("layered", ops=12, layers=6, training=False, devices=3, seed=seed % 5)
    honest = solve(problem, time_limit=60, workers=1)
    for i in range(2):
        register(Entry("throughput", f"stranger{i}", Method(stranger(2 * seed + i)), share=SLEEP))
    before = time.perf_counter()
    try:
        result = solve(problem, time_limit=LIMIT, workers=1)
    finally:
        for i in range(2):
            unregister("throughput", f"stranger{i}")
    took = time.perf_counter() - before
    if (result.status, result.objective) != (honest.status, honest.objective):
        return f"{result.status} {result.objective}, without {honest.status} {honest.objective}"
    if verify(problem, result.plan).objective != result.objective:
        return "the plan is not what it is said to be"
    return None if took <= LIMIT + 20.0 else f"it took {took:.1f} s"


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.filterwarnings("ignore::gangplan.hybrid.MethodFailed")
def test_the_answer_is_as_without_them(seed: int) -> None:
    """Whatever two strangers do, status and objective are as without them."""
    assert fault(seed) is None
