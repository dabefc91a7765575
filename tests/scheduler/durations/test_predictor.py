"""What is predicted of jobs: calibrated, bounded by limits, by the groups that say most, and saved."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler import Scheduler
from gangplan.scheduler.durations.predictor import GROUPS, Durations, pattern
from gangplan.scheduler.durations.spread import quantile
from gangplan.scheduler.queueing.terms import Terms

JOB = GangJob("j", "m", (4,))


def drawn(rng: np.random.Generator, user: int) -> tuple[Terms, float]:
    """Return the terms and GPU seconds of a job of a user whose jobs are alike, its limit about five times too long."""
    seconds = float(np.exp(rng.normal(4.0 + user, 0.6)))
    limit = seconds * float(np.exp(abs(rng.normal(1.5, 0.8))))
    return Terms(user=f"u{user}", title=f"train-{rng.integers(100)}", limit=limit), 4 * seconds


@pytest.mark.parametrize("limits", [False, True])
def test_quantiles_hold(limits: bool) -> None:
    """Of 1,500 jobs to come, a share q ends within the quantile q that was predicted when it was not known."""
    rng, durations, within = np.random.default_rng(0), Durations(), []
    for i in range(2000):
        terms, work = drawn(rng, int(rng.integers(6)))
        terms = terms if limits else Terms(user=terms.user, title=terms.title)
        if i >= 500:
            said = durations.predict(JOB, terms)
            within.append([work <= quantile(said, q) for q in (0.1, 0.25, 0.5, 0.75, 0.9)])
        durations.learn(JOB, terms, work)
    assert np.abs(np.mean(within, axis=0) - [0.1, 0.25, 0.5, 0.75, 0.9]).max() < 0.05


def test_limits_and_users_say_more_than_sizes() -> None:
    """The median is within a factor of two of most jobs once their users are told, and of fewer before."""
    near = {}
    for told in (False, True):
        rng, durations, off = np.random.default_rng(1), Durations(), []
        for _ in range(1000):
            terms, work = drawn(rng, int(rng.integers(6)))
            terms = terms if told else Terms()
            off.append(abs(np.log(quantile(durations.predict(JOB, terms), 0.5) / work)))
            durations.learn(JOB, terms, work)
        near[told] = np.mean(np.array(off[300:]) < np.log(2))
    assert near[True] > 0.6 and near[False] < 0.4


def test_limit_bounds() -> None:
    """Nothing is expected to take longer than its limit, whatever others took, and the first job an hour or so."""
    durations = Durations()
    assert 1000 < quantile(durations.predict(JOB, Terms()), 0.5) / 4 < 10_000
    for _ in range(20):
        durations.learn(JOB, Terms(), 4 * 86400.0)
    assert max(durations.predict(JOB, Terms(limit=600.0))) <= 4 * 600.0
    assert max(durations.predict(JOB, Terms(limit=0.5))) <= 4 * 0.5


def test_new_users_take_what_others_do() -> None:
    """Of a new user's jobs what jobs of that size take is expected, and soon what the user's own did."""
    rng, durations = np.random.default_rng(2), Durations()
    for _ in range(300):
        durations.learn(JOB, Terms(user=f"u{rng.integers(5)}"), 4 * float(rng.lognormal(7.0, 0.5)))
    assert quantile(durations.predict(JOB, Terms(user="new")), 0.5) == pytest.approx(4 * np.exp(7.0), rel=0.3)
    for _ in range(8):
        durations.learn(JOB, Terms(user="new"), 4 * 10.0)
    assert quantile(durations.predict(JOB, Terms(user="new")), 0.25) < 4 * 20.0


def test_titles_without_numbers() -> None:
    """Runs of a title are one pattern."""
    assert pattern("BERT-large-run_17") == pattern("bert-large-run_2") == "bert-large-run"
    assert pattern("lr0.1-bert") == pattern("lr0.01-bert") != pattern("lr0.1-gpt")


def test_saved_and_loaded() -> None:
    """What was learned comes back from JSON to the digit, of earlier versions too, and groups are forgotten."""
    rng, durations = np.random.default_rng(3), Durations()
    for i in range(GROUPS):
        durations.learn(JOB, Terms(user=f"user{i}", limit=1e5), float(rng.lognormal(6.0, 1.0)))
    other = Durations()
    other.load(json.loads(json.dumps(durations.save())))
    assert other.save() == durations.save() and len(durations.save()["groups"]) <= GROUPS
    terms = Terms(user=f"user{GROUPS - 1}", limit=3000.0)
    assert other.predict(JOB, terms) == durations.predict(JOB, terms)
    earlier = Durations()
    earlier.load([["m", 4, [400.0] * 9], ["", 4, [400.0] * 9], ["", 0, [400.0] * 9]])
    assert quantile(earlier.predict(JOB, Terms()), 0.5) == pytest.approx(400.0, rel=0.15)


def test_guesses_are_scaled() -> None:
    """Where seconds are not believed they say what share of them like jobs took: here a tenth."""
    scheduler = Scheduler(Fleet.regular(1, 1, 4), "heuristic", durations="history")
    rng = np.random.default_rng(4)
    for i in range(200):
        seconds = float(rng.lognormal(7.0, 1.5))
        scheduler.submit(GangJob(f"j{i}", "m", (4,)), 10 * seconds)
        scheduler.decide(60.0)
        scheduler.finish(f"j{i}", now=scheduler.now + seconds)
    scheduler.submit(GangJob("next", "m", (4,)), 50_000.0)
    request = scheduler._state.waiting["next"]
    assert not request.told and request.quantile(4, 0.5) == pytest.approx(5000.0, rel=0.3)
