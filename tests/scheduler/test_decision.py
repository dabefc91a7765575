"""Decisions: one that its deadline cut is gone on with, and all are carried out as one."""

from __future__ import annotations

from gangplan.scheduler.decision import Decision, Start, Stop, whole


def start(job: str, *gpus: int) -> Start:
    """Return a start."""
    return Start(job, 1, {"node0": gpus}, 60.0, 60.0, "heuristic")


def test_parts_become_one() -> None:
    """What starts and stops in the parts is one decision; who started and stopped again did neither."""
    stop = Stop("old", {"node0": (0,)}, "late", 9.0, 1.0)
    parts = [
        Decision(1, 0.0, (start("a", 0), start("b", 1)), "heuristic", ("note",), 0.5, True),
        Decision(2, 0.0, (start("c", 1),), "stops", (), 0.25, True, (stop, Stop("b", {}, "c", 1.0, 1.0))),
        Decision(3, 0.0, (), "heuristic", (), 0.25, True),
        Decision(4, 0.0, (start("never", 2),), "heuristic"),
    ]
    made = whole(lambda: parts.pop(0))
    assert [x.job for x in made.starts] == ["a", "c"] and made.stops == (stop,)
    assert (made.number, made.seconds, made.more, made.notes) == (3, 1.0, True, ("note",))
    assert len(parts) == 1  # nothing came of the third, so that it is not asked again
