"""Places that differ: how long jobs run there, who waits for a better one, and what follows from it."""

from __future__ import annotations

import heapq
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob
from gangplan.instances.placement.proximity import Proximity
from gangplan.scheduler import Evolved, Patient, Scheduler, View
from gangplan.scheduler.policies.engine_policy import SchedulerPolicy
from gangplan.simulator.engine import EngineScheduler, check_policy, simulate
from gangplan.simulator.gangs.mixes import TRAINING
from gangplan.systems.topdrl.rules import TopdrlPatient
from gangplan.systems.topdrl.simulate import simulate as topdrl
from gangplan.systems.topdrl.suites import suite

PAIR = Fleet.regular(racks=1, nodes=2, gpus=4)
NEAR = Proximity()  # a link costs 1/40 in a node, 1/4 in a rack, 1/2 between racks


def job(name: str, workers: int | tuple[int, ...], model: str = "any") -> GangJob:
    """Return a gang of whole GPUs."""
    return GangJob(name, model, workers if isinstance(workers, tuple) else (workers,))


def scattered(policy: Any = "heuristic", **options: Any) -> Scheduler:
    """Return a scheduler where two jobs leave one GPU idle on each node, until 105 s."""
    scheduler = Scheduler(PAIR, policy, together=False, **{"speeds": NEAR} | options)
    for name in ("a", "b"):
        scheduler.submit(job(name, 3), 100.0)
    assert [start.seconds for start in scheduler.decide(60.0).starts] == [105.0, 105.0]
    return scheduler


def test_a_job_takes_as_long_as_its_gpus_are_apart() -> None:
    """Two GPUs of two nodes take 1 + 1/4 of the seconds, four times the intensity 1 + 4/4, one node 1 + 1/40."""
    for model, seconds in (("any", 12.5), ("talks", 20.0)):
        scheduler = scattered(speeds=Proximity(intensity={"talks": 4.0}))
        scheduler.submit(job("two", 2, model), 10.0)
        (start,) = scheduler.decide(60.0).starts
        assert len(start.nodes) == 2 and start.seconds == scheduler.explain("two").as_dict()["left"] == seconds
        scheduler.finish("a", now=1.0)
        scheduler.submit(job("near", 2, model), 100.0)
        assert scheduler.decide(60.0).starts[0].seconds == pytest.approx(100 + (seconds - 10))


def test_reservations_end_when_the_place_has_it() -> None:
    """A gang fits in 105 s: a job of 90 s would be done by then on close GPUs, on those that are there it is not."""
    for seconds, starts in ((80.0, 1), (90.0, 0)):
        scheduler = scattered()
        scheduler.submit(job("gang", 8), 10.0)
        scheduler.submit(job("two", 2), seconds, now=0.0)
        scheduler.decide(60.0)
        assert len(scheduler.running) == 2 + starts
    assert scheduler.explain("gang").earliest == 105.0


def test_who_stops_has_got_on_at_the_rate_of_its_place() -> None:
    """Of 1,000 s on two nodes, 1,250 there, 250 s are 200 of its own: 800 are left, and on one node take 820."""
    scheduler = scattered(price=0.0)
    scheduler.submit(job("two", 2), 1000.0)
    scheduler.decide(60.0)
    assert scheduler.explain("two").left == 1250.0
    for name in ("a", "b"):
        scheduler.finish(name, now=105.0)
    scheduler.submit(job("wide", 8), 10.0, now=250.0)
    decision = scheduler.decide(60.0)
    assert [(stop.job, stop.left) for stop in decision.stops] == [("two", 1000.0)]
    scheduler.finish("wide", now=260.0)
    (start,) = scheduler.decide(60.0).starts
    assert (start.job, len(start.nodes)) == ("two", 1) and start.seconds == pytest.approx(820.0)


