"""The guard: where a plain rule would have done better with the jobs so far, that rule decides.

The network and each rule play, in thought and from an empty cluster, the jobs that arrived last, again each time that
half as many more have. Who has the least mean JCT there decides until the next time, but is left only for a lead of
`LEAD`: follow the leader, who changes for a clear lead only (after Kalai and Vempala, Journal of Computer and System
Sciences 71, 2005).
"""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.simulator.gangs.arrays import Cluster, Jobs, State, begin
from gangplan.simulator.gangs.formula import GPUS, ONE, PATIENT, TERMS, finish

from ..graph.compiled import Network
from .candidates import scratch_of
from .episodes import play
from .graph import graph_room

NETWORK = -1
"""The leader that is no rule."""
RULES = np.zeros((3, len(TERMS)))
"""Weights of formulas: the rule `patient`, the shortest job first, and the least work first."""
RULES[0], RULES[1:, ONE], RULES[2, GPUS] = PATIENT, np.inf, 1.0
FIRST = 40
"""Jobs that arrive before anybody is compared."""
GROWTH = 1.5
"""After so many times as many arrivals they are compared again."""
LEAD = 0.1
"""Share of the mean JCT by which another has to be ahead: of 0.02, 0.05 and 0.1 the best on validation seeds, where a
lead of 0.02 costs up to 2.7%."""
LAST = 512
"""Jobs that are played."""
LARGE = 512
"""Nodes up to which these jobs fill a cluster, so that policies differ; the network decides on a larger one."""
EVERYTHING = 1 << 60
"""More than there is of anything."""


class Guard:
    """Says who decides.

    Args:
        cluster: where jobs run.
        net: the network.
        rule: that it corrects.

    Attributes:
        leader: `NETWORK`, or a rule by its place in `RULES`.
        leaders: all so far.
        due: when so many jobs have arrived, they are compared.
    """

    def __init__(self, cluster: Cluster, net: Network, rule: FloatArray = PATIENT) -> None:
        self.leader, self.leaders, self.due = NETWORK, [NETWORK], FIRST
        self._cluster, self._net, self._rule = cluster, net, rule
        self._scratch = scratch_of(cluster)
        self._graph = graph_room(cluster, self._scratch)
        self._playing: tuple[Jobs, State] | None = None
        self._means: list[float] = []
        if len(cluster.rack) > LARGE:
            self.due = EVERYTHING

    def watch(self, jobs: Jobs, arrived: int) -> None:
        """Begin to compare with these jobs, of which so many arrived in all; see `advance`."""
        self._playing, self._means = (jobs, begin(jobs, self._cluster)), []
        self.due = max(int(GROWTH * self.due), arrived + 1)

    def advance(self, decisions: int = EVERYTHING) -> None:
        """Go on for so many decisions of the network, or by one rule; at the end it is known who leads."""
        while self._playing is not None:
            jobs, state = self._playing
            if not self._means:
                of = self._scratch, self._graph, self._net, self._rule, True, EVERYTHING, decisions
                if play(jobs, self._cluster, state, *of) == decisions:
                    return
            else:
                finish(jobs, self._cluster, state, RULES[len(self._means) - 1])
            self._means.append(float((state.finish - jobs.submit).mean()))
            self._playing = jobs, begin(jobs, self._cluster)
            if len(self._means) > len(RULES):
                self._lead()
            if decisions < EVERYTHING:
                return

    def _lead(self) -> None:
        """Let who has the least mean JCT lead from now on, if it is clearly ahead."""
        self._playing, means = None, self._means
        best = int(np.argmin(means)) - 1
        if means[best + 1] < (1 - LEAD) * means[self.leader + 1]:
            self.leader = best
        self.leaders.append(self.leader)


def known(jobs: Jobs, state: State, arrived: int) -> Jobs:
    """Return the jobs that arrived last as far as they are known: those that are done took as long as they took."""
    past = slice(max(arrived - LAST, 0), arrived)
    done = state.finish[past] <= state.clock[0]
    first = jobs.first[past.start : arrived + 1]
    return Jobs(
        jobs.submit[past].copy(), np.where(done, jobs.work[past], jobs.expected[past]), jobs.expected[past].copy(),
        jobs.gpus[past].copy(), jobs.intensity[past].copy(), first - first[0],
    )  # fmt: skip
