"""A guard of clusters of several pods: who would do most of the jobs to come, if they are like those so far, decides.

The policy and each rule go on from the cluster as it is, in thought, with the same jobs, drawn from those that have
arrived, and who has most of them done by the last arrival decides until as many jobs again have come. On many servers
it takes long until what has arrived so far tells who is better (`gangplan.learned.ramp.guard`): hundreds of jobs are
accepted by any rule before the servers are taken for the first time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gangplan.simulator.ramp import Case, State

from .rules import WIDE_RULES, by_rule, go_on
from .tables import Tables, menus

FIRST = 32
"""Jobs that arrive before anybody is compared."""

LENGTH, MOST = 8, 2048
"""Jobs to come, for each server and at most."""

MARGIN = 0.004
"""Share of the jobs to come by which another has to lead."""


class Forecast:
    """Who decides in a case.

    Args:
        tables: of the cluster.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._case: Any = None
        self._index, self._leader, self._due = -1, 0, FIRST

    def decide(self, state: State, own: Callable[[State], int]) -> int:
        """Return the block for the job that arrives, or -1 to reject it; `own` is what the policy does in a state."""
        if self._case is not state.case or state.index <= self._index:
            self._case, self._leader, self._due = state.case, 0, FIRST
        self._index = state.index
        if state.index >= self._due:
            self._leader, self._due = self._best(state, own), 2 * state.index
        if not self._leader:
            return own(state)
        jct = menus(state.case.types).jct[state.case.model[state.index]]
        return int(by_rule(state.ends, state.now, jct, state.limit, WIDE_RULES[self._leader - 1], self._tables))

    def _best(self, state: State, own: Callable[[State], int]) -> int:
        """Return who has most of the jobs to come done: 0 for the policy, or a rule and one."""
        case = _go_on(state, min(LENGTH * self._tables.n, MOST))
        jct, limit = menus(case.types).jct, case.limit
        ends = np.tile(state.ends, (len(WIDE_RULES) + 1, 1))
        block, count = (np.zeros(len(WIDE_RULES) + 1, np.int64) for _ in range(2))
        took = np.concatenate([state.accepted, np.zeros(case.n_jobs - len(state.accepted), np.bool_)])
        for i in range(state.index, case.n_jobs):
            here = State(case, i, float(limit[i]), ends[0].copy(), took[:i])
            block[0] = own(here)
            go_on(ends, block, here.now, jct[case.model[i]], here.limit, WIDE_RULES, self._tables)
            took[i] = block[0] >= 0
            kept = block >= 0
            count[kept] += here.now + jct[case.model[i]][self._tables.shape[block[kept]]] <= case.horizon
        best = int(np.argmax(count))
        lead = count[best] - count[self._leader]
        return best if lead > MARGIN * (case.n_jobs - state.index) else self._leader


def _go_on(state: State, n: int) -> Case:
    """Return the case so far and `n` jobs more, drawn from it, at its mean gap."""
    case, seen = state.case, state.index + 1
    drawn = np.random.default_rng(state.index).integers(seen, size=n)
    gap = (case.submit[state.index] - case.submit[0]) / state.index
    past = slice(0, seen)
    return Case(
        case.types,
        np.concatenate([case.submit[past], state.now + gap * np.arange(1, n + 1)]),
        np.concatenate([case.model[past], case.model[drawn]]),
        np.concatenate([case.fraction[past], case.fraction[drawn]]),
        state.now + gap * n,
    )
