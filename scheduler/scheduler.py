"""`Scheduler`: a state that is told what happens, and says who starts where."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Set
from os import PathLike
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Unpack, overload

from gangplan.instances import Cluster, InstanceError
from gangplan.instances.arrays import plain, require_choice, require_flag, require_number, require_share
from gangplan.instances.placement import Fleet, GangJob, SpeedModel
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.quantities import counted, moment
from gangplan.solvers.placement.online.evolved import Evolved, Waits
from gangplan.solvers.placement.online.patient import Patient

from .changes import ChangeCalls
from .configure import MINE, ConfigureCalls
from .decision import Decision
from .durations.again import predict_again
from .explaining.explain import why_waits
from .explaining.explanation import Explanation, WaitingJob, explained
from .explaining.intervals import StartIntervals
from .explaining.running_now import RunsNow
from .journal.write import Journal, recorded
from .policies.asking import ask
from .policies.lookahead import Lookahead, Worth, worth
from .policies.policy import Proposes, Ranks, Watchdog
from .queueing.admission import check_new
from .queueing.precedence import ByPrecedence
from .queueing.request import Request, Seconds, given_seconds
from .queueing.sharing import Sharing
from .queueing.terms import USUAL_TERMS, Price, TermFields, Terms
from .settings import MAX_WAIT, PATIENCE, SchedulerSettings
from .snapshots.snapshot import for_settings, load, save
from .starting.gpu_types import TypedSeconds, by_type, without_gpus
from .starting.starts import StartRound
from .state import SchedulerState
from .stopping.grace import GraceCalls, announce, end_grace, kept, start_claims
from .stopping.preemption import Preemption
from .stopping.stops import Stops
from .windows import WindowCalls, stop_drained

if TYPE_CHECKING:
    from gangplan.learned.online.policy import GnnPolicy

    from .moving.migration import Moves
    from .policies.network import NetworkTier, NetworkUse
    from .starting.learned_speeds import Learned

RULES: Mapping[str, Waits] = {"patient": Patient(), "evolved": Evolved()}
"""Rules by which jobs wait for close GPUs, by name, which is that of their tier too."""
SCHEDULER_POLICIES = ("hybrid", "heuristic", *RULES, "gnn", "gnn-unguarded")
TIERS = (
    *("moves", "lookahead", "policy", "gnn", "stops", "reclaim", "priority", "turn", "due", "mend"),
    *RULES,
    "heuristic",
)
"""Who may have decided, the most considered first; a policy is the user's own."""
USUAL, STOPPING = 0.0, 0.5
"""The exponent of GPUs in the order of jobs where none is given, without and with stops or without durations, and no
rollout says better."""
CHECKPOINT_EVERY = 2000
"""Lines of a log that are played again in about a second."""
_KEEP = 64
"""Decisions that can be explained."""
_LOOK, _POLICY, _START = 0.4, 0.5, 0.9
"""Of the deadline, when the lookahead is over; of the rest, what a policy may take; when the last start is begun."""


def _network(policy: Any) -> GnnPolicy | None:
    """Return the network that a policy is or names, `None` if it is something else."""
    if isinstance(policy, str) and (policy in ("gnn", "gnn-unguarded") or policy.endswith(".safetensors")):
        from gangplan.learned.online.policy import GnnPolicy
        from gangplan.learned.policy.weights import find

        return GnnPolicy.load(find(policy.removesuffix("-unguarded")), guarded=not policy.endswith("-unguarded"))
    if type(policy).__module__ != "gangplan.learned.online.policy":
        return None
    network: GnnPolicy = policy
    return network


