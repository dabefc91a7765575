"""Carry events out on a scheduler and in the books, and compare the two after each."""

from __future__ import annotations

import json
import random
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from gangplan import InstanceError, Scheduler
from gangplan.scheduler.journal.read import read_log
from gangplan.scheduler.journal.replay import replay

from .arguments import fleet_of, seconds_of, speeds_of, told, told_of
from .jobs import PATIENCE
from .operate import Operations
from .policies import CHOOSES, NAMES, STEERS, policy
from .scenario import FAR, Driver, Event, cluster_of
from .world import World
from .wrong import Wrong, hold

Make = Callable[..., Any]
"""Makes the scheduler under test: `gangplan.Scheduler`, or one with a fault that is to be noticed."""
METHODS = {"fail": "fail_node", "repair": "repair_node"}
AT_ONCE = 3e8
"""Seconds by which a clock may go on at once where it shows a date."""
LATE = 5.0
"""Seconds of the processor that a decision may take beyond its deadline: it is compiled and collected meanwhile."""


class Player(Operations):
    """Plays events to a scheduler, to those that must decide as it does, and to the books.

    Attributes:
        world: the books.
        log: each call as [scheduler's name, method, arguments, named ones, whether it was refused], for a script.
        done, decisions: events that were carried out, the others had become meaningless; decisions among them.
    """

    def __init__(self, cluster: dict[str, Any], make: Make = Scheduler) -> None:
        self.cluster, self.make, self.world = cluster, make, World(cluster)
        self.fleet, self.speeds = fleet_of(cluster), speeds_of(cluster)
        self.shape, self.configured = cluster, False
        self.log: list[list[Any]] = []
        self.done, self.decisions, self.promised, self.followed, self.when = 0, 0, "", True, 0.0
        self.all: dict[str, Any] = {}
        self.folder, self.logs = tempfile.TemporaryDirectory(), 0
        for name in ("s", "equal")[: 1 + cluster["double"]]:
            self.new(name)

    def new(self, name: str) -> None:
        """Make one more scheduler."""
        self.log.append([name, "new", (self.shape,), {}, False])
        options = self.cluster["options"] | {"sharing": self.cluster.get("sharing")}
        self.logs += name == "s"
        if name == "s" or self.cluster["policy"] == "gnn":  # whose guard forgets what it plays at a checkpoint
            log = self.path if name == "s" else self.path.with_suffix(f".{name}")
            options |= {"log": log, "checkpoint_every": self.cluster.get("checkpoint_every", 2000)}
        self.all[name] = self.make(self.fleet, policy(self.cluster["policy"]), speeds=self.speeds, **options)

    @property
    def path(self) -> Path:
        """The file of the present log."""
        return Path(self.folder.name) / f"{self.logs}.jsonl"

    def call(self, name: str, method: str, /, *args: Any, **options: Any) -> Any:
        """Call a scheduler, note it, and return its answer or its `InstanceError`."""
        self.log.append([name, method, args, options, False])
        try:
            args = tuple(told(x) for x in args)
            return getattr(self.all[name], method)(*args, **options)
        except InstanceError as error:
            self.log[-1][-1] = True
            return error
        except Exception as error:
            raise Wrong("error", f"{method} raises {type(error).__name__}: {error}") from error

    def each(self, method: str, /, *args: Any, right: bool = True, **options: Any) -> Any:
        """Call all schedulers; what they answer must be the same, and no refusal if the call is right."""
        answers = {name: self.call(name, method, *args, **options) for name in self.all}
        first = answers["s"]
        hold(not right or not isinstance(first, InstanceError), "refused", f"{method}{args}: {first}")
        for name, answer in answers.items():
            rule = "equal" if name == "equal" else "restored"
            hold(_same(first) == _same(answer), rule, f"{method}: {_same(first)}, but {_same(answer)}")
        return first

    def play(self, events: Iterable[Event]) -> list[Event]:
        """Carry events out; return those that meant something, or raise `Wrong`, which has them."""
        played: list[Event] = []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for event in events:
                    played.append(event)
                    if not self.event(*event):
                        played.pop()
                self.replayed()
        except Wrong as wrong:
            wrong.events, wrong.cluster = played, self.cluster
            raise
        return played

    def replayed(self) -> None:
        """See that the log alone gives the same state, with what was decided and by deciding again."""
        state, log = json.dumps(self.all["s"].snapshot()), read_log(self.path)
        for check in (False, True):
            try:
                again = json.dumps(replay(log, check=check).snapshot())
            except InstanceError as error:
                raise Wrong("replayed", f"check={check}: {error}") from None
            at = next((i for i, (a, b) in enumerate(zip(again, state, strict=False)) if a != b), len(state))
            words = f"check={check}: {again[max(0, at - 60) : at + 60]} where {state[max(0, at - 60) : at + 60]} was"
            hold(again == state, "replayed", words)

    def event(self, what: str, now: float, *rest: Any) -> bool:
        """Carry an event out; return whether it means anything as things are."""
        world, s = self.world, self.all["s"]
        if what != "odd":
            now = max(now, world.now)
        act = getattr(self, f"on_{what}", None)
        if not (act(now, *rest) if act else self.on_change(now, what, *rest)):
            return False
        self.done += 1
        if what in ("submit", "finish", "withdraw", "decide"):
            world.calm &= self.followed or (what == "decide" and now == self.when)
            self.followed, self.when = what == "decide", now
        s = self.all["s"]
        for name, seen, kept in (
            ("now", s.now, world.now), ("idle", s.idle, world.idle),
            ("waiting", sorted(s.waiting), sorted([*world.waiting, *world.held])),
            ("running", sorted(s.running), sorted(world.running)),
        ):  # fmt: skip
            hold(seen == kept, "lost", f"{name} is {seen}, should be {kept} after {what} {rest}")
        until = world.notices.until
        hold({x.job: x.until for x in s.stopping} == until, "told", f"{s.stopping} are told to stop, should be {until}")
        coming = [x for x in until.values() if x > world.now]
        hold(not coming or (s.wake or np.inf) <= min(coming), "wake", f"{s.wake} and a grace is over at {coming}")
        return True

    def on_change(self, now: float, what: str, name: str, *rest: Any) -> bool:
        """Have a job end or be forgotten, or a node fail or come back."""
        if not self.world.may(what, name):
            return False
        self.each(METHODS.get(what, what), name, *rest, now=now)
        self.world.now = now
        getattr(self.world, what)(name, *rest)
        return True

    def on_fail(self, now: float, name: str, mend: bool = False) -> bool:
        """Have a node fail, its gangs to be mended or not."""
        if not self.world.may("fail", name):
            return False
        answer = self.each("fail_node", name, now=now, **({"replace": True} if mend else {}))
        self.world.now = now
        expected = self.world.fail(name, mend)
        hold(sorted(answer) == sorted(expected), "lost", f"{answer} ran on {name}, not {expected}")
        return True

    def on_submit(self, now: float, spec: dict[str, Any]) -> bool:
        """Let a job wait, or see that it is refused because it never fits."""
        world, name = self.world, spec["name"]
        if world.known(name):
            return False
        answer = self.each("submit", spec, seconds_of(spec), right=False, now=now, **told_of(spec))
        expected = world.admits(spec) and all(map(world.known, spec.get("after", ())))
        refused = isinstance(answer, InstanceError)
        hold(not (refused and expected), "admission", f"{name} is refused, it fits: {answer}; {spec}")
        hold(refused or expected, "admission", f"{name} is taken and never fits: {spec}")
        if not refused:
            world.now = now
            world.submit(spec)
        return True

    def on_snap(self, now: float) -> bool:
        """Go on with a restored scheduler, beside the one that was not interrupted if time does not matter."""
        saved = json.loads(json.dumps(self.call("s", "snapshot")))
        forgets = self.cluster["policy"] == "gnn"  # what it knows of jobs that are done
        if forgets and self.cluster["double"]:
            return False
        name = "s" if forgets or self.cluster["rushed"] else "r"
        self.new(name)
        answer = self.call(name, "restore", saved, **({"settings": "keep"} if self.configured else {}))
        hold(answer is None, "restored", f"restore: {answer}")
        again = json.loads(json.dumps(self.all[name].snapshot()))
        differ = {k: (saved[k], again.get(k)) for k in saved if again.get(k) != saved[k]}
        hold(not differ, "restored", f"a restored scheduler's snapshot differs: {differ}")
        return True

    def on_explain(self, now: float, name: str) -> bool:
        """Ask why a job waits; what is said of the next decision must come true, and nothing may change."""
        if name not in self.world.waiting and name not in self.world.held:
            return False
        before = self.all["s"].snapshot()
        answer = self.call("s", "explain", name)
        hold(not isinstance(answer, InstanceError) and name in str(answer), "explain", f"of {name}: {answer}")
        hold(self.all["s"].snapshot() == before, "changed", f"explain({name!r}) changed the state")
        self.promised = (
            name if self.cluster["policy"] not in (*NAMES, "gnn") and answer.earliest == self.world.now else ""
        )
        return not self.promised or self.event("decide", self.world.now, FAR)

    def on_decide(self, now: float, deadline: float) -> bool:
        """Decide, and enter it in the books."""
        world, name = self.world, self.cluster["policy"]
        began = time.process_time()
        decision = self.each("decide", deadline, now=now)
        took = time.process_time() - began
        hold(took < deadline * len(self.all) + LATE, "late", f"a decision of {deadline} s took {took} s")
        world.now, self.decisions = now, self.decisions + 1
        world.tick()
        hold(decision.now == now, "lost", f"the decision is of {decision.now}, should be {now}")
        promised, self.promised = self.promised, ""
        self.expected()
        world.decide(decision, name in CHOOSES or name == "gnn")
        hold(not promised or promised in world.running, "explain", f"{promised} was to start with the next decision")
        if decision.more or deadline != FAR:
            world.calm = False
        else:
            world.settled(name in STEERS)
        return True

    def expected(self) -> None:
        """Enter what is said of how long those still run whose seconds were not told: history may say otherwise now."""
        s = self.all["s"]
        for name, job in self.world.running.items():
            if job.seconds is None and name in s.running and (runs := s.explain(name)).since == job.since:
                job.lasts = runs.now + runs.left - job.since

    def on_drained(self, now: float) -> bool:
        """See that everybody is served once all nodes are up and all jobs let run."""
        world = self.world
        for name in [name for name, node in world.nodes.items() if not node.up]:
            self.event("repair", world.now, name)
        for name in [*world.windows]:
            self.event("open", world.now, name)
        for _ in range(60 + 20 * (len(world.waiting) + len(world.running) + len(world.held))):
            self.event("decide", world.now, FAR)
            for name in [name for name, job in world.held.items() if not world.gone.isdisjoint(job.after)]:
                self.event("withdraw", world.now, name)
            for name in [name for name, job in world.waiting.items() if not world.possible(job)]:
                self.event("withdraw", world.now, name)
            if world.running:
                end, name = min((job.end(world.now), name) for name, job in world.running.items())
                self.event("finish", end, name)
            elif world.held and not world.waiting:
                then = [job.begin for job in world.held.values() if job.begin > world.now]
                self.event("decide", min(then, default=world.now), FAR)
            elif not world.waiting:
                return True
            elif (then := world.now + PATIENCE * world.longest) < float("inf"):  # a policy may make it wait until due
                self.event("decide", min(then + 1.0, world.now + AT_ONCE), FAR)
            else:
                return True
        hold(False, "drained", f"{[*world.waiting]} wait and {[*world.running]} run, round and round")
        return False

    def on_close(self, now: float, name: str, nodes: list[str], begin: float, end: float, jobs: list[str]) -> bool:
        """Close nodes: by a drain of one, or by a reservation for some jobs."""
        world, drain, begin = self.world, name.startswith("drain-"), max(now, begin)
        nodes = [node for node in nodes if node in world.nodes]
        if not nodes or end <= begin or (not drain and name in self.all["s"]._state.calendar.windows):
            return False
        until = None if end == np.inf else end
        if drain:
            self.each("drain", nodes[0], begin, until, now=now)
        else:
            self.each("reserve", nodes, begin, until, name=name, jobs=jobs, now=now)
        world.now = now
        world.enclose(name, nodes, begin, end, jobs)
        return True

    def on_open(self, now: float, name: str) -> bool:
        """Forget a window."""
        if name not in self.world.windows:
            return False
        drain = name.startswith("drain-")
        self.each("undrain" if drain else "cancel", name.removeprefix("drain-"), now=now)
        self.world.now = now
        self.world.reopen(name)
        return True

    def on_alter(self, now: float, name: str, what: dict[str, Any]) -> bool:
        """Say something else of a job."""
        world = self.world
        if not world.may("withdraw", name):
            return False
        if name in world.running:
            what = {key: value for key, value in what.items() if key in ("seconds", "price")}
        if not all(x in world.over for x in what.get("after", ())):  # those that are over make no circle
            return False
        self.each("change", name, now=now, **what)
        world.now = now
        world.alter(name, what)
        return True

    def on_odd(self, now: float, what: str, argument: Any) -> bool:
        """Make a call that has to be refused, and see that it is and changes nothing."""
        if not self.refused(now, what, argument):
            return False
        method, args, options = METHODS.get(what, what), (argument,), {"now": now}
        before = self.all["s"].snapshot()
        if what == "report":
            args = argument, 1.0
        elif what == "submit":
            odd = isinstance(argument["seconds"], str | list)
            args = argument, argument["seconds"] if odd else seconds_of(argument)
            options |= told_of(argument)
        elif what == "restore":
            options = {}
        elif what == "snap":
            keys = sorted(before)
            key = keys[int(argument * len(keys))]
            if key in ("learned", "weights", "later", "windows", "fleet", "torn", "freed", "stopping", "claims"):
                return False
            method, args, options = "restore", ({k: v for k, v in before.items() if k != key},), {}
        answer = self.each(method, *args, right=False, **options)
        hold(isinstance(answer, InstanceError), "taken", f"{method}{args} at {now} is taken: {answer!r}")
        hold(self.all["s"].snapshot() == before, "changed", f"{method}{args} at {now} changed the state")
        return True

    def refused(self, now: float, what: str, argument: Any) -> bool:
        """Return whether a call is surely wrong as things are."""
        world = self.world
        if what in ("restore", "snap") or not world.now <= now < np.inf:
            return True
        if what == "decide":
            return argument != FAR
        if what != "submit":
            return not world.may(what, argument)
        name, seconds = argument["name"], argument["seconds"]
        usual = isinstance(name, str) and name and argument["worker"][0] != 0.5 and argument["model"] != 3
        usual = usual and (argument["price"] or 0.0) >= 0
        usual = usual and not world.known(name) and all(map(world.known, argument.get("after", ())))
        if usual and seconds is not None:
            numbers = seconds if isinstance(seconds, list) else [seconds]
            usual = all(isinstance(x, int | float) and 0 <= x < np.inf for x in numbers)
            usual = usual and (not isinstance(seconds, list) or len(seconds) == len(argument["workers"]))
        return not usual or not world.admits(argument)


def _same(answer: Any) -> Any:
    """Return what two schedulers that were told the same must have in common of an answer."""
    if hasattr(answer, "starts"):
        stops = [(x.job, dict(x.nodes), x.other) for x in (*answer.stops, *answer.stopping)]
        starts = [(x.job, x.degree, dict(x.nodes), x.tier, x.seconds) for x in answer.starts]
        return {"number": answer.number, "stops": stops, "starts": starts}
    return str(answer) if isinstance(answer, InstanceError) else answer


def play_seed(seed: int, count: int | None = None, make: Make = Scheduler) -> Player:
    """Play the scenario of a seed; a `Wrong` has `cluster` and `events`."""
    rng = random.Random(seed)
    cluster = cluster_of(rng)
    large = len(cluster["nodes"]) > 100
    count = count or rng.choice((40, 80, 120, 300) if not large else (40,))
    player = Player(cluster, make)
    player.play(Driver(rng, player.world, count))
    return player
