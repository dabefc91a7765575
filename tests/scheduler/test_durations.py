"""What is predicted of jobs: calibrated, bounded by limits, by the groups that say most, and saved."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gangplan import Scheduler
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler.durations import GROUPS, MOST, Durations, expected, index, passed, pattern, quantile
from gangplan.scheduler.queueing.request import Terms

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


def test_what_is_left_given_an_age() -> None:
    """Amounts that a job has passed count no more, and beyond the last it is taken to need twice as much."""
    work = (1.0, 2.0, 9.0)
    assert expected(work, 0.0) == 4.0
    assert expected(work, 1.5) == 5.5  # 2 or 9
    assert expected(work, 9.0) == 18.0 and expected(work, 40.0) == 72.0
    assert passed(work, 2.0)[0] == 2.0
    assert quantile(work, 0.5) == 2.0


def test_index_of_two_amounts() -> None:
    """A job that needs 1 or 9 counts as 2 at first, and as 8 once it has had 1."""
    # stopped at 1: it takes 1 and ends with probability 1/2, which is 2; never stopped: it takes 5
    assert index((1.0, 9.0), 0.0) == 2.0
    assert index((1.0, 9.0), 1.0) == 8.0
    assert index((7.0,), 0.0) == 7.0  # a known amount is what is left


def test_index_against_all_amounts() -> None:
    """The index is the least ratio of work to chance over every amount at which a job could be stopped."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        work = np.sort(rng.lognormal(3.0, 2.0, 7))
        age = float(rng.choice([0.0, work[2], work[4]]))
        rest = work[work > age] - age
        ratios = [np.minimum(rest, stop).mean() / (rest <= stop).mean() for stop in rest]
        assert index(tuple(work.tolist()), age) == pytest.approx(min(ratios))


def test_order_by_index() -> None:
    """Two jobs need 1 or 9 s, or 4 s, on one GPU: who may end at once is first, and gives way when it does not."""
    scheduler = Scheduler(Fleet.regular(1, 1, 1), "heuristic", price=0.0, durations="history")
    for kind, seconds in (("coin", 9.0), ("four", 3600.0), ("coin", 9.0), ("coin", 86400.0)) * 15:
        name = f"{kind}{scheduler.now}"
        scheduler.submit(GangJob(name, "m", (1,)), title=kind)
        scheduler.decide(60.0)
        scheduler.finish(name, now=scheduler.now + seconds)
    begin = scheduler.now
    scheduler.submit(GangJob("may be long", "m", (1,)), title="coin")
    scheduler.submit(GangJob("an hour", "m", (1,)), title="four")
    assert [start.job for start in scheduler.decide(60.0).starts] == ["may be long"]
    decision = scheduler.decide(60.0, now=begin + 1800.0)
    assert [stop.job for stop in decision.stops] == ["may be long"]
    assert [start.job for start in decision.starts] == ["an hour"]


def test_restored_with_ages() -> None:
    """A scheduler restored from JSON while jobs age decides as the first would have, stops included."""
    rng = np.random.default_rng(6)
    jobs = [(float(rng.exponential(60.0)), int(rng.integers(1, 5)), float(rng.lognormal(6.0, 2.0))) for _ in range(120)]

    def play(scheduler: Scheduler, first: int, last: int, ends: dict[str, float]) -> list[Any]:
        told: list[Any] = []
        for i in range(first, last):
            gap, workers, seconds = jobs[i]
            now = scheduler.now + gap
            scheduler.submit(GangJob(f"j{i}", "m", (workers,)), now=now, user=f"u{i % 3}", limit=3 * seconds)
            for name in [name for name in scheduler.running if ends[name] <= now]:
                scheduler.finish(name)
            decision = scheduler.decide(60.0)
            for start in decision.starts:
                ends[start.job] = now + jobs[int(start.job[1:])][2]
            told.append((decision.starts, decision.stops))
        return told

    fleet = Fleet.regular(1, 2, 4)
    one, other = (Scheduler(fleet, price=30.0, durations="history") for _ in range(2))
    ends: dict[str, float] = {}
    before = play(one, 0, 80, ends)
    assert any(stops for _, stops in before)
    other.restore(json.loads(json.dumps(one.snapshot())))
    assert other.snapshot() == one.snapshot()
    assert play(one, 80, 120, dict(ends)) == play(other, 80, 120, dict(ends))


AMPLE = 60.0
"""Deadline of a decision that no load of the machine cuts, seconds."""


def busy(price: float | None = None) -> Scheduler:
    """Return one GPU that is held, and a job that has waited for it since nothing was known of durations."""
    scheduler = Scheduler(Fleet.regular(1, 1, 1), durations="history", price=price)
    scheduler.submit(GangJob("run0", "any", (1,)), now=0.0)
    scheduler.decide(AMPLE)
    scheduler.submit(GangJob("first", "any", (1,)))
    return scheduler


def go_on(scheduler: Scheduler) -> str:
    """Have the job that runs finish in 60 s, one like it come, and return who starts."""
    scheduler.finish(scheduler.running[0], now=scheduler.now + 60)
    scheduler.submit(GangJob("later", "any", (1,)))  # it is known now that jobs are short
    return scheduler.decide(AMPLE).starts[0].job


def test_alike_jobs_go_by_submission() -> None:
    """A job that came before anything was known is not passed by one that came after, of which the same is known."""
    scheduler = busy()
    believed = scheduler._state.waiting["first"].work
    scheduler.decide(AMPLE)
    assert scheduler._state.waiting["first"].work == believed  # nobody finished
    assert go_on(scheduler) == "first"
    late = scheduler._state.waiting["later"]
    assert max(late.work) < max(believed)


def test_jobs_that_may_be_stopped_keep_what_they_came_with() -> None:
    """Where stops have a price the later job goes first, as it is predicted to be shorter."""
    assert go_on(busy(price=60.0)) == "later"


def test_turns() -> None:
    """So many jobs a decision are predicted anew, and a scheduler restored in between goes on as the first does."""
    scheduler = busy()
    for i in range(2 * MOST):
        scheduler.submit(GangJob(f"job{i}", "any", (1,)))
    scheduler.finish("run0", now=60.0)
    before = {name: request.work for name, request in scheduler._state.waiting.items()}
    other = Scheduler(Fleet.regular(1, 1, 1), durations="history")
    scheduler.decide(AMPLE)
    other.restore(json.loads(json.dumps(scheduler.snapshot())))
    renewed = sum(request.work != before[name] for name, request in scheduler._state.waiting.items())
    assert renewed == MOST - 1  # and the one that started
    for _ in range(2):
        assert scheduler.decide(AMPLE).starts == other.decide(AMPLE).starts == ()
    assert scheduler.snapshot() == other.snapshot()
    assert all(request.work != before[name] for name, request in scheduler._state.waiting.items())


def test_what_is_no_turn() -> None:
    """A snapshot with a turn that cannot be is refused."""
    saved = busy().snapshot()
    saved["durations"]["again"] = [0, -1, 0]
    with pytest.raises(ValueError, match="snapshot"):
        busy().restore(saved)
