"""Policies that are asked before the heuristic: the user's own, and how to ask them safely."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from operator import index
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from ..queueing.queue import in_order
from ..queueing.request import Request
from ..state import SchedulerState
from ..stopping.running_jobs import Nodes, RunningJob

if TYPE_CHECKING:
    from ..starting.starts import StartRound

T = TypeVar("T")
Proposal = tuple[str, int, Nodes | None]
"""A job, how many workers, and its GPUs by number of the node; where it goes is left to others if that is `None`."""
AHEAD = 64
"""Of the jobs that wait, so many are shown to a policy at a time, the first by the order of the heuristic."""
Allowed = dict[str, frozenset[int]]
"""Jobs that a policy makes wait, with the numbers of workers with which it does not."""
_MOST = 100_000
"""Proposals that are looked at: more than any cluster starts at a time."""
STRIKES = 3
"""Faults after which a policy is left out for good."""
_WARNED = 256
"""Kinds of notes that are warned of: one may have a job's name in it."""


class View:
    """What a policy sees, to be read and not to be changed.

    Attributes:
        now: seconds of the user's clock.
        fleet: the nodes, m of them.
        waiting: the first jobs that wait, in the order of the heuristic, of those that were not shown already.
        running: the jobs that run, by name; a copy, made when it is asked for.
        free: GPUs of each node that nobody holds, 0 where it is down, int64 (m,); a copy, likewise.
        up: which nodes are up, (m,).
        options: each waiting job that is shown with each number of workers it may have.
    """

    def __init__(self, state: SchedulerState, seen: Container[str] = ()) -> None:
        self.now, self.fleet, self._state = state.now, state.fleet, state
        new = (name for name in in_order(state.queue) if name not in seen)
        self.waiting: tuple[Request, ...] = tuple(state.waiting[name] for name in islice(new, AHEAD))

    @property
    def running(self) -> Mapping[str, RunningJob]:  # noqa: D102, of the class
        jobs = self._state.running.items()
        return {name: replace(job, nodes=MappingProxyType(job.nodes)) for name, job in jobs}

    @property
    def free(self) -> np.ndarray:  # noqa: D102
        return self._state.placer.free.copy()

    @property
    def up(self) -> tuple[bool, ...]:  # noqa: D102
        return tuple(self._state.up)

    def slower(self, request: Request, degree: int, nodes: Nodes) -> float:
        """Return how many times its seconds a job takes with so many workers on these GPUs."""
        return self._state.slower(request, degree, nodes)

    @property
    def options(self) -> list[tuple[Request, int]]:  # noqa: D102
        return [(request, degree) for request in self.waiting for degree in request.job.workers]


@runtime_checkable
class Ranks(Protocol):
    """Says who comes first."""

    def rank(self, view: View) -> Iterable[float]:
        """Return a number for each of ``view.options``, the least is first, infinite if it is not to start now.

        Whoever fits starts, in that order, a job with a number of workers that is ranked infinite only once it is due.
        The heuristic's order decides about who is not shown. A tuple of numbers (n,).
        """
        ...


@runtime_checkable
class Proposes(Protocol):
    """Says who starts."""

    def propose(self, view: View) -> Iterable[Proposal]:
        """Return who starts, in order, each verified by itself; others in ``view.waiting`` wait until they are due."""
        ...


def _sound(proposal: Any) -> Proposal:
    """Return a proposal that has the types it should have; what it says is for the verifier."""
    if not isinstance(proposal, tuple | list) or len(proposal) != 3:
        raise TypeError(f"{proposal!r:.80} is no proposal: (job, number of workers, nodes or None)")
    job, degree, nodes = proposal
    if not isinstance(job, str):
        raise TypeError(f"{job!r} is no name of a job")
    where = None if nodes is None else {index(node): tuple(map(index, gpus)) for node, gpus in nodes.items()}
    return job, index(degree), where


def proposals(policy: Any, view: View) -> tuple[list[Proposal], list[tuple[str, float]], Allowed]:
    """Return who is to start by a policy, its scores in words, and whom it makes wait.

    Raises:
        ValueError: if it does not give a number for each option, or gives none that is one.
    """
    if not isinstance(policy, Ranks):
        chosen = [_sound(proposal) for proposal in islice(policy.propose(view), _MOST)]
        named = {job for job, _, _ in chosen}
        waits: Allowed = {request.name: frozenset() for request in view.waiting if request.name not in named}
        return chosen, [(f"{job} on {degree}", float(i)) for i, (job, degree, _) in enumerate(chosen)], waits
    options = view.options
    scores = np.asarray(list(islice(policy.rank(view), len(options) + 1)), dtype=float)
    if scores.shape != (len(options),):
        raise ValueError(f"{scores.shape} scores where there are {len(options)} options")
    if np.isnan(scores).any():
        raise ValueError(f"score {int(np.argmax(np.isnan(scores)))} is NaN")
    order = [int(i) for i in np.argsort(scores, kind="stable") if scores[i] < np.inf]
    ranked: list[Proposal] = [(options[i][0].name, options[i][1], None) for i in order]
    told = [(f"{options[i][0].name} on {options[i][1]}", float(scores[i])) for i in order]
    names = {options[i][0].name for i in np.flatnonzero(scores == np.inf)}
    return ranked, told, {x: frozenset(degree for job, degree, _ in ranked if job == x) for x in names}