def test_what_a_place_costs_is_not_learned_as_work() -> None:
    """Jobs that ran 10.25 s on close GPUs did 10 s of work: the next one like them takes about so long."""
    scheduler = scattered()
    scheduler.submit(job("two", 2), 10.0)
    scheduler.decide(60.0)
    for name, now in (("two", 12.5), ("a", 105.0), ("b", 105.0)):
        scheduler.finish(name, now=now)
    scheduler = Scheduler(PAIR, speeds=NEAR)
    for i in range(8):
        scheduler.submit(job(f"j{i}", 2), now=10.25 * i)
        scheduler.decide(60.0)
        scheduler.finish(f"j{i}", now=10.25 * (i + 1))
    scheduler.submit(job("next", 2))
    (request,) = scheduler._state.waiting.values()
    assert request.quantile(2, 0.5) == pytest.approx(10.0, rel=0.15)  # a bin is 28% wide


def test_a_restored_scheduler_decides_alike() -> None:
    """Ends, what is left, and who waits for a better place come back."""
    first = scattered("patient", price=1.0)
    first.submit(job("two", 2), 10.0)
    other = Scheduler(PAIR, "patient", speeds=NEAR, together=False, price=1.0)
    other.restore(json.loads(json.dumps(first.snapshot())))
    for scheduler in (first, other):
        assert not scheduler.decide(60.0, now=5.0).starts
        scheduler.finish("a", now=50.0)
        assert [x.seconds for x in scheduler.decide(60.0).starts] == [10.25]
    assert first.snapshot() == other.snapshot()


def test_waits_for_close_gpus() -> None:
    """It waits while they are apart, those behind it pass, and `explain` says why and until when."""
    scheduler = scattered("patient")
    scheduler.submit(job("two", 2), 10.0, now=1.0)
    assert not scheduler.decide(60.0).starts
    waits = scheduler.explain("two")
    assert waits.why == "it waits for closer GPUs" and waits.earliest == 105.0
    scheduler.submit(job("one", 1), 10_000.0)
    assert [(start.job, start.tier) for start in scheduler.decide(60.0).starts] == [("one", "patient")]
    scheduler.finish("a", now=60.0)
    (start,) = scheduler.decide(60.0).starts
    assert (start.job, len(start.nodes)) == ("two", 1)


def test_by_the_evolved_rule_who_waited_long_passes_who_has_just_come(tmp_path: Path) -> None:
    """The job behind one of its line that waits starts; what was seen and done comes back from log and snapshot."""
    scheduler = scattered("evolved", log=tmp_path / "log.jsonl")
    scheduler.submit(job("aged", 2), 61.0)
    assert not scheduler.decide(60.0, now=1.0).starts
    assert scheduler.explain("aged").why == "it waits for closer GPUs"
    scheduler.submit(job("fresh", 2), 60.0, now=2000.0)
    (start,) = scheduler.decide(60.0).starts
    assert (start.job, start.tier, len(start.nodes)) == ("aged", "evolved", 2)
    assert scheduler._state.queue.order == pytest.approx(-0.929 * np.log(1 + 2 / 2))
    restored = Scheduler(PAIR, "evolved", speeds=NEAR, together=False)
    restored.restore(json.loads(json.dumps(scheduler.snapshot())))
    saved, logs = scheduler.snapshot(), scheduler._state.running.logs
    del scheduler
    for other in (Scheduler.open(tmp_path / "log.jsonl"), restored):
        assert other.snapshot() == saved and other._state.running.logs == logs > 0
        assert not other.decide(60.0, now=2001.0).starts


def test_own_weights_and_an_own_order() -> None:
    """They take the place of those that were found."""
    scheduler = scattered(Evolved(wait=5.0), order=0.5)
    scheduler.submit(job("two", 2), 10_000.0)
    assert len(scheduler.decide(60.0).starts) == 1 and scheduler._state.queue.order == 0.5


@pytest.mark.parametrize("patience", [0.0, 0.19, 0.21, 1.0])
def test_patience_is_how_much_slower_it_may_be(patience: float) -> None:
    """Two nodes are 1.25 / 1.025 = exp(.198) times as slow as one."""
    scheduler = scattered(Patient(patience=patience))
    scheduler.submit(job("two", 2), 10.0)
    assert len(scheduler.decide(60.0).starts) == (patience > 0.198)


