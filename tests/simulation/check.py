"""Carry events out on a scheduler and in the books, and compare the two after each."""

from __future__ import annotations

import json
import random
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from gangplan import InstanceError, Level, Scheduler, TreeTopology
from gangplan.instances.placement import Demand, Fleet, GangJob, SpeedModel

from .policies import CHOOSES, FAILS, POLICIES, STEERS
from .scenario import FAR, Driver, Event, cluster_of
from .world import World, Wrong, hold

Make = Callable[..., Any]
"""Makes the scheduler under test: `gangplan.Scheduler`, or one with a fault that is to be noticed."""
METHODS = {"fail": "fail_node", "repair": "repair_node"}
LATE = 0.5
"""Seconds of the processor that a decision may take beyond its deadline: it is compiled and collected meanwhile."""
STILL = "the refused call changed the state"


def fleet_of(cluster: dict[str, Any]) -> Fleet:
    """Return the cluster as the scheduler takes it."""
    nodes, labels = cluster["nodes"], tuple(cluster["labels"])
    racks = np.arange(len(nodes)) % cluster["racks"]
    labelled = np.array([[x in node["labels"] for node in nodes] for x in labels], dtype=bool)
    return Fleet(
        names=tuple(node["name"] for node in nodes),
        gpu_types=tuple(cluster["types"]),
        gpu_type=np.array([cluster["types"].index(node["type"]) for node in nodes], dtype=np.int32),
        gpus=np.array([node["gpus"] for node in nodes], dtype=np.int32),
        cpu=np.array([node["cpu"] for node in nodes]),
        memory=np.array([node["memory"] for node in nodes]),
        link=np.full(len(nodes), 3e11),
        topology=TreeTopology((Level("rack", cluster["nic"]), Level("cluster", 1e11)), np.stack([racks, 0 * racks])),
        **({"labels": labels, "labelled": labelled} if labels else {}),
        usable=np.array([node["usable"] for node in nodes]),
    )


def speeds_of(cluster: dict[str, Any]) -> SpeedModel | None:
    """Return which models run where, `None` if all do."""
    if (runs := cluster["runs"]) is None:
        return None
    compute = np.array([[1.0 if t in runs[m] else np.inf for m in runs] for t in cluster["types"]])
    n = len(runs)
    return SpeedModel(
        tuple(runs), tuple(cluster["types"]), compute, np.ones(n), np.ones(n), np.zeros((n, n)), np.zeros((n, n))
    )


def job_of(spec: dict[str, Any]) -> GangJob:
    """Return a job as the scheduler takes it."""
    rest = {key: tuple(value) if isinstance(value, list) else value for key, value in spec.items()}
    for key in ("seconds", "together", "price"):
        del rest[key]
    return GangJob(**rest | {"worker": Demand(*spec["worker"])})


