"""The simulation itself: it notices each kind of fault, cuts it small, and shares no code with what it checks."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gangplan import Decision, InstanceError, Scheduler
from gangplan.instances.placement import SpeedModel

from .check import Player, play_seed
from .shrink import fails, script, shrunk
from .wrong import Wrong

# ruff: noqa: D102
BOOKS = ("arrays", "events", "jobs", "notices", "operator", "rooms", "scenario", "shares", "world", "wrong")
"""Modules that share nothing with what they check."""
FEW = 80
"""Seeds within which a fault has to be noticed."""


class DoubleBooks(Scheduler):
    """Starts a job on GPUs that another holds."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        decision = super().decide(*args, **options)
        if len(decision.starts) < 2:
            return decision
        first, second, *others = decision.starts
        return replace(decision, starts=(replace(first, nodes=second.nodes), second, *others))


class Tears(Scheduler):
    """Starts a gang without its last GPU."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        decision = super().decide(*args, **options)
        fewer = [{n: gpus[i == 0 :] for i, (n, gpus) in enumerate(x.nodes.items())} for x in decision.starts]
        return replace(decision, starts=tuple(replace(x, nodes=n) for x, n in zip(decision.starts, fewer, strict=True)))


class Wanders(Scheduler):
    """Starts jobs on the first node, whatever it is."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        decision = super().decide(*args, **options)
        return replace(decision, starts=tuple(replace(x, nodes={"n0": x.nodes[min(x.nodes)]}) for x in decision.starts))


class Loses(Scheduler):
    """Forgets a job when another is done."""

    def finish(self, job: str, **options: Any) -> None:
        super().finish(job, **options)
        if self.waiting:
            super().withdraw(self.waiting[0])


class StopsIdle(Scheduler):
    """Says that a job stops which never ran."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        waits, decision = self.waiting, super().decide(*args, **options)
        stops = (replace(x, job=waits[0]) if waits else x for x in decision.stops)
        return replace(decision, stops=tuple(stops))


class Blames(Scheduler):
    """Names another cause of a stop."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        decision = super().decide(*args, **options)
        return replace(decision, stops=tuple(replace(x, other="nobody") for x in decision.stops))


class Starves(Scheduler):
    """Never holds who is due."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options | {"patience": 1e9, "reserve": False})


class Idles(Scheduler):
    """Starts nobody who comes alone."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        args = (1e-9,) if len(self.waiting) == 1 else args
        return replace(super().decide(*args, **options), more=False)


class Misremembers(Scheduler):
    """Restores jobs that run shorter than they did."""

    def restore(self, snapshot: Any) -> None:
        waiting = [row | {"seconds": [1.0 for _ in row["seconds"]]} for row in snapshot["waiting"]]
        super().restore({**snapshot, "waiting": waiting})


class Forgetful(Scheduler):
    """Restores without who is done."""

    def restore(self, snapshot: Any) -> None:
        super().restore({**snapshot, "finished": []})


class Whims(Scheduler):
    """Starts by the order of its own address, so to speak: every second one prefers another order."""

    made = 0

    def __init__(self, *args: Any, **options: Any) -> None:
        Whims.made += 1
        super().__init__(*args, **options | ({"order": 1.0} if Whims.made % 2 else {"order": 0.0}))


class Crashes(Scheduler):
    """Has an error of its own for a node that comes back."""

    def repair_node(self, node: Any, **options: Any) -> None:
        super().repair_node(node, **options)
        raise KeyError(node)


class Swallows(Scheduler):
    """Takes what is wrong without a word."""

    def finish(self, job: str, **options: Any) -> None:
        if job in self.running:
            super().finish(job, **options)


class Halfway(Scheduler):
    """Refuses a call and has done half of it."""

    def withdraw(self, job: str, **options: Any) -> None:
        try:
            super().withdraw(job, **options)
        except InstanceError:
            if self.waiting:
                super().withdraw(self.waiting[0])
            raise


class Hurries(Scheduler):
    """Takes what place there is."""

    def __init__(self, fleet: Any, policy: Any, **options: Any) -> None:
        super().__init__(fleet, "heuristic" if policy == "patient" else policy, **{"together": False} | options)


class Level(Scheduler):
    """Takes all places to be alike."""

    def __init__(self, fleet: Any, policy: Any, *, speeds: Any, **options: Any) -> None:
        super().__init__(fleet, policy, speeds=speeds if isinstance(speeds, SpeedModel) else None, **options)


class Early(Scheduler):
    """Lets jobs wait before their begin."""

    def submit(self, *args: Any, **options: Any) -> None:
        super().submit(*args, **{key: value for key, value in options.items() if key != "begin"})


class Careless(Scheduler):
    """Lets jobs wait whatever is to be done before."""

    def submit(self, *args: Any, **options: Any) -> None:
        super().submit(*args, **{key: value for key, value in options.items() if key != "after"})


class Open(Scheduler):
    """Closes no node."""

    def drain(self, *args: Any, **options: Any) -> None:
        super().drain(*args, **options)
        self._state.calendar.windows.clear()


class Stays(Scheduler):
    """Does not hear that a running job takes longer."""

    def change(self, job: str, *args: Any, **options: Any) -> None:
        options = {key: value for key, value in options.items() if key != "seconds" or job in self.waiting}
        super().change(job, *args, **options)


