"""What is said of a job beside its gang: on whose behalf it waits, and how it may be treated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from types import EllipsisType
from typing import Any, TypedDict

from gangplan.instances import InstanceError
from gangplan.instances.arrays import check_fields, limited, require_text
from gangplan.instances.errors import require_known

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
