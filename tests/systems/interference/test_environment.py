"""The ground of Harmony runs by the interval, and what comes of it holds under the check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.simulator.snapshots import Long, Snapshots, Truth
from gangplan.systems.interference.baselines import ScoreRule, run
from gangplan.systems.interference.cases import poisson
from gangplan.systems.interference.environment import SERVER, WORKER, Environment, InterferenceOutcome, check


@dataclass
class Plain:
    """A truth that is not compiled into the loop."""

    truth: Truth

    def speeds(self, now: Snapshots) -> FloatArray:
        """Return what the truth says."""
        return self.truth.speeds(now)


@pytest.mark.parametrize("kind", ["mixed", "ps", "ring"])
def test_outcomes_hold(kind: str) -> None:
    """Every job runs where it was put, and its epochs add up under the truth."""
    outcome = run(poisson(1, jobs=40, kind=kind), ScoreRule("lb")).outcome()
    assert check(outcome) == []


def test_a_truth_that_is_not_compiled() -> None:
    """The loop in Python and the compiled one end every job at the same time."""
    case = poisson(2, jobs=30)
    slow = run(replace(case, truth=Plain(case.truth)), ScoreRule("lb")).outcome()
    fast = run(case, ScoreRule("lb")).outcome()
    assert np.allclose(slow.finish, fast.finish, rtol=1e-9)


def test_rewards_add_up() -> None:
    """Over a whole run the rewards are one a job: its epochs as a share of all of them."""
    env, total = Environment(poisson(3, jobs=25)), 0.0
    while not env.done:
        ScoreRule("lb").place(env)
        total += env.end_interval()
    assert total == pytest.approx(25)


def test_half_a_job_waits_again() -> None:
    """A job that is begun gives its tasks back at the end of the interval, and none other may begin before."""
    env = Environment(poisson(4, jobs=30, kind="ps", load=50.0))
    env.end_interval()
    job = next(j for j in env.waiting if sum(env.left(j)) > 2)
    other = next(j for j in env.waiting if j != job)
    before = env.free.copy()
    env.place(job, WORKER, 0)
    assert env.mask(job).any() and not env.mask(other).any()
    assert env.rows(job) == {0: (1, 0)}
    with pytest.raises(InstanceError, match="job"):
        env.place(other, WORKER, 1)
    env.end_interval()
    assert job in env.waiting and np.array_equal(env.free, before) and env.placements == 0


def test_masks_leave_room_for_the_rest() -> None:
    """A job that fits can be placed to its end whatever the order and the servers, as long as masks are kept."""
    rng = np.random.default_rng(0)
    env = Environment(poisson(5, jobs=60, kind="ps", load=50.0))
    while not env.done:
        for job in list(env.waiting):
            could = env.fits(job)
            while (mask := env.mask(job)).any():
                kind, server = rng.permutation(np.argwhere(mask))[0].tolist()
                env.place(job, kind, server)
            assert env.current < 0 and (job in env.running) == could
        env.end_interval()
    assert check(env.outcome()) == []


def test_no_room() -> None:
    """A task that does not fit its server is refused."""
    env = Environment(poisson(6, jobs=30, kind="ps", load=50.0))
    env.end_interval()
    job = next(j for j in env.waiting if env.left(j)[SERVER] > 0)
    env.free[2] = 0.0
    with pytest.raises(InstanceError, match="server: 2 has no room"):
        env.place(job, SERVER, 2)


HONEST = run(poisson(1, jobs=5, servers=3, load=2.0), ScoreRule("lif")).outcome()
"""Five jobs that all ran beside others."""


def where(**known: Long) -> InterferenceOutcome:
    """Return the outcome with some of its rows changed."""
    return replace(HONEST, where=replace(HONEST.where, **known))


def shifted(start: float, finish: float) -> InterferenceOutcome:
    """Return the outcome with the last job's times changed."""
    last = np.arange(5) == 4
    return replace(HONEST, start=HONEST.start + start * last, finish=HONEST.finish + finish * last)


def with_row(server: int, workers: int, ps: int) -> InterferenceOutcome:
    """Return the outcome with one more row of the first job."""
    old = HONEST.where
    columns = (np.concatenate([[x], y]) for x, y in ((server, old.server), (workers, old.workers), (ps, old.ps)))
    return replace(HONEST, where=Snapshots(old.first, old.kind, np.concatenate([[0], old.rows[1:] + 1]), *columns))


OLD = HONEST.where


@pytest.mark.parametrize(
    ("tampered", "words"),
    [
        (lambda: shifted(0, -1.0), "epochs"),
        (lambda: shifted(0, 1.0), "epochs"),
        (lambda: shifted(0, -1e6), "epochs"),
        (lambda: shifted(600, 600), "amid an interval"),
        (lambda: shifted(-9600, -9600), "before it is there"),
        (lambda: replace(HONEST, start=HONEST.start * 0 + 12_000, finish=HONEST.finish + 12_000), "holds more"),
        (lambda: where(server=(OLD.server + 1) % 3), "epochs"),
        (lambda: where(server=OLD.server * 0), "server twice"),
        (lambda: where(server=OLD.server + 3), "no server"),
        (lambda: where(server=OLD.server - 1), "no server"),
        (lambda: where(kind=(OLD.kind + 1) % 8), "another type"),
        (lambda: where(workers=OLD.workers * 2), "does not have the workers"),
        (lambda: with_row(2, 0, 0), "no server with tasks"),
        (lambda: with_row(2, 1, 0), "does not have the workers"),
        (lambda: with_row(2, -1, 2), "no server with tasks"),
        (lambda: replace(HONEST, finish=HONEST.finish[:4]), "not of the 5 jobs"),
        (lambda: replace(HONEST, where=OLD.keep(np.arange(4))[0]), "not of the 5 jobs"),
        (lambda: replace(HONEST, finish=HONEST.finish * np.nan), "did not run to its end"),
    ],
)
def test_refused(tampered: Callable[[], InterferenceOutcome], words: str) -> None:
    """A moved task, an early end, an overlap or another type is named; nothing wrong is said of the honest outcome."""
    assert check(HONEST) == []
    assert any(words in fault for fault in check(tampered()))
