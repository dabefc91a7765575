"""The books of stops with grace: who was told to stop, until when, and for whom the room is.

Written from docs/scheduler.md alone. What of the room is claimed by whom is not known, only for whom somebody stops.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from .wrong import hold

if TYPE_CHECKING:
    from .jobs import Job
    from .rooms import Rooms


@dataclass
class Group:
    """Those who were `told` at a time and have not stopped, the `others` who start after them, and by when.

    The nodes had changed `turns` times by then.
    """

    told: set[str]
    others: set[str]
    since: float
    until: float
    turns: int


class Notices:
    """Keep who was told to stop.

    Args:
        world: the books of the cluster.
    """

    def __init__(self, world: Rooms) -> None:
        self.world = world
        self.until: dict[str, float] = {}  # when the grace of a job is over
        self.since: dict[str, float] = {}
        self.groups: list[Group] = []

    @property
    def busy(self) -> bool:
        """Whether room is kept for somebody."""
        return bool(self.until or self.groups)

    @property
    def aged(self) -> bool:
        """Whether nodes have changed since room was kept for somebody."""
        return any(group.turns < self.world.turns for group in self.groups)

    def grace(self, job: Job) -> float:
        """Return the seconds that a job has."""
        own = job.spec.get("grace")
        return float(self.world.options.get("grace", 0.0) if own is None else own)

    def stoppable(self, job: Job) -> bool:
        """Return whether a running job may be stopped: who was told already is not told again."""
        return job.price is not None and job.name not in self.until

    def tell(self, x: Any) -> None:
        """Enter that a job is told to stop, and check what it is told."""
        world, job = self.world, self.world.running[x.job]
        hold(x.job not in self.until, "told", f"{x.job} is told to stop and was already")
        right = x.since == world.now and x.seconds == self.grace(job) > 0
        hold(right, "told", f"{x.job} has a grace of {self.grace(job)} s at {world.now} s, said is {x}")
        self.until[x.job] = job.until = world.now + self.grace(job)
        self.since[x.job] = world.now

    def told(self, rows: Any, moved: Any = ()) -> None:
        """Enter those who were told in one decision, and for whom; who `moved` to where they are starts after them."""
        for x in rows:
            self.tell(x)
        if rows:
            movers = {x.job for x in rows if x.cause == "move"}.union(moved)
            told, others = {x.job for x in rows}, {x.other for x in rows if x.other} | movers
            self.groups.append(Group(told, others, self.world.now, max(self.until[x] for x in told), self.world.turns))

    def over(self, job: Job) -> None:
        """Hear that a job holds nothing any more."""
        self.until.pop(job.name, None)
        job.until = inf
        for group in self.groups:
            group.told.discard(job.name)

    def unsettle(self, name: str | None = None) -> None:
        """Hear that what was planned may be void, for one job or for all."""
        for group in self.groups:
            group.others.difference_update({*group.others} if name is None else {name})

    def turn_back(self, now: float) -> None:
        """Have who was told later than a time have been told then."""
        for name, until in self.until.items():
            job = self.world.running[name]
            self.until[name] = job.until = until - max(0.0, self.since[name] - now)
            self.since[name] = min(self.since[name], now)
        for group in self.groups:
            group.until -= max(0.0, group.since - now)
            group.since = min(group.since, now)

    def ended(self, stops: Any) -> set[str]:
        """Check that those whose grace is over stop now, and no other who was told; return them."""
        now = self.world.now
        done = {name for name, until in self.until.items() if until <= now}
        said = {x.job for x in stops} & self.until.keys()
        hold(said == done, "grace", f"{sorted(said)} stop at {now} s, the grace of {sorted(done)} is over")
        return done

    def started(self, names: set[str], cut: bool) -> set[str]:
        """Check that those start for whom others have stopped; return them.

        Nodes may close to who would have had the room by the end of the grace, if it is decided on only later.
        """
        promised: set[str] = set()
        for group in self.groups:
            promised |= group.others
            group.others.difference_update(names)
            if group.told or cut:
                continue
            waits = [self.world.waiting[name] for name in sorted(group.others & self.world.waiting.keys())]
            late = [job.name for job in waits if not self._closed_since(job, group.until)]
            hold(not late, "claimed", f"{late} wait though all have stopped that were told to for them")
            group.others.clear()
        self.groups = [group for group in self.groups if group.told or group.others]
        return promised & names

    def _closed_since(self, job: Job, until: float) -> bool:
        """Return whether a window closes a node to a job that starts now, and did not to one that started before.

        One that was to move and overran its time meanwhile had almost nothing left then.
        """
        world, takes = self.world, [job.takes(degree) or 0.0 for degree in job.workers]
        longest = inf if world.near or job.on else max(takes)
        return until < world.now and any(
            world.shut(job, node, longest) and not world.shut(job, node, job.pays if job.overran else min(takes), until)
            for node in world.nodes
        )
