"""The calls of `Scheduler` that close nodes for a time: drains and reservations."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nextafter
from sys import float_info

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import plain, require_counts, require_number
from gangplan.instances.errors import unknown

from .decision import DRAIN
from .journal.write import recorded
from .queueing.request import names_of
from .starting.calendar import Window
from .starting.starts import StartRound
from .state import SchedulerState


class WindowCalls:
    """Close nodes for a time, to all jobs or to all but some.

    A job that would still be expected to run when one of its nodes closes does not start there. When it closes, the
    next decision stops the jobs there that may be stopped; others run on, and nobody new starts. An `InstanceError`
    names what is wrong with a call, and nothing has changed then.
    """

    _state: SchedulerState

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows that are not over, by when they were made."""
        return tuple(self._state.calendar.windows.values())

    @property
    def wake(self) -> float | None:
        """The next time at which something changes by the clock alone.

        A job may begin; nodes close or open; a grace is over; of those that wait, one is due or counts as of a higher
        class; of those that run, one may be stopped for them, or runs longer than expected, and then twice as long:
        until then it may make room gradually, at any time. Past usage that counts less (`Sharing.halflife`) is left
        out.
        """
        state = self._state
        rooms = state.later.wake(), state.calendar.wake(state.now), state.notices.wake(state.now)
        times = (*rooms, _next_count(state))
        return min((time for time in times if time is not None), default=None)

    @recorded
    def drain(
        self, node: str | int, at: float | None = None, until: float | None = None, *, now: float | None = None
    ) -> None:
        """Have nobody on a node from `at` on, by default at once, to `until`, by default to `undrain`.

        It takes the place of an earlier drain of the node.
        """
        state, time = self._state, self._state.at(now)
        name = state.fleet.names[state.node(node)]
        label = f"{DRAIN}-{name}"
        if label in state.calendar.windows and not state.calendar.windows[label].drain:
            raise InstanceError("node", f"{label!r} is the name of a reservation")
        self._close(Window(label, (name,), *_span(time, at, until, "at", "until"), drain=True), time)

    @recorded
    def undrain(self, node: str | int, *, now: float | None = None) -> None:
        """Forget the drain of a node."""
        name = self._state.fleet.names[self._state.node(node)]
        window = self._state.calendar.windows.get(f"{DRAIN}-{name}")
        if window is None or not window.drain:
            raise InstanceError("node", f"{name!r} is not drained, nor to be")
        self.cancel(window.name, now=now)

    @recorded
    def reserve(
        self,
        nodes: Sequence[str] | int,
        begin: float | None = None,
        end: float | None = None,
        *,
        name: str | None = None,
        users: Sequence[str] = (),
        queues: Sequence[str] = (),
        jobs: Sequence[str] = (),
        now: float | None = None,
    ) -> Window:
        """Close nodes to all but some jobs, all of them if none are named; return the window.

        Args:
            nodes: names of the nodes; or a number of nodes, those in no window meanwhile whose jobs end first.
            begin, end: seconds of the user's clock, by default at once and never.
            name: of the window, by default a new one.
            users, queues, jobs: whose jobs may be there all the same; a queue with all below it, an array by its name.
            now: as of `submit`.
        """
        calendar, time = self._state.calendar, self._state.at(now)
        first, last = _span(time, begin, end)
        if name is None:
            name = next(x for i in range(1, len(calendar.windows) + 2) if (x := f"window{i}") not in calendar.windows)
        elif name in calendar.windows:
            raise InstanceError("name", f"{name!r} is a window already")
        if isinstance(nodes := plain(nodes), int):
            require_counts(nodes=nodes)
            nodes = self._first_free(nodes, first, last)
        window = Window(
            name, names_of(nodes, "nodes"), first, last,
            names_of(users, "users"), names_of(queues, "queues"), names_of(jobs, "jobs"),
        )  # fmt: skip
        if not window.nodes:
            raise InstanceError("nodes", "names no node")
        if self._state.sharing.queues and (strange := {*window.queues} - {*self._state.sharing.queues}):
            raise InstanceError("queues", unknown(min(strange), self._state.sharing.queues))
        self._close(window, time)
        return window

    @recorded
    def cancel(self, window: str, *, now: float | None = None) -> None:
        """Forget a window: its nodes are open."""
        state = self._state
        if not isinstance(window, str) or window not in state.calendar.windows:
            words = f"there are {', '.join(state.calendar.windows) or 'none'}"
            raise InstanceError("window", f"{window!r} is no window; {words}")
        state.now = state.at(now)
        state.calendar.remove(window)
        state.closing()

    def _close(self, window: Window, now: float) -> None:
        """Enter a window, in the place of one of its name."""
        state = self._state
        for node in window.nodes:
            state.node(node)
        if window.name in state.calendar.windows:
            state.calendar.remove(window.name)
        state.calendar.add(window)
        state.now = now
        state.closing()

    def _first_free(self, count: int, begin: float, end: float) -> tuple[str, ...]:
        """Return the nodes that are up and in no window meanwhile whose jobs are expected to end first."""
        state, now = self._state, self._state.now
        taken = {n for x in self.windows if x.begin < end and begin < x.end for n in x.nodes}
        free = [i for i, name in enumerate(state.fleet.names) if state.up[i] and name not in taken]
        if len(free) < count:
            words = f"{count} are more than the {len(free)} that are up and in no window meanwhile"
            raise InstanceError("nodes", words)
        left = {name: job.left(now) for name, job in state.running.items()}
        ends = {i: max((left[name] for name in {*state.holders[i].values()}), default=0.0) for i in free}
        free.sort(key=lambda i: (max(ends[i], begin - now), i))
        return tuple(state.fleet.names[i] for i in sorted(free[:count]))


