"""The policy builds a schedule: again and again it chooses which job is placed next, and at which option, compiled."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import types

from gangplan.solvers.compiled.kernel import Floats2, Ints, Ints2, Ints3, by_reference, inner, kernel
from gangplan.solvers.schedule.decode import Schedule, seat
from gangplan.solvers.schedule.profile import Busy, Data, Room, clear, find, idle_at

from .features import FEATURES, WINDOW, Singles2, Static, describe

Singles = Annotated[Any, types.Array(types.float32, 1, "C")]
Singles3 = Annotated[Any, types.Array(types.float32, 3, "C")]


class Net(NamedTuple):
    """A network with its vectors worked in, h hidden, f features; with no first layer it says nothing.

    Attributes:
        first, second, bias, last: layers, (f, h), (h, h), (h,), (h,).
        by_job, by_option: what it adds to the first layer for each job, (n, h), and option, (o, h).
    """

    first: Singles2
    by_job: Singles2
    by_option: Singles2
    second: Singles2
    bias: Singles
    last: Singles


class Log(NamedTuple):
    """What was seen and done in s steps of c candidates at most, see `builder.Steps`; nothing if s is 0."""

    x: Singles3
    cands: Ints3
    count: Ints
    pick: Ints
    window: Ints2
    score: Singles2


BIAS = 0.5
"""What the base's choice has before the network says anything."""


@inner(fastmath=True)
def rate(x: Singles2, count: int, cands: Ints2, jobs: Ints, net: Net, score: Singles) -> None:
    """Write the network's score of each candidate.

    Args:
        x: features, float32 (c, f).
        count: how many count.
        cands, jobs: see `describe`.
        net: see above.
        score: written.
    """
    first, by_job, by_option = net.first, net.by_job, net.by_option
    second, bias, last = net.second, net.bias, net.last
    f, h = first.shape
    a, b = np.empty(h, dtype=np.float32), np.empty(h, dtype=np.float32)
    for i in range(count):
        j, o = jobs[cands[i, 0]], cands[i, 1]
        for q in range(h):
            a[q] = by_job[j, q]
            if o >= 0:
                a[q] += by_option[o, q]
        for p in range(f):
            value = x[i, p]
            if value != 0:
                for q in range(h):
                    a[q] += value * first[p, q]
        for q in range(h):
            b[q] = bias[q]
        for p in range(h):
            if a[p] > 0:
                for q in range(h):
                    b[q] += a[p] * second[p, q]
        total = np.float32(0.0)
        for q in range(h):
            if b[q] > 0:
                total += b[q] * last[q]
        score[i] = total


