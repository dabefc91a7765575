"""List schedules of passes: a device that is free runs the pass that a rule prefers, within its memory."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import islice, product
from math import inf

from gangplan.instances.pipeline import Passes, PipelineProblem
from gangplan.instances.verify import TOLERANCE

from ..run import Run

RULES = ((1, 0, 2), (1, 2, 0), (0, 1, 2), (2, 1, 0))
"""Which kinds of passes go first: F, B or W, by their place in `PHASES`."""


def lists(run: Run, prepared: object = None, tries: int | None = None) -> None:
    """Offer the list schedules of all rules, and of all numbers of micro-batches that devices may hold, or a few.

    Device d holds at most as many as there are devices from it to the last, and some more, in its first stage.
    """
    problem, passes = run.problem, run.problem.passes()
    for more, rule in islice(product(range(problem.devices, -1, -1), RULES), tries):
        if run.stopped:
            return
        most = [min(problem.devices - d + more, problem.micro_batches) for d in range(problem.devices)]
        orders = list_orders(problem, passes, rule, most)
        if orders is not None:
            run.offer(problem.plan(orders), "lists")


def list_orders(
    problem: PipelineProblem, passes: Passes, rule: Sequence[int], most: Sequence[int]
) -> list[list[int]] | None:
    """Return the orders of a list schedule; nothing where a device has no room for a single micro-batch.

    A micro-batch is let in at the first stage of a device only if it has room in all, so that none is ever stuck.

    Args:
        rule: kinds, the preferred one first; later stages come before earlier ones.
        most: micro-batches that each device holds at once in its first stage.
    """
    m, v, p = problem.micro_batches, problem.stages, problem.devices
    before, lag, seconds, change = (x.tolist() for x in (passes.before, passes.lag, passes.seconds, passes.change))
    device, limit = problem.device.tolist(), [inf] * p
    own = [[s for s in range(v) if device[s] == d] for d in range(p)]
    if len(problem.capacity):
        limit = [x * (1 + TOLERANCE / 2) for x in problem.capacity.tolist()]
    needs = [sum(change[s * m] for s in mine) for mine in own]
    if any(need > room for need, room in zip(needs, limit, strict=True)):
        return None
    place = {kind: i for i, kind in enumerate(rule)}
    chains = [sorted((place[k], -s, k * v + s) for k in range(2 + problem.split) for s in mine) for mine in own]
    at, end = [0] * ((2 + problem.split) * v), [-1.0] * len(seconds)
    free, held, promised, started = [0.0] * p, [0.0] * p, [0.0] * p, [0] * p
    orders: list[list[int]] = [[] for _ in range(p)]
    waits = zip(before, passes.device.tolist(), strict=True)
    user = {u: d for u, d in waits if u >= 0 and d != device[u // m % v]}  # the other device that waits for a pass

    def best(d: int) -> tuple[float, int]:
        """Return when a device can start the pass that it prefers of those that can start first, and that pass."""
        start, chosen = inf, -1
        for _, _, c in chains[d]:
            if at[c] < m:
                x = c * m + at[c]
                u, first = before[x], c == own[d][0]
                shut = first and (held[d] + promised[d] + needs[d] > limit[d] or started[d] >= most[d])
                if not shut and (u < 0 or end[u] >= 0):
                    able = free[d] if u < 0 else max(free[d], end[u] + lag[x])
                    start, chosen = (able, x) if able < start else (start, chosen)
        return start, chosen

    queue = [(*best(d), d) for d in range(p)]
    heapify(queue)
    while queue:
        start, x, d = heappop(queue)
        if (start, x) != best(d) or x < 0:
            continue  # something else has happened since
        at[x // m] += 1
        end[x] = free[d] = start + seconds[x]
        orders[d].append(x)
        held[d] += change[x]
        kind, s = divmod(x // m, v)
        if kind == 0:
            first = s == own[d][0]
            promised[d] += (needs[d] if first else 0.0) - change[x]
            started[d] += first
        elif kind == 1 + problem.split and s == own[d][0]:
            started[d] -= 1
        for e in {d, user.get(x, d)}:
            heappush(queue, (*best(e), e))
    return orders if sum(map(len, orders)) == len(seconds) else None
