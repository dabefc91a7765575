"""The check of a schedule: from the outcome alone, whoever made it."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray, IntArray
from gangplan.instances.verify.verdict import time_slack

from .outcome import Outcome
from .spans import Long, Spans, restarts, spans

_MOST = 5
"""Faults of a kind that are told."""
_SLACK = 1e-9


def assert_sound(faults: list[str], made: str = "an impossible schedule") -> None:
    """Raise an AssertionError if a check has found something: then the simulator is wrong."""
    if faults:
        raise AssertionError(f"the simulator made {made}: {'; '.join(faults[:3])}")


def check(outcome: Outcome) -> list[str]:
    """Return what is wrong with a schedule, in words; nothing if it is right.

    A job runs after its submission, one span after the other, each with GPUs as asked for or one of its options; it
    does its work, counting what failures take and restoring costs; no GPU or node holds more than it has, cores and
    memory included, and a node that is down holds nothing.
    """
    found = _rows(outcome)
    if found:
        return found
    parts = spans(outcome)
    words = _order(outcome, parts) + _amounts(outcome, parts)
    lost, wrong = restarts(outcome, parts)
    return words + wrong + _work(outcome, parts, lost) + _overfull(outcome) + _down(outcome)


def _named(outcome: Outcome, bad: BoolArray, jobs: Long | IntArray, problem: str) -> list[str]:
    return [f"job {outcome.workload.names[i]} {problem}" for i in jobs[bad][:_MOST]]


def _rows(o: Outcome) -> list[str]:
    m = len(o.room)
    counted = o.row_node < 0
    if counted.any() and not counted.all():
        return ["some rows name a node and others do not"]
    gpu_there = (o.row_gpu < 0) | counted | (o.row_gpu < o.room[np.where(counted, 0, o.row_node) % m])
    return [
        *_named(o, o.row_node >= m, o.row_job, f"is on a node beyond the {m} there are"),
        *_named(o, ~gpu_there, o.row_job, "holds a GPU that its node does not have"),
        *_named(o, (o.row_gpus < 1) | ((o.row_gpu >= 0) & (o.row_gpus != 1)), o.row_job, "holds no number of GPUs"),
        *_named(o, ~((o.row_share > 0) & (o.row_share <= 1 + _SLACK)), o.row_job, "holds no share of a GPU"),
        *_named(o, ~(o.row_start <= o.row_end) | ~np.isfinite(o.row_end), o.row_job, "ends before it starts"),
        *_named(o, ~(o.row_rate >= 0) | ~np.isfinite(o.row_rate), o.row_job, "has no rate"),
    ]


def _order(o: Outcome, s: Spans) -> list[str]:
    ran = np.zeros(o.workload.n_jobs, dtype=bool)
    ran[s.job] = True
    every = np.arange(o.workload.n_jobs)
    words = _named(o, ran != o.admitted, every, "ran though it was rejected, or did not run though it was not")
    words += _named(o, s.start < o.workload.submit[s.job], s.job, "starts before it is submitted")
    words += _named(o, ~s.even, s.job, "does not start and end on all its GPUs at once")
    follows = s.job[1:] == s.job[:-1]
    words += _named(o, follows & (s.start[1:] < s.end[:-1]), s.job[1:], "runs twice at a time")
    opening, last = np.ones(len(s.job), dtype=bool), np.ones(len(s.job), dtype=bool)
    opening[1:], last[:-1] = ~follows, ~follows
    words += _named(o, opening & (s.start != o.start[s.job]), s.job, "does not start when it is said to")
    return words + _named(o, last & (s.end != o.finish[s.job]), s.job, "does not end when it is said to")


def _amounts(o: Outcome, s: Spans) -> list[str]:
    if o.options is None:
        need = o.workload.gpus[s.job]
        return [
            f"job {o.workload.names[j]} holds {held} GPUs, it needs {asked}"
            for j, held, asked in zip(*(x[s.gpus != need][:_MOST] for x in (s.job, s.gpus, need)), strict=True)
        ]
    owner = np.repeat(np.arange(o.options.n_jobs), np.diff(o.options.first))
    known = np.isin(s.job * (1 << 32) + s.gpus, owner * (1 << 32) + o.options.gpus)
    return _named(o, ~known, s.job, "holds a number of GPUs that is none of its options")


def _work(o: Outcome, s: Spans, lost: FloatArray) -> list[str]:
    done = np.bincount(s.job, weights=s.rate * (s.end - s.start), minlength=o.workload.n_jobs) - lost
    ran = o.admitted
    # each stretch begins and ends on a clock that rounds
    stretches = np.bincount(s.job, weights=s.rate, minlength=o.workload.n_jobs)
    slack = time_slack(o.workload.duration + lost, 0.0) + stretches * time_slack(0.0, np.where(ran, o.finish, 0.0))
    wrong = ran & (np.abs(done - o.workload.duration) > slack)
    return _named(o, wrong, np.arange(o.workload.n_jobs), "does not run for its duration")


def _overfull(o: Outcome) -> list[str]:
    amount = o.row_gpus if (o.row_share == 1).all() else o.row_gpus * o.row_share
    if len(o.row_node) and o.row_node[0] < 0:
        return _sweep(o, np.zeros(len(amount), dtype=np.int64), amount, np.array([o.n_gpus]), "the cluster")
    told = o.row_gpu >= 0
    words = [] if told.all() else _sweep(o, o.row_node, amount, o.room, "node")
    if told.any():
        most = int(o.room.max())
        gpu = o.row_node * most + o.row_gpu
        words += _sweep(o, gpu, o.row_share, np.ones(len(o.room) * most), "GPU", told)
    work = o.workload
    for has, asked, unit in zip(o.beside.T, (work.cpu, work.memory), ("cores", "bytes"), strict=True):
        if len(has) and np.any(asked):
            words += _sweep(
                o, o.row_node, o.row_gpus * (np.asarray(asked) / work.gpus)[o.row_job], has, "node", unit=unit
            )
    return words


def _sweep(
    o: Outcome,
    place: Long | IntArray,
    amount: IntArray | FloatArray,
    room: IntArray | FloatArray,
    what: str,
    only: BoolArray | None = None,
    unit: str = "GPUs",
) -> list[str]:
    """Compare what each place holds with what it has, whenever something starts there; ends go first."""
    busy = o.row_end > o.row_start  # what holds GPUs for no time is in nobody's way
    if only is not None:
        busy &= only
    place, amount, start, end = place[busy], amount[busy], o.row_start[busy], o.row_end[busy]
    if len(room) == 1:
        begun = np.argsort(start, kind="stable")
        ended = np.argsort(end, kind="stable")
        released = np.concatenate([[0], np.cumsum(amount[ended])])
        used = np.cumsum(amount[begun]) - released[np.searchsorted(end[ended], start[begun], "right")]
        where, time = place[begun], start[begun]
    else:
        time = np.concatenate([start, end])
        where, change = np.concatenate([place, place]), np.concatenate([amount, -amount])
        order = np.lexsort((change, time, where))
        used = np.cumsum(change[order])  # what a place holds comes back to 0 before the next one's turn
        where, time = where[order], time[order]
    return [
        f"{what}{f' {where[i]}' if what != 'the cluster' else ''} holds {used[i]:g} {unit} "
        f"at {time[i]:.6g} s, it has {room[where[i]]:g}"
        for i in np.flatnonzero(used > room[where] * (1 + _SLACK) + _SLACK)[:_MOST]
    ]


def _down(o: Outcome) -> list[str]:
    words: list[str] = []
    if not len(o.down_node):
        return words
    if (o.row_node < 0).any():
        return ["nodes fail, but the rows name none"]
    by_node = np.argsort(o.row_node, kind="stable")
    cuts = np.searchsorted(o.row_node[by_node], np.arange(len(o.room) + 1))
    for node, start, end in zip(o.down_node.tolist(), o.down_start.tolist(), o.down_end.tolist(), strict=True):
        rows = by_node[cuts[node] : cuts[node + 1]]
        there = (o.row_start[rows] < end) & (o.row_end[rows] > start)
        words += _named(o, there, o.row_job[rows], f"runs on node {node} while it is down from {start:.6g} s on")
    return words[:_MOST]