def test_waits_at_most_until_it_is_due_or_nothing_runs() -> None:
    """After `patience` times its seconds it takes what there is; alone on the cluster at once."""
    scheduler = scattered("patient", patience=3.0)
    scheduler.submit(job("two", 2), 10.0)
    assert not scheduler.decide(60.0, now=29.0).starts
    (start,) = scheduler.decide(60.0, now=30.0).starts
    assert (start.job, start.tier, start.seconds) == ("two", "due", 12.5)
    scheduler = Scheduler(PAIR, "patient", speeds=NEAR)
    scheduler.submit(job("one", 1), 1.0)
    scheduler.submit(GangJob("apart", "any", (2,), most_per_node=1), 10.0)  # its best place is two nodes
    assert [start.seconds for start in scheduler.decide(60.0).starts] == [1.0, 12.5]


def test_the_best_place_is_among_the_nodes_that_are_up() -> None:
    """Four GPUs of one node are best, so the gang waits for them; once that node is down, two of two each are best."""
    fleet = replace(Fleet.regular(1, 4, 4), gpus=np.array([4, 2, 2, 1], dtype=np.int32))
    scheduler = Scheduler(fleet, "patient", speeds=NEAR)
    for name, workers in (("one", 1), ("busy", 1)):
        scheduler.submit(GangJob(name, "any", (workers,)), 100.0)
    scheduler.submit(job("four", 4), 1000.0)
    assert {s.job: [*s.nodes] for s in scheduler.decide(60.0).starts} == {
        "one": ["node3"],
        "busy": ["node1"],
        "four": ["node0"],
    }
    scheduler.finish("busy", now=1.0)
    scheduler.submit(job("next", 4), 10.0)
    assert not scheduler.decide(60.0).starts
    scheduler.fail_node("node0")
    assert {s.job: [*s.nodes] for s in scheduler.decide(60.0).starts} == {"next": ["node1", "node2"]}


def test_close_gpus_are_found_in_any_rack() -> None:
    """Five racks have one idle GPU on each of four nodes, a sixth has a whole node: the gang gets that."""
    fleet = Fleet.regular(6, 4, 4)
    scheduler = Scheduler(fleet, speeds=NEAR)
    for node in range(20):
        scheduler.submit(GangJob(f"j{node}", "any", (3,)), 100.0)
    scheduler.decide(60.0)
    scheduler.submit(job("four", 4), 10.0)
    (start,) = scheduler.decide(60.0).starts
    assert [len(gpus) for gpus in start.nodes.values()] == [4]


def test_the_number_of_workers_is_chosen_at_its_best_place() -> None:
    """Eight talkative GPUs on two nodes take longer than four on one, though half as long where no place is slow."""
    scheduler = Scheduler(PAIR, speeds=Proximity(intensity={"talks": 20.0}))
    scheduler.submit(job("any", (4, 8), "talks"), (20.0, 10.0))
    assert scheduler.decide(60.0).starts[0].degree == 4


def test_a_number_of_workers_that_never_fits_is_not_looked_for() -> None:
    """Of 4 and 16 workers on eight GPUs it has 4, patient or not."""
    for policy in ("heuristic", "patient"):
        scheduler = Scheduler(PAIR, policy, speeds=NEAR)
        scheduler.submit(job("any", (4, 16)), (20.0, 10.0))
        assert [start.degree for start in scheduler.decide(60.0).starts] == [4]


class Waits:
    """Let jobs wait that would be slow, as a user would write it."""

    def propose(self, view: View) -> Any:
        """Yield whoever is fast on the first idle GPUs."""
        for request in view.waiting:
            taken = [(n, g) for held in view.running.values() for n, gpus in held.nodes.items() for g in gpus]
            idle = [(n, g) for n in range(2) for g in range(4) if (n, g) not in taken][: request.job.workers[0]]
            nodes = {n: tuple(g for m, g in idle if m == n) for n, _ in idle}
            if view.slower(request, request.job.workers[0], nodes) < 1.2:
                yield request.name, request.job.workers[0], nodes