class Scatters(Scheduler):
    """Says that a gang keeps what it has not."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        decision = super().decide(*args, **options)
        return replace(decision, mends=tuple(replace(x, nodes={}) for x in decision.mends))


class Roams(Scheduler):
    """Does not listen where a job is to be."""

    def submit(self, job: Any, seconds: Any = None, *, within: str = "", topology: str = "", **options: Any) -> None:
        super().submit(job, seconds, **options)


class Mixes(Scheduler):
    """Takes it that gangs may be on several types."""

    def submit(self, job: Any, seconds: Any = None, **options: Any) -> None:
        super().submit(job, seconds, **options | {"mixed": True})


class Splits(Scheduler):
    """Does not keep groups of workers together."""

    def submit(self, job: Any, seconds: Any = None, *, group: int = 1, **options: Any) -> None:
        super().submit(job, seconds, **options)


class Trespasses(Scheduler):
    """Takes taints for labels that nobody asks for."""

    def submit(self, job: Any, seconds: Any = None, **options: Any) -> None:
        tolerant = replace(job, tolerates=("t", "u")) if isinstance(job.model, str) and job.model else job
        super().submit(tolerant, seconds, **options)


class Mistakes(Scheduler):
    """Takes the slowest type for the fastest."""

    def submit(self, job: Any, seconds: Any = None, **options: Any) -> None:
        if isinstance(seconds, dict):
            slow = sorted(seconds, key=lambda kind: str(seconds[kind]))
            seconds = dict(zip(slow, [seconds[kind] for kind in reversed(slow)], strict=True))
        super().submit(job, seconds, **options)


MUTANTS: list[tuple[type[Scheduler], set[str], int]] = [
    (DoubleBooks, {"twice", "place", "gang"}, 0),
    (Tears, {"gang"}, 0),
    (Wanders, {"place", "twice"}, 0),
    (Loses, {"lost"}, 0),
    (StopsIdle, {"stop"}, 0),
    (Blames, {"cause"}, 0),
    (Starves, {"starved", "overtaken", "due", "reserved"}, 5),
    (Idles, {"idle"}, 0),
    (Misremembers, {"restored"}, 0),
    (Forgetful, {"restored", "lost", "taken"}, 0),
    (Whims, {"equal", "restored"}, 0),
    (Crashes, {"error"}, 4),
    (Swallows, {"taken"}, 9),
    (Halfway, {"changed"}, 14),
    (Hurries, {"patience"}, 44),
    (Level, {"seconds"}, 0),
    (Early, {"lost", "restored", "idle", "spare"}, 3),
    (Careless, {"lost"}, 1),
    (Open, {"window", "drain", "restored"}, 1),
    (Stays, {"stop", "seconds", "restored", "reserved"}, 31),
    (Scatters, {"mend"}, 75),
    (Roams, {"within", "preferred"}, 25),
    (Mixes, {"within"}, 35),
    (Splits, {"group"}, 9),
    (Trespasses, {"place"}, 9),
    (Mistakes, {"seconds", "fastest"}, 5),
]
"""Each with the first seed of those that are looked at: it is the one that shows it, or not long before."""


@cache
def plain(seed: int, count: int) -> None:
    """See that the true scheduler has no fault in a scenario that several faulty ones are noticed in."""
    play_seed(seed, count)


def caught(mutant: type[Scheduler], rules: set[str], first: int = 0) -> Wrong:
    """Return what shows a fault of a scheduler in the first of some seeds, and see that the true one has none by then.

    The true one plays as many events, and then until all jobs are done.
    """
    for seed in range(first, first + FEW):
        try:
            play_seed(seed, 60, mutant)
        except Wrong as wrong:
            if wrong.rule in rules:
                plain(seed, min(60, len(wrong.events)))
                return wrong
    raise AssertionError(f"{mutant.__name__} was not noticed within {FEW} seeds")


@pytest.mark.parametrize(("mutant", "rules", "first"), MUTANTS, ids=[mutant.__name__ for mutant, *_ in MUTANTS])
def test_faults_are_noticed(mutant: type[Scheduler], rules: set[str], first: int) -> None:
    """Each kind of fault is noticed as what it is, and the scheduler itself has none in that scenario by then."""
    caught(mutant, rules, first)


def test_a_failing_scenario_becomes_a_short_script(tmp_path: Path) -> None:
    """It is cut to a few events that break the same rule, can be kept as JSON, and its script runs by itself."""
    wrong = caught(Tears, {"gang"})
    case, short = shrunk(wrong.cluster, wrong, 20.0, Tears)
    assert short.rule == "gang" and len(case[1]) <= 3 and len(case[0]["nodes"]) == 1
    again = fails(tuple(json.loads(json.dumps(case))), Tears)
    assert again is not None and again.words == short.words
    assert fails(case) is None
    (tmp_path / "case.py").write_text(script(case, short, Tears))
    done = subprocess.run([sys.executable, tmp_path / "case.py"], capture_output=True, text=True, check=True)
    assert "start  " in done.stdout


def test_equal_seeds_are_equal_scenarios() -> None:
    """A seed is all that chance has."""
    one, other = play_seed(3, 40), play_seed(3, 40)
    assert one.cluster == other.cluster and str(one.log) == str(other.log) and one.done == other.done > 40


def test_the_books_are_of_their_own() -> None:
    """The model imports nothing of gangplan, and the rest only what a user has: `gangplan` and its instances."""
    for path in Path(__file__).parent.glob("[a-z]*.py"):
        nodes = [x for x in ast.walk(ast.parse(path.read_text())) if isinstance(x, ast.ImportFrom) and x.level == 0]
        names = {x.module for x in nodes if str(x.module).startswith("gangplan")}
        known = {"gangplan", "gangplan.instances.placement"}
        known |= {
            "gangplan.scheduler.journal.read",
            "gangplan.scheduler.journal.replay",
        }  # logs are replayed
        assert names <= (set() if path.stem in BOOKS else known)
    assert Player.__module__.endswith("check")
