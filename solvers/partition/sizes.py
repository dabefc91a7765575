"""Memory in exact models: whole sizes against a whole room, and what to do where rounding lets too much in.

The verifier adds up floats and allows a relative `TOLERANCE`. Solvers count in whole numbers, or in floats with slacks
of their own. So a model is given a relaxation, which no plan that the verifier accepts breaks: sizes are rounded down,
the room is rounded up, each limit has its own unit, and what is larger than a limit is barred by name and does not set
the unit. Where a plan then breaks the limit, the groups at fault become a *cover*: not all of them go together on a
device of that limit or a lesser one (Balas 1975). With it the model is solved again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import verify
from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.instances.verify import TOLERANCE

from ..run import Run

P = TypeVar("P")
_BITS = 40
"""Sizes of a million groups add up to less than 63 bits; a thousand are rounded by less than the tolerance."""
_ULP = 2.0**-52


@dataclass(frozen=True)
class Sizes:
    """The memory of groups against one limit.

    Attributes:
        barred: groups that do not fit alone, bool (G,).
        size: of each group, whole numbers; 0 of those barred, and of all if the others fit together, int64 (G,).
        room: of a device, in the same unit.
    """

    barred: BoolArray
    size: NDArray[np.int64]
    room: int

    @property
    def binds(self) -> bool:
        """Whether groups that fit alone may be too much together."""
        return bool(self.size.any())


def most(limit: float, ops: int) -> float:
    """Return no fewer bytes than any set of so many ops has that the verifier accepts within `limit`."""
    # floats in another order, and the sums of sums that groups have, differ by so much at most
    return limit * (1 + TOLERANCE) * (1 + 2 * (ops + 2) * _ULP)


def why_impossible(
    names: Sequence[str],
    op_of: Callable[[int], int],
    runs: BoolArray,
    fits: BoolArray,
    memory: FloatArray,
    total: float,
) -> str | None:
    """Return why no plan exists if that is plain to see, else `None`.

    Args:
        op_of: from a group to one of its ops.
        runs, fits: whether devices run a group, and whether those that do have the memory for it, bool (any, G).
        memory: bytes of each group, float64 (G,).
        total: bytes of all devices.
    """
    somewhere, fitting = np.asarray(runs.any(axis=0)), np.asarray(fits.any(axis=0))
    if not somewhere.all():
        op = names[op_of(int(np.argmin(somewhere)))]
        return f"no device type of the cluster runs op {op} and all ops colocated with it"
    if not fitting.all():
        g = int(np.argmin(fitting))
        words = f"memory: op {names[op_of(g)]} and its colocated ops need {memory[g]:.6g} bytes"
        return f"{words}; no device that runs them has that"
    if memory.sum() > total * (1 + TOLERANCE):
        return f"memory: the ops need {memory.sum():.6g} bytes, all devices together have {total:.6g}"
    return None


def fits(run: Run, plan: Any) -> bool:
    """Return whether the verifier finds the memory of all devices large enough for `plan`."""
    return not (verify(run.problem, plan).memory > run.problem.capacity() * (1 + TOLERANCE)).any()


def edge(limit: float, total: float, terms: int, *, generous: bool) -> float:
    """Return so many bytes that differences of sums count as fitting into `limit`.

    Args:
        total: the greatest of the sums, bytes; of amounts that are no more than `limit` each.
        terms: that it has.
        generous: whether to let in all that the verifier may accept, or else what it is sure to.
    """
    slack = min(total * (terms + 4) * _ULP, limit * TOLERANCE / 2)
    return limit * (1 + TOLERANCE) + (slack if generous else -slack)


def whole(memory: FloatArray, limit: float, ops: int) -> Sizes:
    """Return sizes and room, whole numbers, such that whatever the verifier accepts is accepted; `limit` may be inf."""
    room = most(limit, ops)
    barred = memory > room
    fitting = np.where(barred, 0.0, memory)
    if fitting.sum() <= limit:
        return Sizes(barred, np.zeros(len(memory), dtype=np.int64), 0)
    return Sizes(barred, *in_units(fitting, room))


def in_units(amounts: FloatArray, room: float) -> tuple[NDArray[np.int64], int]:
    """Return amounts and a room in whole units, rounded down; what is larger than the room is one unit more than it."""
    # a power of two: whole numbers of bytes stay what they are, and no quotient is rounded
    exponent = int(np.frexp(room)[1]) - _BITS
    whole_room = int(np.floor(np.ldexp(room, -exponent)))
    large = amounts > room
    size = np.floor(np.ldexp(np.where(large, 0.0, amounts), -exponent)).astype(np.int64)
    common = max(int(np.gcd.reduce(size)), 1)
    return np.where(large, whole_room // common + 1, size // common), whole_room // common


@dataclass
class CoverCuts:
    """Groups that do not go together, learnt from the plans of a model that the verifier refused.

    `found`: bytes of a device, and groups that no device of at most so many holds together.
    """

    found: list[tuple[float, tuple[int, ...]]] = field(default_factory=list)

    def kept(self, run: Run, plan: P, group_of: NDArray[Any], by: str) -> P | None:
        """Return `plan` if it fits in memory; if it does not, learn which groups are at fault.

        Args:
            group_of: the group of each op, -1 for one that has none, int (n,).
        """
        limit, placed = run.problem.capacity(), cast(Any, plan)
        over = np.flatnonzero(verify(run.problem, placed).memory > limit * (1 + TOLERANCE))
        for d in over.tolist():
            cover = float(limit[d]), _least(run.problem.graph.memory, placed.device == d, group_of, float(limit[d]))
            if cover not in self.found:
                self.found.append(cover)
        if len(over):
            run.note(f"{by}: a plan found fits in memory only within the rounding of sizes, so it is dropped")
        return None if len(over) else plan

    def of(self, limit: float) -> Iterator[tuple[int, ...]]:
        """Yield the groups that do not go together on a device of `limit` bytes."""
        return (groups for bytes_, groups in self.found if limit <= bytes_)


def _least(memory: FloatArray, here: BoolArray, group_of: NDArray[Any], limit: float) -> tuple[int, ...]:
    ops = np.flatnonzero(here & (group_of >= 0))
    groups, inverse = np.unique(group_of[ops], return_inverse=True)
    size = np.bincount(inverse, weights=memory[ops])
    kept = groups[size > 0]
    order = np.argsort(-size[size > 0], kind="stable")
    enough = np.flatnonzero(np.cumsum(size[size > 0][order]) > most(limit, len(ops)) * (1 + _ULP * len(ops)))
    # where they are too much by a hair only, all are kept: more ops never need less
    return tuple(sorted(kept[order[: enough[0] + 1] if len(enough) else order].tolist()))
