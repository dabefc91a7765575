"""Play the past once more with another scheduler: jobs come and take as long as they did, and it decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from gangplan.instances import InstanceError

from ..decision import Stop
from ..scheduler import Scheduler
from .course import FAILURE, WITHDRAWN, Course
from .history import History
from .replay import AMPLE, call
from .write import DECIDE


@dataclass(frozen=True, slots=True)
class Played:
    """Hold the course of a play, and how many decisions and events that could not happen there were."""

    course: Course
    decisions: int
    skipped: int


def play(history: History, scheduler: Scheduler, progress: Callable[[float], None] = lambda share: None) -> Played:
    """Have a scheduler, to which nothing has happened yet, decide for the jobs of the past.

    Jobs come, nodes fail and return when they did, and decisions follow these when they did; jobs end when their work
    is done, and a decision follows after as long as it did in the log. It ends when all jobs have, or when those that
    wait never start.
    """
    return _Play(history, scheduler).run(progress)


class _Play:
    """Keep what is to come in a heap of (seconds, kind, number, job or line)."""

    _ENDS, _GIVEN, _DECIDES = range(3)  # at one time, in this order

    def __init__(self, history: History, scheduler: Scheduler) -> None:
        self._past, self._scheduler, self._course = history, scheduler, Course(scheduler)
        self._course.unit = history.course.unit  # in which the work of the past is told
        self._heap: list[tuple[float, int, int, Any]] = []
        self._number = self._decisions = self._skipped = 0
        self._since: dict[str, float] = {}
        self._last: dict[str, int] = {}
        self._asked = set[float]()  # when decisions are to come
        for row in history.given:
            self._push(row["now"], self._GIVEN, row)
        if history.state is not None:
            self._restore(history.state)

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Begin with the state of the past, under the scheduler's own arguments."""
        self._scheduler.restore(state, settings="mine")
        self._course.follow(self._scheduler)
        for name in self._scheduler.running:
            self._ends_at(name)

    def _push(self, time: float, kind: int, what: Any) -> None:
        self._number += 1
        heappush(self._heap, (time, kind, self._number, what))

    def run(self, progress: Callable[[float], None]) -> Played:
        """Play it all."""
        past, done = self._past, 0
        while self._heap or self._wakes():
            time, kind, number, what = heappop(self._heap)
            if kind == self._DECIDES:
                self._asked.discard(time)
                self._decide(time)
            elif kind == self._ENDS:
                self._end(time, number, what)
            else:
                self._tell(time, what)
                done += 1
                if done % 64 == 0:
                    progress(done / len(past.given))
        self._course.close()
        return Played(self._course, self._decisions, self._skipped)

    def _end(self, time: float, number: int, name: str) -> None:
        """Have a job end, unless it was stopped since it was known when it would."""
        job, lag = self._scheduler._state.running.get(name), self._past.jobs[name].lag
        if job is None or self._last.get(name) != number:
            return
        self._scheduler.finish(name, now=time)
        self._course.note((name,), finished=name)
        self._ask(time + (self._past.lag if lag is None else lag))

    def _ask(self, time: float) -> None:
        """Ask for a decision, once at a time."""
        if time not in self._asked:
            self._asked.add(time)
            self._push(time, self._DECIDES, None)

    def _tell(self, time: float, row: Mapping[str, Any]) -> None:
        """Tell the scheduler what came from outside."""
        event = row["event"]
        if event == DECIDE:
            return self._ask(time)
        try:
            answer = call(self._scheduler, row, time)
        except InstanceError:
            self._skipped += 1
            return
        self._changed(None, getattr(answer, "stops", ()), WITHDRAWN if event == "withdraw" else FAILURE)
        self._course.turned()

    def _decide(self, time: float) -> None:
        more = True
        while more:
            decision = self._scheduler.decide(AMPLE, now=time)
            self._decisions, more = self._decisions + 1, decision.more
            names = [*(stop.job for stop in decision.stops), *(start.job for start in decision.starts)]
            self._changed(names, decision.stops)
            for told in decision.stopping:
                self._ask(told.until)

    def _changed(self, names: list[str] | None, stops: Iterable[Stop] = (), cause: str = FAILURE) -> None:
        """Note who runs and who does not any more, and when they end."""
        self._course.note(names, {stop.job: stop.cause for stop in stops}, cause=cause)
        for name in self._scheduler.running if names is None else names:
            self._ends_at(name)

    def _ends_at(self, name: str) -> None:
        """Note when a job that runs ends, if that is not known yet."""
        job = self._scheduler._state.running.get(name)
        if job is None or self._since.get(name) == job.since:
            return
        left = max(0.0, self._past.jobs[name].work - self._course.done.get(name, 0.0))
        end = job.since + job.request.pays + left * self._course.seconds(name, job.degree) * job.slower
        self._since[name] = job.since
        if end < float("inf"):
            self._push(max(end, self._scheduler.now), self._ENDS, name)
            self._last[name] = self._number

    def _wakes(self) -> bool:
        """Have those start who waited for the clock, or by a policy, though nothing happens any more, if any might."""
        state, wake = self._scheduler._state, self._scheduler.wake
        due = [request.due for request in state.waiting.values() if request.due > state.now]
        opens = state.later.wake(), state.calendar.wake(state.now), state.notices.wake(state.now)
        if due or any(time is not None for time in opens):  # else jobs only age, for ever
            self._ask(max(due) if wake is None else wake)
        return bool(self._heap)
