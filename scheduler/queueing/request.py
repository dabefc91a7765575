"""A job that was submitted: on whose behalf, how it may be treated, and how long it is expected to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, fields, replace
from sys import float_info
from types import EllipsisType
from typing import Any, TypedDict

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import check_fields, limited, plain, require_number, require_text
from gangplan.instances.errors import require_known
from gangplan.instances.placement import Demand, GangJob

from ..durations import Work, expected, index, quantile

Price = float | EllipsisType | None
"""Of a stop, seconds; `None` if the job is never stopped; by default as before, of a new one the scheduler's."""
TOPOLOGIES = ("required", "preferred")


def names_of(given: object, field: str) -> tuple[str, ...]:
    """Return names as a tuple.

    Raises:
        InstanceError: if they are no sequence of names, a single name among them.
    """
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InstanceError(field, f"{given!r} is no sequence of names; write [{given!r}] for one")
    for i, name in enumerate(given):
        require_text(name, f"{field}[{i}]")
    return tuple(dict.fromkeys(given))


class TermFields(TypedDict, total=False):
    """The fields of `Terms` as keywords of `Scheduler.submit`."""

    queue: str
    user: str
    priority: int
    limit: float | None
    title: str
    begin: float
    after: tuple[str, ...]
    within: str
    topology: str
    group: int
    mixed: bool
    preempts: bool
    await_nodes: bool
    grace: float | None


@dataclass(frozen=True, slots=True)
class Terms:
    """Say on whose behalf a job waits, and how it may be treated.

    Attributes:
        queue: a leaf of the tree of queues, by its dotted path.
        user: who submitted it.
        priority: its class, the higher the sooner.
        limit: seconds after which it is ended by whoever runs it, `None` if never; far too long for an estimate.
        title: what its user calls it; jobs with like titles take alike.
        begin: seconds of the user's clock, before which it does not start.
        after: names of jobs that have to be done before it starts.
        array: the array that it is of.
        within: a level of the cluster's network, ``rack`` or ``node``, in one group of which its workers are; "" if
            they may be anywhere.
        topology: whether that is ``required``, or ``preferred``: then one group has them if it has the room.
        group: each so many workers are on one node (tensor-parallel groups).
        mixed: whether its workers may be on several types of GPU; then the slowest counts.
        preempts: whether others may be stopped for it.
        await_nodes: whether it waits where the cluster as it is never has it, for nodes to come (`Scheduler.resize`).
        grace: seconds that it has when it is told to stop, in which it holds its GPUs; `None` for the scheduler's.
    """

    queue: str = limited("", empty=True)
    user: str = limited("", empty=True)
    priority: int = limited(0, signed=True)
    limit: float | None = limited(None, positive=True)
    title: str = limited("", empty=True)
    begin: float = 0.0
    after: tuple[str, ...] = ()
    array: str = limited("", empty=True)
    within: str = limited("", empty=True)
    topology: str = limited("required", choices=TOPOLOGIES)
    group: int = limited(1, positive=True)
    mixed: bool = False
    preempts: bool = True
    await_nodes: bool = False
    grace: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "after", names_of(self.after, "after"))
        check_fields(self)
        object.__setattr__(self, "begin", float(self.begin))

    @classmethod
    def of(cls, given: TermFields) -> Terms:
        """Return the terms that keywords state.

        Raises:
            InstanceError: naming the keyword that is unknown or wrong.
        """
        require_known(given, [each.name for each in fields(cls)], "is no argument")
        return cls(**given)

    def save(self) -> dict[str, Any]:
        """Return those fields that are not as usual, for JSON."""
        usual = asdict(USUAL_TERMS)
        return {name: value for name, value in asdict(self).items() if value != usual[name]}


USUAL_TERMS = Terms()
"""Those of a job of which nothing is said."""


Seconds = float | Sequence[float] | Mapping[int, float] | None
"""An estimate: one number for a rigid job, one for each number of workers, or by number of workers."""


