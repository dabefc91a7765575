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


class Stints(Scheduler):
    """Takes it that nobody may hold more than two GPUs."""

    def __init__(self, *args: Any, sharing: Any, **options: Any) -> None:
        super().__init__(*args, sharing={**sharing, "limits": {"*": {"gpus": 2}}}, **options)


class Spares(Scheduler):
    """Has nobody stopped for another queue."""

    def __init__(self, *args: Any, sharing: Any, **options: Any) -> None:
        super().__init__(*args, sharing={**sharing, "preempt": False}, **options)


class Releases(Scheduler):
    """Takes it that whoever is told to stop holds four GPUs less for a limit."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        for holds in self._state.accounts._users.values():
            holds[0] -= 4 * len(self.stopping)
        return super().decide(*args, **options)


class Forgets(Scheduler):
    """Forgets for whom others stop."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        self._state.notices.claims.clear()
        return super().decide(*args, **options)


class Hastens(Scheduler):
    """Takes it that nobody has a grace where nodes close."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        self._state.delay = lambda _: 0.0  # type: ignore[method-assign]
        return super().decide(*args, **options)


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


class Strands(Scheduler):
    """Has a job that moves wait for ever if its place is not free at once."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        decision = super().decide(*args, **options)
        for x in decision.stops:
            if x.cause == "move" and x.job in self.waiting:
                self.change(x.job, begin=1e9)
        return decision


class Scatters(Scheduler):
    """Mends gangs worker by worker."""

    def fail_node(self, *args: Any, **options: Any) -> tuple[str, ...]:
        lost = super().fail_node(*args, **options)
        state = self._state
        state.waiting |= {name: replace(state.waiting[name], together=False) for name in lost}
        state._placed.clear()
        return lost


class Sleeps(Scheduler):
    """Lets nobody wait whose time has come."""

    def submit(self, *args: Any, **terms: Any) -> None:
        super().submit(*args, **terms | {"begin": 1e9 if "begin" in terms else 0.0})


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
TOLD = [
    wait(0.0, "a", [4], 1e4, user="u"), wait(0.0, "b", [2], 1e4, priority=2), ["decide", 0.0, 60.0],
    wait(100.0, "x", [4], 1e4, priority=1), ["decide", 100.0, 60.0], wait(101.0, "z", [2], 1.0, user="u"),
    ["decide", 101.0, 60.0],
]  # fmt: skip


def closes(at: float) -> list[Event]:
    """Return how a job is told to stop within 5 s for one of 10 s, and when the node closes."""
    start = [wait(0.0, "a", [8], 1e4), ["decide", 0.0, 60.0], ["close", 0.0, "drain-n0", ["n0"], at, 1e9, []]]
    return [*start, wait(100.0, "x", [8], 10.0, priority=1), ["decide", 100.0, 60.0]]


def owed_until(at: float) -> list[Event]:
    """Return how a job of 10 s is owed room where all that runs is of another queue, and when the node closes."""
    runs = [wait(0.0, f"b{i}", [1], 1e4, queue="b") for i in range(4)]
    shuts = ["close", 0.0, "drain-n0", ["n0"], at, 1e9, []]
    return [*runs, ["decide", 0.0, 60.0], shuts, wait(100.0, "own", [1], 10.0, queue="a"), ["decide", 100.0, 60.0]]


OWN = [  # four GPUs of b are not lent to "first", which has room beside them only if n1 is up
    ["fail", 0.0, "n1"], wait(0.0, "first", [6], 10.0, queue="a"), wait(0.0, "own", [4], 500.0, queue="b"),
    ["decide", 150.0, 60.0],
]  # fmt: skip
NOT_OWN = [
    wait(0.0, "own", [4], 1e4, queue="b"), wait(0.0, "runs", [8], 500.0), ["decide", 0.0, 60.0],
    wait(0.0, "first", [12], 10.0, queue="a", together=False), wait(0.0, "third", [4], 1e4), ["decide", 150.0, 60.0],
]  # fmt: skip
CLAIM = [*closes(200.0), wait(105.0, "y", [8], 10.0, priority=2), ["decide", 105.0, 60.0]]
NODES_TO_COME = [wait(0.0, "large", [16], 10.0, await_nodes=True), ["decide", 1e6, 60.0]]
LATE = [
    wait(0.0, "one", [4], 100.0), ["decide", 0.0, 60.0], wait(1.0, "large", [7, 8], 10.0), ["decide", 1.0, 60.0],
    wait(50.0, "two", [4], 100.0), ["decide", 50.0, 60.0], ["finish", 100.0, "one"], ["decide", 100.0, 60.0],
    ["finish", 110.0, "large"], ["decide", 110.0, 60.0], ["decide", 120.0, 60.0],
]  # fmt: skip

