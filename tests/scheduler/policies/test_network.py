"""The graph policy in `Scheduler`: its own schedule where all goes well, else the rule's, in time."""

from __future__ import annotations

import heapq
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gangplan import Decision, Scheduler
from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.instances.placement.proximity import Proximity
from gangplan.learned.graph.compiled import shapes
from gangplan.learned.online.candidates import WAIT
from gangplan.learned.online.guard import AHEAD, EVERYTHING, FIRST
from gangplan.learned.online.policy import GnnPolicy
from gangplan.learned.online.schema import SCHEMA
from gangplan.learned.online.settings import GnnSettings
from gangplan.learned.policy.weights import find
from gangplan.scheduler.policies import network
from gangplan.scheduler.policies.network import HISTORY
from gangplan.simulator.gangs.mixes import VALIDATION, Mix
from gangplan.systems.topdrl.simulate import simulate
from gangplan.systems.topdrl.suites import suite

FLEET, NEAR = Fleet.regular(2, 4, 4), Proximity()
SETTINGS = GnnSettings(width=8, rounds=2)


def drawn(spread: float = 0.3, guarded: bool = False) -> GnnPolicy:
    """Return a network whose every number is drawn, by default without the guard; with a spread of 0 it is the rule."""
    rng = np.random.default_rng(5)
    named = shapes(SCHEMA, SETTINGS.width, SETTINGS.rounds, ranged=True)
    tensors = {name: (spread * rng.normal(size=shape)).astype(np.float32) for name, shape in named.items()}
    for name, x in tensors.items():
        if name.startswith("range_"):  # nothing is unlike what it was trained on
            x[:] = [[-1e9], [1e9]]
    return GnnPolicy(tensors, SETTINGS, guarded=guarded)


def shipped() -> GnnPolicy:
    """Return the weights that come with the package, for which nothing is unlike training, without the guard."""
    policy = GnnPolicy.load(find("gnn"))
    wide = {name: x for name, x in drawn().tensors.items() if name.startswith("range_")}
    return GnnPolicy(policy.tensors | wide, policy.settings, guarded=False)


def gang(name: str, *workers: int, **more: Any) -> GangJob:
    """Return a gang."""
    return GangJob(name, "any", workers, **more)


def run(work: Any, fleet: Fleet, scheduler: Scheduler) -> tuple[np.ndarray, set[tuple[int, int]], list[Decision]]:
    """Return when each job starts, its nodes, and what was decided, as a user's own loop would have it."""
    arrivals, ends = sorted(range(work.n_jobs), key=lambda i: (work.submit[i], i)), list[tuple[float, int]]()
    starts, nodes, decisions = np.full(work.n_jobs, np.nan), set[tuple[int, int]](), []
    while arrivals or ends:
        now = min([float(work.submit[i]) for i in arrivals[:1]] + [end for end, _ in ends[:1]])
        while ends and ends[0][0] <= now:
            scheduler.finish(str(heapq.heappop(ends)[1]), now=now)
        while arrivals and work.submit[arrivals[0]] <= now:
            i = arrivals.pop(0)
            scheduler.submit(gang(str(i), int(work.gpus[i])), float(work.duration[i]), now=now)
        decisions.append(scheduler.decide(60.0, now=now))
        for start in decisions[-1].starts:
            i = int(start.job)
            starts[i] = now
            nodes |= {(i, fleet.names.index(name)) for name in start.nodes}
            heapq.heappush(ends, (now + start.seconds, i))
    return starts, nodes, decisions


@pytest.mark.parametrize("make", [shipped, drawn, lambda: drawn(0.0)])
@pytest.mark.parametrize("name", ["small", "rush"])
def test_its_schedule_is_that_of_the_simulator(name: str, make: Callable[[], GnnPolicy]) -> None:
    """On TopDRL's cluster each job starts when and where the network alone has it start, and every start is its own."""
    ground, policy = suite(name), make()
    work, _ = ground.draw(VALIDATION)
    work = work.take(np.arange(150))
    alone = simulate(work, ground.fleet, policy)
    starts, nodes, decisions = run(work, ground.fleet, Scheduler(ground.fleet, policy, speeds=NEAR, patience=1e9))
    np.testing.assert_allclose(starts, alone.start, rtol=1e-9, atol=1e-9)
    assert nodes == {*zip(alone.row_job.tolist(), alone.row_node.tolist(), strict=True)}
    assert {start.tier for x in decisions for start in x.starts} == {"gnn"}
    assert not any(x.notes for x in decisions)


