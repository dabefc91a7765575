"""A job as the online scheduler takes it: a gang, how long it may run, and whether its workers stay together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number
from gangplan.instances.placement import Demand, GangJob

Seconds = float | Sequence[float] | Mapping[int, float] | None
"""An estimate: one number for a rigid job, one for each number of workers, or by number of workers."""


@dataclass(frozen=True, slots=True)
class Request:
    """A job that was submitted.

    Attributes:
        job: the gang.
        submit: seconds of the user's clock.
        seconds: how long it is expected to run with each number of workers of ``job.workers``.
        told: whether these were given; they come from the history of finished jobs otherwise.
        together: whether workers that fit on one node stay on one, and others take whole nodes.
        serial: how many were submitted before it.
        price: seconds that its GPUs are held without getting on when it runs again after a stop; `None` if it may not
            be stopped.
        left: of its work, what was left when it last began to wait.
        done: GPU seconds for which it got on until then.
        again: whether it runs again when it starts, and pays its price.
    """

    job: GangJob
    submit: float
    seconds: tuple[float, ...]
    told: bool
    together: bool
    serial: int
    price: float | None = None
    left: float = 1.0
    done: float = 0.0
    again: bool = False

    @property
    def name(self) -> str:
        """The job's name."""
        return self.job.name

    def gpus(self, degree: int) -> int:
        """Return how many GPUs it holds with so many workers."""
        return degree * self.job.worker.grants

    def lasts(self, degree: int) -> float:
        """Return the seconds it is expected to run from its next start on, with so many workers."""
        return self.seconds[self.job.workers.index(degree)] * self.left + self.pays

    @property
    def pays(self) -> float:
        """The seconds that its next start costs."""
        return self.price or 0.0 if self.again else 0.0

    def stopped(self, degree: int, ran: float) -> Request:
        """Return it after it got on for so many seconds with so many workers.

        One that had run longer than expected is expected to run as long again.
        """
        whole = self.seconds[self.job.workers.index(degree)]
        left = self.left - ran / whole if whole else 0.0
        if left <= 0.0:
            left = ran / whole if whole else 0.0
        return replace(self, left=left, done=self.done + ran * self.gpus(degree), again=self.price is not None)


def seconds_of(job: GangJob, seconds: Seconds) -> tuple[float, ...] | None:
    """Return an estimate for each number of workers, `None` if none is given.

    One number for a job of several degrees is that of the most workers; fewer take longer in proportion.

    Raises:
        InstanceError: if there is not one finite number from 0 on for each.
    """
    if seconds is None:
        return None
    if isinstance(seconds, Mapping):
        missing = [degree for degree in job.workers if degree not in seconds]
        if missing:
            raise InstanceError("seconds", f"names no seconds for {missing[0]} workers")
        values = [seconds[degree] for degree in job.workers]
    elif isinstance(seconds, Sequence) and not isinstance(seconds, str):
        values = list(seconds)
        if len(values) != len(job.workers):
            raise InstanceError("seconds", f"has {len(values)} entries for {len(job.workers)} numbers of workers")
    else:
        require_number(seconds, "seconds")
        values = [seconds * job.workers[-1] / degree for degree in job.workers]
    for i, value in enumerate(values):
        require_number(value, f"seconds[{i}]")
    return tuple(float(value) for value in values)


def as_placed(request: Request, degree: int, node: int, model: str | None = None) -> GangJob:
    """Return the gang as it is placed with so many workers: bundled, if it is to stay together.

    A bundle is a worker to the placer: all workers on one node, or a node's fill of them; so the room that is kept for
    a bundle says at once where the gang fits.

    Args:
        request: the job.
        degree: how many workers.
        node: the GPUs of the largest node.
        model: instead of its own, where models make no difference.
    """
    job, need = request.job, request.job.worker
    if model is not None:
        job = replace(job, model=model)
    size = bundle(request, degree, node)
    if size == 1:
        return replace(job, workers=(degree,))
    demand = Demand(need.gpu * size, need.cpu * size, need.memory * size, need.nic * size)
    most = None if job.most_per_node is None else max(1, job.most_per_node // size)
    return replace(job, workers=(-(-degree // size),), worker=demand, most_per_node=most)


def bundle(request: Request, degree: int, node: int) -> int:
    """Return how many workers stick together."""
    need = request.job.worker.grants
    if not request.together or not need or request.job.worker.gpu < 1:
        return 1
    return max(1, min(degree, node // need))
