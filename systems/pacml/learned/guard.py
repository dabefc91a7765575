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

from ..arrivals import ArrivalCase
from ..simulate import RampState
from .tables import DEGREES, BlockTables, Clusters, Long, TypeTimes

RULES = np.array([(i, constant) for i in range(1, len(DEGREES)) for constant in (1, 0)])
"""A degree as an index into `DEGREES`, and whether it is constant: then the job gets the first block of that degree, as
published. Else it gets the next degree that will do, upwards, then downwards, and the block that leaves the most free
blocks; int64 (rules, 2)."""

WIDE_RULES = np.array([(i, way) for i in range(1, len(DEGREES)) for way in (1, 2)])
"""The same for large clusters: 2 is the next degree that will do, in its first block, for which few are looked at."""


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
        self._index, self._leader, self._real = -1, 0, Clusters(tables, 2)

    def decide(self, state: RampState, own: Own) -> int:
        """Return the block for the job that arrives, or -1 to reject it."""
        if self._case is not state.case or state.index <= self._index:
            self._case, self._index, self._leader = state.case, -1, 0
            self._times = TypeTimes(state.case.types)
            self.begin(state.case)
        block = self.watch(state, own)
        self._index = state.index
        if block is not None:
            return block
        if not self._leader:
            return own(state)
        np.asarray(self._real.ends)[1], found = state.ends, np.full(2, -1)
        rule, kind = self.rules[self._leader - 1 : self._leader], state.case.model[state.index]
        self._real.go_on(found, state.now, self._times, kind, state.limit, rule)
        return int(found[1])

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
        self._clusters = Clusters(self.tables, len(RULES) + 1)
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
        ends = np.array(self._clusters.ends[0])
        state = RampState(case, index, float(self._limit[index]), ends, self._took[:index])
        self._block[0] = own(state)
        self._clusters.go_on(self._block, state.now, self._times, case.model[index], state.limit, RULES)
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
        times, limit, clusters = TypeTimes(case.types), case.limit, Clusters(self.tables, len(WIDE_RULES) + 1)
        ends, jct = np.asarray(clusters.ends), np.asarray(times.jct)[:, np.asarray(self.tables.shape)]
        ends[:] = state.ends
        block, count = (np.zeros(len(WIDE_RULES) + 1, np.int64) for _ in range(2))
        took = np.concatenate([state.accepted, np.zeros(case.n_jobs - len(state.accepted), np.bool_)])
        for i in range(state.index, case.n_jobs):
            here = RampState(case, i, float(limit[i]), ends[0].copy(), took[:i])
            block[0] = own(here)
            clusters.go_on(block, here.now, times, case.model[i], here.limit, WIDE_RULES)
            took[i] = block[0] >= 0
            kept = block >= 0
            count[kept] += here.now + jct[case.model[i], block[kept]] <= case.horizon
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
