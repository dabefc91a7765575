"""The books of arrays: jobs that are alike, of which so many at most wait or run at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .wrong import hold

if TYPE_CHECKING:
    from .jobs import Job
    from .rooms import Rooms


class Arrays:
    """Keep whose turn it is in each array.

    Args:
        world: the books of the cluster.
    """

    def __init__(self, world: Rooms) -> None:
        self.world = world
        self.most: dict[str, int] = {}
        self.rest: dict[str, list[str]] = {}  # those that only their array holds back

    def submit(self, spec: dict[str, Any], names: tuple[str, ...], most: int | None) -> None:
        """Let jobs wait that are alike."""
        if most is not None:
            self.most[spec["name"]], self.rest[spec["name"]] = most, []
        for name in names:
            self.world.submit(spec | {"name": name, "array": spec["name"]})

    def full(self, job: Job) -> bool:
        """Return whether enough of its array wait or run."""
        if (most := self.most.get(job.array)) is None:
            return False
        active = [x for x in (*self.world.waiting.values(), *self.world.running.values()) if x.array == job.array]
        hold(len(active) <= most, "array", f"{len(active)} of {job.array} wait or run, at most {most} may")
        return len(active) >= most

    def rests(self, job: Job) -> bool:
        """Return whether a job whose time has come is held by its array; it is noted then."""
        rest = self.rest.get(job.array, [])
        if job.name in rest:
            return True
        if self.full(job):
            rest.append(job.name)
            return True
        return False

    def forget(self, job: Job) -> None:
        """Hear that it is not only its array that holds a job."""
        if job.name in (rest := self.rest.get(job.array, [])):
            rest.remove(job.name)

    def left(self, job: Job) -> None:
        """Hear that a job neither waits nor runs any more; the next of its array does."""
        rest = self.rest.get(job.array, [])
        if job.name in rest:
            rest.remove(job.name)
        elif rest and not self.full(job):
            self.world.enter(self.world.held[rest.pop(0)], self.world.now)
