"""The guard: the network decides only while a paired test shows it to be better than the rule behind it, `evolved`.

Each time that half as many more jobs have arrived, the network and each rule play on, in thought, from the present
state: the jobs that wait and run, then stretches of those that arrived, once more. The differences of the last plays
are the test: who is ahead of that rule by two standard errors decides until the next one, else the rule does. It is
the strongest rule, not the one that the network corrects, and does not depend on the size of the cluster.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.simulator.gangs.arrays import ARRIVED, NOW, WAITING, GpuRacks, Jobs, State, begin
from gangplan.simulator.gangs.formula import EVOLVED, GPUS, ONE, PATIENT, TERMS, finish

from ..graph.compiled import CompiledNetwork
from .candidates import CandidateScratch
from .episodes import play
from .rollouts import imagined

NETWORK = -1
"""The leader that is no rule."""
RULES = np.zeros((3, len(TERMS)))
"""Weights of formulas: `evolved`, which decides unless somebody is shown to be better, the shortest job first, and the
least work first."""
BEHIND = "evolved"
"""The first of them."""
RULES[0], RULES[1:, ONE], RULES[2, GPUS] = EVOLVED, np.inf, 1.0
FIRST = 40
"""Jobs that arrive before anybody is compared."""
GROWTH = 1.5
"""After so many times as many arrivals they are compared again."""
PLAYS, AHEAD = 8, 128
"""Plays of a comparison, and the arrivals of each."""
RECENT = 32
"""Plays that the test looks at."""
ERRORS = 2.0
"""Standard errors by which who decides has to be ahead of the rule."""
LAST = 512
"""Jobs of which stretches are played."""
LARGE = 512
"""Nodes up to which a cluster is played whole; of a larger one its first racks, with their share of the jobs."""
EVERYTHING = 1 << 60
"""More than there is of anything."""


class Guard:
    """Says who decides.

    Args:
        cluster: where jobs run.
        net: the network.
        rule: that the network corrects.
        guarded: if not, nobody is compared, and the network decides.

    Attributes:
        leader: `NETWORK`, or a rule by its place in `RULES`.
        leaders: all so far.
        due: when so many jobs have arrived, they are compared.
        ahead: by what share of its mean JCT the rule was behind the network and each rule, of the last plays.
    """

    def __init__(
        self, cluster: GpuRacks, net: CompiledNetwork, rule: FloatArray = PATIENT, *, guarded: bool = True
    ) -> None:
        self.leader, self.due = (0, FIRST) if guarded else (NETWORK, EVERYTHING)
        self.leaders, self.ahead = [self.leader], list[list[float]]()
        self._net, self._rule, (self._share, self._cluster) = net, rule, _part(cluster)
        self._scratch = CandidateScratch(self._cluster)
        self._plays = list[tuple[Jobs, State]]()
        self._now: State | None = None
        self._means: list[float] = []

    @property
    def idle(self) -> bool:
        """Whether nothing is played."""
        return not self._plays

    def watch(self, jobs: Jobs, state: State, past: Jobs, arrived: int) -> None:
        """Begin to compare from a state, with jobs like the past ones to come; see `advance`.

        Args:
            jobs: those that wait and run, and maybe others.
            state: it is not changed.
            past: jobs that arrived last, see `known`.
            arrived: how many did in all.
        """
        if self._share > 1:
            jobs, state = _share(jobs, state, self._cluster, self._share)
        up = max(1, int(state.free.sum() + (state.holder >= 0).sum()))  # who needs more would never end
        jobs, past = (x.replace(gpus=np.clip(x.gpus, 1, up)) for x in (jobs, past))  # 0 came when there were no nodes
        rng, n = np.random.default_rng(arrived), len(past.submit)
        stretches = (rng.integers(n) + np.arange(PLAYS) * n // PLAYS) % n
        live = imagined(jobs, self._cluster, state, past, 0, 0, 0)
        of = self._cluster, self._share
        self._plays = [_more(*live, past, (at + np.arange(AHEAD)) % n, *of) for at in stretches]
        self._now, self._means = None, []
        self.due = max(int(GROWTH * self.due), arrived + 1)

    def advance(self, decisions: int = EVERYTHING) -> None:
        """Go on for so many decisions of the network, or by one rule; at the end it is known who leads."""
        while self._plays:
            jobs, start = self._plays[0]
            if not self._means:
                self._now = start.copy() if self._now is None else self._now
                of = self._scratch, self._net, self._rule, True, EVERYTHING, decisions
                if play(jobs, self._cluster, self._now, *of) == decisions:
                    return
            else:
                self._now = start.copy()
                finish(jobs, self._cluster, self._now, RULES[len(self._means) - 1])
            self._means.append(float((self._now.finish - jobs.submit)[np.isinf(start.start)].mean()))
            if len(self._means) > len(RULES):
                if np.isfinite(self._means).all() and self._means[1]:
                    self.ahead = [*self.ahead, (1 - np.array(self._means) / self._means[1]).tolist()][-RECENT:]
                self._means, self._now = [], None
                self._plays.pop(0)
                if not self._plays:
                    self._lead()
            if decisions < EVERYTHING:
                return

    def _lead(self) -> None:
        """Let who is surely ahead of the rule lead from now on, else that rule."""
        self.leader = 0
        if (n := len(self.ahead)) > 1:
            least = np.mean(self.ahead, axis=0) - ERRORS * np.std(self.ahead, axis=0, ddof=1) / np.sqrt(n)
            self.leader = int(np.argmax(least)) + NETWORK if least.max() > 0 else 0
        self.leaders.append(self.leader)


def known(jobs: Jobs, state: State, arrived: int) -> Jobs:
    """Return the jobs that arrived last as far as they are known: those that are done took as long as they took."""
    past = slice(max(arrived - LAST, 0), arrived)
    done = state.finish[past] <= state.clock[NOW]
    gpus = jobs.gpus[past].copy()
    return Jobs(
        jobs.submit[past].copy(), np.where(done, jobs.work[past], jobs.expected[past]), jobs.expected[past].copy(),
        gpus, jobs.intensity[past].copy(), np.append(0, np.cumsum(gpus)),
    )  # fmt: skip


def _part(cluster: GpuRacks) -> tuple[int, GpuRacks]:
    """Return how many times as large a cluster is as what is played, and that: all of it, or its first racks."""
    if (nodes := len(cluster.rack)) <= LARGE:
        return 1, cluster
    racks = max(int(np.searchsorted(cluster.begin, LARGE, "right")) - 1, 1)
    m, gpus = int(cluster.begin[racks]), int(cluster.first[cluster.begin[racks]])
    first, node = cluster.first[: m + 1], cluster.node[:gpus]
    return round(nodes / m), GpuRacks(cluster.rack[:m], cluster.begin[: racks + 1], first, cluster.weight, node)


def _share(jobs: Jobs, state: State, part: GpuRacks, share: int) -> tuple[Jobs, State]:
    """Return what runs on the first racks, as far as it does, and one of so many jobs that wait."""
    m, most, n = len(part.rack), int(part.first[-1]), int(state.count[ARRIVED])
    holder = state.holder[:most]
    inside = np.bincount(holder[holder >= 0], minlength=len(jobs.submit))
    stay, waits = inside[:n] > 0, state.queue[: state.count[WAITING] : share]
    runs = np.flatnonzero(stay)
    gpus = np.where(inside > 0, inside, np.minimum(jobs.gpus, most))
    kept = state.replace(free=state.free[:m], holder=holder, count=np.array([n, len(waits), len(runs)])).copy()
    kept.queue[: len(waits)], kept.running[: len(runs)] = waits, runs
    return jobs.replace(gpus=gpus), kept


def _more(
    jobs: Jobs, state: State, past: Jobs, picked: NDArray[np.int64], cluster: GpuRacks, share: int
) -> tuple[Jobs, State]:
    """Return jobs and their state with some of the past to come, with `share` times the gaps."""
    gap = np.diff(past.submit, prepend=past.submit[-1])
    gap[0] = gap[1:].mean() if len(gap) > 1 else past.expected[0]
    come = state.clock[NOW] + np.cumsum(share * gap[picked]), past.work[picked], past.expected[picked]
    columns = (*come, past.gpus[picked], past.intensity[picked])
    old = list(jobs.arrays().values())[:-1]
    submit, work, expected, gpus, intensity = (np.append(x, y) for x, y in zip(old, columns, strict=True))
    jobs = Jobs(submit, work, expected, gpus, intensity, np.append(0, np.cumsum(gpus)))
    new = begin(jobs, cluster)
    for name, x in state.arrays().items():
        getattr(new, name)[: len(x)] = x
    return jobs, new
