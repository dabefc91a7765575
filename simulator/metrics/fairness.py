"""Finish-time fairness: what sharing the cluster costs a job, next to a part of it of its own."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..trace.outcome import Outcome


def finish_time_fairness(outcome: Outcome) -> FloatArray:
    """Return each job's completion time over that on its own part of the cluster: jobs that ran and take some time.

    The part is G / N GPUs, G those of the cluster and N the mean number of jobs that there were from its submission to
    its end (Mahajan et al., NSDI 2020, section 3.1; Narayanan et al., OSDI 2020). On a part smaller than its gang a job
    takes longer in proportion; on a larger one it is no faster. If it has a menu, it takes the degree that is best for
    that part.
    """
    work = outcome.workload
    ran = outcome.admitted
    rest = (work.duration > 0)[ran]
    submit, finish = work.submit[ran], outcome.finish[ran]
    part = outcome.n_gpus / company(submit, finish)
    if outcome.menu is None:
        needs = work.gpus[ran] * np.asarray(work.share)[ran]
        alone = work.duration[ran] * np.maximum(1.0, needs / part)
    else:
        menu = outcome.menu
        each = np.full(work.n_jobs, np.inf)
        each[ran] = part
        degrees = np.diff(menu.first)
        slower = np.maximum(1.0, menu.gpus * np.repeat(np.asarray(work.share) / each, degrees))
        alone = np.minimum.reduceat(menu.duration * slower, menu.first[:-1])[ran]
    return np.asarray(((finish - submit)[rest]) / alone[rest])


def company(submit: FloatArray, finish: FloatArray) -> FloatArray:
    """Return the mean number of jobs that there were during the stay of each, itself included, float64 (n,)."""
    first = submit.min(initial=np.inf)
    enter, leave = submit - first, finish - first
    stay = leave - enter
    # the integral of how many jobs there are up to t: sum of max(0, t - enter) - max(0, t - leave)
    there = _upto(enter, leave) - _upto(leave, leave) - _upto(enter, enter) + _upto(leave, enter)
    return np.asarray(np.maximum(1.0, np.divide(there, stay, out=np.ones(len(stay)), where=stay > 0)))


def _upto(events: FloatArray, times: FloatArray) -> FloatArray:
    """Return the sum over events of max(0, time - event) for each time."""
    ordered = np.sort(events)
    count = np.searchsorted(ordered, times, side="right")
    return np.asarray(count * times - np.concatenate([[0.0], np.cumsum(ordered)])[count])
