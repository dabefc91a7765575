"""A batch and a placement of it as flat arrays for compiled code."""

from __future__ import annotations

from typing import NamedTuple

from ...compiled.kernel import Bools, Bools2, Floats, Floats2, Ints, Ints2, Ints3

RING, TREE, HIERARCHICAL, SERVERS = range(4)
"""Collectives, see `gangplan.instances.placement.job.COLLECTIVES`."""
SLOWDOWN, THROUGHPUT, COMMUNICATION, FRAGMENTATION = range(4)
"""Goals, see `gangplan.instances.placement.problem.GOALS`."""


class BatchArrays(NamedTuple):
    """What a batch is: J jobs, m nodes, q kinds of them, K models, M groups of all levels, D degrees, R rows at most.

    A group is a node, a rack, or what is above; T kinds of task are expected, where fragments are the goal.

    Attributes:
        goal: one of the goals above.
        sharing: whether workers of some job share GPUs.
        above: of each group that which it is in, one level up, (M,).
        level, bandwidth: of each group, and bytes/s of its link, (M,).
        inside: seconds of a gigabyte between two GPUs of a node, (m,).
        across: seconds of a gigabyte between GPUs that meet at a level, (L,).
        kind, link, gpus: of each node; bytes/s inside it, (m,).
        amounts: cores, bytes and NIC of each node, (m, 3).
        usable: kinds of node that are, (q,).
        host, gpu: what a model adds to another's compute on a node, and on a GPU that they share, (K, K).
        model, weight, servers: of each job, (J,); servers are parameter servers.
        floor: what each job costs at least, placed or left out, if it need not move, (J,).
        best: rate of each job alone on an empty fleet, (J,).
        gradient, overlap: bytes, and the share of the compute that hides synchronisation, (J,).
        duty: share of the time that a job is on its links, (J,).
        collective: one of those above, (J,).
        value, migration: what leaving a job out costs, infinite if it must be placed, and what moving it does, (J,).
        alone_on_nodes, free: jobs that want their nodes for themselves, and those that may be moved, (J,).
        together: workers of each job that fit on one GPU; 0 for those that share none, (J,).
        share: of a GPU that a worker takes, (J,).
        need: GPUs, cores, bytes and NIC of a worker; cores, bytes and NIC of a server, (J, 7).
        alone: seconds of compute, infinite where the job may not be, (J, q).
        room: workers on an empty node, (J, q).
        degrees: numbers of workers, the largest first, then 0, (J, D).
        apart: pairs of jobs that may share no node, (J, J); (0, J) if there are none.
        standing, standing_rows: rows where each job runs, (J, R, 3), and how many, (J,).
        expected: GPUs, share of each, cores, bytes and NIC of each kind of task, (T, 5).
        chance: how often each kind of task comes, (T,).
        accepts: whether a kind of task may use a kind of node at all, (T, q).
    """

    goal: int
    sharing: bool
    above: Ints
    level: Ints
    bandwidth: Floats
    inside: Floats
    across: Floats
    kind: Ints
    link: Floats
    gpus: Ints
    amounts: Floats2
    usable: Bools
    host: Floats2
    gpu: Floats2
    model: Ints
    weight: Floats
    floor: Floats
    best: Floats
    gradient: Floats
    overlap: Floats
    duty: Floats
    collective: Ints
    servers: Ints
    value: Floats
    migration: Floats
    alone_on_nodes: Bools
    free: Bools
    together: Ints
    share: Floats
    need: Floats2
    alone: Floats2
    room: Ints2
    degrees: Ints2
    apart: Bools2
    standing: Ints3
    standing_rows: Ints
    expected: Floats2
    chance: Floats
    accepts: Bools2


class Placement(NamedTuple):
    """Where all jobs are, and what that costs; everything here is written to.

    Attributes:
        rows, count: node, workers and servers of each row of each job, (J, R, 3), and how many rows, (J,).
        wide: whether a job is in several racks, (J,).
        here: jobs on each node, workers of each, and which of its rows that is, (m, A, 3).
        many: jobs on each node, (m,).
        suffer: what those on a node add to each model's compute, (m, K).
        extra: what a job suffers from those on its own GPUs besides, of each of its rows, (J, R).
        left: GPUs, cores, bytes and NIC that are free on each node, (m, 4).
        whole, guarded: GPUs of each node that are taken as a whole, and jobs that want it for themselves, (m,).
        load: duties of the gangs that cross a group's link, (M,).
        compute, sync, cost: seconds and cost of each job, (J,).
        fragment: expected fragments of each node, (m,).
        record: the least cost of all so far, (1,).
        dirty: jobs whose cost is to be renewed, (J,).
        other: compute and synchronisation that a candidate would leave to each job, (J, 2).
        changed, spot: jobs that a candidate changes, (J,), and where in that list each is, if it is there, (J,).
        trial: rows of a place that is looked at, (R, 3).
        place, size, least: rows of the best place so far, (R, 3), how many they are, and what it costs, (1,).
        window, seen: nodes that are looked at for a gang, and behind them others, (m,), and how many, (1,).
        room: workers of a gang that each node in view holds, 0 elsewhere, (m,).
        groups: of one level and the next, scratch, (2, R).
        sums: workers, servers and parts in each of them, scratch, (2, R, 3).
        mark: groups that a candidate crosses, 0 between two candidates, (M,).
        bins: how full GPUs are that are shared, of a node, scratch, (G,); no more than there are tasks.
        inside, filled: places in `order` of the tasks on each of these GPUs, ascending, scratch, (G, T), and how many,
            (G,).
        order: jobs on a node that share GPUs, the largest shares first, scratch, (A + 1,).
        met: of each of them the last with which it has a GPU in common, scratch, (A + 1,).
        gone, found: jobs that went in the last round, in the order in which they came back, -1 behind them, (4,), of
            which the first is -1 if none went; and what the batch would cost with them back, inf if they were not all
            put back, (1,).
    """

    rows: Ints3
    count: Ints
    wide: Bools
    here: Ints3
    many: Ints
    suffer: Floats2
    extra: Floats2
    left: Floats2
    whole: Ints
    guarded: Ints
    load: Floats
    compute: Floats
    sync: Floats
    cost: Floats
    fragment: Floats
    record: Floats
    dirty: Bools
    other: Floats2
    changed: Ints
    spot: Ints
    trial: Ints2
    place: Ints2
    size: Ints
    least: Floats
    window: Ints
    seen: Ints
    room: Ints
    groups: Ints2
    sums: Ints3
    mark: Ints
    bins: Floats
    inside: Ints2
    filled: Ints
    order: Ints
    met: Ints
    gone: Ints
    found: Floats
