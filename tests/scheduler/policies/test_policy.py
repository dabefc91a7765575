"""Whatever a policy does, a verified decision comes in time, with the reason in its notes."""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Demand, Fleet, GangJob, SpeedModel
from gangplan.scheduler import Decision, Scheduler, View

DEADLINE = 1.0
"""Seconds, of which a policy that hangs has half."""
PLENTY = 60.0
"""Seconds for policies that do not."""


class Asked:
    """A policy that does as it is told."""

    def __init__(self, act: Callable[[View], Any]) -> None:
        self._act = act


class Ranking(Asked):
    """It ranks."""

    def rank(self, view: View) -> Iterable[float]:
        """Return what it was told to."""
        return self._act(view)  # type: ignore[no-any-return]


class Proposing(Asked):
    """It proposes."""

    def propose(self, view: View) -> Any:
        """Return what it was told to."""
        return self._act(view)


def crowd(policy: Any, **options: Any) -> Scheduler:
    """Return a scheduler with node 0 down, a job that is done, one that runs and six that wait."""
    scheduler = Scheduler(Fleet.regular(1, 4, 4), policy, **options)
    scheduler.fail_node(0)
    for name in ("done", "runs"):
        scheduler.submit(GangJob(name, "m", (4,)), 1.0)
        policy_was, scheduler._asked = scheduler._asked, None
        scheduler.decide(1.0)
        scheduler._asked = policy_was
        if name == "done":
            scheduler.finish(name)
    for i in range(6):
        scheduler.submit(GangJob(f"j{i}", "m", (2,)), 10.0 - i)
    return scheduler


def decided(scheduler: Scheduler, deadline: float = PLENTY) -> Decision:
    """Decide, in time; warnings are checked elsewhere."""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        decision = scheduler.decide(deadline)
    assert time.process_time() - began < 10 * DEADLINE
    return decision


def endless(view: View) -> Any:
    """Never come back."""
    while True:
        pass


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Ranking(lambda view: 1 / 0), "raised ZeroDivisionError"),
        (Ranking(lambda view: time.sleep(10)), "was stopped after"),
        (Ranking(endless), "was stopped after"),
        (Ranking(lambda view: [float("nan")] * 6), "raised ValueError: score 0 is NaN"),
        (Ranking(lambda view: [1.0]), "raised ValueError"),
        (Ranking(lambda view: None), "raised TypeError"),
        (Proposing(lambda view: [("done", 4, None)]), "would start 'done', which does not wait"),
        (Proposing(lambda view: [("nobody", 4, None)]), "would start 'nobody', which does not wait"),
        (Proposing(lambda view: [("runs", 4, {2: (0, 1, 2, 3)})]), "would start 'runs', which does not wait"),
        (Proposing(lambda view: [("j0", 2, {0: (0, 1)})]), "j0 on node0: the node is down"),
        (Proposing(lambda view: [("j0", 2, {9: (0, 1)})]), "j0: there is no node 9"),
        (Proposing(lambda view: [("j0", 2, {2: (0,)})]), "1 GPUs are fewer than its 2 workers need"),
        (Proposing(lambda view: [("j0", 2, {2: (0, 0)})]), "a GPU is given twice"),
        (Proposing(lambda view: [("j0", 2, {2: (0, 7)})]), "there is no GPU 7"),
        (Proposing(lambda view: [("j0", 2, {2: (0, 1), 3: ()})]), "no GPU is given there"),
        (Proposing(lambda view: [("j0", 2, {2: (0.5, 1)})]), "raised TypeError"),
        (Proposing(lambda view: [("j0", 3, None)]), "3 is not one of its numbers of workers"),
        (Proposing(lambda view: [("j0", 2, {1: (0, 1)})]), "is held by runs"),
        (Proposing(lambda view: [("j0",)]), "raised TypeError"),
        (Proposing(lambda view: 7), "raised TypeError"),
    ],
)
def test_faults_leave_the_decision_to_the_heuristic(policy: Any, words: str) -> None:
    """The four jobs that fit start, as without the policy, and the notes say why it had no say."""
    scheduler = crowd(policy)
    decision = decided(scheduler, DEADLINE if words == "was stopped after" else PLENTY)
    assert len(decision.starts) == 4
    assert {start.tier for start in decision.starts} == {"heuristic"}
    assert any(words in note for note in decision.notes), decision.notes
    assert any(words in note for note in scheduler.explain(decision).notes)


def test_good_policies_have_their_say() -> None:
    """A ranking, and a proposal with its GPUs, are followed; who is not proposed waits."""
    decision = decided(crowd(Ranking(lambda view: [float(r.name != "j0") for r, _ in view.options])))
    assert decision.starts[0].job == "j0"
    assert decision.tier == "policy"
    decision = decided(crowd(Proposing(lambda view: [("j0", 2, {3: (1, 3)})])))
    assert dict(decision.starts[0].nodes) == {"node3": (1, 3)}
    assert [start.tier for start in decision.starts] == ["policy"]


