"""Gangs that come and go one at a time: decisions verified, kept capacities against fresh ones, batch policies."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError, verify
from gangplan.instances.generators.gangs import gangs
from gangplan.instances.placement import Demand, Fleet, GangJob, PlacementProblem
from gangplan.solvers.placement.online import GANG_POLICIES, Placer, placer, state
from gangplan.solvers.placement.online.capacity import Capacity, Kind
from gangplan.solvers.placement.policies import Offer


def crowd(seed: int) -> PlacementProblem:
    """Return a fleet with labels and failed nodes, and more jobs than fit, of every sort but those that share GPUs."""
    half = gangs(
        jobs=60,
        racks=3,
        nodes=5,
        load=0.9,
        seed=seed,
        gpu_types="A100,V100",
        menus=0.3,
        selectors=0.2,
        spread=0.2,
        apart=0.3,
        whole_nodes=0.2,
        down=0.1,
    )
    return replace(half, jobs=(*half.jobs, *(replace(job, name=f"{job.name}'", apart=()) for job in half.jobs)))


def churn(problem: PlacementProblem, policy: str, seed: int, steps: int = 150) -> Any:
    """Yield a placer, what it is asked for and what it answers, while jobs come and go at random."""
    rng, placed = np.random.default_rng(seed), Placer(problem.fleet, problem.speeds, policy)
    for _ in range(steps):
        waiting = [job for job in problem.jobs if job.name not in placed.running]
        if placed.running and (not waiting or rng.random() < 0.15):
            placed.remove(sorted(placed.running)[int(rng.integers(len(placed.running)))])
        else:
            job = waiting[int(rng.integers(len(waiting)))]
            yield placed, job, placed.place(job)


@pytest.mark.parametrize("policy", GANG_POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_every_decision_is_feasible(policy: str, seed: int) -> None:
    """After each arrival the verifier accepts what runs; a job that is turned away fits in none of its sizes."""
    turned = 0
    for placed, job, seats in churn(crowd(seed), policy, seed):
        if placed.running:
            assert verify(*placed.batch()).violations == ()
        if seats is None and not job.servers:
            blocked = np.array(placed.blocked(job), dtype=np.int64)
            turned += 1
            assert Capacity(placed, Kind.workers(job)).without(blocked).total < job.workers[0]
    assert turned


@pytest.mark.parametrize("policy", GANG_POLICIES)
def test_kept_rooms_are_fresh(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Capacities renewed where nodes changed equal rooms computed anew, also where logs and kinds are forgotten."""
    monkeypatch.setattr(state, "LOG", 40)
    monkeypatch.setattr(placer, "KINDS", 5)
    for placed, job, _ in churn(crowd(7), policy, 7):
        kept, fresh = placed._room(Kind.workers(job), []), Capacity(placed, Kind.workers(job))
        np.testing.assert_array_equal(kept.room, fresh.room)
        for mine, anew in zip(kept.sums, fresh.sums, strict=True):
            np.testing.assert_array_equal(mine, anew)
        assert len(placed._capacities) <= 5
        assert len(placed._log._entries) <= 40


@pytest.mark.parametrize("policy", GANG_POLICIES)
def test_policies_are_those_of_batches(policy: str) -> None:
    """A gang goes where the policy puts it that sums the room up anew, as for batches."""
    problem, seen = crowd(3), 0
    for placed, job, seats in churn(problem, policy, 3):
        if seats is None or job.servers:
            continue
        placed.remove(job.name)
        room = Capacity(placed, Kind.workers(job)).without(np.array(placed.blocked(job), dtype=np.int64))
        state: Any = SimpleNamespace(batch=SimpleNamespace(tree=room.tree), free_gpu=room.free)
        degree = sum(seat.workers for seat in seats.values())
        wanted = GANG_POLICIES[policy](Offer(state, 0, room.room.astype(np.int32)), degree)
        assert {node: seat.workers for node, seat in seats.items()} == {n: w for n, w in wanted.items() if w}
        assert placed.place(job) == seats
        seen += len(seats) > 1
    assert seen


def test_what_was_taken_comes_back() -> None:
    """Once all jobs are gone, every node has to the digit what it had, and all of its GPUs."""
    problem = crowd(1)
    placed = next(placed for placed, _, seats in churn(problem, "topology", 1) if seats is None)
    for name in list(placed.running):
        placed.remove(name)
    empty = Placer(problem.fleet, problem.speeds)
    np.testing.assert_array_equal(placed.vacant, empty.vacant)
    assert placed._idle == empty._idle
    assert not placed.taken.any()
    np.testing.assert_array_equal(placed.guarded, empty.guarded)


