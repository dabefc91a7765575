"""`Scheduler`: a state that is told what happens, and says who starts where."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Set
from os import PathLike
from typing import TYPE_CHECKING, Any

from gangplan.instances import Cluster, InstanceError
from gangplan.instances.arrays import plain, require_choice, require_number, require_share
from gangplan.instances.placement import Fleet, SpeedModel
from gangplan.instances.placement.proximity import Proximity
from gangplan.instances.quantities import counted, moment
from gangplan.solvers.placement.online.evolved import Evolved, Waits
from gangplan.solvers.placement.online.patient import Patient

from .changes import ChangeCalls
from .configure import MINE, ConfigureCalls
from .decision import Decision, Explanation, Stop, explained
from .events import EventCalls
from .explaining.explain import KEPT, ExplainCalls
from .explaining.intervals import StartIntervals
from .journal.write import Journal, recorded
from .moving.migration import MoveCalls
from .policies.lookahead import Lookahead, Worth
from .policies.policy import Proposes, Ranks, Watchdog, ask
from .queueing.precedence import ByPrecedence
from .settings import MAX_WAIT, PATIENCE, SchedulerSettings, Sharing
from .snapshots.snapshot import load, save
from .snapshots.snapshot_settings import for_settings
from .starting.starts import StartRound
from .state import SchedulerState
from .stopping.grace import announce, end_grace, start_claims
from .stopping.preemption import Preemption
from .stopping.stops import Stops
from .windows import WindowCalls, stop_drained

if TYPE_CHECKING:
    from gangplan.learned.online.policy import GnnPolicy

    from .policies.network import NetworkTier

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


class Scheduler(EventCalls, ExplainCalls, MoveCalls, WindowCalls, ChangeCalls, ConfigureCalls):
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
        sharing, grace = Sharing.of(sharing), plain(grace)
        self._arguments: dict[str, Any] = {
            "speeds": speeds, "together": together, "reserve": reserve, "order": order, "price": price,
            "forget": forget, "patience": patience, "max_wait": max_wait, "sharing": sharing, "durations": durations,
            "grace": grace,
        }  # fmt: skip
        settings = SchedulerSettings(together, reserve, usual, look, price, patience, durations, max_wait, grace)
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
        state.advance(now)
        self._count += 1
        if self._network is not None:
            self._network.compare(state, self._watchdog, began + _POLICY * deadline)
        starts, killed = StartRound(state, self._watchdog, began + _START * deadline), list[Stop]()
        if state.notices.stopping or state.notices.claims:
            killed = end_grace(state)
            start_claims(state, starts)
        if state.calendar.windows:
            stop_drained(state, starts)
        if ahead is not None:
            ahead.choose(state, began + _LOOK * deadline)
        preemption = None
        if not state.alike:
            state.age()
        if not state.alike and state.sharing.preempt:
            preemption = Preemption(state, starts, began + _START * deadline)
            starts.clear, starts.vain = preemption.clear, preemption.vain
        stages = ByPrecedence(state, starts, preemption)
        for _ in stages:
            if not starts.over():
                self._ask(starts, began, deadline, stages.again)
        stopped, stopping = announce(state, starts, killed) if starts.stops else (tuple(killed), ())
        said = {start.tier for start in starts.starts.values()}
        tier = next((tier for tier in TIERS if tier in said), "heuristic")
        notes = self._watchdog.taken() if self._watchdog.notes else ()
        orders = () if ahead is None else ahead.candidates()
        self._waits, self._changes, names = starts.waits, state.changes, {*starts.starts}
        self._explained[self._count] = explained(
            self._count, tier, names, starts.waits, starts.scores, orders, (*starts.preempted, *starts.traded), notes
        )
        self._explained.pop(self._count - KEPT, None)
        self._intervals.decided(state, [*starts.starts])
        took = time.perf_counter() - began
        state.note_freed((stop.job for stop in stopped), names)
        made = tuple(starts.starts.values()), tier, notes, took, starts.more, stopped
        return Decision(self._count, state.now, *made, tuple(x for x in starts.mends if x.job in names), stopping)

    def _ask(self, starts: StartRound, began: float, deadline: float, again: bool) -> None:
        """Have jobs of the stage that is open start, and others stop for them: who is asked, in order.

        Args:
            starts: the round.
            began, deadline: of the machine's clock, and the time from then on.
            again: whether nobody stops any more.
        """
        state = self._state
        if again:
            starts.clear = None
        if state.waiting:
            starts.due()
        if state.mending.torn:
            state.mending.run(state, starts)
        if state.waiting and self._asked is not None and (state.open or state.running.stoppable):
            ask(self._asked, state, self._watchdog, starts, _POLICY * (began + deadline - time.perf_counter()))
        settled = False
        if self._network is not None and state.waiting and state.idle:
            settled = self._network.decide(state, self._watchdog, starts, began + _POLICY * deadline)
        if state.waiting and state.running.stoppable and not again and Stops(state, starts).run():
            starts.due()  # who is due may fit now, and stands behind those of its line that leave it the room
        if state.waiting and (state.open or starts.clear) and not settled:
            usual = "lookahead" if self._ahead and self._ahead.found else "heuristic"
            starts.all(state.rule.tier if state.rule else usual)

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
        state = fresh._state
        for request in (*state.waiting.values(), *(held.request for held in state.later.held.values())):
            fresh._expect(request)
        for job in state.running.values():
            fresh._expect(job.request)
        return fresh

    def _few(self, only: Set[str]) -> Scheduler:
        """Return a scheduler in the same state by its own rules, with some of the jobs that wait."""
        only |= self._state.notices.claims.keys()
        return self._twin(self._own, save(self._state, self._watchdog.faults, self._count, self._intervals, only))

    @property
    def _own(self) -> Waits | str:
        """The scheduler's own rules, without a policy of the user's or a network."""
        return self._state.rule or ("hybrid" if self._state.settings.ahead else "heuristic")