class Player:
    """Plays events to a scheduler, to those that must decide as it does, and to the books.

    Attributes:
        world: the books.
        log: each call as (scheduler's name, method, arguments), for a script.
        done: events that were carried out; the others had become meaningless.
    """

    def __init__(self, cluster: dict[str, Any], make: Make = Scheduler) -> None:
        self.cluster, self.make, self.world = cluster, make, World(cluster)
        self.fleet, self.speeds = fleet_of(cluster), speeds_of(cluster)
        self.log: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = []
        self.done, self.decisions, self.promised = 0, 0, ""
        self.kind = POLICIES.get(cluster["policy"], type(None))
        self.all: dict[str, Any] = {}
        self.new("s")
        if cluster["double"]:
            self.new("equal")

    def new(self, name: str) -> Any:
        """Make one more scheduler."""
        policy = self.cluster["policy"]
        self.log.append((name, "new", (), {}))
        policy = POLICIES[policy]() if policy in POLICIES else policy
        self.all[name] = self.make(self.fleet, policy, speeds=self.speeds, **self.cluster["options"])
        return self.all[name]

    def call(self, name: str, method: str, *args: Any, **options: Any) -> Any:
        """Call a scheduler and note it."""
        self.log.append((name, method, args, options))
        args = tuple(job_of(x) if isinstance(x, dict) and method == "submit" else x for x in args)
        return getattr(self.all[name], method)(*args, **options)

    def each(self, method: str, *args: Any, **options: Any) -> Any:
        """Call all schedulers; what they return must be the same."""
        answers: dict[str, Any] = {}
        for name in self.all:
            try:
                answers[name] = self.call(name, method, *args, **options)
            except InstanceError as error:
                answers[name] = error
            except Exception as error:
                raise Wrong("error", f"{method} raises {type(error).__name__}: {error}") from error
        first = answers.pop("s")
        for name, answer in answers.items():
            rule = "equal" if name == "equal" else "restored"
            hold(_same(first) == _same(answer), rule, f"{method}: {_same(first)}, but {_same(answer)}")
        return first

    def play(self, events: Iterable[Event]) -> list[Event]:
        """Carry events out; return those that could be, or raise `Wrong`, which has them as `events`."""
        played: list[Event] = []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for event in events:
                    played.append(event)
                    if self.event(*event):
                        self.done += 1
                    else:
                        played.pop()
        except Wrong as wrong:
            wrong.events = played  # type: ignore[attr-defined]
            raise
        return played

    def event(self, what: str, now: float, *rest: Any) -> bool:
        """Carry an event out; return whether it means anything as things are."""
        world = self.world
        if what == "odd":
            return self.odd(now, *rest)
        now = max(now, world.now)
        if not getattr(self, f"on_{what}")(now, *rest):
            return False
        s = self.all["s"]
        for name, seen, kept in (
            ("now", s.now, world.now), ("idle", s.idle, world.idle),
            ("waiting", sorted(s.waiting), sorted(world.waiting)), ("running", sorted(s.running), sorted(world.running)),
        ):  # fmt: skip
            hold(seen == kept, "lost", f"{name} is {seen}, should be {kept} after {what} {rest}")
        return True

    def told(self, answer: Any, what: str) -> Any:
        """Return the answer to a call that is right."""
        hold(not isinstance(answer, InstanceError), "refused", f"{what}: {answer}")
        return answer

    def on_submit(self, now: float, spec: dict[str, Any]) -> bool:
        """Let a job wait, or see that it is refused because it never fits."""
        world, name = self.world, spec["name"]
        if name in world.waiting or name in world.running or name in world.over:
            return False
        options = {key: spec[key] for key in ("together", "price") if spec[key] is not None}
        answer = self.each("submit", spec, spec["seconds"], now=now, **options)
        expected = world.admits(spec)
        refused = isinstance(answer, InstanceError)
        hold(not (refused and expected), "admission", f"{name} is refused, it fits: {answer}; {spec}")
        hold(refused or expected is not False, "admission", f"{name} is taken and never fits: {spec}")
        if not refused:
            world.now = now
            world.submit(spec)
        return True

    def on_finish(self, now: float, name: str) -> bool:
        """Have a job be done."""
        if name in self.world.running:
            self.told(self.each("finish", name, now=now), "finish")
            self.world.now = now
            self.world.finish(name)
            return True
        return False

    def on_withdraw(self, now: float, name: str) -> bool:
        """Forget a waiting job."""
        if name in self.world.waiting:
            self.told(self.each("withdraw", name, now=now), "withdraw")
            self.world.now = now
            self.world.withdraw(name)
            return True
        return False

    def on_fail(self, now: float, node: str) -> bool:
        """Have a node fail; who ran there is told."""
        if node in self.world.nodes and self.world.nodes[node].up:
            lost = self.told(self.each("fail_node", node, now=now), "fail_node")
            self.world.now = now
            ran = self.world.fail(node)
            hold(sorted(lost) == ran, "lost", f"fail_node({node!r}) names {lost}, there ran {ran}")
            return True
        return False

    def on_repair(self, now: float, node: str) -> bool:
        """Have a node come back."""
        if node in self.world.nodes and not self.world.nodes[node].up:
            self.told(self.each("repair_node", node, now=now), "repair_node")
            self.world.now = now
            self.world.repair(node)
            return True
        return False

    def on_report(self, now: float, name: str, speed: float) -> bool:
        """Have a job say how fast it is."""
        if name in self.world.running:
            self.told(self.each("report", name, speed, now=now), "report")
            self.world.now = now
            return True
        return False

    def on_snap(self, now: float) -> bool:
        """Go on with a restored scheduler, beside the one that was not interrupted."""
        saved = json.loads(json.dumps(self.call("s", "snapshot")))
        if self.cluster["rushed"]:
            self.new("s")
            name = "s"
        else:
            name = f"r{len(self.log)}"
            self.new(name)
            for old in [x for x in self.all if x.startswith("r") and x != name]:
                del self.all[old]
        self.log.append((name, "restore", ("s",), {}))
        try:
            self.all[name].restore(saved)
        except Exception as error:
            raise Wrong("restored", f"restore raises {type(error).__name__}: {error}") from error
        again = json.loads(json.dumps(self.all[name].snapshot()))
        hold(again == saved, "restored", f"a restored scheduler's snapshot differs: {_difference(saved, again)}")
        return True

    def on_explain(self, now: float, name: str) -> bool:
        """Ask why a job waits; what is said of the next decision must come true, and nothing may change."""
        if name not in self.world.waiting:
            return False
        before = self.call("s", "snapshot")
        try:
            answer = self.call("s", "explain", name)
            words = str(answer)
        except Exception as error:
            raise Wrong("error", f"explain raises {type(error).__name__}: {error}") from error
        hold(name in words, "explain", f"{words!r} does not name {name}")
        hold(self.all["s"].snapshot() == before, "changed", f"explain({name!r}) changed the state")
        starts = self.kind is type(None) and answer.earliest == self.world.now
        self.promised = name if starts else ""
        return not starts or self.event("decide", now, FAR)

    def on_decide(self, now: float, deadline: float) -> bool:
        """Decide, and enter it in the books."""
        world, kind = self.world, self.kind
        began = time.process_time()
        decision = self.told(self.each("decide", deadline, now=now), "decide")
        took = time.process_time() - began
        self.decisions += 1
        hold(took < deadline * len(self.all) + LATE, "late", f"a decision of {deadline} s took {took} s")
        world.now = now
        hold(decision.now == now, "lost", f"the decision is of {decision.now}, should be {now}")
        promised, self.promised = self.promised, ""
        world.decide(decision, kind in CHOOSES)
        hold(not promised or promised in world.running, "explain", f"{promised} was to start with the next decision")
        if not decision.more and deadline == FAR:
            world.settled(kind in STEERS or kind in FAILS and kind.__name__ == "Sleeps")
        return True

    def on_drained(self, now: float) -> bool:
        """See that everybody was served once all nodes were up and all jobs let run."""
        world = self.world
        late = [x for x in world.waiting if self.kind not in STEERS]
        up = all(node.up for node in world.nodes.values())
        hold(not (up and late) or world.running, "drained", f"{late} were never served")
        return True

    def odd(self, now: float, what: str, argument: Any) -> bool:
        """Make a call that has to be refused, and see that it is and changes nothing."""
        if not self.refused(now, what, argument):
            return False
        method, args, options = METHODS.get(what, what), (argument,), {"now": now}
        before = self.call("s", "snapshot")
        if what == "report":
            args = argument, 1.0
        elif what == "submit":
            args = argument, argument["seconds"]
            options |= {} if argument["price"] is None else {"price": argument["price"]}
        elif what == "restore":
            options = {}
        elif what == "snap":
            keys = sorted(before)
            key = keys[int(argument * len(keys))]
            if key == "learned":
                return False
            method, args, options = "restore", ({k: v for k, v in before.items() if k != key},), {}
        self.last = method, args, options
        answer = self.each(method, *args, **options)
        hold(isinstance(answer, InstanceError), "taken", f"{method}{args} at {now} is taken: {answer!r}")
        hold(self.all["s"].snapshot() == before, "changed", f"{method}{args} at {now}: {STILL}")
        return True

    def refused(self, now: float, what: str, argument: Any) -> bool:
        """Return whether a call is surely wrong as things are."""
        world, known = self.world, argument if isinstance(argument, str) else ""
        if what in ("restore", "snap") or not world.now <= now < np.inf:
            return True
        if what in ("finish", "report"):
            return known not in world.running
        if what == "withdraw":
            return known not in world.waiting
        if what in ("fail", "repair"):
            return known not in world.nodes or world.nodes[known].up == (what == "repair")
        if what == "decide":
            return argument != FAR
        name, seconds = argument["name"], argument["seconds"]
        usual = isinstance(name, str) and name and argument["worker"][0] >= 1 and argument["model"] != 3
        usual = usual and (argument["price"] or 0.0) >= 0
        usual = usual and name not in {**world.waiting, **world.running, **world.over}
        if usual and seconds is not None:
            numbers = seconds if isinstance(seconds, list) else [seconds]
            usual = all(isinstance(x, int | float) and 0 <= x < np.inf for x in numbers)
            usual = usual and (not isinstance(seconds, list) or len(seconds) == len(argument["workers"]))
        return not usual or world.admits(argument) is False


def _same(answer: Any) -> Any:
    """Return what two schedulers that were told the same must have in common of an answer."""
    if hasattr(answer, "starts"):
        stops = [(x.job, dict(x.nodes), x.other) for x in answer.stops]
        starts = [(x.job, x.degree, dict(x.nodes), x.tier, x.seconds) for x in answer.starts]
        return {"number": answer.number, "stops": stops, "starts": starts}
    return str(answer) if isinstance(answer, InstanceError) else answer


def _difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    return "; ".join(f"{k}: {one.get(k)} is {other.get(k)}" for k in {**one, **other} if one.get(k) != other.get(k))


def play_seed(seed: int, count: int | None = None, make: Make = Scheduler) -> Player:
    """Play the scenario of a seed; a `Wrong` has `cluster` and `events`."""
    rng = random.Random(seed)
    cluster = cluster_of(rng)
    large = len(cluster["nodes"]) > 100
    count = count or rng.choice((40, 80, 120, 300) if not large else (40,))
    player = Player(cluster, make)
    try:
        player.play(Driver(rng, player.world, count))
    except Wrong as wrong:
        wrong.cluster = cluster  # type: ignore[attr-defined]
        raise
    return player
