"""The policy builds a schedule: again and again it chooses which job is placed next, and at which option, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gangplan.solvers.schedule.profile import clear, find, occupy

from .features import FEATURES, WINDOW, describe

BIAS = 0.5
"""What the base's choice has before the network says anything."""


@njit(cache=True, fastmath=True)
def rate(x: Any, count: int, cands: Any, jobs: Any, net: Any, score: Any) -> None:
    """Write the network's score of each candidate.

    Args:
        x: features, float32 (c, f).
        count: how many count.
        cands, jobs: see `describe`.
        net: (first (f, h), job offsets (n, h), option offsets (o, h), second (h, h), its bias (h,), last (h,)),
            float32.
        score: written.
    """
    first, by_job, by_option, second, bias, last = net
    f, h = first.shape
    a, b = np.empty(h, dtype=np.float32), np.empty(h, dtype=np.float32)
    for i in range(count):
        j, o = jobs[cands[i, 0]], cands[i, 1]
        a[:] = by_job[j]
        if o >= 0:
            a += by_option[o]
        for p in range(f):
            value = x[i, p]
            if value != 0:
                for q in range(h):
                    a[q] += value * first[p, q]
        b[:] = bias
        for p in range(h):
            if a[p] > 0:
                for q in range(h):
                    b[q] += a[p] * second[p, q]
        total = np.float32(0.0)
        for q in range(h):
            if b[q] > 0:
                total += b[q] * last[q]
        score[i] = total


@njit(cache=True)
def play(  # noqa: PLR0912, PLR0915, one loop read from top to bottom
    order: Any, follow: Any, noise: Any, net: Any, data: Any, static: Any, room: Any, busy: Any, out: Any, log: Any
) -> Any:
    """Build one schedule; return (cost without constant, rows used, steps).

    Args:
        order: jobs in the base's order, int64 (n,).
        follow: what is decided already, int64 (m, 2): (job, option or -1), m may be 0; whoever is left goes by the
            network.
        noise: added to the scores of the candidates of each step, float64 (s, c); step t takes row
            t % s. No rows: none.
        net: see `rate`; with no first layer (0 features) the base decides.
        data, room: see `gangplan.solvers.schedule.decode`.
        busy: see `gangplan.learned.schedule.decode.place`.
        static: see `describe`.
        out: written: (start (n,), option (n,), rows (3, r)).
        log: written if it has rows: (features (s, c, f), candidates (s, c, 2), how many (s,), chosen (s,), windows
            (s, w), scores (s, c)).
    """
    first, gpus, seconds, release, deadline, slope, price, makespan, kind, per, size, block_first, server = data
    times, free, many, chosen, spot = room
    start, option, rows = out
    xs, all_cands, counts, picks, windows, scores = log
    penalty = static[3]
    n = len(order)
    total = float(per * len(many))
    clear(free, many, per)
    for i in range(len(busy[0])):
        occupy(times, free, many, busy[0][i], 0.0, busy[2][i], busy[1][i])
    widest = 1
    for j in range(n):
        widest = max(widest, first[j + 1] - first[j])
    most = WINDOW * (widest + 1)
    cands, state = np.empty((most, 2), dtype=np.int64), np.empty((most, 4))
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
                at, nodes = find(
                    kind, per, times, free, many, size, block_first, server, release[j], gpus[o], seconds[o], spot
                )
                end = at + seconds[o]
                if end <= deadline[j]:
                    cands[count, 0], cands[count, 1] = w, o
                    state[count, 0], state[count, 1] = at, end
                    value = slope[j] * end + penalty[o]
                    if makespan:
                        value += max(0.0, end - last)
                    state[count, 2] = value
                    state[count, 3] = _spare(times, free, many, at, spot, nodes, kind)
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
            if len(counts):
                all_cands[t, 0], counts[t], picks[t], windows[t, 0] = cands[pick], 1, 0, jobs[0]
        else:
            pick = describe(cands, count, jobs, k, state, data, static, total, left / n, x)
            if len(net[0]):
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
            if len(counts):
                xs[t, :count], all_cands[t, :count] = x[:count], cands[:count]
                counts[t], picks[t] = count, pick
                windows[t, :k] = jobs[:k]
                scores[t, :count] = score[:count]
        w, o = cands[pick, 0], cands[pick, 1]
        j = jobs[w]
        for z in range(w, left - 1):
            queue[z] = queue[z + 1]
        left -= 1
        option[j] = o
        if o < 0:
            start[j] = 0.0
            cost += price[j]
            continue
        at, nodes = find(
            kind, per, times, free, many, size, block_first, server, release[j], gpus[o], seconds[o], chosen
        )
        end = at + seconds[o]
        start[j] = at
        cost += slope[j] * end
        last = max(last, end)
        rest = gpus[o]
        for i in range(nodes):
            taken = min(rest, per)
            occupy(times, free, many, chosen[i], at, end, taken)
            if kind:
                rows[0, used], rows[1, used], rows[2, used] = j, chosen[i], taken
                used += 1
            rest -= taken
    return (cost + last if makespan else cost), used, n


@njit(cache=True)
def _spare(times: Any, free: Any, many: Any, at: float, spot: Any, nodes: int, kind: int) -> float:
    """Return how many GPUs are free when a candidate starts, on the nodes that it would take."""
    found = 0.0
    for i in range(nodes):
        v = spot[i] if kind else 0
        low, high = 0, many[v] - 1
        while low < high:
            middle = (low + high + 1) // 2
            if times[v, middle] <= at:
                low = middle
            else:
                high = middle - 1
        found += free[v, low]
    return found


@njit(cache=True)
def values(
    order: Any,
    follow: Any,
    cands: Any,
    count: int,
    jobs: Any,
    net: Any,
    data: Any,
    static: Any,
    room: Any,
    busy: Any,
    out: Any,
    log: Any,
    worth: Any,
) -> None:
    """Write what each candidate of the state after `follow` comes to if the policy of `net` goes on from there."""
    m = len(follow)
    longer = np.empty((m + 1, 2), dtype=np.int64)
    longer[:m] = follow
    none = np.empty((0, 1))
    for i in range(count):
        longer[m, 0], longer[m, 1] = jobs[cands[i, 0]], cands[i, 1]
        worth[i], _, _ = play(order, longer, none, net, data, static, room, busy, out, log)
