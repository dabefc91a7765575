"""The calls of `Scheduler` that say what happened: a job came, is done or is no more, a node failed or is up again."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Unpack

from gangplan.instances import InstanceError
from gangplan.instances.arrays import plain, require_flag, require_number
from gangplan.instances.placement import GangJob

from .journal.write import recorded
from .policies.lookahead import Lookahead
from .queueing.admission import check_new
from .queueing.request import USUAL_TERMS, Price, Request, Seconds, TermFields, Terms, given_seconds
from .starting.gpu_types import TypedSeconds, Types, by_type

if TYPE_CHECKING:
    from .decision import Stopping
    from .explaining.intervals import StartIntervals
    from .policies.network import NetworkTier, NetworkUse
    from .starting.learned_speeds import Learned
    from .state import SchedulerState


class EventCalls:
    """Say what happened. An `InstanceError` names what is wrong, and nothing has changed then."""

    if TYPE_CHECKING:
        _state: SchedulerState
        _network: NetworkTier | None
        _ahead: Lookahead | None
        _intervals: StartIntervals
        _arguments: dict[str, Any]

    @recorded
    def submit(
        self,
        job: GangJob,
        seconds: Seconds | TypedSeconds = None,
        *,
        now: float | None = None,
        together: bool | None = None,
        price: Price = ...,
        since: float | None = None,
        **terms: Unpack[TermFields],
    ) -> None:
        """Let a job wait.

        Args:
            job: the gang; its name is new.
            seconds: how long it is expected to run, for each number of workers, or that by GPU type,
                ``{"A100": 600.0, "H100": 350.0}``; by default what finished jobs like it took.
            now: seconds, no less than before; by default as before.
            together: instead of the scheduler's.
            price: of a stop, by default the scheduler's; `None` if it is never stopped, as in `change`.
            since: when it began to wait elsewhere, from which it is due; by default now.
            terms: the fields of `Terms`, such as ``queue``, ``user``, ``priority`` and ``limit``. A job without a
                ``queue`` is guaranteed nothing where there are queues.
        """
        state, settings = self._state, self._state.settings
        if not isinstance(job, GangJob):
            name = job if isinstance(job, str) and job else "job1"
            raise InstanceError("job", f"{job!r} is no GangJob; write GangJob({name!r}, 'any', workers=(8,))")
        types: Types = ()
        if isinstance(seconds, Mapping):
            job, seconds, types = by_type(job, seconds, None if terms.get("await_nodes") else state.fleet.gpu_types)
        at, known = state.at(now), given_seconds(job, seconds)
        given = None if isinstance(price, EllipsisType) else plain(price)
        require_number(given, "price", optional=True)
        mine = settings.price if isinstance(price, EllipsisType) else None if given is None else float(given)
        require_flag(together, "together", optional=True)
        require_number(since := plain(since), "since", optional=True)
        if not job.worker.gpu:
            if together:
                raise InstanceError("together", f"{together!r} is of no meaning for {job.name!r}, which has no GPU")
            together = False
            if self._network is not None:
                raise InstanceError("job.worker.gpu", "is 0: the graph network places no tasks without GPUs")
        spoken, guess = Terms.of(terms) if terms else USUAL_TERMS, None
        if settings.durations == "history" and known is not None:
            guess, known = known[-1], None
        work = state.estimates.predict(job, spoken, guess) if known is None else ()
        lasts = known or tuple(work[-1] / (degree * (job.worker.grants or 1)) for degree in job.workers)
        request = Request(
            job,
            at,
            lasts,
            known is not None,
            settings.together if together is None else together,
            state.serial,
            mine,
            terms=spoken,
            types=types,
            work=work,
            guess=guess,
            priced=not isinstance(price, EllipsisType),
        )
        due = settings.due(at if since is None else min(since, at), request.longest)
        request = dataclasses.replace(request, due=due)
        check_new(state, request)
        self._enter(request.aged(0.0) if work else request)

    def _enter(self, request: Request) -> None:
        """Let a job wait that was checked, unless it may not yet."""
        state, terms, held = self._state, request.terms, None
        if terms.after or terms.array or terms.begin > request.submit:
            held = state.later.held_by(state, request)
        state.now, state.serial = request.submit, state.serial + 1
        if held is None:
            state.wait(request)
        else:
            state.later.hold(state, held)
        if self._network is not None:
            self._network.submitted(request)
        self._expect(request)
        if held is None:
            self._intervals.submitted(state, request.name)

    def _expect(self, request: Request) -> None:
        """Look ahead from now on if this is the first job that may be stopped."""
        settings = self._state.settings
        if self._ahead is None and settings.ahead and request.price is not None:
            self._ahead = Lookahead(settings.order)

    @recorded
    def finish(self, job: str, *, now: float | None = None) -> None:
        """Note that a running job is done, and free its GPUs."""
        state = self._state
        state.find(job, "runs")
        state.now = state.at(now)
        done = state.free(job)
        state.forget(done.request)
        state.over(job)
        state.later.over(state, done.request, True)
        if self._network is not None:
            self._network.ended(done, state.now)
        request = done.request
        work = request.done + done.ran(state.now) * request.units(done.degree)
        state.estimates.learn(request.job, request.terms, work, request.guess)

    @property
    def stopping(self) -> tuple[Stopping, ...]:
        """The jobs that were told to stop and have not yet, by when they were told."""
        return tuple(self._state.notices.stopping.values())

    @recorded
    def stopped(self, job: str, *, now: float | None = None) -> None:
        """Note that a job which was told to stop has: it waits again, and its GPUs are free.

        Raises:
            InstanceError: if it does not run, or was not told; nothing has changed then.
        """
        state = self._state
        state.find(job, "runs")
        if job not in state.notices.stopping:
            raise InstanceError("job", f"{job!r} was not told to stop: withdraw it, or fail its node")
        state.now = state.at(now)
        state.halt(job)
        state.note_freed([job])

    @recorded
    def report(self, job: str, speed: float, *, now: float | None = None) -> None:
        """Learn from how fast a running job is, beside those that run where it does.

        From the first report on, gangs are placed where what was reported says that all jobs lose least, as long as
        that predicted recent reports better than the mean speed of each model does.

        Args:
            job: its name; what is learned is learned of its model.
            speed: of the whole job in any unit that all jobs of its model use, such as samples or steps a second.
            now: as of `submit`.
        """
        state = self._state
        state.find(job, "runs")
        require_number(speed := plain(speed), "speed", positive=True)
        state.now = state.at(now)
        if state.learned is None:
            from .starting.learned_speeds import LearnedSpeeds
            from .starting.model_speeds import BesideModel

            nodes = state.fleet.n_nodes
            state.learned = LearnedSpeeds(BesideModel(nodes, self._arguments["forget"]), nodes)
            for running in state.running.values():
                state.learned.note(running)
        state.learned.report(job, float(speed), state.now)

    @property
    def learned(self) -> Learned | None:
        """Return what is believed of speeds, `None` before the first report."""
        return None if self._state.learned is None else self._state.learned.believes()

    @property
    def network(self) -> NetworkUse | None:
        """Return what the network did since this scheduler was made, `None` without one."""
        return None if self._network is None else self._network.use

    @recorded
    def withdraw(self, job: str, *, now: float | None = None) -> None:
        """Forget a job that waits or runs, and learn nothing from it; its GPUs are free."""
        state = self._state
        runs = isinstance(job, str) and job in state.running
        state.find(job, "runs" if runs else "waits")
        state.now = state.at(now)
        held = job in state.later.held
        state.forget(gone := state.free(job).request if runs else state.leave(job))
        state.over(job)
        state.later.over(state, gone, False, not held)
        self._intervals.withdrawn(job)
        if self._network is not None:
            self._network.forgotten(job)

    @recorded
    def fail_node(self, node: str | int, *, replace: bool = False, now: float | None = None) -> tuple[str, ...]:
        """Note that a node is down; return the jobs that ran there, which wait again.

        Args:
            node: its name or number.
            replace: whether the next decision starts gangs on the GPUs that they keep elsewhere, and others for those
                that they lost, where there are such: see `Decision.mends`.
            now: as of `submit`.
        """
        state = self._state
        at = state.node(node)
        if not state.up[at]:
            raise InstanceError("node", f"{node!r} is down already")
        state.now = state.at(now)
        lost = tuple(sorted({*state.holders[at].values()}))
        for name in lost:
            ended = state.lose(name)
            if replace:
                state.mending.note(ended, at)
        state.turn(at, False)
        return lost

    @recorded
    def repair_node(self, node: str | int, *, now: float | None = None) -> None:
        """Note that a node is up again."""
        state = self._state
        at = state.node(node)
        if state.up[at]:
            raise InstanceError("node", f"{node!r} is up")
        state.now = state.at(now)
        state.turn(at, True)
