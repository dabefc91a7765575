"""The event loop, compiled. Times are compared exactly: two that the trace gives as equal are one instant.

Jobs of one size fit or do not fit alike, so the queue is one line a size, and only the first of a line that keeps the
rule can start. A line is a stretch of the leaves of a tree in which every node has the least value below it: the first
job from a place on that is short enough is found, and a job is put in or taken out, in O(log n). The nodes are found in
another such tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.solvers.compiled.kernel import Floats, Floats2, Ints, Ints2, by_reference, inner, kernel, lean
from gangplan.solvers.compiled.routines import pop, push

from ..fit import Gangs, Held, Nodes, find_in, reserve, shift, stands

HEAD, OVERTAKE, EASY = range(3)
_ANY = np.finfo(np.float64).max


class Lines(NamedTuple):
    """The queue: jobs by size, those of a size in their order.

    Attributes:
        job, rank: the job in each place and its rank, int64 (n,).
        place, line: of each job, int64 (n,).
        size: GPUs of the jobs of each line, ascending, int64 (k,).
        begin: the first place of each line, and n, int64 (k + 1,).
        first: the place of the first job that waits, n if there is none, int64 (k,).
        spans: tree of the seconds that waiting jobs will run, infinite for others.
    """

    job: Ints
    place: Ints
    rank: Ints
    line: Ints
    size: Ints
    begin: Ints
    first: Ints
    spans: Floats


class Levels(NamedTuple):
    """Equal nodes by their free GPUs.

    Attributes:
        count: nodes with so many free GPUs, int64 (GPUs + 1,).
        most: the highest number of which there is a node, int64 (1,).
        there: tree of zeros: leaf `free * m + node` of each node; infinite elsewhere.
    """

    count: Ints
    most: Ints
    there: Floats


def lines_of(degree: Ints, order: Ints) -> Lines:
    """Return the lines of jobs by their GPUs and their order in the queue, before anyone waits."""
    n, there = len(degree), np.bincount(degree) > 0
    line = (np.cumsum(there) - 1)[degree]
    job = order[np.argsort(line[order].astype(np.min_scalar_type(line.max())), kind="stable")]
    place, rank = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    place[job], rank[order] = np.arange(n), np.arange(n)
    size = np.flatnonzero(there)
    begin = np.append(0, np.cumsum(np.bincount(line)))
    return Lines(job, place, rank[job], line, size, begin, np.full(len(size), n), tree(n))


def levels_of(nodes: Nodes) -> Levels:
    """Return nodes that are all free."""
    m, most = len(nodes.free), nodes.biggest
    there = tree((most + 1) * m if nodes.consolidate else 0)
    levels = Levels(np.zeros(most + 1, dtype=np.int64), np.array([most]), there)
    levels.count[most] = m
    for node in range(m if nodes.consolidate else 0):
        put(there, most * m + node, 0.0)
    return levels


def tree(leaves: int) -> Floats:
    """Return a tree with room for more than `leaves`, all infinite; node i is above nodes 8i + 1 to 8i + 8."""
    inner = 0
    while 7 * inner < leaves:  # there are 7 * inner + 1 leaves
        inner = 8 * inner + 1
    return np.full(8 * inner + 1, np.inf)


@lean
def put(tree: Floats, leaf: int, value: float) -> None:
    """Give a leaf a value."""
    at = len(tree) // 8 + leaf
    tree[at] = value
    while at > 0:
        at = (at - 1) // 8
        least = tree[8 * at + 1]
        for below in range(8 * at + 2, 8 * at + 9):
            least = min(least, tree[below])
        if tree[at] == least:
            return
        tree[at] = least


@lean
def find_leaf(tree: Floats, begin: int, now: float, until: float) -> int:
    """Return the first leaf from `begin` on for which ``now + value <= until``, -1 if there is none."""
    inner = len(tree) // 8
    at = inner + begin
    while now + tree[at] > until:
        while at > 0 and at % 8 == 0:
            at = (at - 1) // 8
        if at == 0:
            return -1
        at += 1
    while at < inner:
        at = 8 * at + 1
        while now + tree[at] > until:
            at += 1
    return at - inner


@kernel
def run(  # noqa: PLR0912, one loop read from top to bottom
    submit: Floats, arrivals: Ints, lines: Lines, levels: Levels, gangs: Gangs, nodes: Nodes, discipline: int
) -> tuple[Floats, Ints2]:
    """Run to the end; return the start of each job, float64 (n,), and rows (job, node, GPUs), int64 (3, r).

    Args:
        submit: seconds, float64 (n,).
        arrivals: the jobs by submit time, int64 (n,).
        discipline: `HEAD`, `OVERTAKE` or `EASY`.
    """
    n = len(submit)
    total = 0
    for job in range(n):
        total += (gangs.degree[job] + nodes.biggest - 1) // nodes.biggest
    rows = np.empty((3, total), dtype=np.int64)
    held = Held(np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), rows[1], rows[2])
    queue, idle = by_reference(lines), by_reference(levels)  # of arguments: what is made here would not live as long
    jobs, cluster = by_reference(gangs), by_reference(nodes)
    running, n_running = np.empty(n, dtype=np.int64), 0
    start, finish, urgency = np.full(n, np.inf), np.full(n, np.inf), np.zeros(n)
    nxt, used = 0, 0
    while nxt < n or n_running:
        now = finish[running[0]] if n_running else np.inf
        if nxt < n and submit[arrivals[nxt]] < now:
            now = submit[arrivals[nxt]]
        while n_running and finish[running[0]] <= now:
            job = running[0]
            for row in range(held.first[job], held.first[job] + held.count[job]):
                fill(cluster, idle, rows[1, row], rows[2, row])
            n_running = pop(running, n_running, urgency, lines.place)
        while nxt < n and submit[arrivals[nxt]] <= now:
            join(queue, arrivals[nxt], gangs.span[arrivals[nxt]])
            nxt += 1
        blocked, past, shadow, later = -1, -1, np.inf, nodes.free
        while True:
            if blocked < 0:
                place = first_in_turn(queue, idle, cluster, discipline == OVERTAKE)
            else:
                place = first_spare(queue, idle, past, now, blocked, shadow, later, jobs, cluster)
            if place < 0:
                break
            past, job = lines.rank[place], lines.job[place]
            if not fits(gangs.degree[job], idle, cluster):
                if discipline == HEAD:
                    break
                blocked = job
                shadow, later = reserve(job, running[:n_running], finish, gangs, nodes, held)
                continue
            leave(queue, place)
            first, used = used, take(gangs.degree[job], idle, cluster, rows, used)
            rows[0, first:used] = job
            held.first[job], held.count[job] = first, used - first
            start[job], finish[job] = now, now + gangs.span[job]
            urgency[job] = -finish[job]
            n_running = push(running, n_running, job, urgency, lines.place)
            if blocked >= 0 and finish[job] > shadow:
                shift(later, gangs.unit[job], rows[1, first:used], rows[2, first:used], -1)
    return start, rows[:, :used]


@lean
def fill(nodes: Nodes, levels: Levels, node: int, gpus: int) -> None:
    """Give back GPUs of a node, or take them, if there are fewer than 0."""
    before = int(nodes.free[node, 0])
    after, m = before + gpus, len(nodes.free)
    nodes.free[node, 0] = after
    levels.count[before] -= 1
    levels.count[after] += 1
    levels.most[0] = max(levels.most[0], after)
    while levels.count[levels.most[0]] == 0:
        levels.most[0] -= 1
    if nodes.consolidate:
        put(levels.there, before * m + node, np.inf)
        put(levels.there, after * m + node, 0.0)


@lean
def fits(need: int, levels: Levels, nodes: Nodes) -> bool:
    """Return whether a job of so many GPUs fits."""
    return bool(need <= levels.most[0] or nodes.biggest < need <= levels.count[nodes.biggest] * nodes.biggest)


@lean
def take(need: int, levels: Levels, nodes: Nodes, rows: Ints2, used: int) -> int:
    """Give a job that fits its GPUs, as `fit.find` says, and write them behind the `used` rows; return their number."""
    m, least = len(nodes.free), min(need, nodes.biggest)
    while need > 0:
        gpus = min(need, nodes.biggest)
        node = find_leaf(levels.there, least * m, 0.0, 0.0) % m if nodes.consolidate else 0
        rows[1, used], rows[2, used] = node, gpus
        fill(nodes, levels, node, -gpus)
        need -= gpus
        used += 1
    return used


@lean
def join(lines: Lines, job: int, span: float) -> None:
    """Put a job into the queue."""
    place = lines.place[job]
    line = lines.line[job]
    put(lines.spans, place, span)
    lines.first[line] = min(lines.first[line], place)


@lean
def leave(lines: Lines, place: int) -> None:
    """Take the job in a place out of the queue."""
    line = lines.line[lines.job[place]]
    put(lines.spans, place, np.inf)
    if lines.first[line] == place:
        lines.first[line] = first_of(lines, line, place, 0.0, _ANY)


@lean
def first_of(lines: Lines, line: int, begin: int, now: float, until: float) -> int:
    """Return the first place of a line, from `begin` on, of a job that ends by `until` if it starts now; n if none."""
    place = find_leaf(lines.spans, begin, now, until)
    return place if 0 <= place < lines.begin[line + 1] else len(lines.job)


@lean
def first_in_turn(lines: Lines, levels: Levels, nodes: Nodes, overtake: bool) -> int:
    """Return the place of the first job, or of the first that fits, -1 if there is none."""
    best, least = -1, len(lines.job)
    for line in range(len(lines.size)):
        place = lines.first[line]
        if place == len(lines.job) or lines.rank[place] > least:
            continue
        if not overtake or fits(lines.size[line], levels, nodes):
            best, least = place, lines.rank[place]
    return best


@inner
def first_spare(
    lines: Lines,
    levels: Levels,
    past: int,
    now: float,
    blocked: int,
    shadow: float,
    later: Floats2,
    gangs: Gangs,
    nodes: Nodes,
) -> int:
    """Return the place of the first job ranked beyond `past` that may start by EASY, else -1; as `fit.next_spare`."""
    node, gpus = np.empty(len(nodes.free), dtype=np.int64), np.empty(len(nodes.free), dtype=np.int64)
    best, least = -1, len(lines.job)
    for line in range(len(lines.size)):
        begin, end, need = lines.begin[line], lines.begin[line + 1], lines.size[line]
        if lines.first[line] == len(lines.job) or not fits(need, levels, nodes):
            continue
        begin += np.searchsorted(lines.rank[begin:end], past, side="right")
        place = first_of(lines, line, max(begin, lines.first[line]), 0.0, _ANY)
        if place == len(lines.job) or lines.rank[place] >= least:
            continue
        job = lines.job[place]
        if now + gangs.span[job] > shadow:
            k = find_in(nodes.free, nodes, gangs, job, need, node, gpus)
            if not stands(blocked, job, node[:k], gpus[:k], later, gangs, nodes):
                place = first_of(lines, line, place, now, shadow)
                if place == len(lines.job) or lines.rank[place] >= least:
                    continue
        best, least = place, lines.rank[place]
    return best