def test_what_is_long_ago_is_forgotten() -> None:
    """Of more arrivals than are remembered the last ones say what jobs are like, as in the simulator."""
    work, policy = Mix(jobs=HISTORY + 80, length=8, gpus=4).draw(3), drawn()
    scheduler = Scheduler(FLEET, policy, speeds=NEAR, patience=1e9)
    starts, _, _ = run(work, FLEET, scheduler)
    np.testing.assert_allclose(starts, simulate(work, FLEET, policy).start, rtol=1e-9, atol=1e-9)


def filled(policy: Any = None, jobs: int = 6, **options: Any) -> Scheduler:
    """Return a scheduler with jobs that wait."""
    scheduler = Scheduler(FLEET, policy or drawn(), speeds=NEAR, **options)
    for i in range(jobs):
        scheduler.submit(gang(f"j{i}", 1 + i % 4), 10.0 + i)
    return scheduler


def raises(*_: Any) -> int:
    """Have an error of its own."""
    raise ZeroDivisionError("of the network")


def sleeps(*_: Any) -> int:
    """Take long."""
    time.sleep(600.0)
    return 0


OBSERVE = network.observe


def scores_nothing(*given: Any) -> int:
    """Have scores that are no numbers."""
    k = OBSERVE(*given)
    given[3].score[:] = np.nan
    return int(k)


