"""Hold jobs that may not wait yet: before their begin, after other jobs, or while enough of their array runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Mapping
from dataclasses import asdict, dataclass, field, replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from gangplan.instances import InstanceError
from gangplan.instances.quantities import moment
from gangplan.instances.typed import STATE

from .admission import check_known
from .request import Request

if TYPE_CHECKING:
    from .job_lines import JobLines

_GONE = 1024
"""Maximum number of withdrawn jobs whose names are remembered: `state.RECENT`."""


@dataclass(slots=True)
class HeldJob:
    """Hold a job that may not wait yet.

    Attributes:
        before: the jobs that have to be done first, and whether they were withdrawn, so that they never are.
        ready: since when nothing but the clock or its array holds it back, or when it was submitted.
    """

    request: Request
    before: dict[str, bool]
    ready: float


@dataclass(slots=True)
class JobArray:
    """Count the jobs of an array that are in the queue or run, `most` of them at a time; `rest` holds the others."""

    most: int
    active: int = 0
    rest: deque[str] = field(default_factory=deque)


class HeldJobs:
    """Keep the jobs that are held outside the queue, where decisions do not look at them.

    Attributes:
        held: by name.
        arrays: by name, those that have a `most`.
        gone: names of the last jobs that were withdrawn, the oldest first.
        begins: a heap of when held jobs may wait by the clock, and which; some are over.
    """

    def __init__(self) -> None:
        self.held: dict[str, HeldJob] = {}
        self.arrays: dict[str, JobArray] = {}
        self.gone: dict[str, None] = {}
        self._after: dict[str, list[str]] = {}  # who waits for a job to be done
        self.begins: list[tuple[float, int, str]] = []

    def request(self, state: JobLines, name: str) -> Request:
        """Return a job that waits, or may not wait yet."""
        held = self.held.get(name)
        return held.request if held else state.waiting[name]

    def before(self, state: JobLines, request: Request) -> dict[str, bool]:
        """Return the jobs that have to be done before one, and whether they were withdrawn; refuse a cycle."""
        before = {}
        for name in request.terms.after:
            if name == request.name:
                raise InstanceError("after", f"{name!r} would come after itself")
            if not any(name in jobs for jobs in (state.waiting, state.running, self.held, state.finished)):
                words = f"{name!r} is not known: it is to be submitted before, and over only lately"
                raise InstanceError("after", words)
            if name not in state.finished or name in self.gone:
                before[name] = name in state.finished
        seen, ahead = set[str](), list(before)
        while ahead:
            if (name := ahead.pop()) == request.name:
                raise InstanceError("after", f"{request.name!r} would come after itself")
            if name in self.held and name not in seen:
                ahead += self.held[name].before
            seen.add(name)
        return before

    def held_by(self, state: JobLines, request: Request) -> HeldJob | None:
        """Return what holds a new job back, `None` if it may wait at once."""
        before = self.before(state, request)
        array = self.arrays.get(request.terms.array)
        full = array is not None and array.active >= array.most
        if not (before or full or request.terms.begin > request.submit):
            if array is not None:
                array.active += 1
            return None
        return HeldJob(request, before, request.submit)

    def hold(self, state: JobLines, job: HeldJob) -> None:
        """Hold a job back."""
        request = job.request
        self.held[request.name] = job
        for name in job.before:
            self._after.setdefault(name, []).append(request.name)
        if not job.before:
            self._note(state, job)
        state.changes += 1

    def drop(self, name: str) -> Request:
        """Hold a job back no longer, and return it."""
        job = self.held.pop(name)
        if (array := self.arrays.get(job.request.terms.array)) and name in array.rest:
            array.rest.remove(name)
        return job.request

    def over(self, state: JobLines, request: Request, done: bool, active: bool = True) -> None:
        """Release the jobs behind one that is done, else withdrawn; it was `active` if it was not held back itself."""
        name = request.name
        self.gone.pop(name, None)
        if not done:
            self.gone[name] = None
            if len(self.gone) > _GONE:
                del self.gone[next(iter(self.gone))]
        for other in self._after.pop(name, ()):
            job = self.held.get(other)
            if job is None or name not in job.before:
                continue
            job.before[name] = True
            if done:
                del job.before[name]
            if not job.before:
                job.ready = state.now
                self._note(state, job)
        if active:
            self.leave(state, request)

    def leave(self, state: JobLines, request: Request) -> None:
        """Note that a job neither waits nor runs any more, and let the next of its array wait."""
        array = self.arrays.get(request.terms.array)
        if array is None:
            return
        array.active -= 1
        if array.rest:
            array.active += 1
            self._release(state, self.held[array.rest.popleft()], state.now)
        if not array.active and not any(x.request.terms.array == request.terms.array for x in self.held.values()):
            del self.arrays[request.terms.array]

    def tick(self, state: JobLines) -> None:
        """Let those wait whose time has come."""
        while (at := self.wake()) is not None and at <= state.now:
            job = self.held[heappop(self.begins)[2]]
            self._enter(state, job, max(at, job.ready))

    def wake(self) -> float | None:
        """Return when the next job may wait by the clock alone, `None` if none does."""
        while self.begins:
            begin, _, name = self.begins[0]
            job = self.held.get(name)
            if job is not None and not job.before and job.request.terms.begin == begin:
                return begin
            heappop(self.begins)  # it was withdrawn or changed
        return None

    def why(self, state: JobLines, name: str) -> str:
        """Return in words what holds a job back."""
        job = self.held[name]
        words = []
        for other, gone in job.before.items():
            running = state.running.get(other)
            until = "" if running is None else f", which runs until {moment(state.now + running.left(state.now))}"
            words.append(f"after {other}{', which was withdrawn: it never starts' if gone else until}")
        if job.request.terms.begin > state.now:
            words.append(f"not before {moment(job.request.terms.begin)}")
        if not words and (array := self.arrays.get(job.request.terms.array)):
            words.append(f"of {job.request.terms.array} at most {array.most} run at a time")
        return "; ".join(words) or "its time has come: the next decision considers it"

    def _note(self, state: JobLines, job: HeldJob) -> None:
        """Let a job wait that no other job holds back, or note when it may."""
        request = job.request
        if request.terms.begin > state.now:
            heappush(self.begins, (request.terms.begin, request.serial, request.name))
        else:
            self._enter(state, job, job.ready)

    def _enter(self, state: JobLines, job: HeldJob, since: float) -> None:
        """Let a job wait unless enough of its array do."""
        array = self.arrays.get(job.request.terms.array)
        if array is not None and array.active >= array.most:
            array.rest.append(job.request.name)
            return
        if array is not None:
            array.active += 1
        self._release(state, job, since)

    def _release(self, state: JobLines, job: HeldJob, since: float) -> None:
        """Let a job wait, its due time counted from when it might."""
        request = self.held.pop(job.request.name).request
        state.wait(replace(request, due=state.settings.due(since, request.longest)))

    def save(self, only: Container[str] | None = None) -> dict[str, Any]:
        """Return all of it for JSON, nothing if nothing was held back or withdrawn; with `only` see `snapshot.save`."""
        if not (self.held or self.arrays or self.gone):
            return {}
        held = [
            {
                "request": x.request if only else asdict(x.request) | {"terms": x.request.terms.save()},
                "before": x.before,
                "ready": x.ready,
            }
            for name, x in self.held.items()
            if only is None or name in only
        ]
        arrays = {
            name: [x.most, x.active, [rest for rest in x.rest if only is None or rest in only]]
            for name, x in self.arrays.items()
        }
        return {"later": {"held": held, "arrays": arrays, "gone": list(self.gone)}}

    def load(self, state: JobLines, saved: Mapping[str, Any], jobs: list[Request]) -> None:
        """Take over what `save` returned; `jobs` are the requests of those held, read already."""
        self.gone.update(dict.fromkeys(STATE.read(tuple[str, ...], saved["gone"], "later.gone")))
        arrays = STATE.read(dict[str, tuple[int, int, tuple[str, ...]]], saved["arrays"], "later.arrays")
        for name, (most, active, rest) in arrays.items():
            self.arrays[name] = JobArray(most, active, deque(rest))
        for request, row in zip(jobs, saved["held"], strict=True):
            if request is not row["request"]:
                check_known(state, request)
            before = STATE.read(dict[str, bool], row["before"], "later.before")
            ready = float(STATE.read(float, row["ready"], "later.ready"))
            job = self.held[request.name] = HeldJob(request, before, ready)
            for name in job.before:
                self._after.setdefault(name, []).append(request.name)
        behind = {name for array in self.arrays.values() for name in array.rest}
        if not behind <= self.held.keys():
            raise InstanceError("later.arrays", f"{min(behind - self.held.keys())!r} is not held back")
        for job in self.held.values():
            if not job.before and job.request.name not in behind:
                heappush(self.begins, (job.request.terms.begin, job.request.serial, job.request.name))
