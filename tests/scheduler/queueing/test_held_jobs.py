"""Jobs that may not wait yet: their begin, what comes before them, and arrays of which some run at a time."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from math import inf, nextafter

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler import Scheduler, WaitingJob


def one(name: str, workers: int = 1) -> GangJob:
    """Return a job of so many GPUs."""
    return GangJob(name, "any", (workers,))


def scheduler(nodes: int = 1, gpus: int = 2) -> Scheduler:
    """Return a scheduler of a few GPUs."""
    return Scheduler(Fleet.regular(1, nodes, gpus), "heuristic")


def started(s: Scheduler, now: float) -> list[str]:
    """Return who starts now."""
    return [start.job for start in s.decide(60.0, now=now).starts]


def test_a_job_waits_for_its_begin() -> None:
    """It is listed, passed by others, woken for, and starts at its begin, from when its due time counts."""
    s = scheduler()
    s.submit(one("late"), 10.0, begin=100.0, now=0.0)
    s.submit(one("next"), 10.0)
    assert started(s, 0.0) == ["next"] and s.waiting == ("late",) and s.wake == 100.0
    told = s.explain("late")
    assert isinstance(told, WaitingJob) and told.why == "not before 100 s" and told.earliest == 100.0
    assert started(s, 99.0) == []
    s.submit(one("wide", 2), 1000.0)
    s.finish("next", now=101.0)
    assert started(s, 102.0) == ["late"] and s.wake == nextafter(112.0, inf)  # or it runs longer than expected
    assert s._state.running["late"].request.due == 100.0 + 50 * 10.0  # not 500, though it is decided on at 102


def test_a_job_comes_after_others_that_are_done() -> None:
    """Two go before it; while either is not done it is held, and says until when."""
    s = scheduler()
    s.submit(one("a"), 10.0, now=0.0)
    s.submit(one("b"), 30.0)
    s.submit(one("c"), 5.0, after=("a", "b"))
    assert started(s, 0.0) == ["a", "b"]
    s.finish("a", now=10.0)
    assert started(s, 10.0) == []
    told = s.explain("c")
    assert isinstance(told, WaitingJob) and told.why == "after b, which runs until 30 s" and told.earliest == 30.0
    s.finish("b", now=40.0)
    assert started(s, 40.0) == ["c"] and s._state.running["c"].request.due == 40.0 + 50 * 5.0
    s.submit(one("d"), 5.0, after=("a",))  # which is done
    assert started(s, 40.0) == ["d"]
    s.submit(one("e"), 5.0, after=("c",), begin=60.0)
    s.submit(one("f"), 5.0, after=("c",), begin=45.0)
    s.finish("d", now=45.0)
    assert started(s, 45.0) == []
    s.finish("c", now=50.0)
    assert started(s, 50.0) == ["f"] and started(s, 60.0) == ["e"]  # both, what was before it and its begin


def test_after_a_job_that_was_withdrawn() -> None:
    """Who comes after it is held until it is changed or withdrawn, whether it came before that or later."""
    s = scheduler()
    s.submit(one("a"), 10.0, now=0.0)
    s.submit(one("b"), 10.0, after=("a",))
    s.withdraw("a")
    s.submit(one("c"), 10.0, after=("a",))
    assert started(s, 0.0) == [] and s.waiting == ("b", "c") and s.wake is None
    for name in ("b", "c"):
        told = s.explain(name)
        assert isinstance(told, WaitingJob) and told.why == "after a, which was withdrawn: it never starts"
        assert told.earliest is None
    s.change("b", after=())
    s.withdraw("c")
    assert started(s, 0.0) == ["b"] and s.waiting == ()


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"after": ("nobody",)}, "after: 'nobody' is not known"),
        ({"after": ("me",)}, "after: 'me' would come after itself"),
        ({"after": "a"}, r"after: 'a' is no sequence of names; write \['a'\]"),
        ({"after": (3,)}, r"after\[0\]: 3 is not a name"),
        ({"begin": -1.0}, "begin: -1.0 is negative"),
        ({"begin": float("inf")}, "begin: inf is not finite"),
    ],
)
def test_what_is_refused(terms: dict[str, object], words: str) -> None:
    """An error names the field, and nothing has changed."""
    s = scheduler()
    s.submit(one("a"), 10.0)
    before = s.snapshot()
    with pytest.raises(InstanceError, match=words):
        s.submit(one("me"), 10.0, **terms)  # type: ignore[arg-type]
    assert s.snapshot() == before


def test_a_name_that_is_held_back_is_taken() -> None:
    """It cannot be submitted again, finished, nor come after itself by a change."""
    s = scheduler()
    s.submit(one("a"), 10.0, begin=5.0)
    s.submit(one("b"), 10.0, after=("a",))
    for call, words in (
        (lambda: s.submit(one("a"), 1.0), "'a' waits already"),
        (lambda: s.finish("a"), "'a' does not run: it waits"),
        (lambda: s.change("a", after=("b",)), "'a' would come after itself"),
    ):
        with pytest.raises(InstanceError, match=words):
            call()


def test_an_array_runs_a_few_at_a_time() -> None:
    """Of five on eight GPUs two run at a time, in their order, one that is withdrawn not among them."""
    s = scheduler(gpus=8)
    names = s.submit_array(one("a"), 5, 10.0, most=2, now=0.0, user="ann")
    assert names == tuple(f"a[{i}]" for i in range(5)) == s.waiting
    assert started(s, 0.0) == ["a[0]", "a[1]"]
    told = s.explain("a[2]")
    assert isinstance(told, WaitingJob) and told.why == "of a at most 2 run at a time" and told.earliest == 10.0
    s.withdraw("a[2]")
    s.finish("a[0]", now=10.0)
    assert started(s, 10.0) == ["a[3]"] and s._state.running["a[3]"].request.terms.user == "ann"
    s.withdraw("a[1]", now=11.0)
    assert started(s, 11.0) == ["a[4]"] and s.waiting == ()
    for name in ("a[3]", "a[4]"):
        s.finish(name, now=20.0)
    assert not s._state.later.arrays


def test_an_array_is_one_line_of_the_queue() -> None:
    """A thousand alike are one line, are seen as others are, and start as if each had been submitted."""
    s, other = scheduler(nodes=2), scheduler(nodes=2)
    s.submit_array(GangJob("a", "any", (2, 3)), 1000, 10.0, now=0.0)
    for i in range(1000):
        other.submit(GangJob(f"a[{i}]", "any", (2, 3)), 10.0, now=0.0, array="a")  # type: ignore[call-arg]
    assert len(s._state.queue.lines()) == 1 and s.snapshot() == other.snapshot()
    assert s._state._placed == other._state._placed
    assert [x.job for x in s.decide(60.0).starts] == [x.job for x in other.decide(60.0).starts] != []


def test_an_array_that_is_refused() -> None:
    """Counts from one on, names that are new; nothing has changed otherwise."""
    s = scheduler()
    s.submit(one("b[1]"), 1.0)
    before = s.snapshot()
    for job, count, most, words in (
        (one("a"), 0, None, "count"), (one("a"), 2, 0, "most"), (one("b"), 2, None, r"'b\[1\]' is known already"),
        (one("a", 9), 2, 1, "never fits"),
    ):  # fmt: skip
        with pytest.raises(InstanceError, match=words):
            s.submit_array(job, count, 1.0, most=most)
        assert s.snapshot() == before and not s._state.later.arrays


def test_snapshots_keep_who_is_held_back() -> None:
    """A restored scheduler decides as the other one does to the end, begins, predecessors and arrays among the jobs."""
    for seed in range(8):
        rng, s, names = random.Random(seed), scheduler(nodes=2), list[str]()
        s.submit_array(one("x"), 6, 20.0, most=2, begin=15.0, now=0.0)
        for i in range(20):
            after = tuple(rng.sample(names, min(len(names), rng.randint(0, 2))))
            s.submit(one(f"j{i}"), rng.uniform(1, 30), after=after, begin=rng.choice((0.0, rng.uniform(0, 60))))
            names.append(f"j{i}")
        order = []
        while s.running or s.waiting:
            again = scheduler(nodes=2)
            saved = json.loads(json.dumps(s.snapshot()))
            again.restore(saved)
            assert json.loads(json.dumps(again.snapshot())) == saved
            decision, same = s.decide(60.0), again.decide(60.0)
            assert decision.starts == same.starts and (s.wake, s.waiting) == (again.wake, again.waiting)
            order += [start.job for start in decision.starts]
            s = again if rng.random() < 0.5 else s
            ends = [s._state.running[name].end for name in s.running] + ([] if s.wake is None else [s.wake])
            now = min(ends)
            done = [name for name in s.running if s._state.running[name].end <= now]
            for name in done:
                s.finish(name, now=now)
            if not done:
                s.decide(60.0, now=now)
                order += [name for name in s.running if name not in order]
        assert sorted(order) == sorted([*names, *(f"x[{i}]" for i in range(6))])


@pytest.mark.parametrize("durations", ["told", "history"])
def test_due_as_if_it_came_when_it_may_wait(durations: str) -> None:
    """By the slower type, 600 s, it is due 50 times as long after its begin at 10 s; so is one that comes then."""
    due = []
    for begin in (0.0, 10.0):
        s = Scheduler(Fleet.regular(1, 2, 8, gpu_type={"A100": 1, "H100": 1}), durations=durations)
        s.submit(GangJob("wide", "any", (16,)), 1e6, now=0.0, mixed=True)
        s.decide(60.0)
        s.submit(GangJob("a", "any", (8,)), {"A100": 600.0, "H100": 100.0}, now=10.0 - begin, begin=begin)
        s.decide(60.0, now=10.0)
        due.append(s._state.waiting["a"].due)
    assert due[0] == due[1] and (durations != "told" or due[0] == 10 + 50 * 600.0)


def test_members_of_an_array_remember_their_types_and_level() -> None:
    """The second one starts where the same job alone does, on one type or in one rack, and does so after a restore."""
    mixed = replace(Fleet.regular(1, 3, 8), gpu_types=("A", "B"), gpu_type=np.array([0, 1, 0], np.int32))
    racks = Fleet.regular(2, 2, 8)
    for fleet, gang, terms, taken, where in (
        (mixed, GangJob("j", "any", (6,), gpu_types=("A", "B")), {}, (5, 5, 5), {0, 2}),
        (racks, GangJob("j", "any", (6,)), {"within": "rack"}, (6, 4, 6, 5), {0, 1}),
    ):
        s = Scheduler(fleet, "heuristic", together=False)
        s.submit_array(gang, 3, 200.0, most=1, now=0.0, **terms)  # type: ignore[arg-type]
        s.decide(60.0)
        s.finish("j[0]", now=20.0)
        for i, count in enumerate(taken):
            s.submit(GangJob(f"h{i}", "any", (count,)), 1e6)
            s.adopt(f"h{i}", {f"node{i}": count})
        other = Scheduler(fleet, "heuristic", together=False)
        other.restore(json.loads(json.dumps(s.snapshot())))
        for each in (s, other):
            (start,) = each.decide(60.0).starts
            assert start.job == "j[1]" and {*start.nodes} == {f"node{i}" for i in where}
