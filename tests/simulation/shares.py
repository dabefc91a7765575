"""The books of queues, users and classes: who may start, and who may have whom stopped.

Written from docs/queues.md alone: a queue's share is the largest of its shares of GPUs, cores and memory.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from .jobs import SLACK
from .wrong import hold

if TYPE_CHECKING:
    from .jobs import Job, Nodes
    from .rooms import Rooms

ROUNDING = 1e-6
"""Of the cluster: cores and memory are counted in whole millionths and bytes."""


class Shares:
    """What queues and users hold.

    Args:
        world: the books of the cluster.
    """

    def __init__(self, world: Rooms, rules: dict[str, Any] | None = None) -> None:
        self.world, self.rules = world, (world.cluster.get("sharing") if rules is None else rules) or {}
        self.queues: dict[str, dict[str, Any]] = self.rules.get("queues", {})

    @property
    def alike(self) -> bool:
        """Whether nothing is said of queues, users and classes."""
        return not self.world.cluster.get("sharing")

    def way(self, queue: str) -> list[str]:
        """Return the queues from the top down to one; who names none has one of its own, without a guarantee."""
        parts = queue.split(".")
        return [".".join(parts[: i + 1]) for i in range(len(parts))]

    def amounts(self, job: Job, nodes: Nodes | None = None) -> list[float]:
        """Return what a running job holds, or one that starts will."""
        seats = sum(map(len, (job.nodes if nodes is None else nodes).values()))
        return [seats if job.grants else 0, *(seats / max(1, job.grants) * x for x in job.need[:2])]

    def wants(self, job: Job, degree: int | None = None) -> list[float]:
        """Return what a waiting job will hold with so many workers, or its fewest, whole bundles."""
        degree = job.workers[0] if degree is None else degree
        b = max(1, self.world.bundle(job, degree))
        workers = -(-degree // b) * b
        return [workers * job.grants, *(workers * x for x in job.need[:2])]

    def share(self, path: str, more: list[float] | None = None, without: set[str] | None = None) -> float:
        """Return a queue's share of the whole cluster, nodes that are down included."""
        sums = list(more or [0.0, 0.0, 0.0])
        for job in self.world.running.values():
            if path in self.way(job.queue) and job.name not in (without or ()):
                sums = [a + b for a, b in zip(sums, self.amounts(job), strict=True)]
        return max(a / max(1, b) for a, b in zip(sums, self.total, strict=True))

    @property
    def total(self) -> list[float]:
        """What the whole cluster has."""
        nodes = self.world.nodes.values()
        return [sum(n.gpus for n in nodes), sum(n.has[0] for n in nodes), sum(n.has[1] for n in nodes)]

    def above(self, path: str, share: float) -> float:
        """Return what a share is above a queue's guarantee, by its weight among its siblings."""
        return (share - self.owed(path)) / float(self.queues.get(path, {}).get("weight", 1.0))

    def owed(self, path: str) -> float:
        """Return a queue's guaranteed share."""
        return float(self.queues.get(path, {}).get("share", 0.0))

    def borrows(self, job: Job, without: set[str] | None = None) -> bool:
        """Return whether a waiting job takes each queue on its way over its guarantee, some that run not counted."""
        return bool(self.queues) and not any(
            self.share(path, self.wants(job), without) <= self.owed(path) + ROUNDING for path in self.way(job.queue)
        )

    def borrowed(self, job: Job, later: set[str]) -> bool:
        """Return whether a job that started took each queue on its way over its guarantee; `later` started after it.

        Of several numbers of workers the fewest count, which it may not have got.
        """
        if len(job.workers) > 1:
            return False
        shares = {path: self.share(path, without=later) for path in self.way(job.queue)}
        return bool(self.queues) and not any(share <= self.owed(path) + ROUNDING for path, share in shares.items())

    def level(self, job: Job) -> int:
        """Return the class of a job with what it gained by waiting."""
        aging = self.rules.get("aging", 86400.0)
        return job.level + (0 if aging is None else max(0, int((self.world.now - job.due) // aging)))

    def never(self, job: Job, endless: bool = False) -> bool:
        """Return whether a limit keeps a job from starting on the whole cluster, or any, with nobody else there."""
        b, degree = max(1, self.world.bundle(job, job.workers[0], up=False)), job.workers[0]
        workers = -(-degree // b) * b
        wants = [workers * job.grants, *(workers * x for x in job.need[:2])]
        limits = self.rules.get("limits", {})
        limit = limits.get(job.user, limits.get("*")) if job.user else None
        if limit is not None and wants[0] > limit.get("gpus", 10**9):
            return True
        if endless:
            return False
        total = self.total

        def most(path: str) -> float:
            return float(self.queues.get(path, {}).get("most", 1.0))

        share = max(a / max(1, b) for a, b in zip(wants, total, strict=True))
        if not self.queues:
            return False
        way = self.way(job.queue)
        if any(most(x) < 1.0 and share > most(x) + ROUNDING for x in way):
            return True
        if all(share > self.owed(x) + ROUNDING for x in way):  # it borrows
            keep = sum(
                self.owed(x) * (1 - self.queues[x].get("lends", 1.0))
                for x in self.queues
                if "." not in x
                if x != way[0]
            )
            return any(a and t - a < keep * t for a, t in zip(wants, total, strict=True)) and keep > 0
        return False

    def before(self, job: Job, first: Job) -> bool:
        """Return whether a job goes before one that is due: its class is higher, or it was due earlier."""
        if self.level(job) != self.level(first):
            return self.level(job) > self.level(first)
        return job.due <= first.due + SLACK * max(1.0, first.due)

    def covers(self, job: Job) -> str:
        """Return the last queue on the way to a job's that would cover it if nobody below it had anything, "" if none.

        Of those with several numbers of workers the fewest count.
        """
        share = max(a / max(1, b) for a, b in zip(self.wants(job), self.total, strict=True))
        way = self.way(job.queue) if self.queues else []
        return next((x for x in reversed(way) if share <= self.owed(x) + ROUNDING), "")

    def keeps(self, first: Job, job: Job) -> bool:
        """Return whether what a job would take of a guarantee, or its user's limit, may be kept for one that is due."""
        known = inf not in (job.due, first.due)
        if first is job or (known and self.before(job, first) and not self.before(first, job)):
            return False
        both = [a + b for a, b in zip(self.wants(first), self.wants(job), strict=True)]
        path = self.covers(first)
        mine = [x.name for x in self.world.running.values() if x.user == job.user]
        limit = self.rules.get("limits", {}).get(job.user, self.rules.get("limits", {}).get("*")) or {}
        gpus = sum(self.amounts(self.world.running[x])[0] for x in mine) + both[0]
        same = job.user and job.user == first.user
        over = gpus > limit.get("gpus", 10**9) or len(mine) + 2 > limit.get("jobs", 10**9)
        spent = path and path in self.way(job.queue) and self.share(path, both) > self.owed(path) - ROUNDING
        return bool((same and over) or spent)

    def spends(self, first: Job, job: Job, later: set[str]) -> bool:
        """Return whether a job that started surely takes what its queue guarantees one that is due; `later` came after.

        The other one would have it before this one ends, were nobody else to start.
        """
        path, others = self.covers(first), {*later} - {job.name}
        share = self.share(path, self.wants(first), later) if path else 0.0
        if not path or path not in self.way(job.queue) or share <= self.owed(path) + 2 * ROUNDING:
            return False
        apart = [x for x in self.way(job.queue) if x not in self.way(first.queue)]
        if any(self.share(x, without=others) <= self.owed(x) + 2 * ROUNDING for x in apart):
            return False
        gone, end = {*later}, self.world.now
        for x in sorted(self.world.running.values(), key=lambda x: x.end(self.world.now)):
            own = [y for y in self.way(x.queue) if y not in self.way(first.queue)]
            if x.name in later or path not in self.way(x.queue):
                continue
            if all(self.share(y, without=later) > self.owed(y) + 2 * ROUNDING for y in own):
                gone, end = gone | {x.name}, x.end(self.world.now)
            if self.share(path, self.wants(first), gone) <= self.owed(path) + SLACK:
                return job.end(self.world.now) > end + SLACK * max(1.0, abs(end))
        return False

    def limited(self, job: Job, wants: list[float] | None = None, without: set[str] | None = None) -> bool:
        """Return whether a limit may keep a waiting job from starting, some that run not counted."""
        wants = self.wants(job) if wants is None else wants
        if self.stuck(job, without, wants, -ROUNDING):
            return True
        keeps = any(x.get("lends", 1.0) < 1.0 for x in self.queues.values())
        lacks = keeps and (self.borrows(job, without) or bool(self._lacks(job, wants, 1, without)))
        return bool(self.queues) and lacks

    def stuck(
        self, job: Job, without: set[str] | None = None, wants: list[float] | None = None, slack: float = 2 * ROUNDING
    ) -> bool:
        """Return whether a user's limit, or the most of a queue, keeps a waiting job from starting."""
        wants = self.wants(job) if wants is None else wants
        limits = self.rules.get("limits", {})
        limit = limits.get(job.user, limits.get("*")) if job.user else None
        if limit is not None:
            mine = [x for x in self.world.running.values() if x.user == job.user and x.name not in (without or ())]
            gpus = sum(self.amounts(x)[0] for x in mine)
            if gpus + wants[0] > limit.get("gpus", 10**9) or len(mine) >= limit.get("jobs", 10**9):
                return True
        bounds = {x: self.queues.get(x, {}).get("most", 1.0) for x in self.way(job.queue)}
        return bool(self.queues) and any(
            bound < 1.0 and self.share(x, wants, without) > bound + slack for x, bound in bounds.items()
        )

    def start(self, job: Job, vague: bool) -> None:
        """Check that no limit is exceeded by a job that has just started, and nothing used that is not lent.

        Args:
            job: that started.
            vague: whether others that hold something count as if they did not.
        """
        if not vague:
            words = self._lacks(job, self.amounts(job), 0)
            hold(not words, "lent", words)
        limits = self.rules.get("limits", {})
        limit = limits.get(job.user, limits.get("*")) if job.user else None
        if limit is not None:
            mine = [x for x in self.world.running.values() if x.user == job.user]
            gpus = sum(self.amounts(x)[0] for x in mine)
            fine = gpus <= limit.get("gpus", 10**9) and len(mine) <= limit.get("jobs", 10**9)
            hold(fine, "limit", f"{job.name}: {job.user} holds {gpus} GPUs with {len(mine)} jobs, limit {limit}")
        for path in self.way(job.queue) if self.queues else ():
            most = self.queues.get(path, {}).get("most", 1.0)
            hold(self.share(path) <= most + ROUNDING, "limit", f"{job.name}: {path} has {self.share(path)} of {most}")

    def _lacks(self, job: Job, asks: list[float], more: int, without: set[str] | None = None) -> str:
        """Return in words what others do not lend and a job takes, "" if it leaves that; `more`: if it starts still."""
        world, way, total = self.world, self.way(job.queue), self.total
        up = [n for n in world.nodes.values() if n.up]
        has = [sum(n.gpus for n in up), sum(n.has[0] for n in up), sum(n.has[1] for n in up)]
        runs = [(self.way(x.queue), self.amounts(x)) for x in world.running.values() if x.name not in (without or ())]
        for i, amount in enumerate(asks):
            free = has[i] - sum(amounts[i] for _, amounts in runs) - more * amount

            def keeps(path: str, i: int = i) -> float:
                below = sum(keeps(x) for x in self.queues if x.rpartition(".")[0] == path)
                if path in way:
                    return below
                mine = self.owed(path) * (1 - self.queues[path].get("lends", 1.0)) * total[i]
                return max(below, mine - sum(amounts[i] for other, amounts in runs if path in other))

            kept = sum(keeps(path) for path in self.queues if "." not in path)
            if amount and kept > 0 and free < kept - ROUNDING * total[i]:
                return f"{job.name} of {job.queue!r} leaves {free} of {total[i]} free, {kept} are not lent"
        return ""

    def fork(self, mine: Job, other: Job) -> tuple[str, str]:
        """Return the queues on the ways to those of two jobs where the ways part."""
        return next(
            pair for pair in zip(self.way(mine.queue), self.way(other.queue), strict=False) if pair[0] != pair[1]
        )

    def stop(self, victim: Job, other: Job, cause: str, gone: set[str], new: list[Any], vague: bool) -> None:
        """Check that a job may be stopped, while all run but those that are gone.

        Args:
            victim: that stops.
            other: for whom.
            cause: that was said.
            gone: jobs that stopped before.
            new: starts of jobs that wait or are gone, any of which may have been before.
            vague: whether others count whom nobody sees: those for whom room is kept.
        """
        ran = self.world.now - victim.since
        words = f"{victim.name} ({victim.queue}, {victim.level}) stops for {other.name} ({other.queue}, {other.level})"
        hold(ran >= self.rules.get("least_run", 0.0) * (1 - 1e-9), "least run", f"{words} after {ran} s")
        same = victim.queue == other.queue or not self.queues
        if cause == "gain":
            hold(same and victim.level <= other.level, "gain", words)
            return
        hold(self.rules.get("preempt", True), "preempt", words)
        if vague and cause in ("move", "reclaim"):
            return
        if cause == "move":
            owed = [
                x for x in self.way(other.queue) if self.share(x, self.wants(other), gone) <= self.owed(x) + ROUNDING
            ]
            hold(owed and self.queues, "move", f"{words}, which is owed no room")
        elif cause == "turn":
            most = self.rules.get("most_run")
            hold(same and victim.level == other.level and most is not None and ran >= most, "turn", words)
        elif same:
            hold(cause == "priority" and victim.level < other.level, "priority", f"{words}: {cause}")
        else:
            here, there = self.fork(other, victim)
            begun = ((self.world.waiting.get(x.job) or self.world.running[x.job], x.nodes) for x in new)
            starts = [self.amounts(job, nodes) for job, nodes in begun if there in self.way(job.queue)]
            has = self.share(there, [sum(x) for x in zip(*starts, strict=True)] or None, gone)
            if vague:
                hold(victim.level < other.level, "reclaim", f"{words}: {cause}")
                return
            hold(has > self.owed(there) - ROUNDING, "reclaim", f"{words}: {there} has {has} of {self.owed(there)}")
            mine = gone | ({other.name} if other.name in self.world.running else set())  # it moves
            will = self.share(here, self.wants(other), mine)
            within = will <= self.owed(here) + ROUNDING or self.above(here, will) < self.above(there, has) + ROUNDING
            hold(within if cause == "reclaim" else victim.level < other.level, "reclaim", f"{words}: {cause}")

    def settled(self) -> None:
        """Check that a queue gets what it is owed: a job of one GPU has another's stopped, where that may be.

        Not where a window begins before it ends: nobody starts there who is expected to run into one.
        """
        world = self.world
        if not self.queues or not self.rules.get("preempt", True):
            return
        owed = [job for job in world.waiting.values() if not (self.limited(job) or self.borrows(job))]
        late = [job for job in world.waiting.values() if job.due <= world.now or job.due == inf]
        kept = [job for job in owed if any(self.keeps(first, job) for first in late)]  # they wait for their guarantee
        owed = [job for job in owed if job not in kept]
        alone = len(owed) == 1 and not any(job in late for job in kept)  # else room may be kept for another
        for job in owed if alone else ():
            if self.wants(job)[0] != 1 or any(job.need) or job.whole:
                continue
            for other in world.running.values():
                if other.queue == job.queue or other.price is None or len(other.nodes) != 1 or other.apart or job.apart:
                    continue
                ran, (node,) = world.now - other.since, other.nodes
                here, there = self.fork(job, other)
                if ran <= 0 or ran < max(other.pays + other.price, self.rules.get("least_run", 0.0)) * (1 + 1e-9):
                    continue
                over = self.share(there) > self.owed(there) + ROUNDING
                within = self.share(here, self.wants(job)) <= self.owed(here) - ROUNDING
                fits = any(world.room(job, n, without={other.name}) for n in world.open(job, [world.nodes[node]]))
                hold(not (over and within and fits), "owed", f"{job.name} waits, {other.name} could stop for it")
