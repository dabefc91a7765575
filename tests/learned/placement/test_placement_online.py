"""On a cluster that runs, the policy places gangs where there is room, and forgets them once they end."""

from __future__ import annotations

import numpy as np

from gangplan.instances import verify
from gangplan.instances.generators.gangs import gangs
from gangplan.learned.placement.online import LearnedGang
from gangplan.learned.placement.policy import PlacementPolicy
from gangplan.solvers.placement.online import GANG_POLICIES, Placer
from gangplan.solvers.placement.online.rooms import Kind


def test_gangs_come_and_go(policy: PlacementPolicy) -> None:
    """What runs passes the verifier, the board agrees with it on every cost, and nothing is left at the end."""
    batch = gangs(jobs=40, racks=4, nodes=4, load=0.9, seed=4)
    chooser = LearnedGang(batch.fleet, batch.speeds, policy)
    placer = Placer(batch.fleet, batch.speeds)
    for i, job in enumerate(batch.jobs):
        placer._policy = chooser.policy(job)
        seats = placer.place(job)
        assert seats is not None
        chooser.note(job, {node: (seat.workers, seat.servers) for node, seat in seats.items()})
        if i % 5 == 4:
            gone = batch.jobs[i - 2].name
            placer.remove(gone)
            chooser.forget(gone)
    problem, plan = placer.batch()
    verdict = verify(problem, plan)
    assert verdict.ok and verdict.objective is not None
    assert abs(sum(x.cost for x in chooser.board.placed.values()) - verdict.objective) < 1e-6 * verdict.objective
    for name in list(placer.running):
        placer.remove(name)
        chooser.forget(name)
    chooser.forget("nobody")
    assert abs(chooser.board.suffer).max() < 1e-9 and not chooser.board.placed


def test_a_decision_is_the_same_again_and_says_what_it_looked_at(policy: PlacementPolicy) -> None:
    """Places come the best first, each of all workers within the room."""
    batch = gangs(jobs=20, racks=4, nodes=4, load=0.9, seed=4)
    chooser = LearnedGang(batch.fleet, batch.speeds, policy)
    placer = Placer(batch.fleet, batch.speeds)
    for job in batch.jobs[:10]:
        seats = placer.place(job)
        assert seats is not None
        chooser.note(job, {node: (seat.workers, seat.servers) for node, seat in seats.items()})
    job = max(batch.jobs[10:], key=lambda x: x.gang)
    room = placer._room(Kind.workers(job), [])
    found = chooser.scored(room, job.gang, job, batch.jobs[11:])
    assert (np.diff(found.score) <= 0).all() and len(found.workers) > 1
    for workers in found.workers:
        assert sum(workers.values()) == job.gang
        assert all(0 < count <= room.room[node] for node, count in workers.items())
    assert chooser.choose(room, job.gang, job, batch.jobs[11:]) == found.workers[0]
    assert GANG_POLICIES["topology"](room, job.gang)
