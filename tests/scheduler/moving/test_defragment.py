"""Moves that make room: hand-sized cases, and enumeration of who moves."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

import gangplan
from gangplan.instances import InstanceError
from gangplan.instances.placement import Demand, Fleet, GangJob
from gangplan.scheduler.moving.migration import Moves, movable
from gangplan.solvers.placement.online.capacity import Kind
from tests.seeds import some


def halves() -> gangplan.Scheduler:
    """Return two racks of two nodes of four GPUs: jobs a, b and c of two GPUs on nodes 0, 1 and 2."""
    scheduler = gangplan.Scheduler(Fleet.regular(racks=2, nodes=2, gpus=4), price=60.0)
    for name in ("a", "w", "b", "x", "c"):
        scheduler.submit(GangJob(name, "any", (2,)), 7200.0, now=0.0)
    scheduler.decide(60.0)
    for name in ("w", "x"):
        scheduler.finish(name, now=600.0)
    assert [[*scheduler._state.running[name].nodes] for name in "abc"] == [[0], [1], [2]]
    return scheduler


def test_a_gang_that_fits_after_one_move() -> None:
    """Two halves of nodes in rack 0 are free, and a gang of four in one: b joins a, at 60 s on two GPUs.

    With node 3 idle the gang fits anyhow, so that it is to be in rack 0: one of a and b has to leave its node, each at
    120 GPU seconds; a is the first of the two and goes to the other's node or to node 2. No move costs less than that.
    """
    scheduler = halves()
    gang = GangJob("gang", "any", (4,))
    assert scheduler.defragment(gang=gang) == Moves((), 0.0, 0.0, "the cluster", "gang", {"node3": (0, 1, 2, 3)})
    moves = scheduler.defragment("rack 0", gang)
    assert moves is not None and moves.proved and (len(moves.moves), moves.cost) == (1, 120.0)
    assert str(moves).startswith("1 move, 0.0333 GPU-hours; no set costs less; makes room for gang in rack 0\n")
    decision = scheduler.apply(moves)
    assert [stop.job for stop in decision.stops] == [start.job for start in decision.starts] == [moves.moves[0].job]
    scheduler.fail_node("node3")
    scheduler.submit(gang, 100.0)
    assert [start.job for start in scheduler.decide(60.0).starts] == ["gang"]


def test_a_rack_of_which_the_cheaper_is_freed() -> None:
    """Rack 1 has one job of two GPUs and rack 0 two: any rack is rack 1, for 120 GPU seconds, if worth it."""
    scheduler = halves()
    moves = scheduler.defragment("rack")
    assert moves is not None and [move.job for move in moves.moves] == ["c"] and moves.cost == 120.0
    assert str(moves).split("\n")[0] == "1 move, 0.0333 GPU-hours; no set costs less; frees rack 1"
    assert scheduler.defragment("rack", worth=119.0) is None
    assert scheduler.defragment("rack", worth=120.0) == moves
    both = scheduler.defragment("rack 0")
    assert both is not None and both.proved and sorted(move.job for move in both.moves) == ["a", "b"]
    assert {*both.seats} == {"node0", "node1"}


def test_moves_that_make_way_for_moves() -> None:
    """A node of 4 GPUs is freed though nobody's hole is large enough: the job of 2 moves on, and that of 3 comes.

    Node 0 holds a job of 3, node 1 one of 2 (two free), node 2 one of 2 (two free): the job of 3 needs a node on which
    2 GPUs leave. The one on node 1 goes to node 2, or the other way round: 3 + 2 GPUs at 60 s are 300 GPU seconds.
    """
    scheduler = gangplan.Scheduler(Fleet.regular(racks=1, nodes=3, gpus=4), price=60.0)
    for name, gpus in (("three", 3), ("pad0", 1), ("two", 2), ("pad1", 2), ("duo", 2), ("pad2", 2)):
        scheduler.submit(GangJob(name, "any", (gpus,)), 7200.0, now=0.0)
        scheduler.decide(60.0)
    for pad in ("pad0", "pad1", "pad2"):
        scheduler.finish(pad, now=600.0)
    nodes = {name: [*job.nodes] for name, job in scheduler._state.running.items()}
    assert sorted(nodes.values()) == [[0], [1], [2]]
    moves = scheduler.defragment(nodes["three"][0])
    assert moves is not None and moves.proved and moves.cost == 300.0 and len(moves.moves) == 2
    assert moves.moves[0].job != "three"
    scheduler.apply(moves)
    assert scheduler._state.holders[nodes["three"][0]] == {}


def test_who_may_not_be_stopped_does_not_move() -> None:
    """A job without a price stays, and one with a price until it got on for it, so that their nodes are not freed."""
    scheduler = gangplan.Scheduler(Fleet.regular(racks=1, nodes=2, gpus=4))
    scheduler.submit(GangJob("stays", "any", (3,)), 7200.0, now=0.0)
    scheduler.submit(GangJob("moves", "any", (3,)), 7200.0, now=0.0, price=60.0)
    scheduler.decide(60.0)
    nodes = {name: [*job.nodes] for name, job in scheduler._state.running.items()}
    scheduler.submit(GangJob("small", "any", (1,)), 7200.0, price=60.0)
    assert [*scheduler.decide(60.0).starts[0].nodes] == ["node0"]
    assert nodes == {"stays": [0], "moves": [1]}
    assert scheduler.defragment(1) is None  # node 0 has no room for three
    assert scheduler.defragment(0) is None  # who stays is there
    assert scheduler.defragment(gang=GangJob("pair", "any", (2,))) is None  # 59 s before small may move to node 1
    scheduler.decide(now=61.0)
    moves = scheduler.defragment(gang=GangJob("pair", "any", (2,), whole_nodes=False))
    assert moves is None  # node 0 would have one GPU and node 1 none


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "domain"),
        ({"domain": "rack 7"}, "domain"),
        ({"domain": "node9"}, "node"),
        ({"domain": 2.5}, "node"),
        ({"gang": "nobody"}, "job"),
        ({"gang": 3}, "gang"),
        ({"gang": GangJob("a", "any", (1,))}, "job.name"),
        ({"domain": "rack", "worth": -1.0}, "worth"),
        ({"domain": "rack", "seconds": 0.0}, "seconds"),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], field: str) -> None:
    """An error names the argument."""
    with pytest.raises(InstanceError) as error:
        halves().defragment(**arguments)  # type: ignore[arg-type]
    assert error.value.field == field


def cluster(rng: np.random.Generator) -> gangplan.Scheduler:
    """Return two racks of two nodes, and jobs of which some have ended, some stay, some want a node alone."""
    nodes, gpus = 2, int(rng.integers(2, 5))
    scheduler = gangplan.Scheduler(
        Fleet.regular(racks=2, nodes=nodes, gpus=gpus, cpu=4.0 * gpus), price=60.0, reserve=False
    )
    for i in range(12):
        wide, price = int(rng.integers(1, gpus + 2)), 60.0 if rng.random() < 0.95 else None
        job = GangJob(
            f"job{i}", "any", (wide,), Demand(1.0, cpu=float(rng.integers(1, 7))), whole_nodes=bool(rng.random() < 0.05)
        )
        try:
            scheduler.submit(job, 1e5, price=price, together=bool(rng.random() < 0.5), now=0.0)
        except InstanceError:  # it never fits
            continue
        scheduler.decide(60.0)
    for name in scheduler.waiting:
        scheduler.withdraw(name)
    scheduler.decide(now=1000.0)
    for name in scheduler.running:
        if rng.random() < 0.5:
            scheduler.finish(name)
    return scheduler


def feasible(scheduler: gangplan.Scheduler, leave: list[str], freed: set[int], gang: GangJob | None) -> bool:
    """Return whether those who leave, all at once, have places, beside a gang or off the nodes that are freed."""
    state = scheduler._state
    jobs = [state.placed(state.running[name].request, state.running[name].degree) for name in leave]
    free = state.placer.vacant.copy()
    there = {n: [x.request.job for x in state.running.values() if x.name not in leave and n in x.nodes]
             for n in range(free.shape[1])}  # fmt: skip
    for name in leave:
        nodes, used = state.placer.uses(name)
        free[:, nodes] += used
    come = [(x, freed if gang is None else set()) for x in jobs]
    come += [] if gang is None else [(gang, {*range(free.shape[1])} - freed)]

    def place(i: int) -> bool:
        if i == len(come):
            return True
        job, never = come[i]
        need, most = np.array(Kind.workers(job).need), state.placer.most_on(Kind.workers(job))
        for counts in product(*(range(int(0 if n in never else most[n]) + 1) for n in range(len(most)))):
            on = [n for n, count in enumerate(counts) if count]
            if sum(counts) != job.workers[0] or (free - need[:, None] * np.array(counts)).min() < 0:
                continue
            if any(job.whole_nodes or other.whole_nodes for n in on for other in there[n]):
                continue
            for n in on:
                free[:, n] -= need * counts[n]
                there[n].append(job)
            if place(i + 1):
                return True
            for n in on:
                free[:, n] += need * counts[n]
                there[n].pop()
        return False

    return place(0)


def test_enumeration() -> None:
    """On small clusters moves cost what the best of all sets of jobs does, but where two would have to swap.

    What is proposed is then done: the domain is free or has the gang, and every job runs on.
    """
    unproved, moved, seeds = 0, 0, some(range(300), 4)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        scheduler = cluster(rng)
        state, before = scheduler._state, scheduler.snapshot()
        gang, asked = None, rng.choice(["rack", "rack 1", "node0", "anywhere"])
        if asked == "anywhere" or rng.random() < 0.5:
            gang = GangJob("gang", "any", (int(rng.integers(1, 5)),), Demand(1.0, cpu=float(rng.integers(1, 5))))
        racks = state.fleet.topology.group[0]
        groups = [{*np.flatnonzero(racks == g).tolist()} for g in (0, 1)]
        groups = {"rack": groups, "rack 1": groups[1:], "node0": [{0}], "anywhere": [groups[0] | groups[1]]}[asked]
        try:
            moves = scheduler.defragment(None if asked == "anywhere" else asked, gang, seconds=30.0)
        except InstanceError:  # it never fits
            continue
        assert scheduler.snapshot() == before
        placed = None
        if gang is not None:
            scheduler.submit(gang, 100.0)
            placed = state.placed(state.waiting["gang"], gang.workers[0])
            scheduler.withdraw("gang")
        can = [x.name for x in state.running.values() if movable(x, state.now)]
        best = np.inf
        for leave in (list(s) for k in range(len(can) + 1) for s in combinations(can, k)):
            cost = 60.0 * sum(state.running[name].gpus for name in leave)
            stay = [x for x in state.running.values() if x.name not in leave]
            for freed in groups:
                blocked = gang is None and any(freed & {*x.nodes} for x in stay)
                if cost < best and not blocked and feasible(scheduler, leave, freed, placed):
                    best = cost
        if moves is None:
            unproved += np.isfinite(best)
            continue
        assert moves.bound <= best <= moves.cost, seed
        unproved += not moves.proved
        moved += bool(moves.moves)
        work = {x.name: x.left(state.now) for x in state.running.values()}
        running = {*scheduler.running}
        scheduler.apply(moves)
        assert {*scheduler.running} == running and not scheduler.waiting
        for x in moves.moves:
            assert state.running[x.job].left(state.now) == pytest.approx(work[x.job] + 60.0)
        for node, gpus in moves.seats.items():
            assert not {*gpus} & {*state.holders[state.node(node)]}, seed
        if placed is not None:
            assert state.placer.fits(placed)
    assert moved > len(seeds) // 10 and unproved <= len(seeds) // 25


def test_no_room_on_nodes_that_close() -> None:
    """Node 3 is closed: a gang of four needs a move, to node 0, 1 or 2; one that is held is asked about by name."""
    scheduler = halves()
    scheduler.drain("node3")
    moves = scheduler.defragment(gang=GangJob("gang", "any", (4,)))
    assert moves is not None and len(moves.moves) == 1 and not {"node3"} & {*moves.seats, *moves.moves[0].to}
    assert scheduler.apply(moves).starts
    scheduler.submit(GangJob("later", "any", (4,)), 100.0, begin=9000.0)
    told = scheduler.defragment(gang="later")
    assert told is not None and not told.moves and not {"node3"} & {*told.seats}


def test_no_moves_to_nodes_that_close() -> None:
    """Node 2 is to be free of a on four GPUs: b or c makes way, as node 3 closes before a would end.

    a has 6,600 s left and pays 60 s: at 7,260 s node 3 is still open to it, and a goes there alone.
    """
    for closes, count in ((7259.0, 2), (7260.0, 1)):
        scheduler = gangplan.Scheduler(Fleet.regular(racks=1, nodes=4, gpus=4), "heuristic", price=60.0)
        for name, gpus in (("a", 4), ("b", 2), ("pad", 2), ("c", 2), ("d", 2)):
            scheduler.submit(GangJob(name, "any", (gpus,)), 7200.0, now=0.0)
        scheduler.decide(60.0)
        scheduler.finish("pad", now=600.0)
        scheduler.finish("d")
        where = {name: [*scheduler._state.running[name].nodes] for name in "abc"}
        assert where == {"a": [2], "b": [0], "c": [1]}
        scheduler.drain("node3", at=closes)
        moves = scheduler.defragment("node2")
        assert moves is not None and moves.proved and len(moves.moves) == count
        assert [start.job for start in scheduler.apply(moves).starts][-1] == "a"


@pytest.mark.parametrize("price", [0.0, 1e-320, 60.0, 1e300])
def test_moves_that_cost_nothing_or_very_much(price: float) -> None:
    """Whatever a stop costs, the search by CP-SAT answers: here no moves make the room."""
    s = gangplan.Scheduler(Fleet.regular(racks=2, nodes=1, gpus=4), price=price)
    for name, workers in (("a", 3), ("pad", 2), ("b", 2)):
        s.submit(GangJob(name, "any", (workers,)), 7200.0, now=0.0)
    s.decide(60.0)
    s.finish("pad", now=600.0)
    assert s.defragment(domain="rack") is None and s.defragment(gang=GangJob("new", "any", (4,))) is None


@pytest.mark.parametrize("grace", [0.0, 600.0])
def test_moves_wait_for_the_longest_grace_of_all(grace: float) -> None:
    """A job without a grace goes to a node that closes before it would end only if no other makes it wait so long."""
    scheduler = gangplan.Scheduler(Fleet.regular(racks=1, nodes=3, gpus=4), price=60.0)
    for name, seconds, own in (("a", 2000.0, 0.0), ("b", 9000.0, grace)):
        scheduler.submit(GangJob(name, "any", (2,)), seconds, grace=own, now=0.0)
    for node in (1, 2):
        scheduler.submit(GangJob(f"stays {node}", "any", (2,)), 1e6, price=None, now=0.0)
        scheduler.adopt(f"stays {node}", {f"node{node}": 2})
    for name in ("a", "b"):
        scheduler.adopt(name, {"node0": 2})
    scheduler.drain("node1", at=2500.0, now=100.0)
    moves = scheduler.defragment("node0")
    assert (moves is None) == (grace > 0.0)
    assert moves is None or {move.job: [*move.to] for move in scheduler.apply(moves) and moves.moves} == {
        "a": ["node1"],
        "b": ["node2"],
    }


def test_room_that_is_claimed_is_nobody_elses_to_free() -> None:
    """A node on which nobody runs, and which a job claims for which another one stops, is not offered as free."""
    scheduler = gangplan.Scheduler(Fleet.regular(racks=1, nodes=2, gpus=4), price=0.0, grace=60.0)
    scheduler.submit(GangJob("low", "any", (4,)), 1000.0, now=0.0)
    assert [*scheduler.decide(60.0).starts[0].nodes] == ["node0"]
    scheduler.submit(GangJob("high", "any", (8,)), 100.0, now=10.0, priority=1)
    assert [told.job for told in scheduler.decide(60.0).stopping] == ["low"]
    assert scheduler.defragment("node1") is None and scheduler.defragment("rack") is None
    scheduler.stopped("low", now=20.0)
    scheduler.withdraw("high", now=20.0)
    assert scheduler.defragment("node1") is not None
