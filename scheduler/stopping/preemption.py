"""Who is stopped because another may: lower classes for higher ones, and who holds more than a share for who has less.

A waiting job that does not fit may have running ones stopped that

- are of its queue and of a lower class, or of its class and ran for the most that a job runs;
- are of a queue that holds more than its guaranteed share, and by weight more above it than the waiting job takes its
  own above its share, where the ways to the two queues part in the tree; or if they are of a lower class besides.

Of a queue only so many may stop that it holds more than that before the last one does. The classes of those that
stop are as low as possible; then the set costs least: GPU seconds that they have left, and what their stops cost.

If a job is owed room, and no set of them leaves it any because those that nobody may have stopped are everywhere, these
may move: they go on elsewhere at once, where there is room or where others give way to them as above.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gangplan.instances.verify.actions import Preempted, verify_preemption
from gangplan.solvers.placement.eviction import Eviction
from gangplan.solvers.placement.online.capacity import Kind

from ..decision import Considered
from ..queueing.queue import Shape
from ..queueing.request import Request
from ..starting.starts import StartRound
from ..state import SchedulerState
from .leaving import Leaving
from .running_jobs import RunningJob, RunningTable

SECONDS = 0.1
"""For one search at most."""
SEARCHES = 8
"""Searches that found nothing, after which a decision looks for no more room unless more queues give way."""
PLACES = 4
"""Places that are tried for a job for which others would have to move."""
NOBODY, PRIORITY, TURN, RECLAIM, MOVE = range(5)
CAUSES = ("", "priority", "turn", "reclaim", "move")
LAST = np.iinfo(np.int64).max
"""The class of those that move: they leave their place only if all others that may stop are not enough."""


@dataclass(frozen=True, slots=True)
class Victims:
    """Those that may be stopped for a job, by submission; arrays are not to be changed.

    Attributes:
        cause: of each running job, an index of `CAUSES`, int64 (n,).
        over: number of the account that holds more than its share, 0 where that is not the cause, int64 (n,).
        level: their classes, int64 (n,).
        floor: of these accounts, the share down to which it may be brought, if not its guarantee.
    """

    cause: np.ndarray
    over: np.ndarray
    level: np.ndarray
    floor: Mapping[int, float]


class Preemption:
    """Stop jobs for one decision.

    Args:
        state: it is changed.
        starts: the round of starts that it is part of.
        stop: of the machine's clock, when there is no more time.
    """

    def __init__(self, state: SchedulerState, starts: StartRound, stop: float) -> None:
        self._state, self._starts, self._stop = state, starts, stop
        self._left = SEARCHES
        self._hopeless: set[tuple[object, ...]] = set()
        self._over: set[int] = set()  # accounts that held more than their share when `lent` was asked
        self._known: dict[tuple[object, ...], Victims] = {}  # as long as nothing changes
        self._stamp = -1  # of the jobs
        self._low: tuple[int, tuple[dict[int, int], tuple[set[int], set[int]]]] | None = None
        self._stuck: set[int] = set()  # serial numbers of those that found no other place

    def clear(self, request: Request) -> bool:
        """Stop others for a waiting job and start it, if that may be; return whether it did."""
        state = self._state
        if request.name in state.notices.claims:
            return False
        degree = request.job.workers[0]
        gang, accounts = state.placed(request, degree), state.accounts
        user = request.terms.user if accounts.over_limit(request.terms, state.asks(request, degree)) else ""
        shut = state.shut(request, degree).tobytes()
        whose = accounts.queues[accounts.leaf(request.terms)], request.terms.priority, request.terms.preempts, user
        key = Kind.workers(gang), gang.workers[0], gang.apart, shut, *whose
        if key in self._hopeless:
            return False
        if self._make_room(request, degree, self._victims(request, degree)) or self._move(request, degree):
            self._hopeless.clear()
            return True
        self._hopeless.add(key)
        return False

    def lent(self) -> bool:
        """Return whether more queues whose jobs may stop, or queues above, exceed their share than before."""
        if not self._state.sharing.queues or (self._starts.clear is None and self._left > 0):
            return False
        accounts, before = self._state.accounts, self._over
        self._over = {x for queue in self._lowest()[1][1] for x in accounts.all[queue].above if accounts.exceeds(x)}
        if more := not self._over <= before:
            self._hopeless.clear()
            self._left, self._starts.clear = SEARCHES, self.clear
        return more

    def vain(self, shape: Shape) -> bool:
        """Return whether nobody may be stopped or moved for the jobs of a line, whatever they need."""
        accounts, lowest, (turn, over) = self._state.accounts, *self._lowest()
        if not lowest:
            return True
        if accounts.sharing.queues and not accounts.borrows(shape.group.queue, shape.asks):
            return False
        mine, level = shape.group.queue, shape.group.level
        if mine in turn or lowest.get(mine, level) < level:
            return False
        ways = {other: accounts.fork(mine, other) for other in over if other != mine}
        floors = ((there, accounts.floor(here, there, shape.asks)) for here, there in ways.values())
        return all(lowest[other] >= level for other in ways) and not any(
            accounts.exceeds(there, floor=floor) for there, floor in floors
        )

    def _lowest(self) -> tuple[dict[int, int], tuple[set[int], set[int]]]:
        """Return the lowest class that may stop by queue; where jobs give way to others; and above what they lent."""
        stamp = self._state.changes
        if self._low is None or self._low[0] != stamp:
            state, accounts, now = self._state, self._state.accounts, self._state.now
            table = state.running.table()
            may = table.stoppable(now)
            queue, level = accounts.queues[table.payer[may]], table.level[may]
            low = np.full(len(accounts.all), LAST)
            np.minimum.at(low, queue, level)
            most = state.sharing.most_run
            late = (table.settled <= now) & (now - table.since >= (np.inf if most is None else most))
            lowest = {x: int(low[x]) for x in np.flatnonzero(np.bincount(queue)).tolist()}
            over = {x for x in lowest if any(map(accounts.exceeds, accounts.all[x].above))}
            self._low = stamp, (lowest, ({*queue[late[may]].tolist()}, over))
        return self._low[1]

    def _move(self, request: Request, degree: int) -> bool:
        """Have others move, too, for a job that is owed room; those that have no other place stay the next time."""
        self._stuck.clear()
        for _ in range(PLACES):
            tried = len(self._stuck)
            if not self._owed(request, degree):
                return False
            if self._make_room(request, degree, self._movers(request, degree)):
                return True
            if len(self._stuck) == tried:
                break
        return False

    def _owed(self, request: Request, degree: int) -> bool:
        """Return whether a job takes its queue, or one above, over no guarantee, and no limit keeps it."""
        state = self._state
        return bool(state.sharing.queues) and not state.borrows(request) and state.refuses(request, degree) is None

    def _make_room(self, request: Request, degree: int, victims: Victims) -> bool:
        """Stop the cheapest of those that may be stopped for a job, and start it; return whether it started."""
        left = self._stop - time.perf_counter()
        if left <= 0 or not victims.cause.any() or not request.terms.preempts:
            return False
        helpful = self._helpful(request, degree, victims)
        if self._state.refuses(request, degree, map(self._named, helpful)):
            return False
        eviction = self._cheapest(request, degree, victims, helpful, min(SECONDS, left))
        if eviction is not None and self._carry_out(request, degree, victims, eviction):
            return True
        self._left -= 1
        if not self._left:
            self._starts.clear = None
        return False

    def _running(self) -> RunningTable:
        """Return the running jobs as they are now."""
        if self._stamp != self._state.changes:
            self._stamp, (self._jobs, self._rows) = self._state.changes, self._state.running.jobs()
            self._known.clear()
        return self._jobs

    def _victims(self, request: Request, degree: int) -> Victims:
        """Return whom a job may have stopped."""
        state, accounts, now, jobs = self._state, self._state.accounts, self._state.now, self._running()
        leaf, asks = accounts.leaf(request.terms), state.asks(request, degree)
        key = accounts.queues[leaf], request.terms.priority, asks if state.sharing.queues else ()
        if key in self._known:
            return self._known[key]
        may = jobs.stoppable(now)
        mine, queue = request.terms.priority, accounts.queues[jobs.payer]
        same = queue == accounts.queues[leaf]
        most = np.inf if state.sharing.most_run is None else state.sharing.most_run
        turn = may & same & (jobs.level == mine) & (jobs.settled <= now) & (now - jobs.since >= most)
        cause = np.where(turn, TURN, np.where(may & same & (jobs.level < mine), PRIORITY, NOBODY))
        over, floor = np.zeros(len(cause), np.int64), dict[int, float]()
        if state.sharing.queues:
            for other in np.flatnonzero(np.bincount(queue[may & ~same])).tolist():
                here, there = accounts.fork(int(accounts.queues[leaf]), other)
                if accounts.exceeds(there):
                    theirs = may & (queue == other)
                    lower = jobs.level[theirs] < mine
                    over[theirs] = there
                    cause[theirs] = np.where(lower, PRIORITY, NOBODY)
                    if accounts.within(here, asks) or not lower.any():
                        floor[there] = accounts.floor(here, there, asks)
                        cause[theirs] = RECLAIM if accounts.exceeds(there, floor=floor[there]) else NOBODY
        self._known[key] = Victims(cause, over, jobs.level, floor)
        return self._known[key]

    def _movers(self, request: Request, degree: int) -> Victims:
        """Return whom a job that is owed room may have stopped or moved."""
        victims, jobs, now = self._victims(request, degree), self._running(), self._state.now
        may = jobs.stoppable(now) & (jobs.end - now > jobs.price) & (victims.cause == NOBODY)
        may &= ~np.isin(jobs.serial, list(self._stuck))
        cause, over, level = (x.copy() for x in (victims.cause, victims.over, victims.level))
        cause[may], over[may], level[may] = MOVE, 0, LAST
        return Victims(cause, over, level, victims.floor)

    def _helpful(self, request: Request, degree: int, victims: Victims) -> list[int]:
        """Return who of them holds what a limit keeps a job from: the lowest classes with the least left first."""
        accounts, jobs, asks = self._state.accounts, self._running(), self._state.asks(request, degree)
        if not accounts.bounded or accounts.refuses(request.terms, asks) is None:
            return []
        some = np.flatnonzero((victims.cause != NOBODY) & (victims.cause != MOVE))
        cost = self._work(jobs)
        return sorted(some.tolist(), key=lambda i: (victims.level[i], cost[i], i))

    def _named(self, i: int) -> RunningJob:
        return self._state.running[self._state.running.parts[self._rows[i]][0]]

    def _work(self, jobs: RunningTable) -> np.ndarray:
        """Return what a stop of each costs: GPU seconds that it has left, and that its next start takes.

        Those of a job without GPUs count as of one.
        """
        left = jobs.left(self._state.now)
        return np.asarray((left + np.where(np.isfinite(jobs.price), jobs.price, 0.0)) * np.maximum(jobs.wide, 1))

    def _cheapest(
        self, request: Request, degree: int, victims: Victims, helpful: Sequence[int], seconds: float
    ) -> Eviction | None:
        """Return the jobs to stop, of classes as low as possible, and what they cost."""
        state, jobs, until = self._state, self._running(), time.perf_counter() + seconds
        cost = self._work(jobs)
        cost = np.where(victims.cause == MOVE, np.where(np.isfinite(jobs.price), jobs.price, 0.0) * jobs.wide, cost)
        leaving = Leaving(state, state.placed(request, degree), request)

        def search(goes: np.ndarray) -> Eviction | None:
            return leaving.cheapest(np.where(goes, cost, np.inf), until - time.perf_counter())

        for top in np.unique(victims.level[victims.cause != NOBODY]).tolist():
            goes = (victims.cause != NOBODY) & (victims.level <= top)
            eviction = search(goes)
            if eviction is not None and not self._spares(victims, eviction.jobs):
                orders = np.lexsort((cost, victims.level)), np.lexsort((-jobs.serial, victims.level))
                few = [x for order in orders if (x := search(self._few(goes, victims, order))) is not None]
                cheapest = min(few, key=lambda x: x.cost, default=None)
                eviction = None if cheapest is None else replace(cheapest, bound=eviction.bound)
            if eviction is not None:
                chosen = self._enough(request, degree, victims, eviction.jobs, helpful, leaving, cost)
                return None if chosen is None else replace(eviction, jobs=chosen, cost=float(cost[list(chosen)].sum()))
        return None

    def _spares(self, victims: Victims, chosen: Sequence[int]) -> bool:
        """Return whether each queue holds more than its share until the last of its jobs stops, the largest."""
        accounts, jobs, over, of = self._state.accounts, self._running(), victims.over, np.array(chosen, np.int64)
        for number in np.unique(over[of][over[of] > 0]).tolist():
            mine = of[over[of] == number]
            first = mine[np.argsort(jobs.wide[mine], kind="stable")][:-1]
            if not accounts.exceeds(number, -jobs.used[:, first].sum(axis=1), victims.floor.get(number, 0.0)):
                return False
        return True

    def _few(self, goes: np.ndarray, victims: Victims, order: np.ndarray) -> np.ndarray:
        """Return so many of those that may stop, in an order, that each queue holds more than its share until then."""
        accounts, jobs, over, few = self._state.accounts, self._running(), victims.over, goes.copy()
        for number in np.unique(over[goes & (over > 0)]).tolist():
            mine = order[(goes & (over == number))[order]]
            gone = np.cumsum(jobs.used[:, mine], axis=1) - jobs.used[:, mine]
            floor = victims.floor.get(number, 0.0)
            few[mine[[not accounts.exceeds(number, -amounts, floor) for amounts in gone.T]]] = False
        return few

    def _enough(
        self,
        request: Request,
        degree: int,
        victims: Victims,
        jobs: Sequence[int],
        helpful: Sequence[int],
        leaving: Leaving,
        cost: np.ndarray,
    ) -> tuple[int, ...] | None:
        """Return them and as many more as let a job start that a limit keeps, less those that are not needed then."""
        chosen, rest = list(jobs), [i for i in helpful if i not in jobs]

        def refused(some: Sequence[int]) -> bool:
            gone = [self._named(i) for i in some if victims.cause[i] != MOVE]
            return self._state.refuses(request, degree, gone) is not None

        if not helpful or not refused(chosen):
            return tuple(chosen)
        while refused(chosen):
            if not rest:
                return None
            chosen.append(rest.pop(0))
        for i in sorted(chosen, key=lambda i: -cost[i]):
            fewer = [x for x in chosen if x != i]
            if leaving.where(fewer) and not refused(fewer):
                chosen = fewer
        return tuple(chosen)

    def _carry_out(self, request: Request, degree: int, victims: Victims, eviction: Eviction) -> bool:
        """Stop jobs, and start the one for which they stop; return whether it started, else all is as it was."""
        state, starts = self._state, self._starts
        chosen = sorted(eviction.jobs, key=lambda i: self._running().wide[i])  # the largest last, see `_spares`
        jobs, causes = [self._named(i) for i in chosen], [CAUSES[victims.cause[i]] for i in chosen]
        names = [job.name for job in jobs]
        claims = self._claims(request, names, causes, victims.over[chosen].tolist())
        wrong = [words for claim in claims for words in verify_preemption(claim, state.running)]
        moves = [job for job, cause in zip(jobs, causes, strict=True) if cause == CAUSES[MOVE]]
        cost = eviction.cost
        count = f"{len(names)} job" + "s" * (len(names) != 1)
        work = f"{count} with {cost / 3600:.3g} GPU-hours give way to {request.name}"
        if wrong:
            starts.preempted.append(Considered(work, cost, wrong[0]))
            return False
        starts.thaw()
        clear, starts.clear = starts.clear, None

        def begin() -> Iterator[bool]:
            tier = next((cause for cause in causes if cause != CAUSES[MOVE]), "moves")
            yield starts.one(request.name, (degree,), tier, hold=False)
            for job in reversed(moves):
                yield self._goes_on(job)

        done = starts.exchange([(job, request.name, cause) for job, cause in zip(jobs, causes, strict=True)], begin())
        starts.clear = clear
        if not done:
            return False
        proof = "no set costs less" if eviction.proved else f"no set costs less than {eviction.bound / 3600:.3g}"
        proof = f"{len(moves)} of them at once elsewhere" if moves else proof
        starts.preempted.append(Considered(f"{work}; {proof}", cost))
        return True

    def _goes_on(self, job: RunningJob) -> bool:
        """Start a job that moves elsewhere, if need be where others stop for it; return whether it did."""
        request = self._state.waiting[job.name]
        if self._starts.one(job.name, (job.degree,), "moves", hold=False):
            return True
        if self._make_room(request, job.degree, self._victims(request, job.degree)):
            return True
        self._stuck.add(request.serial)
        return False

    def _claims(
        self, request: Request, names: Sequence[str], causes: Sequence[str], over: Sequence[int]
    ) -> Iterator[Preempted]:
        """Yield what each stop rests on, for the verifier: shares are summed up from who runs."""
        state, accounts, sharing = self._state, self._state.accounts, self._state.sharing
        total = np.array(accounts.total)
        asks = np.array(state.asks(request, request.job.workers[0]))
        all_ = self._running()

        def held(number: int) -> np.ndarray:
            return np.asarray(all_.used[:, np.isin(all_.payer, accounts.below(number))].sum(axis=1))

        gone: dict[int, np.ndarray] = {}  # of each account, what those before hold
        way = accounts.all[accounts.leaf(request.terms)].above
        owed = next((number for number in way if accounts.within(number, asks.tolist())), 0)
        for name, cause, number in zip(names, causes, over, strict=True):
            job = state.running[name]
            there, here = accounts.all[number], accounts.all[owed if cause == CAUSES[MOVE] else 0]
            if number:
                here = accounts.all[accounts.fork(accounts.leaf(request.terms), accounts.leaf(job.request.terms))[0]]
            before = gone.setdefault(number, np.zeros(3, np.int64))
            has = held(number) - before if number else before
            wants = (held(here.above[-1]) if here.above else 0) + asks
            yield Preempted(
                name, job.request.price, cause, job.request.terms.priority, state.now - job.since, sharing.least_run,
                sharing.most_run, request.name, request.terms.priority, not number,
                float((has / total).max()), there.quota.share, float((wants / total).max()), here.quota.share,
                there.quota.weight, here.quota.weight,
            )  # fmt: skip
            gone[number] = before + all_.used[:, np.searchsorted(all_.serial, job.request.serial)]
