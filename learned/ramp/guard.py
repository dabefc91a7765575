"""A guard: where a plain rule would have accepted more of the jobs so far than the policy, that rule decides.

The policy and each rule play on a cluster of their own, in thought, all that has arrived. Who leads there by more than
`MARGIN` jobs decides on the real one, until another leads by as much: follow the leader, who changes for a clear lead
only (after Kalai and Vempala, Journal of Computer and System Sciences 71, 2005). A job gets the block that it has in
the leader's thought, so that the real cluster becomes like that one, or else what the leader chooses on the real one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gangplan.simulator.ramp import State

from .rules import RULES, by_rule, go_on
from .tables import Tables, menus

MARGIN = 5
"""Jobs by which another has to lead: fewer, and chance decides; more, and as many are lost before it changes."""


class Guard:
    """What the policy and the rules have come to in a case.

    Args:
        tables: of the cluster.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._case: Any = None

    def decide(self, state: State, own: Callable[[State], int]) -> int:
        """Return the block for the job that arrives, or -1 to reject it; `own` is what the policy does in a state."""
        if self._case is not state.case or state.index <= self._index:
            self._begin(state)
        for i in range(self._index + 1, state.index + 1):
            self._arrive(i, own)
        block = int(self._block[self._leader])
        # as long as nobody else has led, the policy's own cluster in thought is the real one
        if (block >= 0 and state.fits[block]) or (block < 0 and self._alone):
            return block
        if not self._leader:
            return own(state)
        jct = self._jct[state.case.model[state.index]]
        return int(by_rule(state.ends, state.now, jct, state.limit, RULES[self._leader - 1], self._tables))

    def _begin(self, state: State) -> None:
        self._case, self._index, self._leader, self._alone = state.case, -1, 0, True
        self._jct = menus(state.case.types).jct
        self._limit = state.case.limit
        self._ends = np.full((len(RULES) + 1, self._tables.n), -np.inf)
        self._block, self._count = (np.zeros(len(RULES) + 1, np.int64) for _ in range(2))
        self._took = np.zeros(state.case.n_jobs, np.bool_)

    def _arrive(self, index: int, own: Callable[[State], int]) -> None:
        """Let a job arrive at every cluster in thought, and see who leads."""
        case = self._case
        state = State(case, index, float(self._limit[index]), self._ends[0].copy(), self._took[:index])
        jct = self._jct[case.model[index]]
        self._block[0] = own(state)
        go_on(self._ends, self._block, state.now, jct, state.limit, RULES, self._tables)
        self._count += self._block >= 0
        self._took[index] = self._block[0] >= 0
        best = int(np.argmax(self._count))
        if self._count[best] > self._count[self._leader] + MARGIN:
            self._leader, self._alone = best, False
        self._index = index
