"""The books in small cases that they once took for faults, and beside each one that is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gangplan import Decision, Scheduler

from .scenario import Event
from .shrink import PLAIN, fails

# ruff: noqa: D102
NODE = {"type": "A", "cpu": 96.0, "memory": 1e12, "labels": [], "taints": [], "usable": True}
CLUSTER = {
    "types": ["A"], "labels": [], "taints": [], "nic": 25e9, "racks": 1, "runs": None, "near": None,
    "policy": "heuristic", "rushed": False, "double": False,
}  # fmt: skip


class Envies(Scheduler):
    """Takes it that queue a is guaranteed nothing."""

    def __init__(self, *args: Any, sharing: Any, **options: Any) -> None:
        super().__init__(*args, sharing={**sharing, "queues": {"a": {"share": 0.0}}}, **options)


class Grabs(Scheduler):
    """Takes it that queue a is guaranteed all."""

    def __init__(self, *args: Any, sharing: Any, **options: Any) -> None:
        super().__init__(*args, sharing={**sharing, "queues": {"a": {"share": 1.0}, "b": {"share": 0.0}}}, **options)


class Blind(Scheduler):
    """Takes it that a job is as fast on all types as on the best."""

    def submit(self, job: Any, seconds: Any = None, **terms: Any) -> None:
        super().submit(job, dict.fromkeys(seconds, min(seconds.values())), **terms)


class Overtakes(Scheduler):
    """Takes it that nobody is ever due."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options | {"patience": 1e9, "max_wait": None, "reserve": False})


class Hurries(Scheduler):
    """Takes it that everybody is due at once."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options | {"patience": 1e-9})


class Blames(Scheduler):
    """Has jobs told to stop for one that runs on."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        decision = super().decide(*args, **options)
        return replace(decision, stopping=tuple(replace(x, other=x.other and "z") for x in decision.stopping))


class Floods(Scheduler):
    """Lets a job of an array wait once its terms change, however many do."""

    def change(self, job: str, *args: Any, **options: Any) -> None:
        self._state.later.arrays.clear()
        super().change(job, *args, **options)


def wait(now: float, name: str, workers: list[int], seconds: Any, **terms: Any) -> Event:
    """Return the event that a job is submitted."""
    return ["submit", now, {**PLAIN, "name": name, "workers": workers, "seconds": seconds, **terms}]


def over_by_more_workers(workers: list[int], other: int) -> list[Event]:
    """Return how a queue is above its share by one that starts with more than its fewest workers."""
    more = wait(10.0, "more", workers, [100.0, 30.0][: len(workers)], queue="a", priority=1)
    start = [wait(0.0, "one", [8], 1000.0, queue="a"), ["decide", 0.0, 60.0]]
    return [*start, more, wait(10.0, "other", [other], 500.0), ["decide", 10.0, 60.0]]


def first_at_each_start(workers: int) -> list[Event]:
    """Return how the first that is due borrows once another of its queue has started beside it, or in its way."""
    jobs = [wait(0.0, "first", [workers], 10.0, queue="a"), wait(0.0, "third", [2], 1000.0, queue="a")]
    second = wait(0.0, "second", [1], 20.0, queue="b", whole_nodes=True)
    start = [wait(0.0, "runs", [14], 500.0), ["decide", 0.0, 60.0]]
    return [*start, *jobs, second, ["decide", 150.0, 60.0]]


def kept_for_another(seconds: float | None) -> list[Event]:
    """Return how one that needs less waits beside one of its queue to which what is free is not lent."""
    start = [wait(0.0, "runs", [6], 1e6), ["decide", 0.0, 60.0]]
    jobs = [wait(0.0, "more", [2], seconds, queue="b"), wait(0.0, "less", [1], seconds, queue="b")]
    return [*start, *jobs, wait(0.0, "own", [1], 1e6, queue="a"), ["decide", 4e5, 60.0]]