@pytest.mark.parametrize(
    ("name", "act", "words"),
    [
        ("observe", raises, "gnn raised ZeroDivisionError: of the network"),
        ("observe", sleeps, "gnn was stopped after"),
        ("observe", scores_nothing, "a score of the network is not finite"),
        ("look", raises, "gnn raised ZeroDivisionError"),
    ],
)
def test_where_the_network_fails_the_rule_decides(
    monkeypatch: pytest.MonkeyPatch, name: str, act: Any, words: str
) -> None:
    """All that fit start by `patient` at once, and notes say why; after three times the network is asked no more."""
    scheduler, rule = filled(), filled("evolved")
    monkeypatch.setattr(network, name, act)
    for turn in range(4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            decision = scheduler.decide(0.5)
        other = rule.decide(60.0)
        assert [(x.job, dict(x.nodes)) for x in decision.starts] == [(x.job, dict(x.nodes)) for x in other.starts]
        assert {x.tier for x in decision.starts} == {"evolved"} == {x.tier for x in other.starts}
        assert any(words in note for note in decision.notes) == (turn < 3)
        for x in (scheduler, rule):
            for job in x.running[:3]:
                x.finish(job, now=20.0 * (turn + 1))
            for i in range(3):
                x.submit(gang(f"t{turn}-{i}", 1 + i), 10.0)
        if turn == 2:
            assert any("it is asked no more" in note for note in decision.notes)


def test_what_is_unlike_its_training_is_the_rules() -> None:
    """A feature far outside what it was trained on is named in a note, and `patient` decides, each time anew."""
    policy = drawn()
    policy.tensors["range_cluster"][:, SCHEMA.kinds["cluster"].index("waiting")] = 0.0  # nobody ever waited
    scheduler, rule = filled(GnnPolicy(policy.tensors, SETTINGS, guarded=False), jobs=8), filled("evolved", jobs=8)
    for _ in range(5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            decision = scheduler.decide(60.0)
        assert decision.notes == ("gnn: cluster.waiting is unlike what it was trained on",)
        other = rule.decide(60.0)
        assert [(x.job, dict(x.nodes), x.tier) for x in decision.starts] == [
            (x.job, dict(x.nodes), "evolved") for x in other.starts
        ]
        for x in (scheduler, rule):
            for job in x.running:
                x.finish(job, now=float(decision.number))
            for i in range(8):
                x.submit(gang(f"{decision.number}-{i}", 1 + i % 3), 10.0)
    scheduler = filled(GnnPolicy(policy.tensors, SETTINGS, guarded=False), jobs=1)  # log1p(1) / 3 is near enough to 0
    assert {x.tier for x in scheduler.decide(60.0).starts} == {"gnn"}


def test_it_fails_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it chose before it failed does not start by halves: the rule decides all of it, and nobody is lost."""
    scheduler, turns, own = filled(), iter(range(100)), network.observe
    monkeypatch.setattr(network, "observe", lambda *x: raises() if next(turns) == 2 else own(*x))
    with pytest.warns(RuntimeWarning, match="of the network"):
        decision = scheduler.decide(60.0)
    assert len(decision.starts) == 6 and {x.tier for x in decision.starts} == {"evolved"}
    scheduler.submit(gang("next", 2), 5.0)
    assert [x.tier for x in scheduler.decide(60.0).starts] == ["gnn"]


class Books:
    """Who holds which GPU, apart from the scheduler's own."""

    def __init__(self, fleet: Fleet, spare: bool) -> None:
        self.spare = spare  # whether the last of the nodes of a gang may be wholly its own
        self.fleet, self.holder, self.up = fleet, dict[tuple[str, int], str](), dict.fromkeys(fleet.names, True)
        self.jobs = dict[str, GangJob]()

    def free(self, job: str) -> None:
        """Have a job hold nothing."""
        self.holder = {seat: name for seat, name in self.holder.items() if name != job}

    def decided(self, decision: Decision) -> None:
        """Enter a decision: no GPU twice, gangs whole, nodes up and large enough for cores and memory."""
        for stop in decision.stops:
            self.free(stop.job)
        for start in decision.starts:
            job = self.jobs[start.job]
            seats = [(node, gpu) for node, gpus in start.nodes.items() for gpu in gpus]
            need = start.degree * int(job.worker.grants)
            assert need <= len({*seats}) == len(seats) <= need + self.spare * (need - 1), start
            assert start.degree in job.workers
            assert not any(seat in self.holder for seat in seats), start
            assert all(self.up[node] for node in start.nodes), start
            self.holder |= dict.fromkeys(seats, start.job)
        for i, node in enumerate(self.fleet.names):
            here = {name for (at, _), name in self.holder.items() if at == node}
            used = [sum(node == at for (at, _), holder in self.holder.items() if holder == name) for name in here]
            for field, has in (("cpu", self.fleet.cpu[i]), ("memory", self.fleet.memory[i])):
                need = sum(
                    getattr(self.jobs[name].worker, field) * n / self.jobs[name].worker.grants
                    for name, n in zip(here, used, strict=True)
                )
                assert need <= has * (1 + 1e-9), (node, field)
            assert not any(self.jobs[name].whole_nodes for name in here) or len(here) == 1, node


def some_job(rng: np.random.Generator, name: str) -> GangJob:
    """Draw a job with cores, memory, whole nodes, or several numbers of workers."""
    workers = sorted({int(x) for x in rng.choice([1, 2, 3, 4, 8], rng.choice([1, 1, 2, 3]))})
    grants = int(rng.choice([1, 1, 1, 2]))
    need = Demand(grants, float(rng.choice([0, 1, 3])), float(rng.choice([0, 0, 2e9])), 0.0)
    whole, most = bool(rng.random() < 0.1), int(rng.integers(1, 4)) if rng.random() < 0.1 else None
    return gang(name, *workers, worker=need, whole_nodes=whole, most_per_node=most)


@pytest.mark.parametrize("options", [{}, {"together": True}, {"price": 2.0}, {"reserve": True}])
@pytest.mark.parametrize("make", [shipped, drawn])
def test_whatever_jobs_ask_for(make: Callable[[], GnnPolicy], options: dict[str, Any]) -> None:
    """Every start is whole and on free GPUs that have what it needs, nodes fail and come back, and all jobs end."""
    rng = np.random.default_rng(7)
    fleet = replace(FLEET, cpu=np.full(8, 10.0), memory=np.full(8, 2e10))
    scheduler = Scheduler(fleet, make(), speeds=NEAR, patience=5.0, **options)
    books, now = Books(fleet, "together" in options), 0.0
    ends, tiers = dict[str, float](), set[str]()
    for i in range(120):
        now += float(rng.exponential(8.0))
        for job in [job for job, end in ends.items() if end <= now]:
            scheduler.finish(job, now=now)
            books.free(job)
            del ends[job]
        job = some_job(rng, f"j{i}")
        books.jobs[job.name] = job
        scheduler.submit(job, [float(rng.lognormal(2.5, 1.0)) for _ in job.workers], now=now)
        if i % 20 == 10:
            node = fleet.names[int(rng.integers(8))]
            for lost in scheduler.fail_node(node, now=now):
                books.free(lost)
                del ends[lost]
            books.up[node] = False
        if i % 20 == 16:
            scheduler.repair_node(node)
            books.up[node] = True
        tiers |= step(scheduler, books, ends, now)
    while scheduler.waiting or ends:
        now = min(ends.values(), default=now + 1e4)
        for job in [job for job, end in ends.items() if end <= now]:
            scheduler.finish(job, now=now)
            books.free(job)
            del ends[job]
        step(scheduler, books, ends, now)
    assert "gnn" in tiers


def step(scheduler: Scheduler, books: Books, ends: dict[str, float], now: float) -> set[str]:
    """Decide, check it, and return who decided."""
    decision = scheduler.decide(60.0, now=now)
    assert not decision.notes
    books.decided(decision)
    for stop in decision.stops:
        ends.pop(stop.job)
    ends |= {x.job: now + x.seconds for x in decision.starts}
    return {x.tier for x in decision.starts}


def test_who_is_due_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that always waits keeps nobody waiting beyond `patience` times its seconds, or alone on the cluster."""
    scheduler = filled(jobs=0, patience=3.0)

    def waits(*given: Any) -> int:
        k = OBSERVE(*given)
        given[3].score[:k] = given[3].place[:k] == WAIT
        return int(k)

    monkeypatch.setattr(network, "observe", waits)
    scheduler.submit(gang("first", 2), 100.0)
    assert [x.job for x in scheduler.decide(60.0).starts] == ["first"]  # nothing runs
    scheduler.submit(gang("second", 2), 10.0)
    assert not scheduler.decide(60.0, now=29.0).starts
    assert [(x.job, x.tier) for x in scheduler.decide(60.0, now=30.0).starts] == [("second", "due")]


def test_the_guard_says_who_decides() -> None:
    """At first the rule does, later a network that is better; one that starts what the rule likes least never does."""
    bad = drawn(0.0)
    bad.tensors["enter.candidate.weight"][0, -1] = -1.0
    bad.tensors["head.weight"][0, 0] = bad.tensors["last.weight"][0, 0] = 2.0
    work, _ = suite("rush").draw(VALIDATION)
    for tensors, settings, leads in ((bad.tensors, SETTINGS, False), (shipped().tensors, shipped().settings, True)):
        scheduler = Scheduler(FLEET, GnnPolicy(tensors, settings), speeds=NEAR, patience=1e9)
        _, _, decisions = run(work, FLEET, scheduler)
        tiers = [start.tier for x in decisions for start in x.starts]
        assert "gnn" not in tiers[: FIRST - 10] and ("gnn" in tiers) == leads
        assert scheduler.network is not None and (scheduler.network.leader == "gnn" or not leads)


def test_where_jobs_may_be_stopped_the_rule_behind_decides() -> None:
    """Plays of the guard know no stops: with a price, a network that else leads decides nothing."""
    work, _ = suite("rush").draw(VALIDATION)
    policy, found = GnnPolicy(shipped().tensors, shipped().settings), list[list[Any]]()
    for which in (policy, "evolved"):
        scheduler = Scheduler(FLEET, which, speeds=NEAR, price=1e9)  # none is worth that
        found.append([[(x.job, x.nodes, x.tier) for x in made.starts] for made in run(work, FLEET, scheduler)[2]])
    assert found[0] == found[1] and sum(map(len, found[0])) == work.n_jobs


def test_a_restored_guard_knows_what_was_compared() -> None:
    """The plays of its comparisons come back; a leader that was never compared so is not taken over."""
    scheduler = filled(drawn(guarded=True))
    guard = scheduler._network.guard if scheduler._network else pytest.fail("no network")
    guard.ahead, guard.leader = [[0.5, 0.0, -0.25, 0.125]], -1
    saved = json.loads(json.dumps(scheduler.snapshot()))
    old = saved | {"network": {key: x for key, x in saved["network"].items() if key != "behind"}}
    bare = json.loads(json.dumps(filled(drawn()).snapshot()))
    for document, guarded, found in (
        (saved, True, (-1, FIRST, guard.ahead)),
        (old, True, (0, FIRST, [])),
        (bare, True, (0, FIRST, [])),
        (saved, False, (-1, EVERYTHING, [])),
    ):
        other = Scheduler(FLEET, drawn(guarded=guarded), speeds=NEAR)
        other.restore(document)
        restored = other._network.guard if other._network else pytest.fail("no network")
        assert (restored.leader, restored.due, restored.ahead) == found


def test_jobs_that_run_longer_than_expected_are_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard plays on with all that run and wait, where the ends of all that run were expected long ago."""
    monkeypatch.setattr("gangplan.learned.online.guard.Guard.advance", lambda *_: None)
    scheduler = filled(drawn(guarded=True), jobs=FIRST, patience=1e9)
    guard = scheduler._network.guard if scheduler._network else pytest.fail("no network")
    guard.due += 1
    scheduler.decide(60.0)
    scheduler.finish(scheduler.running[0], now=1000.0)
    runs, waits = len(scheduler.running), len(scheduler.waiting)
    scheduler.submit(gang("last", 1), 10.0)
    assert runs and not scheduler.decide(60.0).notes
    jobs, state = guard._plays[0]
    live = runs + waits + 1
    assert len(jobs.submit) == live + AHEAD and np.isfinite(state.start[:live]).sum() == runs
    assert (state.finish[:live] > 1000.0).all() and jobs.gpus.min() > 0


def test_the_guard_plays_on_once_a_decision() -> None:
    """However many classes wait: a log tells only that it did."""
    scheduler = filled(drawn(guarded=True))
    scheduler.submit(gang("high", 1), 10.0, priority=1)
    scheduler.decide(60.0)
    assert scheduler._network is not None and scheduler._network.thoughts == 1


def test_its_use_is_counted() -> None:
    """A network that is the rule corrects no choice; one of random numbers does, though it chooses as often."""
    work, _ = suite("small").draw(VALIDATION)
    for policy, corrects in ((drawn(0.0), False), (drawn(0.6), True)):
        scheduler = Scheduler(FLEET, policy, speeds=NEAR, patience=1e9)
        _, _, decisions = run(work, FLEET, scheduler)
        use = scheduler.network
        assert use is not None and use.leader == "gnn"
        assert use.choices >= sum(len(x.starts) for x in decisions) == work.n_jobs
        assert (use.corrected > 0) == corrects
    assert Scheduler(FLEET).network is None


def test_snapshots() -> None:
    """What runs and waits comes back, and whoever fits starts."""
    scheduler = filled(jobs=12)
    scheduler.decide(60.0)
    for job in scheduler.running[:4]:
        scheduler.finish(job, now=9.0)
    saved = json.loads(json.dumps(scheduler.snapshot()))
    other = Scheduler(FLEET, drawn(), speeds=NEAR)
    other.restore(saved)
    assert (other.waiting, other.running, other.now) == (scheduler.waiting, scheduler.running, 9.0)
    assert json.loads(json.dumps(other.snapshot())) == saved
    books = [[(x.job, dict(x.nodes), x.tier) for x in one.decide(60.0).starts] for one in (scheduler, other)]
    assert books[0] and books[0] == books[1]


def test_numbers_of_workers_beyond_the_cluster() -> None:
    """They are left out, at once and by the guard; the others are chosen among."""
    scheduler = Scheduler(Fleet.regular(1, 2, 4), drawn(), speeds=NEAR)
    for i in range(FIRST + 5):
        scheduler.submit(gang(f"j{i}", 4, 16), (20.0, 10.0), now=float(i))
        decision = scheduler.decide(60.0)
        assert not decision.notes and all(x.degree == 4 for x in decision.starts)
        for job in scheduler.running:
            scheduler.finish(job)


def test_nodes_without_gpus() -> None:
    """They are nobody's place, and change nothing for others."""
    fleet = replace(Fleet.regular(1, 3, 4), gpus=np.array([4, 0, 4], dtype=np.int32))
    scheduler = Scheduler(fleet, drawn(), speeds=NEAR)
    scheduler.submit(gang("a", 4), 10.0)
    assert [x.tier for x in scheduler.decide(60.0).starts] == ["gnn"]


def test_workers_stay_together_if_they_shall() -> None:
    """With two and three of four GPUs taken, three workers wait for a node rather than be on both."""
    scheduler = Scheduler(Fleet.regular(1, 2, 4), drawn(0.0))
    for name, workers, seconds in (("a", 2, 100.0), ("b", 3, 200.0)):
        scheduler.submit(gang(name, workers), seconds)
    scheduler.decide(60.0)
    scheduler.submit(gang("c", 3), 10.0)
    assert all(len(x.nodes) == 1 for x in scheduler.decide(60.0).starts)


def test_nothing_to_learn_from_places() -> None:
    """Where all places are alike it decides, too, on whatever nodes."""
    scheduler = Scheduler(FLEET, drawn())
    for i in range(5):
        scheduler.submit(gang(f"j{i}", 3), 10.0 + i)
    decision = scheduler.decide(60.0)
    assert len(decision.starts) == 5 and {x.tier for x in decision.starts} == {"gnn"} and not decision.notes


def crowded(policy: Any, n: int) -> Scheduler:
    """Return a scheduler with so many unlike gangs that wait."""
    scheduler, rng = Scheduler(FLEET, policy, speeds=NEAR), np.random.default_rng(1)
    for i in range(n):
        scheduler.submit(gang(str(i), int(rng.integers(1, 13))), float(rng.lognormal(6, 1)), now=0.0)
    return scheduler


def test_until_the_network_leads_the_rule_behind_it_decides() -> None:
    """It starts whom that starts where it decides alone, not the rule that it corrects, and it is said who leads."""
    policy = GnnPolicy(drawn(0.0).tensors, SETTINGS)
    ours, alone, other = (crowded(x, FIRST - 1) for x in (policy, "evolved", "patient"))
    starts = [[(x.job, x.nodes) for x in scheduler.decide(60.0, now=1.0).starts] for scheduler in (ours, alone, other)]
    assert starts[0] == starts[1] != starts[2]
    assert ours.network is not None and ours.network.leader == "evolved"


def test_it_sees_the_first_by_its_own_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more than 256 that wait so many, of which those are seen that are the first 128 as others start."""
    seen = list[set[str]]()
    world = network.NetworkTier._world

    def noted(self: Any, state: Any, rows: Any) -> Any:
        seen.append({row.request.name for row in rows})
        return world(self, state, rows)

    monkeypatch.setattr(network.NetworkTier, "_world", noted)
    policy = GnnPolicy(drawn(0.0).tensors, replace(SETTINGS, rule="evolved"), guarded=False)
    crowded(policy, 300).decide(60.0, now=1.0)
    alone = crowded("evolved", 300)
    alone._state.advance(None)
    first = [*network.in_order(alone._state.queue)][: 2 * network.IN_SIGHT]
    assert seen[0] == {*first} and len(first) == 256