@kernel
def build(  # noqa: PLR0912, PLR0915, one loop read from top to bottom
    order: Ints, follow: Ints2, noise: Floats2, network: Net, problem: Data, fixed: Static, profiles: Room, busy: Busy,
    made: Schedule, log: Log,
) -> tuple[float, int, int]:  # fmt: skip
    """Build one schedule; return (cost without constant, rows used, steps).

    Args:
        order: jobs in the base's order, int64 (n,).
        follow: what is decided already, int64 (m, 2): (job, option or -1), m may be 0; whoever is left goes by the
            network.
        noise: added to the scores of the candidates of each step, float64 (s, c); step t takes row
            t % s. No rows: none.
        network: see above; without it the base decides.
        problem, profiles: see `gangplan.solvers.schedule.decode`.
        fixed: see `describe`.
        busy: what runs already.
        made: written.
        log: written if it has rows.
    """
    data, room, net, static = (
        by_reference(problem), by_reference(profiles), by_reference(network), by_reference(fixed),
    )  # fmt: skip
    first, seconds, deadline, slope, price = data.first, data.seconds, data.deadline, data.slope, data.price
    n = len(order)
    total = float(data.per * len(room.count))
    clear(room, data.per, busy)
    widest = 1
    for j in range(n):
        widest = max(widest, first[j + 1] - first[j])
    most = WINDOW * (widest + 1)
    cheapest, cands, state = np.empty(WINDOW), np.empty((most, 2), dtype=np.int64), np.empty((most, 4))
    x, score = np.zeros((most, len(FEATURES)), dtype=np.float32), np.empty(most, dtype=np.float32)
    queue, jobs = order.copy(), np.empty(WINDOW, dtype=np.int64)
    left, cost, last, used = n, 0.0, 0.0, 0
    for t in range(n):
        k = min(WINDOW, left)
        told = t < len(follow)
        if told:
            k = 1
            for i in range(left):
                if queue[i] == follow[t, 0]:
                    for z in range(i, 0, -1):
                        queue[z] = queue[z - 1]
                    queue[0] = follow[t, 0]
                    break
        count = 0
        for w in range(k):
            j = queue[w]
            jobs[w] = j
            for o in range(first[j], first[j + 1]):
                at, nodes = find(data, room, j, o, room.spot)
                end = at + seconds[o]
                if end <= deadline[j]:
                    cands[count, 0], cands[count, 1] = w, o
                    state[count, 0], state[count, 1] = at, end
                    value = slope[j] * end + static.penalty[o]
                    if data.makespan:
                        value += max(0.0, end - last)
                    state[count, 2] = value
                    state[count, 3] = _spare(data, room, at, nodes)
                    count += 1
            if price[j] < np.inf:
                cands[count, 0], cands[count, 1] = w, -1
                state[count, 0], state[count, 1], state[count, 2], state[count, 3] = 0.0, 0.0, price[j], 0.0
                count += 1
        if count == 0 or cands[0, 0] != 0:
            return np.inf, used, t  # the first must run and has no time
        pick = 0
        if told:
            for i in range(count):
                if cands[i, 1] == follow[t, 1]:
                    pick = i
            if len(log.count):
                log.cands[t, 0, 0], log.cands[t, 0, 1] = cands[pick, 0], cands[pick, 1]
                log.count[t], log.pick[t], log.window[t, 0] = 1, 0, jobs[0]
        else:
            pick = describe(cands, count, jobs, k, state, data, static, cheapest, total, left / n, x)
            if len(net.first):
                rate(x, count, cands, jobs, net, score)
                score[pick] += BIAS
                if len(noise):
                    for i in range(count):
                        score[i] += noise[t % len(noise), i]
                best = pick
                for i in range(count):
                    if score[i] > score[best]:
                        best = i
                pick = best
            if len(log.count):
                _note(log, t, x, cands, score, count)
                log.count[t], log.pick[t] = count, pick
                for w in range(k):
                    log.window[t, w] = jobs[w]
        w, o = cands[pick, 0], cands[pick, 1]
        j = jobs[w]
        for z in range(w, left - 1):
            queue[z] = queue[z + 1]
        left -= 1
        made.option[j] = o
        if o < 0:
            made.start[j] = 0.0
            cost += price[j]
            continue
        at, nodes = find(data, room, j, o, room.chosen)
        end = at + seconds[o]
        made.start[j] = at
        cost += slope[j] * end
        last = max(last, end)
        used = seat(data, room, j, o, at, nodes, made.rows, used)
    return (cost + last if data.makespan else cost), used, n


@inner
def _spare(data: Data, room: Room, at: float, nodes: int) -> float:
    """Return how many GPUs are free when a candidate starts, on the nodes that it would take."""
    found = 0.0
    for i in range(nodes):
        found += idle_at(room, room.spot[i] if data.kind else 0, at)
    return found


@inner
def _note(log: Log, t: int, x: Singles2, cands: Ints2, score: Singles, count: int) -> None:
    for i in range(count):
        for p in range(x.shape[1]):
            log.x[t, i, p] = x[i, p]
        log.cands[t, i, 0], log.cands[t, i, 1] = cands[i, 0], cands[i, 1]
        log.score[t, i] = score[i]