def test_it_is_warned_once_and_left_out_in_the_end() -> None:
    """The first fault warns, later ones do not; after three the policy is asked no more."""
    asked = []

    def act(view: View) -> Any:
        asked.append(view.now)
        raise RuntimeError("no")

    scheduler = crowd(Ranking(act))
    with pytest.warns(RuntimeWarning, match="policy raised RuntimeError: no"):
        scheduler.decide(DEADLINE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(5):
            scheduler.finish(scheduler.running[-1], now=float(i))
            scheduler.submit(GangJob(f"k{i}", "m", (2,)), 1.0)
            scheduler.decide(DEADLINE)
    assert len(asked) == 3


def test_alarm_of_the_user_goes_on() -> None:
    """A timer of the user's own rings after a policy was stopped by one."""
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        assert len(decided(crowd(Ranking(endless)), DEADLINE).starts) == 4
        time.sleep(0.4)
        assert rung == [1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_alarm_that_is_lost_rings_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that spends its time where Python drops exceptions is stopped once it is elsewhere."""

    class Drops:
        def __del__(self) -> None:
            until = time.perf_counter() + 2 * DEADLINE
            while time.perf_counter() < until:
                pass

    def act(view: View) -> Any:
        Drops()
        endless(view)

    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    assert len(decided(crowd(Ranking(act)), DEADLINE).starts) == 4


def test_off_the_main_thread_an_overrun_is_the_last() -> None:
    """Where no alarm can be set, a policy that overran is asked no more."""
    asked = []

    def act(view: View) -> Any:
        asked.append(1)
        time.sleep(DEADLINE)
        return [0.0] * len(view.options)

    scheduler, notes = crowd(Ranking(act)), []

    def run() -> None:
        for i in range(2):
            notes.extend(scheduler.decide(DEADLINE).notes)
            scheduler.submit(GangJob(f"k{i}", "m", (2,)), 1.0)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(asked) == 1
    assert "off the main thread" in notes[0]


def test_the_learned_order_is_gone() -> None:
    """The name of the policy that was retired is refused with those that there are."""
    with pytest.raises(InstanceError, match="policy: 'learned' is not one of hybrid, heuristic"):
        Scheduler(Fleet.regular(1, 4, 4), "learned")


def test_gangs_go_where_jobs_mind_least() -> None:
    """With speeds, a gang goes to the node whose jobs it does not disturb, and leaves the empty one alone."""
    minds = np.array([[0.9, 0.9], [0.9, 0.0]])
    speeds = SpeedModel(("loud", "calm"), ("A100",), np.ones((1, 2)), np.ones(2), np.ones(2), minds, minds)
    scheduler = Scheduler(Fleet.regular(1, 3, 4), "heuristic", speeds=speeds)
    for name, model in (("a", "loud"), ("b", "calm"), ("c", "calm")):
        scheduler.submit(GangJob(name, model, (2,)), 10.0)
    at = {start.job: set(start.nodes) for start in scheduler.decide(DEADLINE).starts}
    assert at["b"] == at["c"] != at["a"]


def leave(view: View) -> Any:
    """End the program."""
    raise SystemExit(3)


def close(view: View) -> Any:
    """Do as generators do that are closed."""
    raise GeneratorExit


@pytest.mark.parametrize("act", [leave, close, lambda view: itertools.repeat(1.0)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_policies_that_end_programs(act: Callable[[View], Any]) -> None:
    """A policy that would end the program, or whose answer has no end, is left out like any that fails."""

    class Policy:
        rank = staticmethod(act)

    scheduler = Scheduler(Fleet.regular(1, 1, 2), Policy())
    scheduler.submit(GangJob("a", "m", (1,)), 1.0)
    decision = scheduler.decide(20.0)
    assert [start.job for start in decision.starts] == ["a"]
    assert decision.tier == "heuristic" and decision.notes[0].startswith("policy raised")


def test_ctrl_c_amid_a_policy() -> None:
    """Ctrl-C is for whoever called."""

    class Policy:
        def rank(self, view: View) -> Any:
            raise KeyboardInterrupt

    scheduler = Scheduler(Fleet.regular(1, 1, 2), Policy())
    scheduler.submit(GangJob("a", "m", (1,)), 1.0)
    with pytest.raises(KeyboardInterrupt):
        scheduler.decide(20.0)


def test_a_policy_makes_jobs_wait_until_they_are_due() -> None:
    """Ranked infinite, or not proposed, a job waits in all tiers, with stops too, until it is due; others start."""
    for policy in (
        Ranking(lambda view: [np.inf if r.name == "back" else 0.0 for r, _ in view.options]),
        Proposing(lambda view: [(r.name, 1, None) for r in view.waiting if r.name != "back"]),
    ):
        for price in (None, 1.0):
            scheduler = Scheduler(Fleet.regular(1, 1, 4), policy, price=price, patience=2.0)
            scheduler.submit(GangJob("back", "m", (1,)), 50.0)
            scheduler.submit(GangJob("on", "m", (1,)), 900.0)
            assert [start.job for start in scheduler.decide(PLENTY).starts] == ["on"]
            assert scheduler.explain(scheduler.decide(PLENTY)).waiting == {"back": "the policy makes it wait"}
            assert not scheduler.decide(PLENTY, now=99.0).starts
            (start,) = scheduler.decide(PLENTY, now=100.0).starts
            assert (start.job, start.tier) == ("back", "due")


def test_a_due_job_waits_for_room_not_for_the_policy() -> None:
    """A job that is due may have every number of workers, whatever the policy says: what it lacks is GPUs."""
    scheduler = Scheduler(Fleet.regular(1, 1, 2), Ranking(lambda view: [np.inf] * len(view.options)), patience=2.0)
    scheduler.submit(GangJob("runs", "m", (1,)), 1000.0)
    assert scheduler.decide(PLENTY, now=2000.0).starts
    scheduler.submit(GangJob("back", "m", (2,)), 50.0, now=2000.0)
    held, due = (scheduler.explain(scheduler.decide(PLENTY, now=now)).waiting["back"] for now in (2099.0, 2100.0))
    assert held == "the policy makes it wait" and due == "it does not fit"


def test_a_policy_that_makes_jobs_wait_is_shown_all() -> None:
    """Of 200 jobs that it makes wait none starts, and of one number of workers that it refuses only the other does."""
    scheduler = Scheduler(Fleet.regular(1, 1, 4), Ranking(lambda view: [np.inf for _ in view.options]))
    for i in range(200):
        scheduler.submit(GangJob(f"j{i}", "m", (1,)), 10.0)
    assert not scheduler.decide(PLENTY).starts
    narrow = Ranking(lambda view: [np.inf if degree > 1 else 0.0 for _, degree in view.options])
    scheduler = Scheduler(Fleet.regular(1, 1, 4), narrow)
    for name in "ab":
        scheduler.submit(GangJob(name, "m", (1, 2)), 10.0)
    assert [start.degree for start in scheduler.decide(PLENTY).starts] == [1, 1]


def test_seats_that_no_worker_fits() -> None:
    """A worker's GPUs over two nodes, or of a type on which its model does not run, are refused and said to be."""
    straddle = Proposing(lambda view: [("a", 2, {0: (0, 1, 2), 1: (0,)})])
    scheduler = Scheduler(Fleet.regular(1, 2), straddle)
    scheduler.submit(GangJob("a", "m", (2,), Demand(2.0)), 1.0)
    assert "3 GPUs are no whole number of workers" in decided(scheduler).notes[0]
    both = replace(Fleet.regular(1, 2), gpu_types=("A", "B"), gpu_type=np.array([0, 1]))
    zero = np.zeros((1, 1))
    speeds = SpeedModel(("m",), ("A", "B"), np.array([[1.0], [np.inf]]), np.ones(1), np.ones(1), zero, zero)
    scheduler = Scheduler(both, Proposing(lambda view: [("a", 8, {1: tuple(range(8))})]), speeds=speeds)
    scheduler.submit(GangJob("a", "m", (8,)), 1.0)
    decision = decided(scheduler)
    assert "m does not run on B" in decision.notes[0] and [*decision.starts[0].nodes] == ["node0"]


def test_a_gang_over_nodes_of_the_policys_choice() -> None:
    """GPUs that a policy names are taken as they are, though the gang would fit on one node."""
    scheduler = Scheduler(Fleet.regular(1, 2), Proposing(lambda view: [("a", 8, {0: (0, 1, 2, 3), 1: (4, 5, 6, 7)})]))
    scheduler.submit(GangJob("a", "m", (8,)), 1.0)
    assert dict(decided(scheduler).starts[0].nodes) == {"node0": (0, 1, 2, 3), "node1": (4, 5, 6, 7)}
    state = scheduler.snapshot()
    other = Scheduler(Fleet.regular(1, 2))
    other.restore(state)
    assert other.snapshot() == state


@pytest.mark.parametrize("proposal", ["job-name", ("a", 4), None, 7])
def test_what_is_no_proposal_is_named(proposal: Any) -> None:
    """A policy that proposes something else is told what it proposed, and the rule decides."""
    decision = crowd(Proposing(lambda view: [proposal])).decide(PLENTY)
    assert decision.tier == "heuristic" and any(repr(proposal) in note for note in decision.notes), decision.notes


def test_a_policy_cannot_write_what_it_sees() -> None:
    """Neither the arrays of the fleet, by any of their bases, nor where jobs run."""

    def act(view: View) -> Any:
        arrays: list[Any] = [view.fleet.gpus, view.fleet.usable, view.fleet.topology.group]
        while arrays:
            if isinstance(array := arrays.pop(), np.ndarray):
                with pytest.raises(ValueError, match="WRITEABLE"):
                    array.flags.writeable = True
                arrays.append(array.base)
        for job in view.running.values():
            with pytest.raises(TypeError):
                job.nodes[0] = (5,)  # type: ignore[index]
        asked.append(len(view.running))
        return [0.0] * len(view.options)

    asked: list[int] = []
    s = Scheduler(Fleet.regular(1, 2, 2), Ranking(act))
    for name in "ab":
        s.submit(GangJob(name, "any", (2,)), 9.0)
        assert not s.decide(60.0).notes
    assert asked == [0, 1]
