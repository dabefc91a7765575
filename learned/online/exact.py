"""The exact teacher: what each candidate of a decision comes to if the rest of a known future is decided as best."""

from __future__ import annotations

import numpy as np

from gangplan.simulator.gangs.arrays import ARRIVED, RUNNING, WAITING, Cluster, Jobs, State, copy, first_jobs
from gangplan.simulator.gangs.exact import best_end
from gangplan.simulator.gangs.step import advance, start, total_jct
from gangplan.solvers.compiled.kernel import Floats, Floats2, Ints

from .candidates import WAIT, Scratch
from .rollouts import finish_by_rule, imagined, listed

WINDOW = 8
"""Jobs that wait or arrive in a future; those that run come on top."""
NODES = 16
"""Maximum number of nodes of a cluster on which decisions are labelled so: the models of CP-SAT grow with them."""
ARRIVE = 3
"""Minimum number of these that arrive."""
SECONDS = 0.1
"""Time limit of CP-SAT for a candidate in a future, in its own deterministic time: at most half a second."""


def weigh_exactly(
    jobs: Jobs, cluster: Cluster, state: State, pool: Jobs, s: Scratch, rule: Floats, tried: Ints, ahead: int,
    seed: int, value: Floats2, *, seconds: float = SECONDS,
) -> None:  # fmt: skip
    """Write what the JCTs sum up to with each candidate tried and the best plan that CP-SAT finds for what follows.

    The futures are those of `weigh` with these arguments, cut to some `WINDOW` jobs: of the jobs that wait, those of
    the candidates tried and the first by the rule; and the next arrivals. With no time the plans are the rule's.
    """
    for future in range(value.shape[1]):
        ours, root = imagined(jobs, state, pool, ahead, seed, future)
        take = [(WAIT if s.place[i] == WAIT else int(root.queue[s.place[i]]), s.take[i].copy()) for i in tried]
        ours, root = _cut(ours, root, {job for job, _ in take} - {WAIT}, listed(ours, s.ideal, rule).key)
        for c, (job, gpus) in enumerate(take):
            then = copy(root)
            if job == WAIT:  # as in `weigh`
                while then.count[RUNNING] == root.count[RUNNING] and advance(ours, cluster, then):
                    pass
            else:
                start(ours, cluster, then, then.queue.tolist().index(job), gpus)
            end = copy(then)
            finish_by_rule(ours, cluster, end, s.ideal, rule)
            if seconds > 0:
                end, _ = best_end(ours, cluster, then, end, seconds, rough=True)
            value[c, future] = total_jct(ours, end.finish)


def _cut(jobs: Jobs, state: State, kept: set[int], key: Floats) -> tuple[Jobs, State]:
    """Return a future with some of its jobs: those `kept`, the first by a key, and the next arrivals."""
    waiting = state.queue[: state.count[WAITING]]
    first = waiting[np.argsort(key[waiting], kind="stable")][: WINDOW - ARRIVE]
    stay = waiting[np.isin(waiting, [*kept, *first])]
    n, count = int(state.count[ARRIVED]) + max(WINDOW - len(stay), ARRIVE), state.count.copy()
    some, count[WAITING] = first_jobs(jobs, min(n, len(jobs.submit))), len(stay)
    names = ("running", "start", "finish", "urgency", "cost")
    fewer = {name: getattr(state, name)[: len(some.submit)].copy() for name in names}
    queue = np.append(stay, np.zeros(len(some.submit) - len(stay), np.int64))
    return some, state._replace(queue=queue, count=count, **fewer)
