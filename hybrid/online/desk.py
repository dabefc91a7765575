"""Where events come in: each is checked first, then entered in the book and in all that is kept beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Fleet, GangJob, SpeedModel
from gangplan.instances.verify.start import verify_start
from gangplan.solvers.placement.online.rooms import Kind

from .book import Book, Stint
from .fill import Fill
from .guard import Guard
from .guess import Guess
from .job import Request, Seconds, as_placed, seconds_of
from .learned import LearnedPlaces
from .line import Line, Shape
from .reservation import Ends
from .scene import Parts
from .seats import Seats, no_difference
from .settings import Settings

ANY = "any"
"""The model of all jobs, where models make no difference."""

COME = 4.0
"""Jobs that wait for the GPUs of one that starts, by jobs that wait already."""


class Desk:
    """The state, and what is kept beside it so that a decision need not look at all of it.

    Attributes:
        book: what is so.
        seats, line, ends, parts: where gangs fit, who waits in which order, who ends when, the parts of running jobs as
            arrays.
        changes: how many events there were.
    """

    def __init__(self, fleet: Fleet, speeds: SpeedModel | None, settings: Settings) -> None:
        self.settings, self.speeds = settings, speeds
        self.book = Book(fleet)
        self.seats = Seats(fleet, speeds or no_difference(fleet, ANY))
        self.line, self.ends, self.guess = Line(settings.order), Ends(), Guess()
        self.parts = Parts()
        self.size = int(fleet.gpus.max())
        self.changes = 0
        self.closed: dict[Kind, int] = {}
        """The least number of workers of each kind that did not fit since something last became free."""
        self._placed: dict[tuple[str, int], GangJob] = {}
        self.learned: LearnedPlaces | None = None
        self._most: dict[Kind, int] = {}

    def placed(self, request: Request, degree: int) -> GangJob:
        """Return the gang that the placer sees."""
        key = request.name, degree
        if key not in self._placed:
            self._placed[key] = as_placed(request, degree, self.size, None if self.speeds else ANY)
        return self._placed[key]

    def holds(self, request: Request, degree: int) -> int:
        """Return how many GPUs it keeps from others with so many workers: whole nodes if it takes several."""
        job = self.placed(request, degree)
        return job.workers[0] * job.worker.grants

    def submit(
        self,
        job: GangJob,
        seconds: Seconds,
        now: float | None,
        together: bool | None = None,
        price: float | None = None,
    ) -> Request:
        """See `Scheduler.submit`."""
        book = self.book
        if not isinstance(job, GangJob):
            raise InstanceError("job", f"{job!r} is no GangJob")
        book.is_new(job.name)
        time, known = book.at(now), seconds_of(job, seconds)
        require_number(price, "price", optional=True)
        request = Request(
            job,
            time,
            known or self.guess.seconds(job),
            known is not None,
            self.settings.together if together is None else together,
            book.serial,
            self.settings.price if price is None else float(price),
        )
        self.check(request)
        book.now, book.serial = time, book.serial + 1
        self.wait(request)
        return request

    def check(self, request: Request) -> None:
        """Refuse a job that cannot run here, whatever else runs.

        Raises:
            InstanceError: naming the field.
        """
        job = request.job
        if request.name in self.book.waiting or request.name in self.book.running:
            raise InstanceError("job.name", f"{request.name!r} is a duplicate")
        if 0 < job.worker.gpu < 1 or not job.worker.gpu:
            raise InstanceError("job.worker.gpu", f"{job.worker.gpu!r} is not a whole number of GPUs from 1 on")
        if job.servers:
            raise InstanceError("job.servers", f"{job.servers!r} is not 0: parameter servers are not placed here")
        try:
            placed = self.placed(request, job.workers[0])
            if self._could(placed) < placed.workers[0]:
                words = f"with {job.workers[0]} workers never fits, on no node or not on as many as there are"
                raise InstanceError("job", f"{job.name!r} {words}")
        except InstanceError:
            self._forget(request)
            raise

    def _could(self, job: GangJob) -> int:
        """Return how many of a job's workers an empty cluster would take, every node up."""
        kind = Kind.workers(job)
        if kind not in self._most:
            if len(self._most) >= 1024:
                self._most.clear()
            self._most[kind] = self.seats.most(kind)
        return self._most[kind]

    def _shape(self, request: Request) -> Shape:
        job = request.job
        kind = Kind.workers(self.placed(request, job.workers[-1]))
        return Shape(kind, job.workers, request.gpus(job.workers[-1]), job.name if job.apart else "")

    def wait(self, request: Request) -> None:
        """Put a job into its line."""
        self.changes += 1
        self.book.waiting[request.name] = request
        degree = request.job.workers[-1]
        self.line.add(request, self._shape(request), request.lasts(degree))

    def withdraw(self, name: str, now: float | None) -> None:
        """See `Scheduler.withdraw`."""
        if name not in self.book.waiting:
            raise InstanceError("job", f"{name!r} does not wait")
        self.book.now = self.book.at(now)
        self.changes += 1
        self._forget(self.book.waiting.pop(name))
        self.book.over(name)
        self.line.remove(name)

    def finish(self, name: str, now: float | None) -> Stint:
        """See `Scheduler.finish`."""
        self.book.runs(name)
        self.book.now = self.book.at(now)
        stint = self._free(name)
        self._forget(stint.request)
        self.book.over(name)
        self.guess.saw(stint.request.job, stint.request.done + stint.ran(self.book.now) * stint.gpus)
        return stint

    def _forget(self, request: Request) -> None:
        for degree in request.job.workers:
            self._placed.pop((request.name, degree), None)

    def _free(self, name: str) -> Stint:
        stint = self.book.stop(name)
        self.seats.remove(name)
        self.ends.remove(stint)
        self.parts.remove(stint)
        if self.learned is not None:
            self.learned.forget(name)
        self.closed.clear()
        self.changes += 1
        return stint

    def fail(self, node: str | int, now: float | None) -> tuple[str, ...]:
        """See `Scheduler.fail_node`."""
        at = self.book.node(node)
        if not self.book.up[at]:
            raise InstanceError("node", f"{node!r} is down already")
        self.book.now = self.book.at(now)
        lost = tuple(sorted({*self.book.holders[at].values()}))
        for name in lost:
            request = self._free(name).request
            self.wait(replace(request, again=request.price is not None))
        self.book.turn(at, False)
        self.seats.fail(at)
        self.changes += 1
        return lost

    def stop(self, name: str) -> Stint:
        """Have a running job wait again with what is left of its work; return how it ran."""
        stint = self._free(name)
        self.wait(stint.request.stopped(stint.degree, stint.ran(self.book.now)))
        return stint

    def requests(self) -> list[Request]:
        """Return the jobs that run and wait."""
        return [*(stint.request for stint in self.book.running.values()), *self.book.waiting.values()]

    def resume(self, stint: Stint) -> None:
        """Take back a stop of this instant."""
        name = stint.request.name
        self.line.remove(name)
        self.book.waiting[name] = stint.request
        self.seats.put(self.placed(stint.request, stint.degree), stint.nodes)
        self.begin(stint)

    def repair(self, node: str | int, now: float | None) -> None:
        """See `Scheduler.repair_node`."""
        at = self.book.node(node)
        if self.book.up[at]:
            raise InstanceError("node", f"{node!r} is up")
        self.book.now = self.book.at(now)
        self.book.turn(at, True)
        self.seats.repair(at)
        self.closed.clear()
        self.changes += 1

    def enter(self, stint: Stint) -> None:
        """Have a job run that nobody knows yet, where it is said to, once the verifier agrees.

        Raises:
            InstanceError: if it may not run there.
        """
        book, request = self.book, stint.request
        wrong = verify_start(book.fleet, book.up, book.holders, book.held(), request.job, stint.degree, stint.nodes)
        if wrong:
            raise InstanceError("running", wrong[0])
        self.seats.put(self.placed(request, stint.degree), stint.nodes)
        book.waiting[request.name] = request
        self.begin(stint)

    def begin(self, stint: Stint) -> None:
        """Enter a start: the job waits, and its seats are taken."""
        self.changes += 1
        self.book.start(stint)
        self.ends.add(stint)
        self.parts.add(stint)
        if self.learned is not None:
            job = self.placed(stint.request, stint.degree)
            need = max(1, job.worker.grants)
            self.learned.note(job, {node: (len(gpus) // need, 0) for node, gpus in stint.nodes.items()})

    def fill(self, guard: Guard, stop: float) -> Fill:
        """Return a round of starts."""
        return Fill(self, guard, stop)

    def degrees(self, request: Request) -> Sequence[int]:
        """Return the numbers of workers to try, the best first: soon done, and with few GPU seconds.

        A GPU that it holds for a second is a second less for those who wait, and for those who come meanwhile, here
        counted as `COME` times as many.
        """
        degrees = request.job.workers
        if len(degrees) == 1:
            return degrees
        others = COME * len(self.book.waiting) / max(1, self.book.gpus)
        return sorted(degrees, key=lambda d: (request.lasts(d) * (1 + others * request.gpus(d)), d))