def test_a_gang_of_a_rack_stays_in_one() -> None:
    """The tightest rack that holds a gang takes it, whole nodes first, and the rest goes where it fills a node."""
    fleet, speeds = Fleet.regular(2, 2, gpus=4), crowd(0).speeds
    placed = Placer(fleet, speeds, "topology")
    model = speeds.models[0]
    assert set(placed.place(GangJob("a", model, (3,))) or ()) == {0}
    # rack 0 has 1 + 4 idle GPUs, rack 1 has 8
    assert {n: s.gpus for n, s in (placed.place(GangJob("b", model, (5,))) or {}).items()} == {0: (3,), 1: (0, 1, 2, 3)}
    assert placed.place(GangJob("c", model, (9,))) is None
    assert {n: s.workers for n, s in (placed.place(GangJob("d", model, (4, 8, 9))) or {}).items()} == {2: 4, 3: 4}
    placed.remove("a")
    assert {n: s.gpus for n, s in (placed.place(GangJob("e", model, (2,))) or {}).items()} == {0: (0, 1)}


def test_servers_go_beside_workers_or_near_them() -> None:
    """Servers share the cores that workers leave; what finds none goes to the rack, not to another one."""
    fleet, speeds = Fleet.regular(2, 2, gpus=4, cpu=8.0), crowd(0).speeds
    job = GangJob("a", speeds.models[0], (4,), Demand(1.0, cpu=1.5), "ps", servers=6, server=Demand(gpu=0.0, cpu=1.0))
    placed = Placer(fleet, speeds, "best_fit")
    assert {n: (s.workers, s.servers) for n, s in (placed.place(job) or {}).items()} == {0: (4, 2), 1: (0, 4)}
    assert verify(*placed.batch()).ok
    assert placed.place(replace(job, name="b", servers=30)) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"worker": Demand(0.5)}, "job.worker.gpu: 0.5 is a share"),
        ({"model": "none"}, "job.model: 'none' has no speed"),
        ({"name": "there"}, "job.name: 'there' runs already"),
    ],
)
def test_bad_jobs(change: dict[str, Any], words: str) -> None:
    """A job that cannot be asked for is refused by field and value, and nothing has changed."""
    speeds = crowd(0).speeds
    placed = Placer(Fleet.regular(1, 2), speeds)
    placed.place(GangJob("there", speeds.models[0], (1,)))
    before = placed.vacant.copy()
    with pytest.raises(InstanceError) as error:
        placed.place(replace(GangJob("a", speeds.models[0], (1,)), **change))
    assert str(error.value).startswith(words)
    np.testing.assert_array_equal(placed.vacant, before)


def test_labels_that_no_node_has() -> None:
    """A job that asks for one has no room: such nodes may come."""
    speeds = crowd(0).speeds
    placed = Placer(Fleet.regular(1, 2), speeds)
    assert placed.place(GangJob("a", speeds.models[0], (1,), requires=("moon",))) is None


def test_bad_names() -> None:
    """An unknown policy, job or GPU type is named."""
    speeds = crowd(0).speeds
    with pytest.raises(InstanceError, match="policy: 'worst' is not one of first_fit"):
        Placer(Fleet.regular(1, 2), speeds, "worst")
    with pytest.raises(InstanceError, match="'abacus' has no speeds"):
        Placer(Fleet.regular(1, 2, gpu_type="abacus"), speeds)
    with pytest.raises(InstanceError, match="job: 'a' does not run"):
        Placer(Fleet.regular(1, 2), speeds).remove("a")


def test_a_node_that_is_down_takes_nobody_until_it_is_repaired() -> None:
    """Without speeds any model runs; a node that fails has nothing free, and all that it had once it is back."""
    job, placed = GangJob("a", placer.ANY_MODEL, (4,)), Placer(Fleet.regular(1, 2, gpus=4), None)
    before = placed.vacant.copy()
    placed.fail(0)
    assert placed.free.tolist() == [0, 4] and placed.guarded.tolist() == [True, False] and placed.idle(0) == []
    kind = Kind.workers(job)
    assert placed.most_on(kind).tolist() == [0, 4] and placed.most_on(kind, up=False).tolist() == [4, 4]
    assert set(placed.place(job) or ()) == {1}
    assert not placed.fits(replace(job, name="b"))
    placed.repair(0)
    assert set(placed.place(replace(job, name="b")) or ()) == {0}
    placed.remove("a")
    placed.remove("b")
    np.testing.assert_array_equal(placed.vacant, before)


def test_a_gang_is_put_on_gpus_that_are_known() -> None:
    """It holds just these, and is refused where its cores do not suffice; the others stay in their order."""
    placed = Placer(Fleet.regular(1, 2, gpus=4, cpu=8.0), None)
    job = GangJob("a", placer.ANY_MODEL, (2,), Demand(1.0, cpu=3.0))
    assert placed.put(job, {1: (3, 1)})
    assert placed.running["a"][1].gpus == (3, 1) and placed.idle(1) == [0, 2]
    assert not placed.put(replace(job, name="b"), {1: (0,)})
    nodes, used = placed.uses("a")
    assert nodes == [1] and used[0].tolist() == [2]
