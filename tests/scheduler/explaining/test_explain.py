"""Why a job waits, and why a decision is as it is: told rightly, in 80 columns, as a value too."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gangplan import InstanceError
from gangplan.instances.placement import Demand, Fleet, GangJob, Proximity
from gangplan.scheduler import Scheduler, WaitingJob
from gangplan.scheduler.explaining.explain import RunsNow
from gangplan.scheduler.queueing.request import Request
from gangplan.scheduler.state import SchedulerState
from tests.seeds import some

FLEET = Fleet.regular(racks=1, nodes=2, gpus=8)


def busy(**options: Any) -> Scheduler:
    """Return a scheduler of two nodes with four and two GPUs idle: `long` ends at 3600 s, `short` at 1200 s."""
    scheduler = Scheduler(FLEET, **options)
    scheduler.submit(GangJob("long", "m", (6,)), 3600.0)
    scheduler.submit(GangJob("short", "m", (4,)), 1200.0)
    scheduler.decide(5.0)
    return scheduler


def test_job_that_has_just_come() -> None:
    """It needs a node, four of whose GPUs are free from 1200 s on; half of it, or without `short`, would start."""
    scheduler = busy()
    scheduler.submit(GangJob("new", "m", (8,)), 500.0, now=100.0)
    before = json.dumps(scheduler.snapshot())
    told = scheduler.explain("new")
    assert (told.why, told.gpus, told.idle, told.largest, told.fits) == ("it does not fit", 8, 6, 4, False)
    assert (told.place, told.queue, told.ahead, told.earliest) == (1, 1, (), 1200.0)
    least = "end or stop short (4 GPUs, 1.22 GPU-hours left; nothing cheaper makes room)"
    assert told.remedies == ("submit it with 4 workers", least)
    scheduler.submit(GangJob("whole", "m", (1,), worker=Demand(8.0)), 9000.0)
    behind = scheduler.explain("whole")
    assert behind.earliest == 1700.0 and "to start now  nothing that was tried is enough" in str(behind)
    scheduler.withdraw("whole")
    before = json.dumps(scheduler.snapshot())
    assert json.dumps(scheduler.snapshot()) == before
    scheduler.decide(5.0)
    scheduler.finish("short", now=1200.0)
    assert [start.job for start in scheduler.decide(5.0).starts] == ["new"]


def test_the_most_workers_that_fit() -> None:
    """Of eight workers five fit beside three GPUs that are held, not only half of them; in pairs four."""
    scheduler = Scheduler(Fleet.regular(1, 1, 8))
    scheduler.submit(GangJob("long", "m", (3,)), 3600.0)
    scheduler.decide(5.0)
    for name, group, most in (("new", 1, 5), ("pairs", 2, 4)):
        scheduler.submit(GangJob(name, "m", (8,)), 500.0, now=100.0, group=group)
        assert f"submit it with {most} workers" in scheduler.explain(name).remedies
        scheduler.withdraw(name)


def test_job_that_waits_for_closer_gpus() -> None:
    """There is a GPU on each node, and it waits for two on one: without `a`, which has the least left, it starts."""
    scheduler = Scheduler(Fleet.regular(racks=1, nodes=2, gpus=4), "patient", speeds=Proximity())
    scheduler.submit(GangJob("a", "vgg", (3,)), 100.0)
    scheduler.submit(GangJob("b", "vgg", (3,)), 1000.0)
    scheduler.decide(5.0)
    told = scheduler.whatif(GangJob("new", "vgg", (2,)), 500.0)
    assert told.why == "it waits for closer GPUs"
    a = next(words for words in told.remedies if words.startswith("end or stop"))
    assert a.startswith("end or stop a (3 GPUs, ")


def test_what_if_a_job_came() -> None:
    """It is told what `explain` says once it is submitted, a wrong job is refused, and nothing has changed."""
    scheduler = busy()
    scheduler.finish("long", now=100.0)
    before = json.dumps(scheduler.snapshot())
    for workers in (8, 12, 16):
        new = GangJob("new", "m", (workers,))
        told = scheduler.whatif(new, 500.0)
        assert json.dumps(scheduler.snapshot()) == before and scheduler.waiting == ()
        scheduler.submit(new, 500.0)
        assert scheduler.explain("new") == told
        scheduler.restore(json.loads(before))
    assert (scheduler.whatif(GangJob("new", "m", (8,)), 500.0).earliest, told.earliest) == (100.0, 1200.0)
    with pytest.raises(InstanceError, match="never fits"):
        scheduler.whatif(GangJob("new", "m", (17,)), 500.0)
    with pytest.raises(InstanceError, match="runs already"):
        scheduler.whatif(GangJob("short", "m", (1,)), 500.0)


def test_job_that_the_next_decision_starts() -> None:
    """Nothing keeps it but that no decision was made since it came."""
    scheduler = busy()
    scheduler.submit(GangJob("new", "m", (4,)), 500.0, now=100.0)
    told = scheduler.explain("new")
    assert told.earliest == 100.0 and told.fits and not told.remedies
    assert told.why == "the next decision starts it"


def test_free_gpus_that_it_may_have() -> None:
    """Nodes that a drain closes are not free to it; a gang that takes whole nodes is told how many of those are."""
    s = Scheduler(Fleet.regular(1, 3, 8), "heuristic")
    s.submit(GangJob("part", "m", (4,)), 5000.0, now=0.0)
    s.decide(60.0)
    s.drain("node2", at=50.0, until=9000.0)
    s.submit(GangJob("wide", "m", (16,)), 600.0, now=100.0)
    s.decide(60.0)
    told = s.explain("wide")
    assert isinstance(told, WaitingJob) and (told.idle, told.usable, told.whole) == (20, 12, 1)
    assert "; 12 on nodes that may have it; nodes wholly free: 1" in " ".join(str(told).split())


def test_what_history_says_beside_what_was_told() -> None:
    """If history says how long a job takes, what its user said is named too."""
    s = Scheduler(Fleet.regular(1, 1, 8), "heuristic", durations="history")
    told = s.whatif(GangJob("new", "m", (8,)), 3600.0)
    assert told.guess == 3600.0 and "(history; told 60 min)" in " ".join(str(told).split())


def test_who_stops_and_since_when_it_waits() -> None:
    """A job says whom it stops and why; one that was stopped says since when it waits, after a restart too."""
    s = Scheduler(Fleet.regular(1, 1, 8), "heuristic", price=10.0)
    s.submit(GangJob("low", "m", (8,)), 5000.0, now=0.0)
    s.decide(60.0)
    told = s.whatif(GangJob("high", "m", (8,)), 6000.0, priority=1)
    # "low" may be stopped once it got on for its price, and not before
    assert (told.earliest, told.stops) == (10.0, ("low (priority)",))
    s.submit(GangJob("high", "m", (8,)), 6000.0, now=100.0, priority=1)
    told = s.explain("high")
    assert isinstance(told, WaitingJob) and told.stops == ("low (priority)",) and told.ran is None
    assert "by stopping   low (priority)" in str(told)
    s.decide(60.0)
    told = s.explain("low")
    s.restore(json.loads(json.dumps(s.snapshot())))
    assert s.explain("low") == told and isinstance(told, WaitingJob) and (told.ran, told.submit) == (100.0, 0.0)
    assert str(told).startswith("low waits since 100 s, when it ran no more; submitted at 0 s: ")
    s.finish("high", now=6100.0)
    s.decide(60.0)
    s.fail_node(0, now=6200.0)
    told = s.explain("low")
    assert isinstance(told, WaitingJob) and told.ran == 6200.0


def test_job_that_starts_when_one_ends_now() -> None:
    """What is expected to end now runs still: the next decision does not start who waits for it."""
    scheduler = busy()
    scheduler.submit(GangJob("new", "m", (8,)), 500.0, now=1200.0)
    told = scheduler.explain("new")
    assert told.why == "it does not fit"
    assert told.earliest == pytest.approx(1200.0) and told.earliest > 1200.0
    assert not scheduler.decide(5.0).starts


def test_job_behind_one_that_does_not_fit() -> None:
    """There is room, but it would delay the wide one: it starts when that is done, or now if it is over by then."""
    scheduler = busy()
    scheduler.submit(GangJob("wide", "m", (8,)), 500.0, now=100.0)
    scheduler.submit(GangJob("late", "m", (4,)), 5000.0)
    for why in ("there is room for it, but not beside those before it", "it would delay a job before it"):
        told = scheduler.explain("late")
        assert (told.why, told.ahead, told.earliest) == (why, ("wide",), 1700.0)
        assert "run for at most 18.3 min, until wide has room" in told.remedies
        assert "withdraw wide, which is before it and does not fit" in told.remedies
        scheduler.decide(5.0)
    scheduler.withdraw("wide")
    assert [start.job for start in scheduler.decide(5.0).starts] == ["late"]


def test_nodes_that_are_down_and_workers_apart() -> None:
    """A repair, and workers that may spread, are told where they help."""
    scheduler = busy()
    scheduler.submit(GangJob("split", "m", (5,)), 10.0)
    assert any("together=False" in words for words in scheduler.explain("split").remedies)
    scheduler.withdraw("split")
    assert scheduler.fail_node("node1") == ("long",)
    scheduler.submit(GangJob("next", "m", (8,)), 10.0)
    told = scheduler.explain("next")
    assert "repair node1" in told.remedies and told.why == "it does not fit"


def test_jobs_start_when_it_is_said() -> None:
    """If nobody else comes and jobs end when they are expected to, each starts when it was said: random clusters."""
    for seed in some(range(30), 4):
        rng, scheduler = np.random.default_rng(seed), Scheduler(FLEET, "heuristic")
        for i in range(12):
            scheduler.submit(GangJob(f"j{i}", "m", (int(rng.choice([1, 2, 4, 8])),)), float(rng.integers(10, 99)))
        scheduler.decide(5.0)
        ends = {name: job.end for name, job in scheduler._state.running.items()}
        told = {name: scheduler.explain(name) for name in scheduler.waiting}
        while ends:
            now = min(ends.values())
            for name in [name for name, end in ends.items() if end == now]:
                scheduler.finish(name, now=ends.pop(name))
            for start in scheduler.decide(5.0).starts:
                assert told.pop(start.job).earliest == scheduler.now
                ends[start.job] = scheduler.now + start.seconds
        assert not told


def test_printed_in_eighty_columns() -> None:
    """Decisions, explanations and the scheduler are readable, as values they are JSON."""
    scheduler = busy(price=60.0)
    for i in range(40):
        scheduler.submit(GangJob(f"a-job-with-a-long-name-{i}", "m", (1, 2, 4, 8)), 10.0**i if i < 9 else None)
    told: list[Any] = [scheduler.explain("a-job-with-a-long-name-7")]
    decision = scheduler.decide(5.0)
    told += [decision, scheduler.explain(decision), scheduler.explain(scheduler.waiting[-1])]
    for value in told:
        assert max(map(len, str(value).splitlines())) <= 80
        json.dumps(value.as_dict(), allow_nan=False)
    assert "start  a-job-with-a-long-name-0, 8 workers, for 125 ms" in str(decision) or decision.starts
    assert repr(scheduler).startswith("<Scheduler at 0 s: 2 nodes")


def test_unknown_names() -> None:
    """A name that is like one that waits is asked for, and of a job that is done that is said."""
    scheduler = busy()
    scheduler.submit(GangJob("waits", "m", (8,)))
    with pytest.raises(ValueError, match=r"job: 'wait' does not wait: it is not known; did you mean 'waits'\?"):
        scheduler.explain("wait")
    scheduler.finish("long")
    with pytest.raises(ValueError, match="job: 'long' does not wait: it is done"):
        scheduler.explain("long")


def test_job_that_runs() -> None:
    """Where a job runs is told, how long still, and from when on it may be stopped."""
    scheduler = busy(price=60.0)
    told = scheduler.explain("short")
    assert isinstance(told, RunsNow)
    assert (told.degree, told.left, told.stops, told.price) == (4, 1200.0, 60.0, 60.0)
    assert "may be stopped for others from 60 s on, which costs 60 s" in " ".join(str(told).split())
    assert busy().explain("short").stops is None


def test_work_is_bounded_however_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1,200 jobs that wait, an explanation takes over some hundreds a few times, and says which it left out."""
    scheduler = Scheduler(Fleet.regular(racks=4, nodes=8, gpus=8))
    rng = np.random.default_rng(0)
    for i in range(1200):
        scheduler.submit(GangJob(f"j{i}", "m", (int(rng.choice([8, 16, 32, 64])),)), float(rng.integers(100, 9999)))
    scheduler.decide(60.0)
    order = sorted(scheduler.waiting, key=lambda name: scheduler._state.waiting[name].seconds)
    work = {"waits": 0, "decisions": 0}
    wait, decide = SchedulerState.wait, Scheduler.decide

    def waits(self: SchedulerState, request: Request) -> None:
        work["waits"] += 1
        wait(self, request)

    def decides(self: Scheduler, *args: Any, **options: Any) -> Any:
        work["decisions"] += 1
        return decide(self, *args, **options)

    monkeypatch.setattr(SchedulerState, "wait", waits)
    monkeypatch.setattr(Scheduler, "decide", decides)
    told = [scheduler.explain(order[at]) for at in (100, 800)]
    assert work["waits"] < 2 * 2 * 2048 and work["decisions"] < 600
    first, last = told
    assert isinstance(first, WaitingJob) and isinstance(last, WaitingJob)
    assert first.earliest is not None and first.unseen > 800
    assert f"with {first.queue - first.unseen} of the {first.queue} jobs that wait" in " ".join(str(first).split())
    assert last.earliest is None and "not simulated: more than 255 jobs are before it" in str(last)
