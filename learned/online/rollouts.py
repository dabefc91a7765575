"""The teacher: it knows what jobs are like, looks ahead, and says what each candidate of a decision comes to."""

from __future__ import annotations

import numpy as np

from gangplan.simulator.gangs.arrays import ARRIVED, NOW, RUNNING, WAITING, Cluster, Jobs, State, copy
from gangplan.simulator.gangs.formula import run_formula
from gangplan.simulator.gangs.listing import restore
from gangplan.simulator.gangs.step import begin_job, pass_time, total_jct
from gangplan.solvers.compiled.kernel import Floats, Floats2, Ints, by_reference, inner, kernel
from gangplan.solvers.compiled.routines import below, push, sow

from ..graph.compiled import CompiledNetwork, Graph
from .candidates import WAIT, CandidateScratch, remaining
from .episodes import go_on


@inner
def imagine(jobs: Jobs, state: State, pool: Jobs, known: int, ahead: int) -> tuple[Jobs, State]:
    """Return the jobs that wait and run, with `ahead` more to come, and the state with these alone.

    Args:
        pool: the first `known` of these are what arrivals are drawn from.
        known: at least 1.
    """
    waits, runs = state.queue[: state.count[WAITING]], state.running[: state.count[RUNNING]]
    old = np.sort(np.append(waits, runs))  # in the order of arrival
    live = len(old)
    n, gpus = live + ahead, np.empty(live + ahead, np.int64)
    submit, work, intensity, first = np.empty(n), np.empty(n), np.empty(n), np.zeros(n + 1, np.int64)
    for at in range(live):
        submit[at], work[at] = jobs.submit[old[at]], jobs.expected[old[at]]
        gpus[at], intensity[at] = jobs.gpus[old[at]], jobs.intensity[old[at]]
    time = state.clock[NOW]
    for at in range(live, n):
        job, gap = below(known), below(max(known - 1, 1)) + 1
        time += pool.submit[gap] - pool.submit[gap - 1] if known > 1 else max(pool.expected[0], 1e-9)
        submit[at], work[at], gpus[at], intensity[at] = time, pool.expected[job], pool.gpus[job], pool.intensity[job]
    for at in range(n):
        first[at + 1] = first[at] + gpus[at]
    ours = Jobs(submit, work, work, gpus, intensity, first)
    count, queue, running = np.zeros(3, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    start, finish, urgency, cost = np.full(n, np.inf), np.full(n, np.inf), np.full(n, -np.inf), np.zeros(n)
    held, holder = np.zeros(first[n], np.int64), np.full(len(state.holder), -1, np.int64)
    count[ARRIVED] = live
    for at in range(live):
        job = old[at]
        if state.start[job] == np.inf:
            queue[count[WAITING]] = at
            count[WAITING] += 1
            continue
        start[at], cost[at] = state.start[job], state.cost[job]
        finish[at] = state.clock[NOW] + remaining(jobs, state, job)
        urgency[at] = -finish[at]
        for row in range(gpus[at]):
            gpu = state.held[jobs.first[job] + row]
            held[first[at] + row], holder[gpu] = gpu, at
        count[RUNNING] = push(running, count[RUNNING], at, urgency, first)
    clock = state.clock.copy()
    then = State(clock, count, queue, running, state.free.copy(), holder, held, start, finish, urgency, cost)
    return ours, then


@kernel
def imagined(jobs: Jobs, state: State, pool: Jobs, ahead: int, seed: int, future: int) -> tuple[Jobs, State]:
    """Return one of the futures of `weigh`."""
    sow(seed)
    of, now, like = by_reference(jobs), by_reference(state), by_reference(pool)
    for _ in range(future):
        imagine(of, now, like, len(pool.submit), ahead)
    return imagine(of, now, like, len(pool.submit), ahead)


@kernel
def weigh(
    jobs: Jobs, cluster: Cluster, state: State, pool: Jobs, scratch: CandidateScratch, other: CandidateScratch,
    graph: Graph, net: CompiledNetwork, rule: Floats, tried: Ints, ahead: int, depth: int, seed: int, value: Floats2,
) -> None:  # fmt: skip
    """Write what the JCTs sum up to with each candidate tried, in each of some futures.

    Args:
        pool: jobs like those to come.
        scratch: of the decision, whose candidates are written.
        other, graph: room for decisions in futures.
        net: decides in futures `depth` times, then the rule goes on.
        rule: see `gangplan.learned.online.features.write_rows`.
        tried: candidates, int64 (c,).
        ahead: jobs that arrive in a future.
        seed: of the futures.
        value: is written, seconds, float64 (c, futures).
    """
    now, s, of, known = by_reference(state), by_reference(scratch), by_reference(jobs), len(pool.submit)
    sow(seed)
    for future in range(value.shape[1]):
        ours, root = imagine(of, now, by_reference(pool), known, ahead)
        _follow(ours, root, copy(root), cluster, s, other, graph, net, rule, tried, depth, future, value)


@inner
def _follow(
    jobs: Jobs, root: State, then: State, cluster: Cluster, s: CandidateScratch, other: CandidateScratch, graph: Graph,
    net: CompiledNetwork, rule: Floats, tried: Ints, depth: int, future: int, value: Floats2,
) -> None:  # fmt: skip
    """Write what the JCTs sum up to with each candidate in one future; references hold as long as who calls this."""
    table, origin, play = by_reference(jobs), by_reference(root), by_reference(then)
    on, room, g, weights = by_reference(cluster), by_reference(other), by_reference(graph), by_reference(net)
    for c in range(len(tried)):
        i = tried[c]
        restore(play, origin)
        if s.place[i] == WAIT:  # for an end: arrivals alone make no better place
            while then.count[RUNNING] == root.count[RUNNING] and pass_time(table, on, play, np.inf):
                pass
        else:
            begin_job(table, on, play, s.place[i], s.take[i])
        if depth > 0:
            go_on(table, on, play, room, g, weights, rule, True, len(jobs.submit) + 1, depth)
        run_formula(table, on, play, s.ideal, rule, np.inf)
        value[c, future] = total_jct(table, then.finish)