class Scheduler(WindowCalls, ChangeCalls, GraceCalls, ConfigureCalls):
    """Decides online who starts where, for a loop of the user's own.

    Jobs are stopped only where a stop has a `price`. Everything happens when a method is called: there are no threads,
    and time is what the caller says it is. Equal calls give equal decisions where no deadline is hit.

    Args:
        cluster: the nodes; of a device-level cluster, its servers.
        policy: ``heuristic``; ``hybrid``, that and a lookahead where jobs may be stopped; ``patient`` or
            ``evolved``, or a `Patient` or `Evolved` with other numbers, by which jobs wait for close GPUs: without a
            `Proximity` it is the order alone, and nobody waits; ``gnn``, a graph network that corrects ``patient``,
            and a guard who decides; ``gnn-unguarded``; a file of such weights, or a `GnnPolicy`; or an object with
            `rank` or `propose` (`Ranks`, `Proposes`), before the heuristic and with the lookahead.
        speeds: a `SpeedModel`, which models run on which GPUs, by default all on all: it says where gangs go, and not
            how long they take, since that changes with every neighbour; or a `Proximity`: a job takes its seconds
            times 1 + intensity * cost of its GPUs, and gets the closest that a greedy search finds.
        together: whether workers that fit on one node stay on one, and larger gangs take whole nodes. By default so,
            unless jobs wait for close GPUs.
        reserve: whether the first job that does not fit is not to be delayed by those behind it. By default so, unless
            the policy is patient or history says when jobs end. Who is due never is.
        order: jobs are in the order of seconds times GPUs to this power. By default 0, the shortest first; 1/2 if there
            is a `price` or seconds are not believed, or what a lookahead chooses for each decision; of a `Patient` its
            own.
        price: seconds that its GPUs are held without getting on when a job that was stopped runs again; `None` if jobs
            are not stopped. `submit` may say otherwise of a job.
        forget: weight of a reported speed after the next one, above 0 and up to 1: about 1 / (1 - forget) count.
        patience: a job that has waited so many times its longest expected seconds is due: it goes before others, and
            nobody delays the first that is due. By then a policy cannot make it wait any more.
        max_wait: seconds after which it is due at the latest, or after ten times its longest expected seconds if that
            is later; `None` for no such limit.
        sharing: how queues, users and classes of jobs share the cluster: a `Sharing`, or its fields as a mapping.
        durations: what `submit` is told of durations: ``told``, seconds to be believed, and jobs without any take what
            the history of finished jobs says; ``history``, that says it of all, and seconds are a guess of which it
            says how much jobs like it used.
        grace: seconds that a job holds its GPUs when it is told to stop, unless `submit` says otherwise of it.
        log: a new file, to which each event and decision is appended; `open` goes on with one that is there.
        sync: whether each line of it is on disk before a call returns.
        checkpoint_every: lines of it, or as many as there are jobs, after which it has the whole state, so that `open`
            reads only those behind; 0 for never.

    Raises:
        InstanceError: naming the argument that is wrong.
    """

    def __init__(
        self,
        cluster: Fleet | Cluster,
        policy: str | Any = "hybrid",
        *,
        speeds: SpeedModel | Proximity | None = None,
        together: bool | None = None,
        reserve: bool | None = None,
        order: float | None = None,
        price: float | None = None,
        forget: float = 0.9995,
        patience: float = PATIENCE,
        max_wait: float | None = MAX_WAIT,
        sharing: Sharing | Mapping[str, Any] | None = None,
        durations: str = "told",
        grace: float = 0.0,
        log: str | PathLike[str] | None = None,
        sync: bool = False,
        checkpoint_every: int = CHECKPOINT_EVERY,
    ) -> None:
        given = dict(locals())
        require_number(checkpoint_every, "checkpoint_every", whole=True)
        if not isinstance(cluster, Fleet | Cluster):
            words = "write Fleet.regular(racks=1, nodes=2, gpus=8) for two nodes of eight GPUs"
            raise InstanceError("cluster", f"{cluster!r} is neither a Fleet nor a Cluster; {words}")
        fleet = cluster if isinstance(cluster, Fleet) else Fleet.of(cluster)
        network = _network(policy)
        rule = policy if isinstance(policy, Waits) else RULES.get(network.behind if network else str(policy))
        mine = rule is None and not isinstance(policy, str)
        if isinstance(policy, str) and network is None:
            require_choice(policy, "policy", SCHEDULER_POLICIES)
        if mine and not isinstance(policy, Ranks | Proposes):
            raise InstanceError("policy", f"{policy!r} has neither rank nor propose")
        if speeds is not None and not isinstance(speeds, SpeedModel | Proximity):
            raise InstanceError("speeds", f"{speeds!r} is neither a SpeedModel nor a Proximity")
        require_share(forget := plain(forget), "forget", positive=True)
        order, price, patience, max_wait = plain(order), plain(price), plain(patience), plain(max_wait)
        together = rule is None or not isinstance(speeds, Proximity) if together is None else together
        reserve = rule is None and durations != "history" if reserve is None else reserve
        look = order is None and rule is None and (mine or policy != "heuristic")
        known = price is None and durations != "history"
        usual = USUAL if known or rule else STOPPING
        if order is not None:
            usual, rule = order, dataclasses.replace(rule, gpus=0.0, crowded=0.0) if isinstance(rule, Evolved) else rule
        elif isinstance(rule, Patient):
            usual = rule.gpus
        self._policy: Any = policy
        self._arguments: dict[str, Any] = {"speeds": speeds, "together": together, "reserve": reserve}
        self._arguments |= {"order": order, "price": price, "forget": forget}
        self._arguments |= {"patience": patience, "max_wait": max_wait}
        self._arguments["sharing"] = sharing = Sharing.of(sharing)
        self._arguments |= {"durations": durations, "grace": (grace := plain(grace))}
        rest = patience, durations, max_wait, grace
        settings = SchedulerSettings(together, reserve, usual, look, price, *rest)
        self._state = SchedulerState(fleet, speeds, settings, rule, sharing)
        self._watchdog = Watchdog()
        self._network: NetworkTier | None = None
        if network is not None:
            from .policies.network import NetworkTier

            self._network = NetworkTier(network, fleet, speeds if isinstance(speeds, Proximity) else None)
        self._ahead: Lookahead | None = None
        self._asked: Any = policy if mine else None  # who is asked before the heuristic
        self._explained: dict[int, Explanation] = {}
        self._worth: Worth | None = None
        self._waits: dict[str, str] = {}  # why jobs wait since the last decision
        self._count, self._changes = 0, -1
        self._intervals = StartIntervals()
        self._journal: Journal | None = None if log is None else Journal.begin(log, given | {"cluster": fleet})

    @classmethod
    def open(
        cls,
        log: str | PathLike[str],
        policy: Any = None,
        *,
        sync: bool = False,
        checkpoint_every: int = CHECKPOINT_EVERY,
    ) -> Scheduler:
        """Return the scheduler that wrote a log, as it was when the last line was written; it goes on with the log.

        Args:
            log: the file.
            policy: of the user's own, if it had one.
            sync, checkpoint_every: see `Scheduler`.

        Raises:
            InstanceError: naming the line that is wrong.
        """
        from .journal.replay import resume

        require_number(checkpoint_every, "checkpoint_every", whole=True)
        return resume(log, policy, sync, checkpoint_every)

    def __repr__(self) -> str:
        """Return the cluster and how many jobs there are."""
        s = self._state
        size = f"{counted(s.fleet.n_nodes, 'node')}, {s.idle} of {s.gpus} GPUs idle"
        return f"<Scheduler at {moment(s.now)}: {size}; {len(s.running)} jobs run, {len(self.waiting)} wait>"

    @property
    def now(self) -> float:
        """The latest time that was heard of."""
        return self._state.now

    @property
    def idle(self) -> int:
        """GPUs of nodes that are up which nobody holds."""
        return self._state.idle

    @property
    def waiting(self) -> tuple[str, ...]:
        """The names of the jobs that wait, by submission; then of those that may not wait yet."""
        return (*self._state.waiting, *self._state.later.held)

    @property
    def running(self) -> tuple[str, ...]:
        """The names of the jobs that run, by start."""
        return tuple(self._state.running)

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

        Raises:
            InstanceError: naming the field; nothing has changed then.
        """
        state, settings = self._state, self._state.settings
        if not isinstance(job, GangJob):
            name = job if isinstance(job, str) and job else "job1"
            raise InstanceError("job", f"{job!r} is no GangJob; write GangJob({name!r}, 'any', workers=(8,))")
        job, seconds, types = by_type(job, seconds, None if terms.get("await_nodes") else state.fleet.gpu_types)
        at, known = state.at(now), given_seconds(job, seconds)
        given = None if isinstance(price, EllipsisType) else plain(price)
        require_number(given, "price", optional=True)
        mine = settings.price if isinstance(price, EllipsisType) else None if given is None else float(given)
        require_flag(together, "together", optional=True)
        require_number(since := plain(since), "since", optional=True)
        if not job.worker.gpu:
            together = without_gpus(job, together)
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
        request = dataclasses.replace(request, due=state.due_from(at if since is None else min(since, at), request))
        check_new(state, request)
        self._enter(request.aged(0.0) if work else request)

    def _enter(self, request: Request) -> None:
        """Let a job wait that was checked, unless it may not yet."""
        state = self._state
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
        """Note that a running job is done, and free its GPUs.

        Raises:
            InstanceError: if no such job runs; nothing has changed then.
        """
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

    @recorded
    def report(self, job: str, speed: float, *, now: float | None = None) -> None:
        """Learn from how fast a running job is, beside those that run where it does.

        From the first report on, gangs are placed where what was reported says that all jobs lose least, as long as
        that predicted recent reports better than the mean speed of each model does.

        Args:
            job: its name; what is learned is learned of its model.
            speed: of the whole job in any unit that all jobs of its model use, such as samples or steps a second.
            now: as of `submit`.

        Raises:
            InstanceError: if no such job runs, or the speed is not positive; nothing has changed then.
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
        """What is believed of speeds, `None` before the first report."""
        return None if self._state.learned is None else self._state.learned.believes()

    @property
    def network(self) -> NetworkUse | None:
        """Return what the network did since this scheduler was made, `None` without one."""
        return None if self._network is None else self._network.use

    @recorded
    def withdraw(self, job: str, *, now: float | None = None) -> None:
        """Forget a job that waits or runs, and learn nothing from it; its GPUs are free.

        Raises:
            InstanceError: if no such job waits or runs; nothing has changed then.
        """
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

        Raises:
            InstanceError: if there is no such node, or it is down already.
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
        """Note that a node is up again.

        Raises:
            InstanceError: if there is no such node, or it is up.
        """
        state = self._state
        at = state.node(node)
        if state.up[at]:
            raise InstanceError("node", f"{node!r} is up")
        state.now = state.at(now)
        state.turn(at, True)

    @recorded
    def decide(self, deadline: float = 0.05, *, now: float | None = None) -> Decision:
        """Stop whoever should make room, and start whoever should start now.

        Args:
            deadline: seconds of the machine's clock. What could not be started in time is for the next call, and
                `Decision.more` is true.
            now: seconds, no less than before.

        Raises:
            InstanceError: if an argument is wrong.
        """
        began = time.perf_counter()
        require_number(deadline := plain(deadline), "deadline", positive=True)
        state, ahead = self._state, self._ahead
        self._pass(state.at(now))
        self._count += 1
        self._think(began + _POLICY * deadline)
        killed, starts = end_grace(state), StartRound(state, self._watchdog, began + _START * deadline)
        start_claims(state, starts)
        stop_drained(state, starts)
        scores, gains = list[tuple[str, float]](), list[Stops]()
        preemption = Preemption(state, starts, began + _START * deadline)
        if ahead is not None:
            ahead.choose(state, began + _LOOK * deadline)
        if state.sharing.preempt and not state.alike:
            starts.clear, starts.vain = preemption.clear, preemption.vain
        state.age()
        stages, mends = ByPrecedence(state, lambda: any(map(starts.gave_way, starts.stops)), preemption.eased), []
        for _ in stages:
            if stages.again:
                starts.clear = None
            if starts.over():
                continue
            if state.waiting:
                starts.due()
            if state.mending.torn:
                mends += state.mending.run(state, starts)
            if state.waiting and self._asked is not None and (state.open or state.running.stoppable):
                left = began + deadline - time.perf_counter()
                scores += ask(self._asked, state, self._watchdog, starts, _POLICY * left)
            settled = self._by_network(starts, began + _POLICY * deadline) if state.waiting and state.idle else False
            if state.waiting and state.running.stoppable and not stages.again:
                gains.append(Stops(state, starts))
                gains[-1].run()
                if gains[-1].stops:
                    starts.due()  # who is due may fit now, and stands behind those of its line that leave it the room
            if state.waiting and (state.open or starts.clear) and not settled:
                usual = "lookahead" if ahead and ahead.found else "heuristic"
                starts.all(state.rule.tier if state.rule else usual)
        considered = (*preemption.candidates, *(x for each in gains for x in each.candidates))
        stopped, stopping = announce(state, starts, killed)
        said = {start.tier for start in starts.starts.values()}
        tier = next((tier for tier in TIERS if tier in said), "heuristic")
        notes, orders = self._watchdog.taken(), () if ahead is None else ahead.candidates()
        self._waits, self._changes, names = starts.waits, state.changes, {*starts.starts}
        self._explained[self._count] = explained(
            self._count, tier, names, starts.waits, scores, orders, considered, notes
        )
        self._explained.pop(self._count - _KEEP, None)
        self._intervals.decided(state, [*starts.starts])
        took = time.perf_counter() - began
        state.note_freed((stop.job for stop in stopped), names)
        made = tuple(starts.starts.values()), tier, notes, took, starts.more, stopped
        return Decision(self._count, state.now, *made, tuple(x for x in mends if x.job in names), stopping)

    def _pass(self, now: float) -> None:
        """Note the time, and what it changes alone."""
        state = self._state
        state.now = now
        state.accounts.now = now
        if state.calendar.tick(now):
            state.closing()
        state.later.tick(state)
        predict_again(state)
        state.look()

    def defragment(
        self, domain: Any = None, gang: GangJob | str | None = None, *, worth: float | None = None, seconds: float = 1.0
    ) -> Moves | None:
        """Return the cheapest moves of running jobs that free a domain, or make room for a gang; nothing is done yet.

        Args:
            domain: a node or several, by name or number, a group of the network, ``rack 2``, or a level, ``rack``: any
                group of it. With a gang, where that is to be; by default anywhere.
            gang: a job that waits, by name, or any other; with its fewest workers.
            worth: GPU seconds of the room; there is no proposal that costs more.
            seconds: of the machine's clock, for the search.

        Returns:
            `None` if there are no moves that make room, or they cost more.

        Raises:
            InstanceError: if an argument is wrong.
        """
        require_number(worth := plain(worth), "worth", optional=True)
        require_number(seconds := plain(seconds), "seconds", positive=True)
        from .moving.defragment import defragment

        with kept(self._state):
            return defragment(self._state, domain, gang, worth, seconds)

    @recorded
    def apply(self, moves: Moves, *, now: float | None = None) -> Decision:
        """Carry out what `defragment` proposed: a decision whose stops are all among its starts, elsewhere.

        Raises:
            InstanceError: if it is not possible any more; nothing has changed then.
        """
        from .moving.migration import TIER, carry_out

        began, state = time.perf_counter(), self._state
        starts, stops, stopping = carry_out(state, self._watchdog, moves, state.at(now))
        self._count += 1
        self._explained[self._count] = explained(self._count, TIER, set(), {}, [], (), (), ())
        took = time.perf_counter() - began
        return Decision(self._count, state.now, starts, TIER, (), took, False, stops, (), stopping)

    def _think(self, stop: float) -> None:
        """Have the guard of a network compare, once a decision and before it, so that a log can have it do the same."""
        network, state = self._network, self._state
        if network is not None and state.waiting and state.idle and not network.blind(state):
            from .policies.network import GUARD

            if not self._watchdog.out(GUARD):
                self._watchdog.call(GUARD, stop - time.perf_counter(), lambda: network.think(state))

    def _by_network(self, starts: StartRound, stop: float) -> bool:
        """Have the network decide, if there is one that leads; return whether nobody else need be asked."""
        network = self._network
        if network is None:
            return False
        from .policies.network import RULE, TIER, follow

        blind = network.blind(self._state)
        starts.hopeful = blind or network.guard.leader == RULE
        if not blind and network.leader == TIER and not self._watchdog.out(TIER):
            if follow(network, self._state, self._watchdog, starts, stop):
                return True
            starts.hopeful = True
        return False

    def snapshot(self) -> dict[str, Any]:
        """Return the state, for JSON: what runs and waits, and what was learned."""
        document = save(self._state, self._watchdog.faults, self._count, self._intervals)
        return document if self._network is None else document | {"network": self._network.save()}

    def _twin(
        self, policy: Any, snapshot: Mapping[str, Any], fleet: Fleet | None = None, *, settings: str | None = None,
        **changes: Any,
    ) -> Scheduler:  # fmt: skip
        """Return a scheduler with another policy and state, and other nodes and arguments if they are given.

        With ``mine`` the state is that of other settings; otherwise they have to be the same.
        """
        fresh = Scheduler(fleet or self._state.fleet, policy, **(self._arguments | changes))
        if settings == MINE:
            snapshot = for_settings(snapshot, fresh._state)
        fresh._count = load(snapshot, fresh._state, fresh._watchdog.faults, fresh._intervals)
        if fresh._network is not None:
            fresh._network.load(snapshot.get("network"))
        for job in fresh._state.running.values():
            fresh._expect(job.request)
        state = fresh._state
        for request in (*state.waiting.values(), *(held.request for held in state.later.held.values())):
            fresh._expect(request)
        return fresh

    def _few(self, only: Set[str]) -> Scheduler:
        """Return a scheduler in the same state by its own rules, with some of the jobs that wait."""
        only |= self._state.notices.claims.keys()
        return self._twin(self._own, save(self._state, self._watchdog.faults, self._count, self._intervals, only))

    @property
    def _own(self) -> Waits | str:
        """The scheduler's own rules, without a policy of the user's or a network."""
        return self._state.rule or ("hybrid" if self._state.settings.ahead else "heuristic")

    def whatif(
        self,
        job: GangJob,
        seconds: Seconds | TypedSeconds = None,
        *,
        together: bool | None = None,
        price: Price = ...,
        **terms: Unpack[TermFields],
    ) -> WaitingJob:
        """Return what `explain` would say of a job were it submitted now; it is not, and nothing changes.

        Args:
            job, seconds, together, price, terms: as of `submit`.

        Raises:
            InstanceError: as `submit` does.
        """
        twin = self._few({*self.waiting})
        twin._intervals.load(self._intervals.save(), twin._state)
        twin.submit(job, seconds, together=together, price=price, **terms)
        told = twin.explain(job.name)
        assert isinstance(told, WaitingJob)
        return told

    @overload
    def explain(self, what: str) -> WaitingJob | RunsNow: ...
    @overload
    def explain(self, what: Decision | int) -> Explanation: ...
    def explain(self, what: Decision | int | str) -> Explanation | WaitingJob | RunsNow:
        """Return why a decision is as it is, why a job waits, or where it runs; to be printed, or read.

        Of a decision, one of the last 64: candidates, scores, which tier decided, the bound, why not the others. Of a
        job, by its name and whether or not a decision has been made since it came: what it needs and what is free, who
        is before it, when it starts if nobody else comes, and what would let it start now. A policy of the user's own
        or a network is not asked for that: the rule decides in its place. Of a running job: where it runs, since when,
        how long still, and if it may be stopped.

        Raises:
            InstanceError: if it is no such decision, or no job that waits or runs.
        """
        if isinstance(what, str):
            if what in self._state.running:
                return RunsNow.of(self._state, what)
            self._state.find(what, "waits")
            return why_waits(self._state, what, self._waits.get(what), self._few, self._intervals)
        number = what.number if isinstance(what, Decision) else plain(what)
        if type(number) is not int or number not in self._explained:
            raise InstanceError("what", f"{number!r} is not one of the last {_KEEP}, nor the name of a job")
        found = self._explained[number]
        if number == self._count and self._changes == self._state.changes and self._state.waiting:
            # prices of the last decision that was asked for, a good start for those of now
            self._worth = worth(self._state, self._worth)
            found = dataclasses.replace(found, objective=self._worth.objective, bound=self._worth.bound)
        return found
