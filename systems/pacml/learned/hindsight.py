"""Plans of sampled futures: what each candidate of a decision is worth to one who knew what comes.

This is hindsight optimisation (Chong, Givan and Chang, CDC 2000). Each future is planned as if it were known, by the
beam search of `gangplan.systems.pacml.plans`, see `.worth`, with the decision's candidates for its first job. One
is worth the jobs accepted after it, in the mean over the futures; one that the beam drops before the end counts as one
job worse than all that it keeps. Searching on from each candidate by itself instead says little: most are as good as
any other to one who knows the future (0.087 blocked against 0.073 on distribution D, validation seeds).
"""

from __future__ import annotations

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray
from gangplan.solvers.native import Random

from ..arrivals import ArrivalCase
from ..simulate import Acceptance, RampState
from .features import DegreeDecision, Past
from .parts import WHOLE
from .tables import BlockTables, Long, TypeTimes, tables
from .worth import FUTURES, Plans

NAMED = 2
"""Blocks that plans choose between, and none. With more, chance between the plans decides more often: with three 0.0067
more of the jobs are blocked on A (eight validation seeds)."""
FIRST = 30
"""Jobs that arrive before they do."""


class Futures:
    """Values the candidates of a decision by plans of futures, see `gangplan.systems.pacml.learned.hindsight`.

    Futures are drawn from the jobs that have arrived, at their mean gap; nothing else is known of what comes.

    Args:
        count: of the futures of a decision.
    """

    def __init__(self, seed: int = 0, count: int = FUTURES) -> None:
        self._seed, self._count = seed, count
        self._case: ArrivalCase | None = None
        self._index = 0

    def begin(self, state: RampState, cluster: BlockTables) -> None:
        """Prepare for the case of a state, unless it goes on from that of the last one."""
        if self._case is not state.case or state.index < self._index:
            self._case, self.times = state.case, TypeTimes(state.case.types)
            self._plans = Plans(cluster, self.times, Random(self._seed), self._count)
        self._index = state.index

    def value(self, block: Long, state: RampState) -> FloatArray:
        """Return the jobs accepted after each candidate with its block, the first of which is none, float64 (k,)."""
        case, i = state.case, state.index
        self._plans.draw_from(case.model[: i + 1], case.fraction[: i + 1])
        return self._plans.values(state.ends, state.now, gap(state), case.model[i], block)

    def choose(self, state: RampState, cluster: BlockTables, block: Long, score: FloatArray) -> int:
        """Return the best of a policy's two best candidates and rejection, by its score and the jobs accepted.

        Args:
            block: of each candidate, the first -1 for rejection, int64 (k,).
            score: the policy's, in jobs, float64 (k,).
        """
        best = np.argsort(-score, kind="stable")[:NAMED]
        named = best[block[best] >= 0]
        if state.index < FIRST or not len(named):
            return int(block[best[0]])
        self.begin(state, cluster)
        rows = np.append(0, named)
        return int(block[rows[int(np.argmax(self.value(block[rows], state) + score[rows]))]])


def gap(state: RampState) -> float:
    """Return the mean gap so far; before the second job, the job's sequential time a server."""
    if state.index and state.now > state.case.submit[0]:
        return float(state.now - state.case.submit[0]) / state.index
    return float(state.job.sequential) / state.blocks.n_servers


class PastPlans:
    """Take the candidate that `Futures` value most. One policy plays one case."""

    def __init__(self, seed: int = 0, count: int = FUTURES) -> None:
        self._futures = Futures(seed, count)
        self._case: ArrivalCase | None = None

    def decide(self, state: RampState) -> Acceptance | None:
        """Return degree and block for the job, or None to reject it.

        Raises:
            InstanceError: if the cluster has more than 64 servers or other degrees than the policy's.
        """
        if self._case is not state.case:
            if state.blocks.n_servers > WHOLE:
                raise InstanceError("cluster", f"has {state.blocks.n_servers} servers; plans are for at most {WHOLE}")
            self._case, self._decision = state.case, DegreeDecision(tables(state.blocks))
        decision, m = self._decision, int(state.case.model[state.index])
        self._futures.begin(state, decision.tables)
        k = decision.look(state.ends, state.now, gap(state), self._futures.times, m, state.fraction, Past())
        block = np.asarray(decision.block)[:k]
        best = int(block[np.argmax(self._futures.value(block, state))]) if k > 1 else -1
        return None if best < 0 else Acceptance(int(state.blocks.degree[best]), best)
