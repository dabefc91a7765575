"""A guard: where a plain rule does better than the policy, that rule decides.

On up to `.parts.WHOLE` servers it looks back: the policy and each rule play on a cluster of their
own, in thought, all that has arrived. Who leads there by more than `LEAD` jobs decides on the real one, until another
leads by as much: follow the leader, who changes for a clear lead only (after Kalai and Vempala, Journal of Computer and
System Sciences 71, 2005). A job gets the block that it has in the leader's thought, so that the real cluster becomes
like that one, or else what the leader chooses on the real one.

On more servers it looks forward, for it takes long until what has arrived tells who is better: hundreds of jobs are
accepted by any rule before the servers are taken for the first time. The policy and each rule go on from the cluster as
it is, in thought, with the same jobs, drawn from those that have arrived, and who has most of them done by the last
arrival decides until as many jobs again have come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gangplan.solvers.compiled.kernel import Bools, Floats, Floats2, Ints, Ints2, kernel

from ..arrivals import ArrivalCase
from ..simulate import RampState
from .tables import DEGREES, BlockTables, Long, free_blocks, hold, times_of

RULES = np.array([(i, constant) for i in range(1, len(DEGREES)) for constant in (1, 0)])
"""A degree as an index into `DEGREES`, and whether it is constant: then the job gets the first block of that degree, as
published. Else it gets the next degree that will do, upwards, then downwards, and the block that leaves the most free
blocks; int64 (rules, 2)."""

WIDE_RULES = np.array([(i, way) for i in range(1, len(DEGREES)) for way in (1, 2)])
"""The same for large clusters: 2 is the next degree that will do, in its first block, for which few are looked at."""


@kernel
def by_rule(end: Floats, now: float, jct: Floats, limit: float, rule: Ints, tables: BlockTables) -> int:
    """Return the block that a rule gives a job, or -1.

    Args:
        rule: one of `RULES` or `WIDE_RULES`.
    """
    free = free_blocks(end, now, tables)
    degree = _degree(free, jct, limit, rule, tables)
    best, found = len(free) + 1, -1
    met = np.zeros(len(free), np.int64)
    for b in range(len(free)):
        if tables.degree[b] != degree or not free[b] or jct[tables.shape[b]] > limit:
            continue
        if rule[1]:
            return b
        lost = _lost(b, free, met, tables)
        if lost < best:
            best, found = lost, b
    return found


@kernel
def go_on(ends: Floats2, block: Ints, now: float, jct: Floats, limit: float, rules: Ints2, tables: BlockTables) -> None:
    """Let a job arrive at clusters of which the first gets the block that it is given, and the others go by rules.

    Args:
        ends: when each server of each cluster is free, float64 (1 + rules, n); is written.
        block: that the job gets in each cluster, or -1, int64 (1 + rules,); all but the first is written.
        now, jct, limit, tables: as in `by_rule`.
        rules: as `RULES` or `WIDE_RULES`.
    """
    for r in range(len(ends)):
        if r > 0:
            block[r] = by_rule(ends[r], now, jct, limit, rules[r - 1], tables)
        if block[r] >= 0:
            hold(ends[r], block[r], now + jct[tables.shape[block[r]]], tables)


@kernel
def _degree(free: Bools, jct: Floats, limit: float, rule: Ints, tables: BlockTables) -> int:
    """Return the degree that a rule chooses of those that would do, -1 for none."""
    up, down = len(DEGREES), -1
    for b in range(len(free)):
        if free[b] and jct[tables.shape[b]] <= limit:
            q = tables.degree[b]
            if q < rule[0]:
                down = max(down, q)
            else:
                up = min(up, q)
    if rule[1] == 1:
        return rule[0] if up == rule[0] else -1
    return up if up < len(DEGREES) else down


@kernel
def _lost(block: int, free: Bools, met: Ints, tables: BlockTables) -> int:
    """Return how many of the free blocks share a server with a block; `met` is written."""
    lost = 0
    for i in range(tables.size[block]):
        s = tables.servers[block, i]
        for j in range(tables.first[s], tables.first[s + 1]):
            other = tables.holds[j]
            if free[other] and met[other] != block + 1:
                met[other] = block + 1
                lost += 1
    return lost


LEAD = 5
"""Jobs by which another has to lead: fewer, and chance decides; more, and as many are lost before it changes."""
FIRST = 1
"""Jobs that arrive before anybody is compared by looking forward. What the first few leave between them lasts: on B of
8x8x4 a rule that took over after 8 jobs blocked a third more than from the first on."""
LENGTH, MOST = 8, 2048
"""Jobs to come, for each server and at most."""
MARGIN = 0.004
"""Share of the jobs to come by which another has to lead."""

Own = Callable[[RampState], int]
"""What the policy does in a state: the block, or -1."""


class CaseGuard:
    """Who decides in a case.

    Args:
        rules: that the policy is held against.
    """

    def __init__(self, tables: BlockTables, rules: Long) -> None:
        self.tables, self.rules = tables, rules
        self._case: Any = None
        self._index, self._leader = -1, 0

    def decide(self, state: RampState, own: Own) -> int:
        """Return the block for the job that arrives, or -1 to reject it."""
        if self._case is not state.case or state.index <= self._index:
            self._case, self._index, self._leader = state.case, -1, 0
            self._jct = times_of(state.case.types).jct
            self.begin(state.case)
        block = self.watch(state, own)
        self._index = state.index
        if block is not None:
            return block
        if not self._leader:
            return own(state)
        jct = self._jct[state.case.model[state.index]]
        return int(by_rule(state.ends, state.now, jct, state.limit, self.rules[self._leader - 1], self.tables))

    def begin(self, case: ArrivalCase) -> None:
        """Forget what another case has been like."""
        raise NotImplementedError

    def watch(self, state: RampState, own: Own) -> int | None:
        """See who leads, and return the block if that is known already."""
        raise NotImplementedError


class LookBack(CaseGuard):
    """Compares what the policy and each rule have accepted so far, each on a cluster of its own."""

    def __init__(self, tables: BlockTables) -> None:
        super().__init__(tables, RULES)

    def begin(self, case: ArrivalCase) -> None:
        """Empty the clusters in thought."""
        # as long as nobody else has led, the policy's own cluster in thought is the real one
        self._alone = True
        self._limit = case.limit
        self._ends = np.full((len(RULES) + 1, self.tables.n), -np.inf)
        self._block, self._count = (np.zeros(len(RULES) + 1, np.int64) for _ in range(2))
        self._took = np.zeros(case.n_jobs, np.bool_)

    def watch(self, state: RampState, own: Own) -> int | None:
        """Let all that has arrived since the last decision arrive at every cluster in thought."""
        for i in range(self._index + 1, state.index + 1):
            self._arrive(i, own)
        block = int(self._block[self._leader])
        return block if (block >= 0 and state.fits[block]) or (block < 0 and self._alone) else None

    def _arrive(self, index: int, own: Own) -> None:
        case = self._case
        state = RampState(case, index, float(self._limit[index]), self._ends[0].copy(), self._took[:index])
        self._block[0] = own(state)
        jct = self._jct[case.model[index]]
        go_on(self._ends, self._block, state.now, jct, state.limit, RULES, self.tables)
        self._count += self._block >= 0
        self._took[index] = self._block[0] >= 0
        best = int(np.argmax(self._count))
        if self._count[best] > self._count[self._leader] + LEAD:
            self._leader, self._alone = best, False


class LookAhead(CaseGuard):
    """Compares what the policy and each rule would make of jobs like those so far, from the cluster as it is."""

    def __init__(self, tables: BlockTables) -> None:
        super().__init__(tables, WIDE_RULES)

    def begin(self, case: ArrivalCase) -> None:
        """Compare when the first jobs have arrived."""
        self._due = FIRST

    def watch(self, state: RampState, own: Own) -> int | None:
        """Compare if it is time to."""
        if state.index >= self._due:
            self._leader, self._due = self._best(state, own), 2 * state.index
        return None

    def _best(self, state: RampState, own: Own) -> int:
        """Return who has most of the jobs to come done: 0 for the policy, or a rule and one."""
        case = jobs_to_come(state, min(LENGTH * self.tables.n, MOST))
        jct, limit = times_of(case.types).jct, case.limit
        ends = np.tile(state.ends, (len(WIDE_RULES) + 1, 1))
        block, count = (np.zeros(len(WIDE_RULES) + 1, np.int64) for _ in range(2))
        took = np.concatenate([state.accepted, np.zeros(case.n_jobs - len(state.accepted), np.bool_)])
        for i in range(state.index, case.n_jobs):
            here = RampState(case, i, float(limit[i]), ends[0].copy(), took[:i])
            block[0] = own(here)
            go_on(ends, block, here.now, jct[case.model[i]], here.limit, WIDE_RULES, self.tables)
            took[i] = block[0] >= 0
            kept = block >= 0
            count[kept] += here.now + jct[case.model[i]][self.tables.shape[block[kept]]] <= case.horizon
        best = int(np.argmax(count))
        lead = count[best] - count[self._leader]
        return best if lead > MARGIN * (case.n_jobs - state.index) else self._leader


def jobs_to_come(state: RampState, n: int) -> ArrivalCase:
    """Return the case so far and `n` jobs more, drawn from it, at its mean gap."""
    case, seen = state.case, state.index + 1
    drawn = np.random.default_rng(state.index).integers(seen, size=n)
    gap = (case.submit[state.index] - case.submit[0]) / state.index
    past = slice(0, seen)
    return ArrivalCase(
        case.types,
        np.concatenate([case.submit[past], state.now + gap * np.arange(1, n + 1)]),
        np.concatenate([case.model[past], case.model[drawn]]),
        np.concatenate([case.fraction[past], case.fraction[drawn]]),
        state.now + gap * n,
    )
