"""Plans of futures drawn from past arrivals: search without learning, or between the blocks that a policy names."""

from __future__ import annotations

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.solvers.compiled.kernel import kernel

from ..arrivals import Case
from ..simulate import Choice, State
from .features import MOST, Scratch, find, scratch_of
from .hindsight import FUTURES, Future, hindsight, plans
from .parts import WHOLE, Part
from .tables import Long, Tables, tables, times_of

NAMED = 2
"""Blocks that plans choose between, and none. With more, chance between the plans decides more often: with three 0.0067
more of the jobs are blocked on A (eight validation seeds)."""
FIRST = 30
"""Jobs that arrive before they do."""


@kernel
def _seed(seed: int) -> None:
    np.random.seed(seed)  # noqa: NPY002 - the only generator that compiled code has


class Futures:
    """Values the candidates of a decision by plans of futures, see `gangplan.systems.pacml.learned.hindsight`.

    Futures are drawn from the jobs that have arrived, at their mean gap; nothing else is known of what comes.

    Args:
        seed: of the futures.
        count: of the futures of a decision.
    """

    def __init__(self, seed: int = 0, count: int = FUTURES) -> None:
        self._seed, self._count = seed, count
        self._case: Case | None = None
        self._index = 0

    def begin(self, state: State, cluster: Tables) -> None:
        """Prepare for the case of a state, unless it goes on from that of the last one."""
        if self._case is not state.case or state.index < self._index:
            self._case = state.case
            self.times, self._plans, self._value = times_of(state.case.types), plans(cluster), np.zeros(MOST)
            _seed(self._seed)
        self._index = state.index

    def value(self, k: int, state: State, cluster: Tables, scratch: Scratch) -> FloatArray:
        """Return the jobs accepted after each of the k candidates on the scratch, float64 (k,)."""
        case, i = state.case, state.index
        past = Future(case.model[: i + 1].astype(np.int64), np.array(case.fraction[: i + 1]))
        hindsight(
            k, state.ends, state.now, gap(state), int(case.model[i]), past, cluster, self.times, scratch,
            self._plans, self._count, self._value,
        )  # fmt: skip
        return self._value[:k]

    def choose(self, state: State, part: Part, block: Long, score: FloatArray) -> int:
        """Return the best of a policy's two best candidates and rejection, by its score and the jobs accepted.

        Args:
            state: what there is to decide, on a cluster of one part.
            part: it.
            block: of each candidate, the first -1 for rejection, int64 (k,).
            score: the policy's, in jobs, float64 (k,).
        """
        best = np.argsort(-score, kind="stable")[:NAMED]
        named = best[block[best] >= 0]
        if state.index < FIRST or not len(named):
            return int(block[best[0]])
        self.begin(state, part.tables)
        rows = np.append(0, named)
        part.scratch.block[1 : len(rows)] = block[named]
        value = self.value(len(rows), state, part.tables, part.scratch)
        return int(block[rows[int(np.argmax(value + score[rows]))]])


def gap(state: State) -> float:
    """Return the mean gap so far; before the second job, the job's sequential time a server."""
    if state.index and state.now > state.case.submit[0]:
        return float(state.now - state.case.submit[0]) / state.index
    return float(state.job.sequential) / state.blocks.n_servers


class PastPlans:
    """Take the candidate that `Futures` value most. One policy plays one case.

    Args:
        seed, count: see `Futures`.
    """

    def __init__(self, seed: int = 0, count: int = FUTURES) -> None:
        self._futures = Futures(seed, count)
        self._case: Case | None = None

    def decide(self, state: State) -> Choice | None:
        """Return degree and block for the job, or None to reject it.

        Raises:
            InstanceError: if the cluster has more than 64 servers or other degrees than the policy's.
        """
        if self._case is not state.case:
            if state.blocks.n_servers > WHOLE:
                raise InstanceError("cluster", f"has {state.blocks.n_servers} servers; plans are for at most {WHOLE}")
            self._case, self._tables = state.case, tables(state.blocks)
            self._scratch = scratch_of(self._tables)
        self._futures.begin(state, self._tables)
        m, times = int(state.case.model[state.index]), self._futures.times
        k = find(state.ends, state.now, gap(state), self._tables, times, m, state.limit, self._scratch)
        best = int(np.argmax(self._futures.value(k, state, self._tables, self._scratch))) if k > 1 else 0
        block = int(self._scratch.choice[best])
        return None if block < 0 else Choice(int(state.blocks.degree[block]), block)