_AGAIN = 0.2
"""Seconds after which the alarm rings again: Python, or pytest, has told of an exception that was dropped by then."""


class Overrun(BaseException):
    """The time of a policy is up: no `Exception`, so that a policy that catches those does not catch it."""


class Watchdog:
    """Asks policies within a time, so that what they do costs no more than that and no decision; notes what goes wrong.

    A function cannot be stopped from outside without a thread, so on the main thread an alarm is set (a policy that
    sleeps or loops in Python is stopped at once, compiled code when it comes back); elsewhere an overrun is seen when
    it is over, and the policy is not asked again.
    """

    def __init__(self) -> None:
        self.faults: dict[str, int] = {}
        self.count = 0
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
            self._fault(tier, f"was stopped after {budget * 1e3:.0f} ms")
            return None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever a policy raises, to end the program too, the decision is made
            self._fault(tier, f"raised {type(error).__name__}: {str(error)[:200]}")
            return None
        took = time.perf_counter() - began
        if took > budget:
            why = "and did not let itself be stopped" if alarm else "off the main thread, where it cannot be stopped"
            self._fault(tier, f"took {took * 1e3:.0f} ms {why}", STRIKES)
            return None
        return found

    def _fault(self, tier: str, words: str, strikes: int = 1) -> None:
        self.faults[tier] = self.faults.get(tier, 0) + strikes
        self.note(f"{tier} {words}{'; it is asked no more' if self.out(tier) else ''}")

    def note(self, words: str) -> None:
        """Note something for the decision, and warn once of each kind."""
        self.notes.append(words)
        self.count += 1
        kind = words.split(":", maxsplit=1)[0][:60]
        if kind not in self._warned and len(self._warned) < _WARNED:
            self._warned.add(kind)
            warnings.warn(f"gangplan.Scheduler: {words}", RuntimeWarning, stacklevel=3)

    def taken(self) -> tuple[str, ...]:
        """Return the notes since the last call."""
        notes, self.notes = tuple(self.notes), []
        return notes


def _timed(act: Callable[[], T], budget: float) -> T:
    """Call `act` under an alarm; one that was set before goes on afterwards.

    The alarm rings again until it is heard: Python drops an exception that is raised in a callback of its garbage
    collector or in a `__del__`.
    """
    if budget <= 0:
        raise Overrun

    def ring(number: int, frame: FrameType | None) -> Any:
        if frame is None or frame.f_code is not _timed.__code__:  # what follows here is not interrupted
            raise Overrun

    before = signal.signal(signal.SIGALRM, ring)
    rest, interval = signal.setitimer(signal.ITIMER_REAL, budget, _AGAIN)
    began = time.perf_counter()
    try:
        return act()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)
        if rest:
            signal.setitimer(signal.ITIMER_REAL, max(1e-6, rest - (time.perf_counter() - began)), interval)


TIER = "policy"


def ask(policy: Any, state: SchedulerState, watchdog: Watchdog, starts: StartRound, budget: float) -> None:
    """Have a policy start jobs and make others wait.

    It is shown the first jobs; where it makes one of them wait, the next ones too, and so on. What it says of who waits
    counts for nothing if it fails or names something impossible.
    """
    stop, seen, shown = time.perf_counter() + budget, set[str](), False
    while not (watchdog.out(TIER) or starts.over()):
        view = View(state, seen)
        seen |= {request.name for request in view.waiting}
        left = stop - time.perf_counter()
        if not view.waiting or (shown and left <= 0):
            break
        answer = watchdog.call(TIER, left, lambda view=view: proposals(policy, view))  # type: ignore[misc]
        if answer is None or not _follow(answer[0], state, watchdog, starts):
            starts.allowed.clear()
            return
        starts.scores += answer[1]
        shown = shown or bool(answer[1])
        starts.allowed |= {name: degrees for name, degrees in answer[2].items() if name in state.waiting}
        if not answer[2]:
            break


def _follow(chosen: list[Proposal], state: SchedulerState, watchdog: Watchdog, starts: StartRound) -> bool:
    """Start whom a policy chose, where that is possible; return whether nothing was impossible."""
    before = watchdog.count
    for name, degree, nodes in chosen:
        if starts.over():
            break
        request = state.waiting.get(name)
        if request is not None and degree not in request.job.workers:
            words = f"{name}: {degree} is not one of its numbers of workers, {request.job.workers}"
            watchdog.note(f"{TIER}: {words}")
        elif request is not None:
            starts.one(name, (degree,), TIER, nodes)
        elif name not in starts.starts:
            watchdog.note(f"{TIER} would start {name!r}, which does not wait")
    return watchdog.count == before