def _next_count(state: SchedulerState) -> float | None:
    """Return when a job that waits, or one that may stop for it, next counts otherwise; `None` if none does.

    A waiting job becomes due or older. A running one may be stopped, ran for the most that it should, or longer
    than expected, and then twice as long.
    """
    if not state.waiting:
        return None
    table, now, most = state.running.table(), state.now, state.sharing.most_run or inf
    end, since, aging = table.end, table.since, inf if state.alike else state.sharing.aging or inf
    due = np.fromiter((request.due for request in state.waiting.values()), float, len(state.waiting))
    with np.errstate(all="ignore"):  # of the largest and the least numbers
        older = np.where(due > now, due, np.maximum(due + ((now - due) // aging + 1) * aging, nextafter(now, inf)))
        turn = np.where(since + most - since < most, np.nextafter(since + most, inf), since + most)
        late = np.where(end >= now, np.nextafter(end, inf), 2 * now - since)
        stop = np.maximum([table.settled, table.ready], np.nextafter(since, inf))
    each = np.concatenate([older, turn, late, *stop, [x[0] for x in state.running.ages[:1]]])
    each = each[(each > now) & (each < float_info.max)]
    return float(each.min()) if len(each) else None


def _span(
    now: float, begin: float | None, end: float | None, first: str = "begin", last: str = "end"
) -> tuple[float, float]:
    """Return when a window begins, which is not in the past, and when it ends."""
    begin = now if begin is None else plain(begin)
    require_number(begin, first)
    if begin < now:
        raise InstanceError(first, f"{begin!r} is before {now!r}")
    require_number(end := plain(end), last, optional=True)
    if end is not None and end <= begin:
        raise InstanceError(last, f"{end!r} is not after {first}, {begin!r}")
    return float(begin), inf if end is None else float(end)


def stop_drained(state: SchedulerState, starts: StartRound) -> None:
    """Stop the jobs that may be on nodes that are closed to them, by serial number."""
    names = {
        name
        for window, nodes in state.calendar.now(state.now)
        for node in nodes[state.placer.taken[nodes] > 0].tolist()
        for name in state.holders[node].values()
        if not window.lets(state.running[name].request)
    }
    jobs = [state.running[name] for name in names if state.running[name].price is not None]
    for job in sorted(jobs, key=lambda job: job.request.serial):
        starts.stop(job, "", DRAIN)
