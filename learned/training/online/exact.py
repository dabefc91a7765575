"""The exact teacher: what each candidate of a decision comes to if the rest of a known future is decided as best.

Futures are cut to a window: the nodes that are idle or freed next, the jobs that run there, and some that wait or come.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances.arrays import FloatArray
from gangplan.simulator.gangs.arrays import ARRIVED, NOW, RUNNING, WAITING, GpuRacks, Jobs, State, begin
from gangplan.simulator.gangs.exact import best_end, worth
from gangplan.simulator.gangs.formula import Formula, finish, key_of, look_at
from gangplan.simulator.gangs.step import advance, start

from ...online.candidates import WAIT, CandidateScratch
from ...online.rollouts import imagined

Index = NDArray[np.int64]
WINDOW = 6
"""Jobs that wait or arrive in a future; those that run come on top."""
NODES, MOST = 8, 12
"""Nodes of a window, as the models of CP-SAT grow with them; where candidates need more, so many at most: wider
decisions are left to rollouts."""
ARRIVE = 2
"""Minimum number of the jobs that arrive."""
SECONDS = 0.1
"""Time limit of CP-SAT for a candidate in a future, in its own deterministic time: at most half a second."""


def needed(s: CandidateScratch, tried: Index) -> int:
    """Return on how many nodes candidates take GPUs."""
    return int(np.count_nonzero(s.take[tried].any(axis=0)))


def weigh_exactly(
    jobs: Jobs, cluster: GpuRacks, state: State, pool: Jobs, s: CandidateScratch, rule: FloatArray, tried: Index,
    ahead: int, seed: int, value: FloatArray, *, seconds: float = SECONDS, sure: bool = True,
) -> None:  # fmt: skip
    """Write what the JCTs sum up to with each candidate tried and the best plan for what follows, proved by CP-SAT.

    From the first future on in which CP-SAT does not prove that of each it is nan, unless it need not be `sure`.
    The futures are those of `weigh` with these arguments, cut to windows. Every GPU second of a plan delays the
    jobs that wait besides: it costs the number of these over all GPUs. With no time the plans are the rule's.
    """
    for future in range(value.shape[1]):
        ours, root = imagined(jobs, cluster, state, pool, ahead, seed, future)
        named = [WAIT if s.place[i] == WAIT else int(root.queue[s.place[i]]) for i in tried]
        nodes = _nodes(cluster, ours, root, s.take[tried].any(axis=0))
        f = Formula(rule, s.ideal, 0, 0)
        look_at(ours, root, 0.0, f)
        key = np.array([key_of(ours, j, float(root.clock[NOW]), f) for j in range(len(ours.submit))])
        some, place, then, at = _cut(ours, cluster, root, nodes, {*named} - {WAIT}, key)
        price = (root.count[WAITING] - then.count[WAITING]) / cluster.first[-1]
        for c, (i, job) in enumerate(zip(tried, named, strict=True)):
            after = then.copy()
            if job == WAIT:  # as in `weigh`
                while after.count[RUNNING] == then.count[RUNNING] and advance(some, place, after):
                    pass
            else:
                start(some, place, after, after.queue.tolist().index(at[job]), s.take[i][nodes])
            end = after.copy()
            finish(some, place, end, rule)
            if seconds > 0:
                end, proved = best_end(some, place, after, end, seconds, rough=True, price=price)
                if sure and proved == -np.inf:
                    value[:, future:] = np.nan
                    return
            value[c, future] = worth(some, end, price)


def _nodes(cluster: GpuRacks, jobs: Jobs, state: State, taken: np.ndarray) -> Index:
    """Return the nodes of a window: those that are taken, one where a job ends next, then those idle or freed next."""
    if state.count[RUNNING] > 0:
        taken[cluster.node[state.held[jobs.first[state.running[0]]]]] = True
    ready = np.full(len(cluster.rack), np.inf)
    held = np.flatnonzero(state.holder >= 0)
    np.minimum.at(ready, cluster.node[held], state.finish[state.holder[held]])
    ready[state.free > 0], ready[taken] = 0.0, -1.0
    return np.sort(np.argsort(ready, kind="stable")[: max(NODES, int(taken.sum()))])


def _cut(
    jobs: Jobs, cluster: GpuRacks, state: State, nodes: Index, kept: set[int], key: FloatArray
) -> tuple[Jobs, GpuRacks, State, dict[int, int]]:
    """Return a window of a future, and who is who there of the jobs that wait: those `kept`, and the first by a key."""
    rack, size = np.unique(cluster.rack[nodes], return_inverse=True)[1], np.diff(cluster.first)[nodes]
    gpu = np.flatnonzero(np.isin(cluster.node, nodes))
    heads, first = np.flatnonzero(np.diff(rack, prepend=-1)), np.append(0, np.cumsum(size))
    place = GpuRacks(
        rack, np.append(heads, len(nodes)), first, cluster.weight, np.repeat(np.arange(len(nodes)), size)
    )  # fmt: skip
    fits = jobs.gpus <= size.sum()
    waiting = state.queue[: state.count[WAITING]]
    waiting = waiting[fits[waiting]]
    some = waiting[np.argsort(key[waiting], kind="stable")][: WINDOW - ARRIVE]
    stay = waiting[np.isin(waiting, [*kept, *some])]
    coming = np.arange(state.count[ARRIVED], len(jobs.submit))
    coming = coming[fits[coming]][: max(WINDOW - len(stay), ARRIVE)]
    runs = np.unique(state.holder[gpu])
    runs = runs[runs >= 0]
    runs = runs[np.argsort(state.finish[runs], kind="stable")]  # which makes a heap
    every, n = np.concatenate([runs, stay, coming]), len(runs)
    held = [np.flatnonzero(state.holder[gpu] == job) for job in runs]
    gpus = np.append([len(x) for x in held], jobs.gpus[every[n:]]).astype(np.int64)
    submit, work, expected, intensity = (x[every] for x in (jobs.submit, jobs.work, jobs.expected, jobs.intensity))
    ours = Jobs(submit, work, expected, gpus, intensity, np.append(0, np.cumsum(gpus)))
    then = begin(ours, place)
    then.clock[:], then.count[:] = state.clock, (n + len(stay), len(stay), n)
    then.queue[: len(stay)], then.running[:n], then.free[:] = np.arange(n, n + len(stay)), range(n), state.free[nodes]
    for name in ("start", "finish", "urgency", "cost"):
        getattr(then, name)[:n] = getattr(state, name)[runs]
    for job, own in enumerate(held):
        then.holder[own], then.held[ours.first[job] : ours.first[job + 1]] = job, own
    return ours, place, then, dict(zip(stay.tolist(), range(n, n + len(stay)), strict=True))
