"""The calls of `Scheduler` that change what was said: of a job, and of the nodes; and those that say it of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from sys import float_info
from types import EllipsisType
from typing import TYPE_CHECKING, Unpack, cast

from gangplan.instances import InstanceError
from gangplan.instances.arrays import plain, require_counts, require_number
from gangplan.instances.placement import Fleet, GangJob

from .journal.write import recorded
from .queueing.admission import check_changed
from .queueing.held_jobs import HeldJob, JobArray
from .queueing.request import Price, Request, Seconds, TermFields, Terms, given_seconds, names_of, renamed
from .snapshots.snapshot_settings import moved, turned_back, unseated
from .starting.gpu_types import TypedSeconds, below_zero, by_type, verify_terms
from .state import SchedulerState
from .stopping.running_jobs import RunningJob

if TYPE_CHECKING:
    from .scheduler import Scheduler

_ARRAY = 100_000
"""Maximum number of jobs of an array, which a few words of a log or a request ask for."""


class ChangeCalls:
    """Change jobs that wait or run, submit many alike, and exchange nodes.

    An `InstanceError` names the field that is wrong, and nothing has changed then.
    """

    _state: SchedulerState

    @recorded
    def submit_array(
        self,
        job: GangJob,
        count: int,
        seconds: Seconds = None,
        *,
        most: int | None = None,
        now: float | None = None,
        together: bool | None = None,
        price: Price = ...,
        **terms: Unpack[TermFields],
    ) -> tuple[str, ...]:
        """Let `count` jobs wait that are alike but for their names, ``name[0]`` and so on; return the names.

        Args:
            job: the gang; its name is that of the array.
            count: of jobs.
            seconds, now, together, price, terms: as of `submit`.
            most: maximum number of jobs of the array that are in the queue or run at a time, by default all.
        """
        state, submit = self._state, cast("Scheduler", self).submit
        if not isinstance(job, GangJob):
            raise InstanceError("job", f"{job!r} is no GangJob")
        require_counts(count=count)
        if count > _ARRAY:
            raise InstanceError("count", f"{count} is more than {_ARRAY}")
        if most is not None:
            require_counts(most=most)
        if job.name in state.later.arrays:
            raise InstanceError("job.name", f"{job.name!r} is an array already")
        names = tuple(f"{job.name}[{i}]" for i in range(count))
        for name in names:
            if any(name in jobs for jobs in (state.waiting, state.running, state.later.held, state.finished)):
                raise InstanceError("job.name", f"{name!r} is known already")
        fields = cast(TermFields, {**terms, "array": job.name})
        with state.trial() as trial:
            if most is not None:
                state.later.arrays[job.name] = JobArray(most)
                trial.note(job.name, state.later.arrays.pop, job.name, None)
            # only the first can be refused: the others are like it
            submit(replace(job, name=names[0]), seconds, now=now, together=together, price=price, **fields)
            trial.keep()
        first = state.later.request(state, names[0])
        for i, name in enumerate(names[1:], 1):
            state.resemble(name, first)
            cast("Scheduler", self)._enter(replace(first, job=renamed(first.job, name), serial=first.serial + i))
        return names

    @recorded
    def change(
        self,
        job: str,
        seconds: Seconds | TypedSeconds = None,
        *,
        now: float | None = None,
        price: Price = ...,
        requires: Sequence[str] | None = None,
        **terms: Unpack[TermFields],
    ) -> None:
        """Change what was said of a job that waits or runs, but not when it is due.

        Args:
            job: its name.
            seconds: how long it is expected to run still: of a waiting job as of `submit`, by GPU type too, without
                what its next start costs; of a running one a number, from now on. By default as before.
            now: as of `submit`.
            price: of a stop, `None` if it may not be stopped any more; by default as before.
            requires: labels that its nodes carry; none of a running job whose nodes may lose them.
            terms: the fields of `Terms` that change; of a running job not ``begin`` nor ``after``.
        """
        state = self._state
        runs = isinstance(job, str) and job in state.running
        state.find(job, "runs" if runs else "waits")
        at = state.at(now)
        request = state.running[job].request if runs else state.later.request(state, job)
        if not isinstance(price, EllipsisType):
            require_number(given := plain(price), "price", optional=True)
            request = replace(request, price=None if given is None else float(given), priced=True)
        if requires is not None:
            request = replace(request, job=replace(request.job, requires=names_of(requires, "requires")))
        before = request.terms
        new = Terms.of(terms)
        request = replace(request, terms=replace(before, **{name: getattr(new, name) for name in terms}))
        for name in ("array", *(("begin", "after") if runs else ())):
            if getattr(request.terms, name) != getattr(before, name):
                raise InstanceError(
                    name, f"{getattr(request.terms, name)!r} comes too late: {job!r} {'runs' if runs else 'waits'}"
                )
        if not runs:
            gang, told, types = by_type(request.job, seconds, (*state.fleet.gpu_types, *request.job.gpu_types))
            request = replace(request, job=gang, types=types or request.types)
        check_changed(state, request, replace(request, terms=before))
        if runs:
            at_place = state.running[job]
            if requires and not state.fleet.admits(requires, request.job.tolerates)[list(at_place.nodes)].all():
                raise InstanceError("requires", f"{requires!r} comes too late: {job!r} runs where nodes lack it")
            if wrong := verify_terms(request, at_place.degree, state.fleet, at_place.nodes):
                raise InstanceError(next(iter(terms), "job"), f"comes too late: {wrong[0]}")
            _change_running(state, request, seconds, at)
        else:
            _change_waiting(state, request, told, at)
            if job not in state.waiting:
                cast("Scheduler", self)._intervals.withdrawn(job)
        state.changes += 1
        cast("Scheduler", self)._expect(request)

    @recorded
    def adopt(
        self, job: str, nodes: Mapping[str, int], *, since: float | None = None, now: float | None = None
    ) -> None:
        """Note that another one started a job that waits: it runs from now on, wherever this scheduler had put it.

        Args:
            job: its name.
            nodes: the number of its workers on each node, by name; they get the first GPUs that nobody holds there.
            since: when it started, by default now.
            now: as of `submit`.
        """
        state = self._state
        state.find(job, "waits")
        at = state.at(now)
        if job not in state.waiting:
            raise InstanceError("job", f"{job!r} may not wait yet: change it first")
        if not isinstance(nodes, Mapping):
            raise InstanceError("nodes", f"{nodes!r} is no mapping of names to numbers of workers")
        request, seats = state.waiting[job], dict[int, tuple[int, ...]]()
        for count in nodes.values():
            require_counts(nodes=count)
        if (degree := sum(nodes.values())) not in request.job.workers:
            raise InstanceError("nodes", f"{degree} is not one of its numbers of workers, {request.job.workers}")
        for name, count in nodes.items():
            node, each = state.node(name), request.job.worker.grants
            free = (gpu for gpu in range(int(state.fleet.gpus[node])) if gpu not in state.holders[node])
            seats[node] = tuple(islice(free, count * each)) if each else below_zero(state.holders[node], count)
        if wrong := state.wrong(request, degree, seats):
            raise InstanceError("nodes", wrong[0])
        require_number(since := plain(since), "since", optional=True)
        slower = state.slower(request, degree, seats)
        began = at if since is None else min(float(since), at)
        end = min(began + request.lasts(degree, slower), float_info.max)
        if not state.placer.put(state.loose(request), seats):
            raise InstanceError("nodes", f"{job}: cores, memory or NIC are too few")
        state.now = at
        state.begin(RunningJob(request, degree, began, end, dict(sorted(seats.items())), slower))
        cast("Scheduler", self)._intervals.withdrawn(job)
        state.note_freed((), [job])

    @recorded
    def resize(self, fleet: Fleet, *, now: float | None = None) -> tuple[str, ...]:
        """Exchange the nodes: those that the fleet names anew appear, those that it does not name are gone.

        Nodes keep what is on them by their names, and are down if they were; a new one is up if it is usable. Windows
        lose the nodes that are gone. What was learned of speeds is forgotten if nodes come, go or change places. A job
        for which the nodes are too few waits for others; the nodes may be none.

        Returns:
            The jobs that ran on nodes that are gone, or have no more what the job holds: they wait again as after a
            failure.
        """
        scheduler = cast("Scheduler", self)
        if not isinstance(fleet, Fleet):
            raise InstanceError("fleet", f"{fleet!r} is no Fleet")
        at = self._state.at(now)
        trial = scheduler._twin(scheduler._policy, scheduler.snapshot())
        trial._state.now, lost = at, unseated(trial._state, fleet)
        for name in lost:
            trial._state.lose(name)
        scheduler._restore(moved(trial.snapshot(), trial._state.fleet, fleet), fleet)
        return lost

    @recorded
    def set_clock(self, now: float) -> None:
        """Set the time back where an event had a wrong one: what has happened since then happened now.

        Windows that were over by then are gone.
        """
        scheduler = cast("Scheduler", self)
        require_number(now := plain(now), "now")
        if now > scheduler.now:
            raise InstanceError("now", f"{now!r} is after {scheduler.now!r}: time goes on by events")
        scheduler._restore(turned_back(scheduler.snapshot(), float(now)))


def _change_waiting(state: SchedulerState, request: Request, seconds: Seconds, now: float) -> None:
    """Put a job that waits, or may not wait yet, where it belongs now."""
    later, name = state.later, request.name
    held, was = later.held.get(name), later.request(state, name)
    known = given_seconds(request.job, seconds)
    if known is not None:
        request = replace(request, seconds=known, told=True, left=1.0, work=(), index=None)
    if (was.terms.begin, was.terms.after) == (request.terms.begin, request.terms.after):
        state.now = now
        if held:
            held.request = request
        else:
            state.leave(name)
            state.wait(request)
        return
    before = later.before(state, request)
    state.now = now
    state.leave(name)
    if held or before or request.terms.begin > now:
        later.hold(state, HeldJob(request, before, now))
        if held is None:
            later.leave(state, request)
    else:
        state.wait(request)


def _change_running(state: SchedulerState, request: Request, seconds: Seconds | TypedSeconds, now: float) -> None:
    """Have a running job go on as if it had stopped and started at once where it is, and that had cost nothing."""
    job = state.running[request.name]
    if seconds is not None:
        require_number(seconds := plain(seconds), "seconds")
    state.now = now
    if seconds is None and (request.price == job.request.price or job.name in state.notices.stopping):
        paid = request.paid if request.price == job.request.price else job.request.pays
        state.alter(replace(job, request=replace(request, paid=paid)))
        return
    left = job.left(now) if seconds is None else float(cast(float, seconds))
    whole, told = request.seconds, request.told or seconds is not None
    mine = whole[request.job.workers.index(job.degree)]
    if not mine:
        whole = tuple(left / job.slower * job.degree / degree for degree in request.job.workers)
        mine = left / job.slower
    request = replace(
        request, seconds=whole, told=told, left=left / job.slower / mine if mine else 0.0, again=False, paid=None,
        done=request.done + job.ran(now) * request.units(job.degree), due=request.due + now - job.since,
    )  # fmt: skip
    if seconds is not None:
        request = replace(request, work=(), index=None)
    after = RunningJob(request, job.degree, now, now + left, job.nodes, job.slower, job.least)
    state.alter(after.told(job.stops))
    if state.learned is not None:
        state.learned.forget(job.name)
        state.learned.note(state.running[job.name])
