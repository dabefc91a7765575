"""Moves carried out, refused and replayed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import gangplan
from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, GangJob
from gangplan.scheduler.moving.migration import Moves, in_order


def proposal() -> tuple[gangplan.Scheduler, Moves]:
    """Return two nodes with a job of two GPUs each, and the move that frees node 1."""
    scheduler = gangplan.Scheduler(
        Fleet.regular(racks=1, nodes=2, gpus=4), price=60.0, sharing={"limits": {"ann": {"jobs": 1}}}
    )
    for name in ("a", "pad", "b"):
        scheduler.submit(GangJob(name, "any", (2,)), 7200.0, now=0.0)
    scheduler.decide(60.0)
    scheduler.finish("pad", now=600.0)
    moves = scheduler.defragment("node1")
    assert moves is not None and [move.job for move in moves.moves] == ["b"]
    return scheduler, moves


def test_a_move_is_a_stop_that_goes_on_elsewhere() -> None:
    """The job stops with 6,600 s left, starts at once on node 0 and lasts its price longer; a snapshot has that."""
    scheduler, moves = proposal()
    decision = scheduler.apply(moves, now=700.0)
    (stop,), (start,) = decision.stops, decision.starts
    assert (stop.job, stop.other, stop.left, stop.price) == ("b", "node1", 6500.0, 60.0)
    assert (start.job, start.seconds, {*start.nodes}, decision.tier) == ("b", 6560.0, {"node0"}, "moves")
    assert start.nodes == moves.moves[0].to and decision.number == 2
    assert str(scheduler.explain(decision)).startswith("decision 2, by moves")
    again, _ = proposal()
    again.restore(scheduler.snapshot())
    assert again.snapshot() == scheduler.snapshot()
    assert again.defragment("node0") == scheduler.defragment("node0")


def test_a_proposal_that_is_too_late_is_refused() -> None:
    """Who has ended, has moved or has lost its place is named, and nothing has changed then."""
    scheduler, moves = proposal()
    scheduler.submit(GangJob("c", "any", (1,)), 100.0)
    assert [*scheduler.decide(60.0).starts[0].nodes] == ["node0"]
    before = scheduler.snapshot()
    with pytest.raises(InstanceError, match="a place is taken by now"):
        scheduler.apply(moves, now=800.0)
    assert scheduler.snapshot() == before
    scheduler.finish("c")
    done = scheduler.apply(moves)
    with pytest.raises(InstanceError, match="'b' may not move from there any more"):
        scheduler.apply(moves)
    assert done.starts[0].nodes == moves.moves[0].to
    scheduler.finish("b")
    with pytest.raises(InstanceError, match="'b' does not run"):
        scheduler.apply(moves)


def test_nobody_takes_room_before_who_is_due() -> None:
    """A job of eight GPUs that is due waits for both nodes: moves are refused, unless they are for it."""
    scheduler, moves = proposal()
    scheduler.submit(GangJob("due", "any", (8,)), 1.0)
    with pytest.raises(InstanceError, match="'due' waits and is due"):
        scheduler.apply(moves, now=700.0)
    assert scheduler.now == 600.0
    assert scheduler.apply(replace(moves, gang="due"), now=700.0).starts


def drain(scheduler: gangplan.Scheduler) -> None:
    """Close node 0 before b would end there."""
    scheduler.drain("node0", at=2000.0)


def limit(scheduler: gangplan.Scheduler) -> None:
    """Have a and b be of a user who may run one job."""
    for name in "ab":
        scheduler.change(name, user="ann")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (drain, "a node closes before 'b' would end: ask for a new proposal"),
        (limit, "'b' holds more than its user or queue may"),
        (None, "None is no Moves: nothing is proposed"),
    ],
)
def test_windows_and_limits_refuse_moves_whole(change: Callable[[gangplan.Scheduler], None] | None, words: str) -> None:
    """Whoever could not start in the new place is named; nobody has stopped, and no such move is proposed anew."""
    scheduler, moves = proposal()
    if change is not None:
        change(scheduler)
    before = scheduler.snapshot()
    with pytest.raises(InstanceError, match=words):
        scheduler.apply(moves if change else None, now=700.0)  # type: ignore[arg-type]
    assert scheduler.snapshot() == before
    assert change is None or scheduler.defragment("node1") is None


def test_replay() -> None:
    """Jobs that swap have no order, one that follows another has: first who makes way, then who comes."""
    scheduler, _ = proposal()
    state = scheduler._state
    a, b = (state.running[name].nodes for name in "ab")
    assert in_order(state, {"a": b, "b": a}) is None
    ordered = in_order(state, {"a": b, "b": {0: (2, 3)}})
    assert ordered is not None and ordered[0] == ["b", "a"]
    assert ordered[1] == [{2: "b", 3: "b"}, dict.fromkeys(b[1], "a")]
    assert in_order(state, {"b": {0: (1, 2)}}) is None  # one of these is a's


def test_words() -> None:
    """A bound below the cost is said, and more than one move is plural."""
    _, moves = proposal()
    assert str(moves).split("\n") == [
        "1 move, 0.0333 GPU-hours; no set costs less; frees node1",
        "  b: node1 -> node0",
    ]
    more = replace(moves, moves=moves.moves * 3, cost=4320.0, bound=3600.0, domain="rack 2")
    assert str(more).split("\n")[0] == "3 moves, 1.2 GPU-hours; no set costs less than 1 GPU-hours; frees rack 2"
    assert more.as_dict()["moves"][0]["job"] == "b"
