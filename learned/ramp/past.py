"""Search without learning: the candidate after which most jobs are accepted in plans of futures drawn from the past."""

from __future__ import annotations

import numpy as np

from gangplan.instances import InstanceError
from gangplan.simulator.ramp import Case, Choice, State
from gangplan.solvers.compiled.kernel import kernel

from .features import MOST, find, scratch_of
from .hindsight import Future, hindsight, plans
from .tables import tables, times_of


@kernel
def _seed(seed: int) -> None:
    np.random.seed(seed)  # noqa: NPY002 - the only generator that compiled code has


class PastPlans:
    """Take the candidate that plans of 16 futures value most, see `gangplan.learned.ramp.hindsight`.

    Futures are drawn from the jobs that have arrived, at their mean gap; nothing else is known of what comes. One
    policy plays one case.

    Args:
        seed: of the futures.
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._case: Case | None = None

    def decide(self, state: State) -> Choice | None:
        """Return degree and block for the job, or None to reject it.

        Raises:
            InstanceError: if the cluster has more than 64 servers or other degrees than the policy's.
        """
        case, i = state.case, state.index
        if self._case is not case:
            self._begin(state)
        m = int(case.model[i])
        k = find(state.ends, state.now, self._gap(state), self._tables, self._times, m, state.limit, self._scratch)
        value = np.zeros(MOST)
        if k > 1:
            past = Future(case.model[: i + 1].astype(np.int64), np.array(case.fraction[: i + 1]))
            hindsight(
                k, state.ends, state.now, self._gap(state), m, past, self._tables, self._times, self._scratch,
                self._plans, value,
            )  # fmt: skip
        block = int(self._scratch.choice[int(np.argmax(value[:k]))])
        return None if block < 0 else Choice(int(state.blocks.degree[block]), block)

    def _begin(self, state: State) -> None:
        if state.blocks.n_servers > 64:
            raise InstanceError("cluster", f"has {state.blocks.n_servers} servers; plans are for at most 64")
        self._case = state.case
        self._tables, self._times = tables(state.blocks), times_of(state.case.types)
        self._scratch, self._plans = scratch_of(self._tables), plans(self._tables)
        _seed(self._seed)

    def _gap(self, state: State) -> float:
        """Return the mean gap so far; before the second job, the job's sequential time a server."""
        if state.index and state.now > state.case.submit[0]:
            return float(state.now - state.case.submit[0]) / state.index
        return float(state.job.sequential) / state.blocks.n_servers
