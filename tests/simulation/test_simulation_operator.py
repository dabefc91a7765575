"""What operators do is seen by the books: each can fail, for a scheduler with a fault of its kind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gangplan import Decision, Scheduler

from .test_simulation import caught

# ruff: noqa: D102


class Lends(Scheduler):
    """Lends what is not lent."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        self._state.accounts._keep = False
        return super().decide(*args, **options)


class Bursts(Scheduler):
    """Gives a queue more than the most that it may have."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        self._state.accounts.capped = lambda leaf, amounts: []  # type: ignore[method-assign]
        return super().decide(*args, **options)


class Snatches(Scheduler):
    """Gives away the GPUs of who has only been told to stop."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        decision = super().decide(*args, **options)
        for x in decision.stopping:
            self.stopped(x.job)
        return replace(decision.then(super().decide(60.0)), number=decision.number) if decision.stopping else decision


class Nags(Scheduler):
    """Tells a job to stop in each decision."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        return replace(super().decide(*args, **options), stopping=self.stopping)


class Overstays(Scheduler):
    """Does not say that a grace is over."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        told, decision = {x.job for x in self.stopping}, super().decide(*args, **options)
        return replace(decision, stops=tuple(x for x in decision.stops if x.job not in told))


class Breaks(Scheduler):
    """Does not start those for whom others have stopped before all others."""

    def decide(self, *args: Any, **options: Any) -> Decision:
        self._state.notices.claims.clear()
        return super().decide(*args, **options)


class Levels(Scheduler):
    """Takes the members of an array to be as fast on all types."""

    def submit_array(self, job: Any, count: int, seconds: Any = None, **options: Any) -> tuple[str, ...]:
        even = min(seconds.values(), key=str) if isinstance(seconds, dict) else seconds
        return super().submit_array(job, count, even, **options)


class Floods(Scheduler):
    """Lets all of an array run at a time."""

    def submit_array(self, *args: Any, most: int | None = None, **options: Any) -> tuple[str, ...]:
        return super().submit_array(*args, **options)


class Deaf(Scheduler):
    """Does not hear of new settings."""

    def configure(self, *, dry_run: bool = False, **options: Any) -> None:
        super().configure(dry_run=True, **options)


class Evicts(Scheduler):
    """Has all jobs lose their nodes when some go."""

    def resize(self, fleet: Any, **options: Any) -> tuple[str, ...]:
        for job in self.running:
            self._state.lose(job)
        return super().resize(fleet, **options)


class Ages(Scheduler):
    """Sets the clock back and leaves what has happened where it was."""

    def set_clock(self, now: float) -> None:
        self._state.now = min(now, self._state.now)


class Turns(Scheduler):
    """Takes no job that awaits nodes."""

    def submit(self, job: Any, seconds: Any = None, *, await_nodes: bool = False, **options: Any) -> None:
        super().submit(job, seconds, **options)


MUTANTS: list[tuple[type[Scheduler], set[str], int]] = [
    (Lends, {"lent"}, 32),
    (Bursts, {"limit"}, 3),
    (Snatches, {"twice"}, 11),
    (Nags, {"told", "stop"}, 17),
    (Overstays, {"grace"}, 11),
    (Breaks, {"claimed"}, 11),
    (Levels, {"seconds", "fastest", "place"}, 43),
    (Floods, {"lost"}, 4),
    (Deaf, {"stop", "due", "overtaken", "reserved", "limit", "seconds", "early", "told", "grace"}, 7),
    (Evicts, {"lost"}, 8),
    (Ages, {"stop", "seconds", "due", "overtaken", "reserved", "restored"}, 15),
    (Turns, {"admission"}, 4),
]
"""Each with the first seed of those that are looked at: it is the one that shows it, or not long before."""


@pytest.mark.parametrize(("mutant", "rules", "first"), MUTANTS, ids=[mutant.__name__ for mutant, _, _ in MUTANTS])
def test_faults_of_what_operators_do_are_noticed(mutant: type[Scheduler], rules: set[str], first: int) -> None:
    """Each kind of fault is noticed as what it is, and the scheduler itself has none in that scenario."""
    caught(mutant, rules, first)