@dataclass(frozen=True, slots=True)
class Request:
    """A job that was submitted.

    Attributes:
        job: the gang.
        submit: seconds of the user's clock.
        seconds: how long it is expected to run with each number of workers of ``job.workers``, where no place is slow.
        told: whether these were given and are believed; they come from the history of finished jobs otherwise.
        together: whether workers that fit on one node stay on one, and others take whole nodes.
        serial: how many were submitted before it.
        price: seconds that its GPUs are held without getting on when it runs again after a stop; `None` if it may not
            be stopped.
        left: of its work, what was left when it last began to wait.
        done: GPU seconds, or seconds of workers without GPUs, for which it got on until then.
        again: whether it runs again when it starts, and pays its price.
        due: from when on it goes before others; later by the seconds that it ran before it was stopped.
        terms: on whose behalf it waits, and how it may be treated.
        types: GPU types, and how many times its seconds it takes there, for each number of workers; none if all are
            alike.
        work: of a job whose seconds are not believed, the distribution of its GPU seconds (`durations.spread`).
        index: its Gittins index now, GPU seconds, if it may be stopped and its work is such a distribution.
        guess: seconds that were given for it and are not believed.
        priced: whether its price was said of it, and is not the scheduler's.
        paid: seconds that its last start cost, if its price has changed since.
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
    due: float = float_info.max
    terms: Terms = USUAL_TERMS
    types: tuple[tuple[str, tuple[float, ...]], ...] = ()
    work: Work = ()
    index: float | None = None
    guess: float | None = None
    priced: bool = False
    paid: float | None = None

    @property
    def name(self) -> str:
        """The job's name."""
        return self.job.name

    @property
    def seated(self) -> GangJob:
        """The gang with parameter servers beside its workers, as part of what these need."""
        job = self.job
        if not job.servers:
            return job
        return replace(job, worker=job.seat, collective="ring", servers=0, server=Demand(gpu=0.0))

    @property
    def lends(self) -> bool:
        """Whether it may be stopped because others gain by its GPUs."""
        return self.price is not None and self.job.worker.gpu > 0

    @property
    def pays(self) -> float:
        """The seconds that its next start costs."""
        return (self.price or 0.0 if self.paid is None else self.paid) if self.again else 0.0

    @property
    def longest(self) -> float:
        """The longest that it is expected to run, by its largest work if that is a distribution, on whatever type."""
        whole = tuple(self.work[-1] / self.units(degree) for degree in self.job.workers if self.work) or self.seconds
        rows = [tuple(s * t for s, t in zip(whole, times, strict=True)) for _, times in self.types] or [whole]
        return max(map(max, rows))

    def gpus(self, degree: int) -> int:
        """Return how many GPUs it holds with so many workers."""
        return degree * self.job.worker.grants

    def units(self, degree: int) -> int:
        """Return in how many parts its work is done with so many workers: its GPUs, or workers if it needs none."""
        return self.gpus(degree) or degree

    def lasts(self, degree: int, slower: float = 1.0) -> float:
        """Return the seconds it is expected to run from its next start on, with so many workers, on such a place."""
        return self.seconds[self.job.workers.index(degree)] * self.left * slower + self.pays

    def counts(self, degree: int, slower: float = 1.0) -> float:
        """Return the seconds for which it counts in an order: its index, or as long as it lasts."""
        if self.index is None:
            return self.lasts(degree, slower)
        return self.index / self.units(degree) * slower + self.pays

    def quantile(self, degree: int, share: float) -> float:
        """Return the seconds within which it ends with so much probability if it runs with so many workers from now on.

        Of a job whose seconds are believed these are they.
        """
        if not self.work:
            return self.lasts(degree)
        rest = [work for work in self.work if work > self.done] or [expected(self.work, self.done)]
        return (quantile(rest, share) - self.done) / self.units(degree) + self.pays

    def aged(self, done: float) -> Request:
        """Return it after it got on for so many GPU seconds in all: what it is expected to need, given that."""
        whole = expected(self.work, done)
        seconds = tuple(whole / self.units(degree) for degree in self.job.workers)
        rank = None if self.price is None else index(self.work, done)
        return replace(self, seconds=seconds, left=1.0 - done / whole, done=done, index=rank)

    def stopped(self, degree: int, ran: float, held: float) -> Request:
        """Return it after it got on for so many seconds with so many workers, of those for which it held GPUs.

        One that had run longer than expected is expected to run as long again.
        """
        if self.work:
            aged = self.aged(self.done + ran * self.units(degree))
            return replace(aged, again=self.price is not None, due=self.due + held, paid=None)
        whole = self.seconds[self.job.workers.index(degree)]
        left = self.left - ran / whole if whole else 0.0
        if left <= 0.0:
            left = ran / whole if whole else 0.0
        done, again = self.done + ran * self.units(degree), self.price is not None
        return replace(self, left=left, done=done, again=again, due=self.due + held, paid=None)

    def placed(self, degree: int, size: int) -> GangJob:
        """Return the gang as the placer sees it: in bundles of `size` workers.

        A bundle is a worker to the placer: all workers on one node, or a node's fill of them; so the room that is kept
        for a bundle says at once where the gang fits.
        """
        job, need = self.seated, self.job.seat
        if size == 1:
            return replace(job, workers=(degree,))
        demand = Demand(need.gpu * size, need.cpu * size, need.memory * size, need.nic * size)
        most = None if job.most_per_node is None else max(1, job.most_per_node // size)
        return replace(job, workers=(-(-degree // size),), worker=demand, most_per_node=most)


def renamed(job: GangJob, name: str) -> GangJob:
    """Return a gang with another name, not checked again."""
    other = copy(job)
    object.__setattr__(other, "name", name)
    return other


def given_seconds(job: GangJob, seconds: Seconds) -> tuple[float, ...] | None:
    """Return an estimate for each number of workers, `None` if none is given.

    One number for a job of several degrees is that of the most workers; fewer take longer in proportion.

    Raises:
        InstanceError: if there is not one finite number from 0 on for each.
    """
    if seconds is None:
        return None
    seconds = seconds.tolist() if isinstance(seconds, np.ndarray | np.number) else seconds
    if isinstance(seconds, Mapping):
        missing = [degree for degree in job.workers if degree not in seconds]
        if missing:
            raise InstanceError("seconds", f"names no seconds for {missing[0]} workers")
        values = [plain(seconds[degree]) for degree in job.workers]
    elif isinstance(seconds, Sequence) and not isinstance(seconds, str):
        values = [plain(value) for value in seconds]
        if len(values) != len(job.workers):
            raise InstanceError("seconds", f"has {len(values)} entries for {len(job.workers)} numbers of workers")
    else:
        require_number(seconds, "seconds")
        values = [seconds * job.workers[-1] / degree for degree in job.workers]
    for i, value in enumerate(values):
        require_number(value, f"seconds[{i}]")
    return tuple(float(value) for value in values)
