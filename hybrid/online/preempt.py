"""Who is stopped because another may: lower classes for higher ones, and who holds more than a share for who has less.

A waiting job that does not fit may have running ones stopped that

- are of its queue and of a lower class, or of its class and ran for the most that a job runs;
- are of a queue that holds more than its guaranteed share, if the waiting job takes its own over none: where the ways
  to the two queues part in the tree, the one is above its share and the other stays within; or if they are of a lower
  class besides.

Of a queue only so many may stop that it holds more than its share before the last one does. The classes of those that
stop are as low as possible; then the set costs least: GPU seconds that they have left, and what their stops cost.

If a job is owed room, and no set of them leaves it any because those that nobody may have stopped are everywhere, these
may move: they go on elsewhere at once, where there is room or where others give way to them as above.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gangplan.instances.verify.actions import Preempted, verify_preemption
from gangplan.solvers.placement.eviction import Eviction, cheapest_eviction
from gangplan.solvers.placement.online.capacity import Kind
from gangplan.solvers.run import OPTIMAL_GAP

from .explain import Candidate
from .leaving import domains, occupied
from .queue import Request
from .running import RunningJob
from .starts import Starts
from .state import ClusterState
from .stops import Stop

SECONDS = 0.1
"""For one search at most."""
SEARCHES = 8
"""Searches of one decision that found nothing, after which it looks for no more room."""
PLACES = 4
"""Places that are tried for a job for which others would have to move."""
NOBODY, PRIORITY, TURN, RECLAIM, MOVE = range(5)
CAUSES = ("", "priority", "turn", "reclaim", "move")
LAST = np.iinfo(np.int64).max
"""The class of those that move: they leave their place only if all others that may stop are not enough."""


@dataclass(frozen=True, slots=True)
class Victims:
    """Those that may be stopped for a job, p parts of running jobs; arrays are not to be changed.

    Attributes:
        cause: of each part, an index of `CAUSES`, int64 (p,).
        over: number of the account that holds more than its share, 0 where that is not the cause, int64 (p,).
        level: their classes, int64 (p,).
    """

    cause: np.ndarray
    over: np.ndarray
    level: np.ndarray


class Preemption:
    """Stop jobs for one decision.

    Args:
        state: it is changed.
        starts: the round of starts that it is part of.
        stop: of the machine's clock, when there is no more time.

    Attributes:
        stops: the jobs that stopped.
        candidates: what was found, in words.
    """

    def __init__(self, state: ClusterState, starts: Starts, stop: float) -> None:
        self._state, self._starts, self._stop = state, starts, stop
        self._left = SEARCHES
        self._hopeless: set[tuple[object, ...]] = set()
        self._gone: list[RunningJob] = []  # who made place for each of the stops
        self._known: dict[tuple[object, ...], Victims] = {}  # as long as nothing changes
        self._stamp = (-1, -1)
        self._stuck: set[int] = set()  # serial numbers of those that found no other place
        self.stops: list[Stop] = []
        self.candidates: list[Candidate] = []

    def clear(self, request: Request) -> bool:
        """Stop others for a waiting job and start it, if that may be; return whether it did."""
        state = self._state
        degree = request.job.workers[0]
        gang, leaf = state.placed(request, degree), state.accounts.leaf(request.terms)
        key = (Kind.workers(gang), gang.workers[0], leaf, request.terms.priority, gang.apart)
        if key in self._hopeless:
            return False
        if self._make_room(request, degree, self._victims(request, degree)) or self._move(request, degree):
            self._hopeless.clear()
            return True
        self._hopeless.add(key)
        return False

    def _move(self, request: Request, degree: int) -> bool:
        """Have others move, too, for a job that is owed room; those that found no other place stay the next time."""
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
        """Return whether a job takes its queue, or one above, over no guarantee."""
        accounts, asks = self._state.accounts, self._state.asks(request, degree)
        leaf, queues = accounts.leaf(request.terms), bool(self._state.sharing.queues)
        return queues and not accounts.borrows(leaf, asks) and not accounts.capped(leaf, asks)

    def _make_room(self, request: Request, degree: int, victims: Victims) -> bool:
        """Stop the cheapest of those that may be stopped for a job, and start it; return whether it started."""
        state, asks, left = self._state, self._state.asks(request, degree), self._stop - time.perf_counter()
        if left <= 0 or not victims.cause.any() or state.accounts.bars(request.terms, asks) is not None:
            return False
        capped = state.accounts.capped(state.accounts.leaf(request.terms), asks)
        if capped:  # only who is of the queue that holds the most that it may makes room in it
            inside = np.isin(state.running.standing()[1], state.accounts.below(capped[-1]))
            victims = replace(victims, cause=np.where(inside, victims.cause, NOBODY))
        found = self._cheapest(request, degree, victims, min(SECONDS, left))
        if found is not None and capped:
            self._enough(found[0], victims, capped, asks)
        if found is not None and self._carry_out(request, degree, victims, *found):
            return True
        self._left -= 1
        if not self._left:
            self._starts.clear = None
        return False

    def _victims(self, request: Request, degree: int) -> Victims:
        """Return whom a job may have stopped."""
        state, accounts, now = self._state, self._state.accounts, self._state.now
        leaf, asks = accounts.leaf(request.terms), state.asks(request, degree)
        owed = tuple(accounts.within(number, asks) for number in accounts.all[leaf].above)
        key, stamp = (accounts.queues[leaf], request.terms.priority, owed), (state.changes, state.undone)
        if stamp != self._stamp:
            self._stamp = stamp
            self._known.clear()
        if key in self._known:
            return self._known[key]
        (_, since, price, *_), (_, _, _, serial), used = state.running.table()
        ready, payer, level = state.running.standing()
        may = np.isfinite(price) & (ready <= now) & (since < now)
        mine = request.terms.priority
        same = accounts.queues[payer] == accounts.queues[leaf]
        most = np.inf if state.sharing.most_run is None else state.sharing.most_run
        cause = np.where(may & same & (level < mine), PRIORITY, NOBODY)
        cause[may & same & (level == mine) & (now - since >= most)] = TURN
        over = np.zeros(len(cause), np.int64)
        if state.sharing.queues:
            for other in np.unique(payer[may & ~same]).tolist():
                here, there = accounts.fork(leaf, other)
                if accounts.exceeds(there):
                    theirs = may & (payer == other)
                    within = accounts.within(here, asks)
                    over[theirs] = there
                    cause[theirs] = RECLAIM if within else np.where(level[theirs] < mine, PRIORITY, NOBODY)
            self._spare(cause, over, level, serial, used)
        self._known[key] = Victims(cause, over, level.copy())
        return self._known[key]

    def _movers(self, request: Request, degree: int) -> Victims:
        """Return whom a job that is owed room may have stopped or moved."""
        victims, now = self._victims(request, degree), self._state.now
        (end, since, price, *_), (*_, serial), _ = self._state.running.table()
        ready = self._state.running.standing()[0]
        may = (ready <= now) & (since < now) & (end - now > price) & (victims.cause == NOBODY)
        may &= ~np.isin(serial, list(self._stuck))
        cause, over, level = (x.copy() for x in (victims.cause, victims.over, victims.level))
        cause[may], over[may], level[may] = MOVE, 0, LAST
        return Victims(cause, over, level)

    def _spare(
        self, cause: np.ndarray, over: np.ndarray, level: np.ndarray, serial: np.ndarray, used: np.ndarray
    ) -> None:
        """Leave those of a queue out before whose stop it would hold no more than its share: the highest classes."""
        accounts = self._state.accounts
        rows = np.flatnonzero((cause != NOBODY) & (over > 0))
        jobs, first, job = np.unique(serial[rows], return_index=True, return_inverse=True)
        held = np.stack([np.bincount(job, used[r][rows], len(jobs)) for r in range(3)])
        heads = rows[first]
        for number in np.unique(over[heads]).tolist():
            of = np.flatnonzero(over[heads] == number)
            of = of[np.lexsort((-jobs[of], level[heads[of]]))]  # the lowest class, and the latest that came, first
            gone = np.cumsum(held[:, of], axis=1) - held[:, of]
            spared = [not accounts.exceeds(number, -amounts) for amounts in gone.T]
            cause[rows[np.isin(job, of[spared])]] = NOBODY

    def _cheapest(
        self, request: Request, degree: int, victims: Victims, seconds: float
    ) -> tuple[list[str], Eviction] | None:
        """Return the jobs to stop, of classes as low as possible, and what they cost."""
        state, now, began = self._state, self._state.now, time.perf_counter()
        job, names = state.placed(request, degree), list(state.running)
        (end, since, price, *_), (_, wide, _, _), _ = state.running.table()
        moves = victims.cause == MOVE
        with np.errstate(invalid="ignore", over="ignore"):  # an infinite price of no GPUs: nobody who goes
            work = np.where(moves, price, np.where(end >= now, end - now, now - since) + price) * wide
        occupancy = occupied(state, job, np.zeros(len(names)), domains(state, job))
        need = np.array(Kind.workers(job).need)
        for top in np.unique(victims.level[victims.cause != NOBODY]).tolist():
            goes = (victims.cause != NOBODY) & (victims.level <= top)
            cost = np.full(len(names), np.inf)
            cost[occupancy.job[goes]] = work[goes]
            left = max(seconds - (time.perf_counter() - began), 0.0)
            found = cheapest_eviction(replace(occupancy, cost=cost), need, job.workers[0], time_limit=left)
            if found is not None:
                return [names[i] for i in found.jobs], found
        return None

    def _enough(self, names: list[str], victims: Victims, capped: Sequence[int], asks: Sequence[int]) -> None:
        """Add jobs, those with the least left first, until none of some queues holds more than the most that it may."""
        state = self._state
        used, serial = state.running.table()[2][:3], state.running.table()[1][3]
        goes = {name: used[:, state.running.rows(name)].sum(axis=1) for name in names}
        over = np.max([state.accounts.excess(number, asks) for number in capped], axis=0)
        _, first = np.unique(serial[victims.cause != NOBODY], return_index=True)
        able = [state.running.parts[row][0] for row in np.flatnonzero(victims.cause != NOBODY)[first].tolist()]
        rest = [state.running[name] for name in able if name not in goes]
        rest.sort(key=lambda job: (job.request.terms.priority, job.left(state.now) * job.gpus))
        over -= sum(goes.values(), np.zeros(3))
        for job in rest:
            if (over <= 0).all():
                break
            names.append(job.name)
            over -= used[:, state.running.rows(job.name)].sum(axis=1)

    def _carry_out(self, request: Request, degree: int, victims: Victims, names: list[str], found: Eviction) -> bool:
        """Stop jobs, and start the one for which they stop; return whether it started, else all is as it was."""
        state, starts = self._state, self._starts
        names.sort(key=lambda name: state.running[name].gpus)  # the largest last: its queue holds most until then
        rows = [state.running.rows(name)[0] for name in names]
        causes = [CAUSES[victims.cause[row]] for row in rows]
        claims = self._claims(request, names, causes, victims.over[rows].tolist())
        wrong = [words for claim in claims for words in verify_preemption(claim, state.running)]
        jobs = [state.running[name] for name in names]
        moves = [job for job, cause in zip(jobs, causes, strict=True) if cause == CAUSES[MOVE]]
        cost = sum(self._work(job, job in moves) for job in jobs)
        work = f"{len(names)} jobs with {cost / 3600:.3g} GPU-hours give way to {request.name}"
        if wrong:
            self.candidates.append(Candidate(work, cost, wrong[0]))
            return False
        before, hold = (len(starts.starts), len(self.stops)), starts.clear
        for job, cause in zip(jobs, causes, strict=True):
            held, left, price = state.named(job.nodes), job.left(state.now), job.request.price or 0.0
            self.stops.append(Stop(job.name, held, request.name, left, price, cause))
            self._gone.append(job)
            state.free(job.name)
            state.wait(job.request.stopped(job.degree, job.ran(state.now), state.now - job.since))
        starts.renew()
        starts.clear = None
        tier = next((cause for cause in causes if cause != CAUSES[MOVE]), "moves")
        done = starts.one(request.name, (degree,), tier, hold=False)
        done = done and all(self._goes_on(job) for job in reversed(moves))
        starts.clear = hold
        if not done:
            self._take_back(*before)
            return False
        starts.stopped.update(names)
        proved = cost - found.bound <= OPTIMAL_GAP * cost
        proof = "no set costs less" if proved else f"no set costs less than {found.bound / 3600:.3g}"
        proof = f"{len(moves)} of them go on elsewhere" if moves else proof
        self.candidates.append(Candidate(f"{work}; {proof}", cost))
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

    def _take_back(self, starts: int, stops: int) -> None:
        """Have those wait again that started since there were so many starts, and those run on that stopped."""
        state, gone = self._state, self._gone[stops:]
        self._starts.undo([start.job for start in self._starts.starts[starts:]])
        self._starts.stopped.difference_update(job.name for job in gone)
        del self.stops[stops:], self._gone[stops:]
        for job in gone:
            state.waiting[job.name] = job.request
            assert state.put(job), f"{job.name} had these seats"
        self._starts.renew()

    def _work(self, job: RunningJob, moves: bool) -> float:
        """Return what a stop costs: GPU seconds that its next start takes, and if it waits those that it has left."""
        return ((0.0 if moves else job.left(self._state.now)) + (job.request.price or 0.0)) * job.gpus

    def _claims(
        self, request: Request, names: Sequence[str], causes: Sequence[str], over: Sequence[int]
    ) -> Iterator[Preempted]:
        """Yield what each stop rests on, for the verifier: shares are summed up from who runs."""
        state, accounts, sharing = self._state, self._state.accounts, self._state.sharing
        total = state.placer.whole[:3, np.array(state.up)].sum(axis=1)
        asks = np.array(state.asks(request, request.job.workers[0]))
        used, payer = state.running.table()[2][:3], state.running.standing()[1]

        def held(number: int) -> np.ndarray:
            return np.asarray(used[:, np.isin(payer, accounts.below(number))].sum(axis=1))

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
            )  # fmt: skip
            gone[number] = before + used[:, state.running.rows(name)].sum(axis=1)
