"""The books of the independent model: what a decision may do to a cluster, and what it has to do.

It is written from docs/scheduler.md and public docstrings alone and shares no code with what it checks.
"""

from __future__ import annotations

from math import exp, inf
from typing import Any

from .events import Events
from .jobs import SLACK, Job, Nodes
from .wrong import hold

LONGER = 0.091
"""By whose exponential a job is slower than at best if it starts nonetheless, by the patient rule."""


class World(Events):
    """The cluster as events and decisions leave it."""

    def decide(self, decision: Any, own: bool) -> None:
        """Enter a decision, and raise `Wrong` if it does what it may not; `own`: whether a policy chooses GPUs."""
        self.calm &= all(job.end(-inf) >= self.now * (1 - SLACK) for job in self.running.values())
        told = {x.job for x in decision.stopping}
        killed = self._ended(decision)
        stops = [*(x for x in decision.stops if x.job not in killed), *decision.stopping]
        at = {x.job: i for i, x in enumerate(decision.starts)}  # who stops for the first to start stopped first
        gains = sorted((x for x in stops if x.cause != "drain"), key=lambda x: at.get(x.other, len(at)))
        self.stopped = bool(gains)
        self._drained([x for x in stops if x.cause == "drain"], told)
        drained = {x.job for x in stops if x.cause == "drain"}
        vague = bool(told) or self.notices.busy
        self.aged, self.calm = self.notices.aged, self.calm and not vague
        dues = (j for j in self.waiting.values() if j.due <= self.now)
        due = min(dues, key=lambda j: (j.due, j.serial), default=None)
        known = all(j.due < inf for j in (*self.waiting.values(), *self.running.values()))
        known = known and due is not None and len(due.workers) == 1 and not (self.windows and self.near)
        was = self.earliest(due, self.running.values()) if gains and known and due and not vague else inf
        gone: set[str] = set()
        moves, begun = {x.job: x for x in gains if x.cause == "move"}, {x.job: x for x in decision.starts}
        for x in gains:
            hold(x.job in self.running, "stop", f"{x.job} stops and does not run")
            # it stops for another one, or where nodes close
            waits = x.other in self.waiting or x.other in moves or x.other in gone or x.other in drained
            hold(waits, "cause", f"{x.job} stops for {x.other}, which does not wait")
            victim = self.running[x.job]
            new = [y for y in decision.starts if y.job in self.waiting or y.job in gone]  # who stopped may be back
            other = self.waiting[x.other] if x.other in self.waiting else self.running[x.other]
            if x.job in moves and x.job not in told:  # others may hold its place until their grace is over
                on = begun[x.job].degree == victim.degree if x.job in begun else bool(told)
                hold(on, "move", f"{x.job} moves with {victim.degree} workers and starts as {begun.get(x.job)}")
            self.books.stop(victim, other, x.cause, gone, new, vague)
            gone |= {x.job} - moves.keys()
        stopped = {x.job: self._stop(x, x.job in told) for x in gains}
        promised = self.notices.started({x.job for x in decision.starts}, True)
        for x in decision.starts:
            hold(x.job in self.waiting, "lost", f"{x.job} starts and does not wait")
            kept = self.torn[x.job][2] if x.tier == "mend" and x.job in self.torn else {}
            self._start(self.waiting[x.job], x, own and x.tier in ("policy", "gnn"), x.job in promised or vague, kept)
        self.notices.started({x.job for x in decision.starts}, decision.more)
        self.notices.told(decision.stopping, moves.keys() - begun.keys())
        starts = {x.job: x for x in decision.starts}
        self._mended(decision, starts)
        self.torn = self.torn if decision.more else {}  # the next one goes on with it
        worth = [x for x in gains if x.cause == "gain" and not vague]
        freed = {(n, g) for x in worth for n, gpus in stopped[x.job].items() for g in gpus}
        for x in worth:
            self._worth(x, stopped, starts, freed)
        if was < inf and due and due.name in self.waiting and self.books.alike:
            now = self.earliest(due, self.running.values())
            hold(now <= was * (1 + SLACK), "overtaken", f"{due.name} would have room at {was} s, now it has at {now} s")
        if not gains and not vague:
            self._protected(decision)

    def _ended(self, decision: Any) -> set[str]:
        """Have those stop whose grace is over, and see that no other stops at once who has one; return them."""
        killed = self.notices.ended(decision.stops)
        for x in decision.stops:
            slow = 0.0 if x.job not in self.running or x.job in killed else self.notices.grace(self.running[x.job])
            hold(not slow, "grace", f"{x.job} stops at once, its grace is {slow} s")
            if x.job in killed:
                self._killed(x)
        return killed

    def _mended(self, decision: Any, starts: dict[str, Any]) -> None:
        """Check that gangs that lost a node keep the rest."""
        for x in decision.mends:
            hold(x.job in starts and x.job in self.torn, "mend", f"{x} is of {[*starts]} and {[*self.torn]}")
            node, degree, kept = self.torn[x.job]
            has = {n: {*gpus, *x.nodes.get(n, ())} for n, gpus in {**x.nodes, **kept}.items() if self.nodes[n].up}
            same = {n: {*gpus} for n, gpus in starts[x.job].nodes.items()} == has
            words = f"{x} of {degree} workers, which keep {kept}: {starts[x.job]}"
            hold(same and x.node == node and starts[x.job].degree == degree, "mend", words)

    def _killed(self, x: Any) -> None:
        """Have a job stop whose grace is over."""
        job = self.running[x.job]
        hold(dict(x.nodes) == job.nodes, "stop", f"{x} of {job.nodes}")
        self.halt(x.job)

    def _drained(self, stops: list[Any], told: set[str]) -> None:
        """Have those stop that may and are where a window is; see that it is these."""
        there = {
            job.name
            for w in self.windows.values()
            for job in self.running.values()
            if w["begin"] <= self.now and job.name not in w["jobs"] and not job.nodes.keys().isdisjoint(w["nodes"])
        }
        there = {name for name in there if self.notices.stoppable(self.running[name])}
        words = f"{[x.job for x in stops]} stop where nodes close, should be {sorted(there)}"
        hold(sorted(x.job for x in stops) == sorted(there), "drain", words)
        for x in stops:
            job = self.running[x.job]
            hold(not x.other and dict(x.nodes) == job.nodes and x.price == job.price, "drain", f"{x} of {job.nodes}")
            if x.job not in told:
                self.waiting[x.job] = self.free(x.job)
                job.stop(self.now)

    def _stop(self, x: Any, told: bool) -> Nodes:
        """Have a job stop that runs, may be stopped and is named with what it holds; return that."""
        hold(x.job in self.running, "stop", f"{x.job} stops and does not run")
        job = self.running[x.job]
        hold(self.notices.stoppable(job), "stop", f"{x.job} stops and may not be stopped")
        hold(job.grants or x.cause != "gain", "stop", f"{x.job} has no GPUs and stops for a gain")
        left = job.end(self.now) - self.now
        same = dict(x.nodes) == job.nodes and x.price == job.price
        same &= x.left > 0 if job.seconds is None else abs(x.left - left) <= 1e-6 * max(1, left)
        hold(same, "stop", f"{x.job} has {job.nodes}, {left} s left and the price {job.price}; said is {x}")
        ran, price = job.ran(self.now), job.price or 0.0
        hold(ran >= price * (1 - SLACK), "early", f"{x.job} stops when it got on for {ran} s, its price is {price}")
        hold(not job.urgent or x.cause != "gain", "early", f"{x.job} stops and was due when it started")
        if not told:
            self.waiting[x.job] = self.free(x.job)
            job.stop(self.now)
        return job.nodes

    def _start(self, job: Job, start: Any, own: bool, promised: bool, kept: Nodes) -> None:
        """Have a job start where it may, whole; a gang that is mended is as it was on the nodes that it has `kept`.

        There its workers may be in other bundles than now: a policy chose them, or others were the nodes when it was
        mended or others were told to stop for it.
        """
        name, degree, nodes = job.name, start.degree, {n: tuple(g) for n, g in start.nodes.items()}
        hold(degree in job.workers, "gang", f"{name} starts with {degree} of {job.workers} workers")
        for node, gpus in nodes.items():
            n = self.nodes[node]
            shut = self.shut(job, node, start.seconds)
            hold(not shut, "window", f"{name} starts on {node} for {start.seconds} s, which {shut} closes")
            hold(len({*gpus}) == len(gpus), "twice", f"{name} has a GPU of {node} twice: {gpus}")
            right = all(0 <= g < n.gpus if job.grants else g < 0 for g in gpus)
            hold(right, "place", f"{name} has GPUs {gpus} of {node}, which has {n.gpus}")
            for g in gpus:
                hold(g not in n.holder, "twice", f"{name} gets GPU {g} of {node}, which {n.holder.get(g)} holds")
            count, most = len(gpus) // job.each, self.room(job, n)
            there = {x: len(y.nodes[node]) // y.each for x, y in n.jobs.items()}
            words = f"{'up' if n.up else 'down'}, {n.type}, {sorted(n.labels | n.taints)}, {n.gpus} GPUs, {n.has}"
            words += f"; there {there}"
            words = f"{name} has {count} workers on {node}, which takes {most}: {words}; {job.spec}"
            hold(count <= most, "place", words)
        b, parts = self.bundle(job, degree), [len(gpus) // job.each for gpus in nodes.values()]
        hold(
            not any(p % job.group for p in parts), "group", f"{name} has {parts} workers on nodes, not {job.group} each"
        )
        held = dict(start.servers)
        even = all(held.get(n, 0) <= -(-job.servers * p // sum(parts)) for n, p in zip(nodes, parts, strict=True))
        hold(
            sum(held.values()) == job.servers and even,
            "servers",
            f"{name} has {held}, {job.servers} in all, on {nodes}",
        )
        common = {self.part(job, node) for node in nodes}
        hold(len(common) == 1, "within", f"{name} is in {common}: {nodes}; {job.spec}")
        whole, had = sum(parts), [len(kept.get(n, ())) // job.each for n in nodes]
        words = f"{name} has seats for {whole} of {degree} workers in {nodes}, in bundles of {b}; {job.spec}"
        news = [p - h for p, h in zip(parts, had, strict=True)]
        sizes = range(job.group, max(parts) + 1, job.group) if promised and self.aged else [b] if b else []
        fair = any(
            degree <= whole <= sum(had) + b * max(0, -((sum(had) - degree) // b)) and sum(n % b > 0 for n in news) < 2
            for b in sizes
        )
        hold(whole >= degree if own else fair, "gang", words)
        job.slower = self.slower(job, degree, nodes)
        if not own and not promised and start.tier in ("heuristic", "patient", "lookahead") and len(self.waiting) == 1:
            self._nearest(job, degree, nodes, b)
        if not promised:
            self._waited(job, degree)
        takes = job.takes(degree, job.slower)
        words = f"{name} takes {takes} s with {degree} workers, its start says {start.seconds}"
        hold(takes is None or abs(start.seconds - takes) <= 1e-6 * max(1.0, takes), "seconds", words)
        del self.waiting[name]
        self.starts += 1
        job.nodes, job.degree, job.since, job.lasts, job.begun = nodes, degree, self.now, start.seconds, self.starts
        self.running[name], job.urgent = job, job.due <= self.now
        self.books.start(job, promised)
        self.longest = max(self.longest, job.lasts)  # longer than told where it has a slow place
        if job.urgent:
            self.served.append((job.due, self.now))
        for node, gpus in nodes.items():
            self.nodes[node].jobs[name] = job
            self.nodes[node].holder.update(dict.fromkeys(gpus, job))

    def _nearest(self, job: Job, degree: int, nodes: Nodes, size: int) -> None:
        """Check that a job that waits alone has what it prefers: the fastest type with room, one rack if any has it."""
        held: dict[Any, int] = {}
        for node in self.open(job, self.nodes.values()):
            part = self.part(job, node.name, near=True)
            held[part] = held.get(part, 0) + self.room(job, node) // size
        able = [part for part, count in held.items() if count >= -(-degree // size)]
        mine = {self.part(job, name, near=True) for name in nodes}
        if able and (job.on or job.within):
            best = min(job.on.get(kind, 1.0) for _, kind in able) if job.on else 1.0
            words = f"{job.name} is in {mine}, {able} have the room for it; {job.spec}"
            hold(len(mine) == 1, "preferred", words)
            slow = max(job.on.get(kind, 1.0) for _, kind in mine)
            hold(self.near or slow <= best * (1 + SLACK), "fastest", words)  # else a close place may be better

    def _waited(self, job: Job, degree: int) -> None:
        """Check that no job that could have a node for itself starts where it is slow, unless it is due or alone."""
        if not (self.patient and self.running and job.grants) or not self.now < job.due < inf:
            return
        if not self.near:
            words = f"{job.name} is {job.slower} times as slow as on its best type"
            hold(job.slower <= exp(LONGER) * (1 + SLACK), "patience", words)
            return
        alone = [n for n in self.nodes.values() if self.room(job, n, empty=True) >= degree]
        if alone:
            best = 1 + self.near["m"] * self.near["links"][0] * (degree * job.grants - 1)
            best *= min(job.on.get(n.type, 1.0) for n in alone)
            words = f"{job.name} is {job.slower} times as slow as told, at best {best}"
            hold(job.slower <= best * exp(LONGER) * (1 + SLACK) + SLACK, "patience", words)

    def _worth(self, stop: Any, stopped: dict[str, Nodes], starts: dict[str, Any], freed: set[tuple[str, int]]) -> None:
        """Check that a stop makes room for who it names, and gains more than it costs."""
        job, nodes = stop.job, stopped[stop.job]
        hold(stop.other in starts and stop.other != job, "cause", f"{job} stops for {stop.other}: {[*starts]} start")
        mine = {(n, g) for n, gpus in nodes.items() for g in gpus}
        share, longest, best = 0.0, 0.0, -inf
        for x in sorted(starts.values(), key=lambda x: x.job != stop.other):
            seats = {(n, g) for n, gpus in x.nodes.items() for g in gpus}
            got = len(seats & mine)
            there = got or not nodes.keys().isdisjoint(x.nodes)  # it may be for cores or memory, with other GPUs
            hold(x.job != stop.other or there, "cause", f"{job} stops on {nodes} for {x.job}, which gets {x.nodes}")
            if x.tier == "stops" and got and x.job not in stopped:
                share, longest = share + got / len(seats & freed), max(longest, x.seconds)
                best = max(best, stop.left * share - stop.price - (0.0 if job in starts else longest))
        gain, cost = stop.left * share, stop.price + (0.0 if job in starts else longest)
        if any(
            j.name in {job, *starts} and j.seconds is None for j in (*self.waiting.values(), *self.running.values())
        ):
            return  # those whose seconds were not told count by an index, not by what they have left
        words = f"{job} has {stop.left} s left, which is {gain} for those who start, and costs {cost}: {stop}"
        # where queues and classes differ, those of later stages may start on what is left over
        hold(gain * (1 + SLACK) > cost or (best > 0 and not self.books.alike), "worth", words)

    def _protected(self, decision: Any) -> None:
        """Check that no start delays who is to go first: due, or the first of the order where that is known."""
        started = [self.running[x.job] for x in decision.starts if x.job in self.running]
        if not started or not self.waiting or (self.windows and self.near):
            return
        power = self.options.get("order", 0.0 if self.options.get("price") is None else 0.5)

        def place(j: Job) -> tuple[bool, float, int]:
            key = (j.takes(j.workers[0]) or 0) * max(1, j.workers[0] * j.grants) ** power
            return (False, j.due, j.serial) if j.due <= self.now else (True, key, j.serial)

        if not self.books.alike:
            self._protected_in_class(started)
            return
        first = min(self.waiting.values(), key=place)
        ahead = {j.name for j in started if place(j) <= place(first)}
        tied = [j for j in started if j.due <= self.now and abs(j.due - first.due) <= SLACK * max(1.0, first.due)]
        ahead |= {j.name for j in tied}  # sums of times differ in the last digit
        known = {*self.waiting.values(), *started}
        if any(j.due == inf for j in known):
            return
        if first.due <= self.now:
            self._undelayed(first, started, ahead, "overtaken")
        elif (
            self.cluster["policy"] == "heuristic"
            and self.options.get("reserve", True)
            and all(len(j.workers) == 1 for j in known)
        ):
            ahead |= {x.job for x in decision.mends}  # they keep their place
            self._undelayed(first, started, ahead | {j.name for j in started if j.price is not None}, "reserved")

    def _protected_in_class(self, started: list[Job]) -> None:
        """Check that no job of its class or a lower one, or that borrows, delays the first due of the highest class.

        Of those that fit into a guarantee: they go before all that borrow. While what is free is not lent to it, who
        starts of those that do not lend may delay it, though once that has started nothing is kept from it.
        """
        books, late = self.books, [j for j in self.waiting.values() if j.due <= self.now]
        dues = (*late, *(j for j in started if j.due <= self.now))
        if any(j.due == inf for j in (*self.waiting.values(), *started)):
            return
        self._unspent(late, started)
        before = {x.name for x in started}
        late = [j for j in late if not books.borrows(j, before) and not books.stuck(j, before)]
        # a limit that holds now may have come with a start, so that another one was the first
        if any(books.limited(j) for j in late):
            return
        for first in late:
            delays = []
            if any(books.keeps(j, first) for j in dues):
                continue
            for j in started:
                there = {x.name for x in started if x.begun >= j.begun}  # those that did not run yet
                ahead = [x for x in late if not books.borrows(x, there)]
                one = min(ahead, key=lambda x: (-books.level(x), x.due, x.serial), default=None)
                if first is one and not books.limited(first, without=there):
                    delays += [] if self._before(j, first, there - {j.name}) else [j.name]
            self._undelayed(first, started, {j.name for j in started} - {*delays}, "overtaken")

    def _unspent(self, late: list[Job], started: list[Job]) -> None:
        """Check that no job takes what its queue guarantees the first that is due, nor has it when that would."""
        books, busy = self.books, (*late, *(j for j in started if j.due <= self.now))
        for first in late if not self.windows and not self.near else ():
            alike = [j for j in busy if j is not first and books.covers(j) == books.covers(first)]
            if any(books.before(j, first) for j in alike) or books.limited(first) or len(first.workers) > 1:
                continue
            for j in started:
                later = {x.name for x in started if x.begun >= j.begun}
                if not books.before(j, first) and books.spends(first, j, later):
                    fits = self.earliest(first, [x for x in self.running.values() if x.name not in later])
                    words = f"{j.name} takes what {books.covers(first)} guarantees {first.name}, which fits at {fits} s"
                    hold(j.end(self.now) <= fits + SLACK * max(1.0, fits), "spent", words)  # else it is over by then

    def _before(self, job: Job, first: Job, later: set[str]) -> bool:
        """Return whether a job that started may go before one that is due; `later` started after it."""
        return not self.books.borrowed(job, later) and self.books.before(job, first)

    def _undelayed(self, job: Job, started: list[Job], free: set[str], rule: str) -> None:
        """Check that a waiting job has room as soon as without those who started, but for some."""
        if len(job.workers) > 1:
            return
        delays = [j for j in started if j.name not in free]
        if not delays:
            return
        was = self.earliest(job, [j for j in self.running.values() if j not in delays])
        now = self.earliest(job, self.running.values())
        words = f"{job.name} would have room at {was} s, and with {[j.name for j in delays]} at {now} s"
        hold(now <= was + 1e-6 * max(1.0, abs(was)) or was == inf, rule, words)

    def settled(self, steered: bool) -> None:
        """Check that who should have started did; `steered`: whether a policy may make jobs wait that are not due."""
        if self.notices.busy:
            return  # room is kept for somebody
        waits = sorted(self.waiting.values(), key=lambda j: (j.due, j.serial))
        waits = [job for job in waits if not self.books.limited(job)]
        if not steered and not self.stopped:  # stops for a gain may leave others within their guarantees
            self.books.settled()
        fit = [job for job in waits[:24] if self.fits(job)]
        known = all(job.due < inf for job in waits)  # else who was not told of may have been due before
        late = [job for job in waits if job.due <= self.now and known]
        if late and late[0] in fit and self.books.alike:
            hold(False, "due", f"{late[0].name} was due at {late[0].due} s, has room and waits")
        if self.calm and waits and self.books.alike:
            for k, job in enumerate(late):
                k += sum(due <= job.due <= start for due, start in self.served)  # noqa: PLW2901
                latest = job.due + (k + 1) * self.longest if self.possible(job) else inf  # it may wait for nodes
                hold(self.now <= latest * (1 + SLACK), "starved", f"{job.name} was due at {job.due}, {k} before it")
        ripe = [job for job in self.waiting.values() if job.due <= self.now or job.due == inf]
        if any(map(self.books.limited, ripe)):
            return  # what it would take of a limit may be kept for it
        fit = [job for job in fit if not any(self.books.keeps(first, job) for first in ripe)]
        rest = [job for job in waits if job not in fit]
        if not fit or (steered and not (self.close and not self.running)):
            return
        if not self.running and not (self.windows and rest):  # who waits for a window may keep others off
            hold(False, "idle", f"{fit[0].name} waits on an idle cluster that has room for it")
        may = {j.name: {n.name for n in self.nodes.values() if self.room(j, n, empty=True, up=False)} for j in waits}
        for job in fit:  # who may be held back for one who does not fit, holds others back in turn
            wanted, others = {n for j in rest for n in may[j.name]}, [j for j in fit if j is not job]
            while more := [j for j in others if wanted & may[j.name]]:
                wanted |= {n for j in more for n in may[j.name]}
                others = [j for j in others if j not in more]
            free = [n for n in self.nodes.values() if n.name not in wanted]
            hold(not self.fits(job, free), "spare", f"{job.name} waits; nobody else may have where it fits")