GAIN_THEN_RECLAIM = [  # "large" stops for "small", so that "own" is within the share of a, and "another" has b borrow
    wait(0.0, "large", [6], 1e4, queue="a"), wait(0.0, "other", [4], 1e4, queue="b"), ["decide", 0.0, 60.0],
    wait(100.0, "small", [1], 10.0, queue="a"), wait(100.0, "own", [4], 1e3, queue="a", within="node"),
    wait(100.0, "another", [2], 1e4, queue="b"), ["decide", 100.0, 60.0],
]  # fmt: skip
TYPED: list[Event] = [wait(0.0, "j", [1], 10.0, on={"A": 4.0, "B": 1.0}), ["decide", 1.0, 60.0]]
NODES_CLOSE = [
    wait(0.0, "high", [4], 1000.0, priority=1), ["decide", 0.0, 60.0], wait(1.0, "low", [4], 900.0),
    wait(1.0, "z", [4], 800.0, priority=1), ["decide", 1.0, 60.0], ["close", 9.0, "drain-n0", ["n0"], 9.0, 1e4, []],
    ["decide", 9.0, 60.0],
]  # fmt: skip
ARRAY = [
    ["array", 0.0, {**PLAIN, "name": "a", "workers": [1], "seconds": 100.0}, 2, 1], ["decide", 0.0, 60.0],
    ["alter", 10.0, "a[1]", {"begin": 10.0}], ["decide", 10.0, 60.0], ["finish", 100.0, "a[0]"],
    ["decide", 100.0, 60.0],
]  # fmt: skip
NODES_TO_COME = [wait(0.0, "large", [16], 10.0, await_nodes=True), ["decide", 1e6, 60.0]]
LATE = [
    wait(0.0, "one", [4], 100.0), ["decide", 0.0, 60.0], wait(1.0, "large", [7, 8], 10.0), ["decide", 1.0, 60.0],
    wait(50.0, "two", [4], 100.0), ["decide", 50.0, 60.0], ["finish", 100.0, "one"], ["decide", 100.0, 60.0],
    ["finish", 110.0, "large"], ["decide", 110.0, 60.0], ["decide", 120.0, 60.0],
]  # fmt: skip


def queues(share: float) -> dict[str, Any]:
    """Return that queue a has so much and b the rest."""
    return {"queues": {"a": {"share": share}, "b": {"share": 1.0 - share}}}


ONE, OTHER = over_by_more_workers([1, 4], 5), over_by_more_workers([1], 8)
BESIDE, BEFORE = first_at_each_start(14), first_at_each_start(15)


@pytest.mark.parametrize(
    ("gpus", "sharing", "options", "right", "fault", "shown", "rule"),
    [
        ([16], queues(0.3), {"price": 0.0}, ONE, Envies, OTHER, "reclaim"),
        ([16], queues(0.9375), {"patience": 0.1}, BESIDE, Overtakes, BEFORE, "overtaken"),
        ([4] * 3, {"least_run": 0.0}, {"price": 0.0, "grace": 5.0}, NODES_CLOSE, Blames, NODES_CLOSE, "cause"),
        (
            [3, 3, 2, 4],
            {"queues": {"a": {"share": 0.42}, "b": {"share": 0.4}}},
            {"price": 0.0},
            GAIN_THEN_RECLAIM,
            Grabs,
            GAIN_THEN_RECLAIM,
            "reclaim",
        ),
        (
            [1, ("B", 1)],
            None,
            {},
            [["close", 0.0, "drain-n1", ["n1"], 0.5, 1e9, []], *TYPED],
            Blind,
            TYPED,
            "fastest",
        ),
        (
            [10],
            {"queues": {"a": {"share": 0.25, "lends": 0.0}, "b": {"share": 0.5}}},
            {},
            kept_for_another(None),
            Hurries,
            kept_for_another(1e6),
            "spare",
        ),
        ([8], None, {"patience": 1.0}, NODES_TO_COME, Overtakes, LATE, "starved"),
        ([2], None, {}, ARRAY, Floods, ARRAY, "lost"),
    ],
)
def test_the_books_tell_right_from_wrong(
    gpus: list[Any], sharing: Any, options: dict[str, Any], right: list[Event], fault: Any, shown: Any, rule: str
) -> None:
    """What is as the page says passes, and with a scheduler that has a fault of this kind the rule is named."""
    kinds = [x if isinstance(x, tuple) else ("A", x) for x in gpus]
    nodes = [NODE | {"name": f"n{i}", "gpus": count, "type": kind} for i, (kind, count) in enumerate(kinds)]
    types = sorted({kind for kind, _ in kinds})
    cluster = CLUSTER | {"nodes": nodes, "types": types, "sharing": sharing, "options": options}
    assert [fails((cluster, events)) for events in (right, shown)] == [None, None]
    wrong = fails((cluster, shown), fault)
    assert wrong is not None and wrong.rule == rule
