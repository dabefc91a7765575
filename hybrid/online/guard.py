"""The guard: whatever a tier does, it costs no more than its time, and no decision."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
STRIKES = 3
"""Faults after which a tier is left out for good."""


_KINDS = 256
"""Kinds of notes that are warned of: one may have a job's name in it."""


class Overrun(BaseException):
    """The time of a tier is up: no `Exception`, so that a policy that catches those does not catch it."""


class Guard:
    """Calls tiers, and notes what goes wrong.

    A pure function cannot be stopped from outside without a thread, so on the main thread an alarm is set (a tier that
    sleeps or loops in Python is stopped at once, compiled code when it comes back); elsewhere an overrun is seen when
    it is over, and the tier is not asked again.
    """

    def __init__(self) -> None:
        self.faults: dict[str, int] = {}
        self._warned: set[str] = set()
        self.notes: list[str] = []

    def out(self, tier: str) -> bool:
        """Return whether a tier is left out."""
        return self.faults.get(tier, 0) >= STRIKES

    def call(self, tier: str, budget: float, act: Callable[[], T]) -> T | None:
        """Return what `act` returns, `None` if it failed or took longer than `budget` seconds."""
        began = time.perf_counter()
        alarm = threading.current_thread() is threading.main_thread()
        try:
            found = _timed(act, budget) if alarm else act()
        except Overrun:
            self.fault(tier, f"was stopped after {budget * 1e3:.0f} ms")
            return None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever a policy raises, to end the program too, the decision is made
            self.fault(tier, f"raised {type(error).__name__}: {str(error)[:200]}")
            return None
        took = time.perf_counter() - began
        if took > budget:
            why = "and did not let itself be stopped" if alarm else "off the main thread, where it cannot be stopped"
            self.fault(tier, f"took {took * 1e3:.0f} ms {why}", STRIKES)
            return None
        return found

    def load(self, what: str, make: Callable[[], T]) -> T | None:
        """Return what `make` makes, `None` with a note if it cannot."""
        try:
            return make()
        except (Exception, SystemExit) as error:  # no torch, no weights, broken weights
            self.note(f"{what} is left out: {type(error).__name__}: {str(error)[:200]}")
            return None

    def fault(self, tier: str, words: str, strikes: int = 1) -> None:
        """Note that a tier failed."""
        self.faults[tier] = self.faults.get(tier, 0) + strikes
        words = f"{tier} {words}"
        if self.out(tier):
            words += "; it is asked no more"
        self.note(words)

    def note(self, words: str) -> None:
        """Note something for the decision, and warn once of each kind."""
        self.notes.append(words)
        kind = words.split(":", maxsplit=1)[0][:60]
        if kind not in self._warned and len(self._warned) < _KINDS:
            self._warned.add(kind)
            warnings.warn(f"gangplan.Scheduler: {words}", RuntimeWarning, stacklevel=3)

    def taken(self) -> tuple[str, ...]:
        """Return the notes since the last call."""
        notes, self.notes = tuple(self.notes), []
        return notes


def _timed(act: Callable[[], T], budget: float) -> T:
    """Call `act` under an alarm; one that was set before goes on afterwards."""
    if budget <= 0:
        raise Overrun

    def ring(number: int, frame: FrameType | None) -> Any:
        raise Overrun

    before = signal.signal(signal.SIGALRM, ring)
    rest, interval = signal.setitimer(signal.ITIMER_REAL, budget)
    began = time.perf_counter()
    try:
        try:
            return act()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:  # reached even if the alarm rings in the line above; it rings once
        signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)
        if rest:
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, rest - (time.perf_counter() - began)), interval)
