"""Bounds on the makespan that need no solver, and reasons why there can be no plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.instances.graph import grouped, heaviest_paths, one_machine

from ...run import Run, never, watched
from ..sizes import most, why_impossible
from .model import Csr, Prepared, csr, rows

if TYPE_CHECKING:
    from .series import Half


def impossible(p: Prepared) -> str | None:
    """Return why no plan exists if that is plain to see, else `None`."""
    runs, fits = np.isfinite(p.group_time[p.types]), p.allowed.T
    names, total = p.problem.graph.names, float(p.capacity.sum())
    return why_impossible(names, lambda g: p.members[g][0], runs, fits, p.group_memory, total)


def heads_and_tails(p: Prepared) -> tuple[FloatArray, FloatArray]:
    """Return the least seconds before each op can start, whatever the devices, and from its end to the end of all."""
    order, found = p.order.tolist(), list[FloatArray]()
    for relation, way in ((p.predecessors, order), (p.successors, order[::-1])):
        reach, last = heaviest_paths(way, rows(relation), p.fastest.tolist())
        found.append(np.array([reach[u] if u >= 0 else 0.0 for u in last]))
    return found[0], found[1]


def load_bound(p: Prepared, head: FloatArray, tail: FloatArray) -> float:
    """Return the greatest h + W / R + t, seconds: ops that start after h and leave t behind share all devices.

    W is the fastest time of those ops in total, R what all devices get done in a second, counted in the same way: a
    device of type t no more than the largest ratio of the fastest time to its own. Energetic reasoning with one
    interval (Baptiste, Le Pape, Nuijten, 2001), of which h = t = 0 is the load bound.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(np.where(p.fastest > 0, p.fastest / p.time, 0.0)).max(axis=1)
    rate = float(ratio[p.type_of].sum())
    if rate <= 0:
        return 0.0
    after, behind = _levels(head), _levels(tail)
    work = np.zeros((len(after), len(behind)))
    np.add.at(work, (np.searchsorted(after, head, "right") - 1, np.searchsorted(behind, tail, "right") - 1), p.fastest)
    # of ops with at least such a head and such a tail; where there are none, no bound
    work = work[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
    return float(np.where(work > 0, after[:, None] + work / rate + behind, 0.0).max())


def _levels(seconds: FloatArray) -> FloatArray:
    values = np.unique(seconds)
    return np.asarray(values[np.unique(np.linspace(0, len(values) - 1, _LEVELS).astype(int))])


def class_bound(p: Prepared, head: FloatArray, tail: FloatArray) -> float:
    """Return the longest time that the ops of one group need on their one device, seconds; preemption allowed."""
    best = 0.0
    for ops, seconds in zip(p.members, p.group_time.T, strict=True):
        if len(ops) > 1:
            types = [t for t in p.types.tolist() if np.isfinite(seconds[t])]
            jobs = [[(float(head[v]), float(p.time[t, v]), float(tail[v])) for v in ops] for t in types]
            best = max(best, min(map(one_machine, jobs), default=0.0))
    return best


def delay_bound(run: Run, p: Prepared) -> None:
    """Raise the bound with all that is known of single ops: see `delayed_heads`, `load_bound`, `class_bound`."""
    if p.n_devices == 1:
        return
    heads, tails = delayed_heads(p, lambda: run.stopped), delayed_tails(p, lambda: run.stopped)
    head, tail = np.array(heads), np.array(tails)
    run.raise_bound(float((head + p.fastest + tail).max()), "delays")
    for head, tail in room_bounds(p, np.array(heads), np.array(tails), lambda: run.stopped):
        run.raise_bound(float((head + p.fastest + tail).max()), "rooms")
    for bound, by in ((load_bound, "load and delays"), (class_bound, "colocation and delays")):
        if run.stopped:
            return
        run.raise_bound(bound(p, head, tail), by)


def room_bounds(
    p: Prepared, head: FloatArray, tail: FloatArray, stopped: Callable[[], bool]
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield later and later starts, and longer and longer times from ends to the end of all, seconds, as memory has it.

    See `gangplan.instances.certificates.rooms.earliest`.
    """
    if not p.memory_binds:
        return
    from gangplan.instances.certificates.rooms import OpOrder, passes, rooms_of  # its package is some files

    first, index = (x.tolist() for x in p.predecessors)
    inputs = [index[first[v] : first[v + 1]] for v in range(p.n)]
    ops = OpOrder(p.order.tolist(), inputs, p.fastest.tolist(), p.group_of.tolist(), p.group_memory.tolist())

    every = rooms_of(p.problem, [most(x, p.n) for x in p.capacity.tolist()])
    rooms = [room for room in every if room.size < p.group_memory.sum()]
    looks = count(1)

    def more() -> bool:
        return next(looks) % _LOOKS > 0 or not stopped()

    for heads, tails in passes(ops, rooms, head.tolist(), tail.tolist(), more) if rooms else ():
        yield np.array(heads), np.array(tails)


_LOOKS = 100
"""Inputs that are looked at between two looks at the clock."""
_LEVELS = 500
"""Of h and of t that are tried; fewer make the bound weaker, not wrong."""
_MOST = 40
"""Ops that are looked at together; fewer make the bound weaker, not wrong."""
_OFTEN = 16


def delayed_heads(p: Prepared, stopped: Callable[[], bool] = never) -> list[float]:
    """Return the least time at which each op can start, whatever the devices, seconds; see `earliest`."""
    sent = p.least_delay.tolist()
    return earliest(p.order.tolist(), p.predecessors, p.fastest, lambda u, v: sent[u], stopped)


def delayed_tails(p: Prepared, stopped: Callable[[], bool] = never) -> list[float]:
    """Return the least time from the end of each op to the end of all, seconds: the same with time reversed."""
    sent = p.least_delay.tolist()
    return earliest(p.order[::-1].tolist(), p.successors, p.fastest, lambda u, v: sent[v], stopped)


def delayed_length(p: Prepared, half: Half) -> float:
    """Return the least time between the first and the last op of a half, these left out, seconds."""
    return local_heads(p, half)[-1] - float(p.fastest[half.ops[0]])


def local_heads(p: Prepared, half: Half, stopped: Callable[[], bool] = never) -> list[float]:
    """Return the least time at which each op of a half can start, whatever the devices, all before it left out."""
    sent = p.least_delay[list(half.ops)].tolist()
    before = csr(grouped(((v, u) for u, v in half.edges), len(sent)))
    return earliest(list(range(len(sent))), before, p.fastest[list(half.ops)], lambda u, v: sent[u], stopped)


def earliest(
    order: list[int],
    relation: Csr,
    fastest: FloatArray,
    delay: Callable[[int, int], float],
    stopped: Callable[[], bool] = never,
) -> list[float]:
    """Return the earliest start of each op, after Papadimitriou and Yannakakis (SIAM J. Comput. 1990).

    Op v starts at T. An input u that is made elsewhere is there no earlier than its own earliest start plus its time
    and its delay; if that is after T, u is on the device of v, and so on with the inputs of u, which must be there
    before the ops from u to v have to start. All those are on one device, one after the other: if Jackson's preemptive
    schedule ends after T, then T is too early. Ops may be duplicated for all this knows.
    """
    first, index = relation[0].tolist(), relation[1].tolist()
    seconds = fastest.tolist()
    head = [0.0] * len(order)

    def local(v: int, limit: float) -> tuple[dict[int, float], float]:
        """Return the ops that are on the device of v if that starts at `limit`, with what is to be done between the
        end of each and v, and the least start of v at which there are fewer."""
        tail: dict[int, float] = {}
        following = float("inf")
        rest = [(v, 0.0)]
        while rest:
            w, behind = rest.pop()
            for u in index[first[w] : first[w + 1]]:
                there = head[u] + seconds[u] + delay(u, w) + behind
                if there > limit and tail.get(u, -1.0) < behind and (u in tail or len(tail) < _MOST):
                    following = min(following, there)
                    tail[u] = behind
                    rest.append((u, behind + seconds[u]))
        return tail, following

    for v in watched(order, stopped, _OFTEN):
        before = index[first[v] : first[v + 1]]
        at = max((head[u] + seconds[u] for u in before), default=0.0)
        while len(before) > 1:
            together, following = local(v, at)
            least = one_machine([(head[u], seconds[u], behind) for u, behind in together.items()])
            if least <= at:
                break
            at = min(least, following)
        head[v] = at
    return head
