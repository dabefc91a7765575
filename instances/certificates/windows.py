"""Bounds of orders of passes: how early each can start, how long is left once it has ended, and what must fit between.

Micro-batches are alike, so that in each stage they go forward, backward and to the weights in the order of their
numbers: to call the k-th pass of each kind that a stage runs micro-batch k changes no time and no memory, and no pass
starts before the one it waits for, k of which have ended by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from graphlib import TopologicalSorter
from math import inf, lcm
from typing import Any, ClassVar

import numpy as np

from ..arrays import IntArray
from ..errors import InstanceError
from .document import Certificate
from .exact import SLACK

PLACE = Fraction(1, 2**51)
"""Two last places, by which the verifier rounds the end of each pass in a row at most, as a share."""
_WIDE = 2**58
"""Ticks from which sums of some of them are beyond 64 bits."""
MOST = 50_000_000
"""Steps that any certificate may ask for: minutes."""


@dataclass(frozen=True, slots=True)
class WindowsCertificate(Certificate):
    """Fit all that a device has to run between the heads and the tails of its passes.

    A pass follows the one that it waits for; the one before it of its kind and stage; and, where a device has room for
    c micro-batches of the stage, a forward pass follows the one that frees the room of the c-th before it. So it has a
    head, and no smaller one than the least head of any passes of its device that come before it and all their seconds.
    Tails are alike, with time reversed. Any passes of a device take their least head, their seconds and their least
    tail together.

    Without a barrier heads are from the first pass of a device on and tails up to its last one, one device at a time:
    in the long run steps cannot be closer than that.

    Attributes:
        steps: pairs of passes of a device that may be compared; see `effort`.
    """

    objectives: ClassVar[tuple[str, ...]] = ("pipeline",)

    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        """Return the seconds that no step is below; `inf` if memory is too small."""
        if (work := effort(problem)) > min(self.steps, MOST):
            raise InstanceError("steps", f"{work} pairs of passes are to be compared, {min(self.steps, MOST)} may be")
        if starved(problem) is not None:
            return inf
        forward = Direction.of(problem)
        both = forward, forward.reversed()
        views = [list(range(problem.n_passes))] if problem.barrier else forward.own
        best: int = max(fits(forward, *(x.heads(own) for x in both)) for own in views)
        slack: Fraction = 1 + problem.n_passes * PLACE
        return best * forward.tick / slack


def effort(problem: Any) -> int:
    """Return how many pairs of passes of a device there are at most, what all of them have to be compared in."""
    return int(problem.n_passes**2 * np.bincount(problem.device).max() // problem.stages)


def starved(problem: Any) -> int | None:
    """Return the first device without room for one micro-batch in all its stages, which it is in before it goes back.

    With room for that there is a plan: one micro-batch after the other.
    """
    for d, room in enumerate(problem.capacity.tolist()):
        need = sum((Fraction(x) for x in problem.activation[problem.device == d].tolist()), Fraction(0))
        if need > Fraction(room) * (1 + SLACK):
            return d
    return None


def memory_arcs(problem: Any) -> Iterator[tuple[int, int]]:
    """Yield passes that free the room that forward passes need, and these, of a problem where none is starved."""
    m = problem.micro_batches
    for s, d in enumerate(problem.device.tolist() if len(problem.capacity) else ()):
        room = Fraction(float(problem.capacity[d])) * (1 + SLACK)
        for kind, held in ((1, problem.activation), (2, problem.kept))[: 1 + problem.split]:
            count = int(room / Fraction(float(held[s]))) if held[s] > 0 else m
            yield from ((problem.number(kind, s, j - count), s * m + j) for j in range(count, m))


class Direction:
    """Passes in whole ticks, in the order of time or against it.

    Attributes:
        tick: seconds.
        seconds: of each pass, in ticks.
        arcs: of each pass those before it, each with the ticks between.
        device: of each pass.
        own: of each device its passes.
        micro_batches: how many; as many passes of one kind and stage are a chain.
        order: passes so that each comes after those before it.
        total: more than all seconds and arcs together, in ticks.
    """

    forward = True

    def __init__(
        self, tick: Fraction, seconds: list[int], arcs: list[dict[int, int]], device: list[int], micro_batches: int
    ) -> None:
        self.tick, self.seconds, self.arcs, self.device = tick, seconds, arcs, device
        self.micro_batches = micro_batches
        self.own: list[list[int]] = [[] for _ in range(max(device) + 1)]
        for x, d in enumerate(device):
            self.own[d].append(x)
        self.order = list(TopologicalSorter(dict(enumerate(arcs))).static_order())
        self.total = sum(seconds) + sum(sum(x.values()) for x in arcs) + 1
        self.type: Any = np.int64 if self.total < _WIDE else object

    @classmethod
    def of(cls, problem: Any) -> Direction:
        """Return the passes with all arcs that hold in any plan with micro-batches in the order of their numbers."""
        found, m = problem.passes(), problem.micro_batches
        exact = [[Fraction(x) for x in column.tolist()] for column in (found.seconds, found.lag)]
        tick = Fraction(1, lcm(*{x.denominator for column in exact for x in column}))
        seconds, lag = ([int(x / tick) for x in column] for column in exact)
        arcs: list[dict[int, int]] = [{} for _ in seconds]
        for x, u in enumerate(found.before.tolist()):
            if u >= 0:
                arcs[x][u] = lag[x]
            if x % m:
                arcs[x].setdefault(x - 1, 0)
        for u, x in memory_arcs(problem):
            arcs[x].setdefault(u, 0)
        return cls(tick, seconds, arcs, found.device.tolist(), m)

    def reversed(self) -> Direction:
        """Return the same against time."""
        after: list[dict[int, int]] = [{} for _ in self.seconds]
        for x, before in enumerate(self.arcs):
            for u, ticks in before.items():
                after[u][x] = ticks
        found = Direction(self.tick, self.seconds, after, self.device, self.micro_batches)
        found.forward = not self.forward
        return found

    def heads(self, view: Sequence[int], *, fit: bool = True) -> list[int]:
        """Return how early each pass can start if those of a view start at 0, others whenever they like.

        Args:
            fit: whether passes of a device that come before another have to fit, too.
        """
        never = -4 * self.total
        head, takes = np.full(len(self.seconds), never, self.type), np.array(self.seconds, self.type)
        head[[*view]] = 0
        for x in self.order:
            before = [head[u] + self.seconds[u] + ticks for u, ticks in self.arcs[x].items()]
            head[x] = max(head[x], *before) if before else head[x]
            if fit and (past := [*self._past(x)]):
                starts = np.concatenate([head[part] for part in past])
                late = np.argsort(-starts, kind="stable")
                total = np.cumsum(np.concatenate([takes[part] for part in past])[late])
                head[x] = max(head[x], (starts[late] + total).max())
        found: list[int] = head.tolist()
        return found

    def _past(self, x: int) -> Iterator[slice]:
        """Yield the parts of the chains of its device that come before a pass."""
        m = self.micro_batches
        for c in {y // m for y in self.own[self.device[x]][::m]}:
            if k := self.past[x, c]:
                yield slice(c * m, c * m + k) if self.forward else slice(c * m + m - k, c * m + m)

    @cached_property
    def past(self) -> IntArray:
        """How many of each chain come before each pass, int32 (n, chains)."""
        m = self.micro_batches
        past = np.zeros((len(self.arcs), len(self.arcs) // m), dtype=np.int32)
        for x in self.order:
            for u in self.arcs[x]:
                np.maximum(past[x], past[u], out=past[x])
                past[x, u // m] = max(past[x, u // m], u % m + 1 if self.forward else m - u % m)
        return past


def fits(passes: Direction, head: list[int], tail: list[int]) -> int:
    """Return the most that passes of a device take with their least head and their least tail."""
    best = 0
    for own in passes.own:
        late = sorted(own, key=lambda x: -head[x])
        starts, ends, takes = (np.array([of[x] for x in late], passes.type) for of in (head, tail, passes.seconds))
        for least in set(ends.tolist()):
            some = ends >= least
            best = max(best, int((starts[some] + np.cumsum(takes[some])).max()) + least)
    return best