MOVES = [  # "b0" moves for "whole" to where "c1" is told to stop
    *(x for i, name in enumerate(("b0", "c0", "b1", "c1")) for x in (
        wait(float(i), name, [3 if name[0] == "c" else 1], 9000.0, queue=name[0], grace=5.0 * (name[0] == "c")),
        ["decide", float(i), 60.0],
    )),
    wait(20.0, "whole", [4], 5000.0, queue="a"), ["decide", 20.0, 60.0], ["decide", 25.0, 60.0],
]  # fmt: skip
HISTORY, DELAYS = ([  # "old" is expected to end at 5951 s when it starts, and at 6436 s by the second decision
    wait(0.0, "old", [2], None), ["decide", 0.0, 60.0], wait(900.0, "first", [4], 10.0),
    wait(900.0, "third", [1], seconds), ["decide", 1000.0, 60.0],
] for seconds in (5200.0, 1e6))  # fmt: skip
AFTER_A_LATER_ONE = [
    wait(0.0, "one", [1], 10.0, begin=100.0), wait(0.0, "two", [1], 10.0, after=["one"]), ["drained", 0.0],
]  # fmt: skip


def spends(seconds: float) -> list[Event]:
    """Return how a gang is due that its queue's guarantee covers at 100 s, while one of its queue runs so long."""
    start = [wait(0.0, "runs", [8], 1e7), *(wait(0.0, name, [4], 100.0, queue="b") for name in ("one", "two"))]
    rest = [wait(0.0, "gang", [8], 100.0, queue="b"), wait(0.0, "more", [4], seconds, queue="b")]
    return [*start, ["decide", 0.0, 60.0], *rest, ["finish", 50.0, "one"], ["decide", 50.0, 60.0]]


def beside_a_limit(seconds: float) -> list[Event]:
    """Return how a limit keeps the first that is due, and one that is not due runs so long beside the second."""
    start = [wait(0.0, "one", [2], 1000.0, user="u"), ["decide", 0.0, 60.0]]
    rest = [wait(0.0, "first", [4], 10.0, user="u"), wait(0.0, "second", [8], 10.0), wait(0.0, "third", [2], seconds)]
    return [*start, *rest, ["decide", 150.0, 60.0]]


def mended(name: str, down: list[str], workers: int, later: list[int]) -> list[Event]:
    """Return how a gang that starts while nodes are down loses one, when they are up and other jobs have come."""
    gang = [wait(0.0, "gang", [workers], 1000.0), ["decide", 0.0, 60.0]]
    others = [wait(1.0, f"other{i}", [count], 1000.0) for i, count in enumerate(later)]
    events = [*(["fail", 0.0, x] for x in down), *gang, *(["repair", 1.0, x] for x in down), *others]
    return [*events, ["decide", 1.0, 60.0], ["fail", 2.0, name, True], ["decide", 2.0, 60.0]]


def queues(share: float) -> dict[str, Any]:
    """Return that queue a has so much and b the rest."""
    return {"queues": {"a": {"share": share}, "b": {"share": 1.0 - share}}}


def more_than_a_limit(user: str) -> list[Event]:
    """Return how two workers do not fit on a node, and three nodes have room for three, which are too many for u."""
    start = [wait(0.0, "one", [2], 1e4, user="u"), ["decide", 0.0, 60.0]]
    return [*start, wait(10.0, "more", [2, 3], [100.0, 70.0], user=user), ["decide", 10.0, 60.0]]


