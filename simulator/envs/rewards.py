"""What an environment pays: for time that passes, for jobs that start, and for jobs that are blocked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gangplan.instances.arrays import FloatArray

from ..engine import View
from ..engine.jobs import Long


class Stretch(NamedTuple):
    """Time between two instants, in which nothing came or went.

    Attributes:
        seconds: how long.
        waiting: jobs that waited all the while, int64.
        running: jobs that ran all the while, int64.
        rate: seconds of work that each of these got on in a second, float64.
    """

    seconds: float
    waiting: Long
    running: Long
    rate: FloatArray


class Reward:
    """Pays nothing.

    What an environment returns for an action is the sum over all that happened until the next decision.
    """

    def passes(self, view: View, stretch: Stretch) -> float:
        """Return what is paid for time that passed."""
        return 0.0

    def starts(self, view: View, job: int) -> float:
        """Return what is paid for a job that starts now."""
        return 0.0

    def blocks(self, view: View, job: int) -> float:
        """Return what is paid for a job that is sent away now."""
        return 0.0


class CompletionTime(Reward):
    """Minus the seconds that jobs spend waiting and running.

    Over an episode, minus the sum of JCT of those that ran.
    """

    def passes(self, view: View, stretch: Stretch) -> float:
        """Return minus jobs times seconds."""
        return -stretch.seconds * (len(stretch.waiting) + len(stretch.running))


class Slowdown(Reward):
    """Minus the same, each job's seconds over its duration; over an episode, minus the sum of slowdowns.

    A job of no duration counts as one of a second, which it cannot wait for.
    """

    def passes(self, view: View, stretch: Stretch) -> float:
        """Return minus seconds times the sum of the inverse durations."""
        jobs = np.concatenate([stretch.waiting, stretch.running])
        duration = view.workload.duration[jobs]
        return -stretch.seconds * float((1 / np.where(duration > 0, duration, 1.0)).sum())


class Progress(Reward):
    """The share of its work that each job got done (Harmony); over an episode, the number of jobs that ran.

    Its worth lies in discounting: early progress is paid more.
    """

    def passes(self, view: View, stretch: Stretch) -> float:
        """Return the seconds times the rates over the durations."""
        duration = view.workload.duration[stretch.running]
        share = np.divide(stretch.rate, duration, out=np.zeros(len(duration)), where=duration > 0)
        return stretch.seconds * float(share.sum())


class Accepted(Reward):
    """1 for a job that starts, -1 for one that is blocked (PAC-ML).

    Over an episode of n jobs that is n (1 - 2 blocking rate).
    """

    def starts(self, view: View, job: int) -> float:
        """Return 1."""
        return 1.0

    def blocks(self, view: View, job: int) -> float:
        """Return -1."""
        return -1.0
