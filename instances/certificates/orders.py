"""Refute a threshold by looking at all beginnings of pipeline plans below it: a certified search, pass by pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, lcm
from typing import Any, ClassVar, NamedTuple

from ..errors import InstanceError
from .document import Certificate
from .exact import SLACK, Budget
from .windows import MOST, PLACE, Direction, effort, fits, starved

EACH = 64
"""Steps that looking at one beginning counts for."""


@dataclass(frozen=True, slots=True)
class OrdersCertificate(Certificate):
    """Run passes one after the other, each as early as it can, as long as the step may end before the threshold.

    A beginning is what devices have run so far. Of all passes that it lets start, let x be the one that would end
    first, at c, on device d. In a plan that goes on from here the next pass of d either starts before c, or x can run
    before it and delays nothing; so d is given each of its passes that can start before c, or x. If x takes memory
    that passes of other stages want first, it is also postponed until d has run something else. One is dropped

    - if some pass and its tail, as `WindowsCertificate` has it, do not end before the threshold;
    - if another of the same passes has all devices free and all data there no later.

    If beginnings come to an end, no plan is below the threshold. Steps have a barrier.

    Attributes:
        threshold: seconds; a plan that takes longer is no concern.
        steps: in which the search is over, at most: `EACH` a beginning, and those of `WindowsCertificate`.
    """

    objectives: ClassVar[tuple[str, ...]] = ("pipeline",)

    threshold: Fraction
    steps: int

    def bound(self, problem: Any) -> Fraction | float:
        """Return the threshold, less slack; `inf` if memory is too small."""
        if not problem.barrier:
            raise InstanceError("threshold", "is of steps with a barrier")
        budget = Budget(min(self.steps, MOST))
        budget.take(effort(problem))
        if starved(problem) is not None:
            return inf
        search = OrderSearch(problem)
        goal = ceil(self.threshold / search.tick)
        if search.run(goal, budget.take)[0]:
            raise InstanceError("threshold", "a plan may be below it")
        slack: Fraction = 1 + problem.n_passes * PLACE
        return goal * search.tick / slack


class Beginning(NamedTuple):
    """What devices have run.

    Attributes:
        least: no step that begins so ends before.
        rank: the least one goes first of those with as much to come: by kind, or by the tail of the last pass.
        counts: passes run of each chain, those of a kind and stage.
        free: when each device is.
        late: of each device passes that can run, but later than that, with when; never if they are postponed.
        ends: when the first pass of each device that can run would end.
        passes: the last one, and those before it.
    """

    least: int
    rank: int
    counts: tuple[int, ...]
    free: tuple[int, ...]
    late: tuple[dict[int, float], ...]
    ends: tuple[float, ...]
    passes: tuple[Any, ...]

    def dominates(self, other: Beginning, head: list[int]) -> bool:
        """Return whether all of it is no later than another one of the same passes."""
        return all(a <= b for a, b in zip(self.free, other.free, strict=True)) and all(
            at <= max(other.free[d], head[x], other.late[d].get(x, 0))
            for d, late in enumerate(self.late)
            for x, at in late.items()
        )


class OrderSearch:
    """Beginnings of plans of a problem that has room for a micro-batch, with micro-batches in order.

    Attributes:
        places: of F, B and W among passes that a narrow beam keeps.
    """

    def __init__(self, problem: Any, *, fit: bool = True) -> None:
        """Take heads and tails; without a barrier tails end with the last pass of a device itself."""
        forward = Direction.of(problem)
        self.m: int = problem.micro_batches
        self.stages: int = problem.stages
        back, everything = forward.reversed(), range(problem.n_passes)
        self.places, self.total = (0, 0, 0), forward.total
        self.tick, self.seconds, self.device = forward.tick, forward.seconds, forward.device
        self.head = forward.heads(everything, fit=fit)
        if problem.barrier:
            self.tail = back.heads(everything, fit=fit)
        else:
            tails = [back.heads(own, fit=fit) for own in back.own]
            self.tail = [tails[d][x] - self.head[forward.own[d][0]] for x, d in enumerate(self.device)]
        self.least = fits(forward, self.head, self.tail) if problem.barrier else 0
        self.chains = [sorted({x // self.m for x in own}) for own in forward.own]
        self.waits = [
            [divmod(u, self.m) for u in before if u // self.m != x // self.m] for x, before in enumerate(forward.arcs)
        ]
        self.feeds = [
            [(y, ticks) for y, ticks in after.items() if self.device[y] != self.device[x]]
            for x, after in enumerate(back.arcs)
        ]
        self._memory(problem)

    def _memory(self, problem: Any) -> None:
        """Take what chains hold in whole numbers; on devices where memory is an order of passes, no more than that."""
        held = [Fraction(x) for x in problem.passes().change[:: self.m].tolist()]
        unit = lcm(*(x.denominator for x in held))
        self.change = [int(x * unit) for x in held]
        self.room: list[float] = [inf] * len(self.chains)
        for d, room in enumerate(problem.capacity.tolist()):
            if sum(self.change[c] != 0 for c in self.chains[d]) > 2:
                self.room[d] = int(Fraction(room) * (1 + SLACK) * unit)

    def _fits(self, d: int, x: int, counts: tuple[int, ...]) -> bool:
        """Return whether device d has room for a pass; if `safe`, for all stages of what it has begun."""
        first = self.chains[d][0]
        begun = counts[first] + (x // self.m == first)
        runs = {c: counts[c] + (c == x // self.m) for c in self.chains[d]}
        if self.safe:
            runs |= {c: begun for c in runs if c < self.stages}
        held: float = sum(self.change[c] * count for c, count in runs.items())
        return held <= self.room[d]

    def able(self, d: int, counts: tuple[int, ...], free: int, late: dict[int, float]) -> Iterator[tuple[float, int]]:
        """Yield the passes that device d can run next, each with when."""
        for c in self.chains[d]:
            x = c * self.m + counts[c]
            able = counts[c] < self.m and all(counts[a] > j for a, j in self.waits[x])
            if able and (self.room[d] == inf or self._fits(d, x, counts)):
                yield max(free, self.head[x], late.get(x, 0)), x

    def run(self, goal: float, take: Callable[[int], None], width: int | None = None) -> tuple[list[int], bool]:
        """Look for a plan that ends before a goal, in ticks.

        Args:
            take: called with the steps that are taken.
            width: beginnings of as many passes each that are kept. With one that is never without room for what it has
                begun.

        Returns:
            The passes in the order of a plan, none if none is found; whether all beginnings were looked at.
        """
        self.safe, count = width == 1, len(self.chains)
        complete, zeros = not self.safe, (0,) * (len(self.seconds) // self.m)
        one = Beginning(0, 0, zeros, (0,) * count, ({},) * count, (inf,) * count, ())
        for d in range(count):
            one = self._retimed(one, d, zeros, 0, {})
        level = [one]
        for _ in self.seconds:
            after: dict[tuple[int, ...], list[Beginning]] = {}
            for one in level:  # which postponed ones are added to
                take(EACH)
                end = min(one.ends)
                if end == inf:
                    continue
                d = one.ends.index(end)
                able = [*self.able(d, one.counts, one.free[d], one.late[d])]
                for start, x in able:
                    if start < end or start + self.seconds[x] == end:
                        new = self._next(one, d, int(start), x)
                        if new.least < goal:
                            after.setdefault(new.counts, []).append(new)
                first = max((x for start, x in able if start + self.seconds[x] == end), default=0)
                if self.room[d] < inf and first < self.stages * self.m and not self.safe:
                    level.append(self._retimed(one, d, one.counts, one.free[d], one.late[d] | {first: inf}))
            level = [x for same in after.values() for x in self._best(same)]
            if width is not None and len(level) > width:
                complete, level = False, sorted(level, key=lambda x: x[:2])[:width]
        found, rest = list[int](), min(level, key=lambda x: x.least).passes if level else ()
        while rest:
            rest, x = rest
            found.append(x)
        return found[::-1], complete

    def _best(self, same: list[Beginning]) -> list[Beginning]:
        """Return those that no other one of the same passes dominates."""
        kept: list[Beginning] = []
        for one in sorted(same, key=lambda x: (sum(x.free), x[:2])) if len(same) > 1 else same:
            if not any(x.dominates(one, self.head) for x in kept):
                kept.append(one)
        return kept

    def _retimed(self, one: Beginning, d: int, counts: tuple[int, ...], free: int, late: dict[int, float]) -> Beginning:
        """Return a beginning with another device d."""
        end = min((at + self.seconds[x] for at, x in self.able(d, counts, free, late)), default=inf)
        return one._replace(
            counts=counts,
            free=(*one.free[:d], free, *one.free[d + 1 :]),
            late=(*one.late[:d], late, *one.late[d + 1 :]),
            ends=(*one.ends[:d], end, *one.ends[d + 1 :]),
        )

    def _next(self, one: Beginning, d: int, start: int, x: int) -> Beginning:
        """Return a beginning with one more pass."""
        end, c = start + self.seconds[x], x // self.m
        counts = (*one.counts[:c], one.counts[c] + 1, *one.counts[c + 1 :])
        late = {y: at for y, at in one.late[d].items() if y != x and end < at < inf}
        new = self._retimed(one, d, counts, end, late)
        least = max(one.least, end + self.tail[x])
        for y in (c * self.m + counts[c] for c in self.chains[d] if counts[c] < self.m):
            least = max(least, max(end, self.head[y]) + self.seconds[y] + self.tail[y])
        for y, ticks in self.feeds[x]:
            e, at = self.device[y], end + ticks
            more = {y: at} if at > max(new.free[e], self.head[y]) else {}
            new = self._retimed(new, e, counts, new.free[e], new.late[e] | more)
        return new._replace(
            least=least, rank=self.total * self.places[c // self.stages] - self.tail[x], passes=(one.passes, x)
        )