ONE, OTHER = over_by_more_workers([1, 4], 5), over_by_more_workers([1], 8)
SMALLER, SCATTERED = mended("n0", ["n2", "n3", "n4"], 2, []), mended("n3", ["n2"], 4, [2])
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
        (
            [4, 4],
            {"queues": {"a": {"share": 0.5}, "b": {"share": 0.25}, "c": {"share": 0.25}}},
            {"price": 10.0, "order": 0.0},
            MOVES,
            Strands,
            MOVES,
            "claimed",
        ),
        ([1, 1, 2, 2, 2], None, {}, SMALLER, Scatters, SCATTERED, "gang"),
        ([2, 2], None, {"patience": 0.1}, HISTORY, Overtakes, DELAYS, "overtaken"),
        ([1], None, {}, AFTER_A_LATER_ONE, Sleeps, AFTER_A_LATER_ONE, "idle"),
        (
            [2, 1, 1, 1],
            {"limits": {"*": {"gpus": 4}}},
            {},
            more_than_a_limit("u"),
            Stints,
            more_than_a_limit("v"),
            "spare",
        ),
        ([4, 4], {"limits": {"u": {"gpus": 4}}}, {"price": 0.0, "grace": 5.0}, TOLD, Releases, TOLD, "limit"),
        ([8], None, {"price": 0.0, "grace": 5.0}, [*closes(200.0), ["decide", 195.0, 60.0]], Forgets, CLAIM, "claimed"),
        (
            [8, 8],
            {"queues": {"a": {"share": 0.75}, "b": {"share": 0.25, "lends": 0.0}}},
            {"patience": 0.1},
            OWN,
            Overtakes,
            NOT_OWN,
            "overtaken",
        ),
        ([4] * 4, {"queues": {"b": {"share": 0.5}}}, {"patience": 0.1}, spends(40.0), Overtakes, spends(1e4), "spent"),
        (
            [4, 4],
            {"limits": {"u": {"gpus": 4}}},
            {"patience": 0.1},
            beside_a_limit(100.0),
            Overtakes,
            beside_a_limit(1e5),
            "overtaken",
        ),
        ([4], queues(0.5), {"price": 0.0}, owed_until(105.0), Spares, owed_until(115.0), "owed"),
        ([8], None, {"price": 0.0, "grace": 5.0}, CLAIM, Hastens, [*closes(112.0), ["decide", 105.0, 60.0]], "claimed"),
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


def test_who_is_back_counts() -> None:
    """A job of queue a that stops for a gain and starts elsewhere still holds what lets queue b reclaim."""
    at = [("n0", 4, ["x", "y"]), *((f"n{i}", 4, []) for i in (2, 3, 4)), ("n5", 4, ["x", "y"]), ("n6", 2, [])]
    nodes = [NODE | {"name": x, "gpus": gpus, "labels": labels} for x, gpus, labels in (*at, ("n7", 4, ["x", "y"]))]
    tree = {"a": {"share": 0.3}, "b": {"share": 0.1}, "a.x": {"share": 0.15, "weight": 2.0}, "a.y": {"share": 0.15}}
    cluster = CLUSTER | {
        "nodes": nodes, "labels": ["x", "y"], "near": {"links": (0.0, 1.0, 1.0), "m": 4.0},
        "sharing": {"least_run": 0.0, "queues": tree, "most_run": 1000.0}, "options": {"price": 60.0},
    }  # fmt: skip
    runs = [
        wait(0.0, "gone", [2], 311.154, queue="a.x", requires=["y"]),
        wait(0.0, "one", [1], 500.0, queue="a.x", requires=["x", "y"]), wait(0.0, "two", [2], 523.196, queue="a.x"),
        wait(0.0, "b", [5], 500.0, queue="b"), wait(0.0, "moves", [3], 603.033, queue="a.y"),
        wait(0.0, "more", [3], 445.817, queue="a.x"), ["decide", 0.0, 60.0],
    ]  # fmt: skip
    rest = [
        wait(42.0, "neighbour", [4], 500.0, queue="a.y"),
        wait(42.0, "reclaims", [3, 4, 27], 500.0, queue="b"),
        wait(192.0, "whole", [4, 13, 15], [250.0, 1000.0, 500.0], queue="a.y"),
        ["finish", 351.6, "gone"], ["decide", 489.64, 60.0],
    ]  # fmt: skip
    assert fails((cluster, [*runs, *rest])) is None