def test_a_policy_of_ones_own_sees_how_slow_a_place_is() -> None:
    """It makes the gang wait that would be on two nodes, and starts one that would not."""
    own = Scheduler(PAIR, Waits(), speeds=NEAR, order=0.0)
    saved = scattered().snapshot()
    own.restore({**saved, "settings": own.snapshot()["settings"]})
    own.submit(job("two", 2), 10.0)
    own.submit(job("one", 1), 10.0)
    assert [(start.job, start.tier) for start in own.decide(60.0).starts] == [("one", "policy")]


def test_where_places_are_alike_patience_is_an_order() -> None:
    """By log seconds + .777 log GPUs; nobody waits."""
    scheduler = Scheduler(PAIR, "patient")
    for name, workers, seconds in (("wide", 8, 10.0), ("narrow", 1, 49.0), ("second", 1, 51.0)):
        scheduler.submit(job(name, workers), seconds)
    assert [start.job for start in scheduler.decide(60.0).starts] == ["narrow", "second"]  # 10 * 8^.777 = 50.3
    scheduler.withdraw("narrow")
    scheduler.withdraw("second")
    assert [start.job for start in scheduler.decide(60.0).starts] == ["wide"]


@pytest.mark.parametrize(
    ("options", "words"),
    [({"speeds": 3}, "speeds: 3 is neither"), ({"policy": "patience"}, "hybrid, heuristic, patient")],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    """What is no speeds and no policy is named."""
    with pytest.raises(InstanceError, match=words):
        Scheduler(PAIR, **options)


def mean_jct(ground: Any, work: Any, scheduler: Scheduler) -> float:
    """Return the mean JCT of a workload that a scheduler decides; what starts say of their seconds is checked."""
    arrivals = sorted(range(work.n_jobs), key=lambda i: (work.submit[i], i))
    ends, total = list[tuple[float, int]](), 0.0
    while arrivals or ends:
        now = min(x for x in ([float(work.submit[i]) for i in arrivals[:1]] + [end for end, _ in ends[:1]]))
        while ends and ends[0][0] <= now:
            _, one = heapq.heappop(ends)
            scheduler.finish(str(one), now=now)
            total += now - float(work.submit[one])
        while arrivals and work.submit[arrivals[0]] <= now:
            one = arrivals.pop(0)
            scheduler.submit(job(str(one), int(work.gpus[one])), float(work.duration[one]), now=now)
        for start in scheduler.decide(60.0, now=now).starts:
            nodes = [ground.fleet.names.index(name) for name in start.nodes]
            cost = NEAR.cost(ground.fleet, nodes, [len(gpus) for gpus in start.nodes.values()])
            seconds = float(work.duration[int(start.job)]) * (1 + cost)
            assert scheduler._state.places is None or start.seconds == pytest.approx(seconds, rel=1e-12)
            heapq.heappush(ends, (now + seconds, int(start.job)))
    return total / work.n_jobs


def test_waiting_for_close_gpus_is_worth_it() -> None:
    """On TopDRL's cluster it has a tenth less mean JCT than the heuristic, and what the rule has there, dues apart."""
    ground, ratio = suite("small"), []
    for seed in range(TRAINING, TRAINING + 3):
        work, _ = ground.draw(seed)
        patient, own = (
            mean_jct(ground, work, Scheduler(ground.fleet, "patient", speeds=NEAR, patience=patience))
            for patience in (50.0, 1e9)
        )
        ratio.append(patient / mean_jct(ground, work, Scheduler(ground.fleet)))
        alone = topdrl(work, ground.fleet, TopdrlPatient())
        assert own == pytest.approx(float((alone.finish - work.submit).mean()), rel=1e-6)
    assert np.mean(ratio) < 0.9


def test_engine_has_the_same_seconds() -> None:
    """A trace on TopDRL's cluster is what the loop of a user has, to the second; estimates may be given."""
    ground = suite("small")
    work, _ = ground.draw(TRAINING)
    mine = mean_jct(ground, work, Scheduler(ground.fleet, "patient", speeds=NEAR))
    for told in (True, np.asarray(work.duration)):
        engine = EngineScheduler((SchedulerPolicy(told, policy="patient"),), "overtake")
        found = simulate(work, ground.fleet, engine, speeds=NEAR)
        assert float((found.finish - work.submit).mean()) == pytest.approx(mine, rel=1e-9)


@pytest.mark.parametrize("policy", ["patient", "evolved"])
def test_contract_of_the_simulator(policy: str) -> None:
    """Traces with failures run through those that wait."""
    check_policy(lambda: SchedulerPolicy(policy=policy, speeds=NEAR), traces=1)


def test_no_gpus_at_all() -> None:
    """A cluster without GPUs is a cluster."""
    assert Scheduler(Fleet.regular(1, 2, gpus=0), speeds=NEAR).idle == 0


def test_a_job_waits_for_its_best_number_of_workers() -> None:
    """Two workers would take 1.25 s on GPUs that are apart; one, which would take 100 s, does not start instead."""
    scheduler = Scheduler(PAIR, "patient", speeds=NEAR)
    for name in "ab":
        scheduler.submit(GangJob(name, "m", (3,)), 100.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("moldable", "m", (1, 2)), (100.0, 1.0))
    assert not scheduler.decide(60.0).starts


def test_who_talks_does_not_block_who_is_quiet() -> None:
    """A gang that would delay a reservation, being slow where it would go, does not close the line for a fast one."""
    scheduler = Scheduler(PAIR, "heuristic", speeds=Proximity(intensity={"talks": 20.0, "m": 0.0}), together=False)
    for name in "ab":
        scheduler.submit(GangJob(name, "m", (3,)), 100.0)
    scheduler.decide(60.0)
    scheduler.submit(GangJob("gang", "m", (8,)), 1.0)
    scheduler.submit(GangJob("loud", "talks", (2,)), 30.0)
    scheduler.submit(GangJob("calm", "m", (2,)), 40.0)
    assert [start.job for start in scheduler.decide(60.0).starts] == ["calm"]


def test_numbers_of_numpy() -> None:
    """An intensity of single precision does not make times coarse."""
    scheduler = Scheduler(PAIR, speeds=Proximity(intensity={"m": np.float32(2)}))
    scheduler.submit(GangJob("j", "m", (2,)), 100.0, now=1.76e9)
    assert scheduler.decide(60.0).starts[0].seconds == pytest.approx(105.0)
    assert scheduler.explain("j").left == pytest.approx(105.0)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"gpus": -0.1}, "gpus: -0.1 is negative"),
        ({"gpus": None}, "gpus: None is not a number"),
        ({"slowdown": 1e308}, r"slowdown: 1e\+308 is more than 8"),
    ],
)
def test_numbers_of_the_rule(numbers: dict[str, Any], words: str) -> None:
    """They are named where they are wrong."""
    with pytest.raises(InstanceError, match=words):
        Patient(**numbers)


def test_a_snapshot_of_other_places_is_refused() -> None:
    """Numbers of the rule and of the links are arguments as others are."""
    saved = json.loads(json.dumps(Scheduler(PAIR, "patient", speeds=NEAR).snapshot()))
    Scheduler(PAIR, "patient", speeds=NEAR).restore(saved)
    with pytest.raises(InstanceError, match=r"patient: slowdown is 0\.639, here 0\.0"):
        Scheduler(PAIR, Patient(slowdown=0.0), speeds=NEAR).restore(saved)
    with pytest.raises(InstanceError, match=r"proximity: rack is 0\.25, here 0\.3"):
        Scheduler(PAIR, "patient", speeds=Proximity(rack=0.3)).restore(saved)
