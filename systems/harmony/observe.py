"""What the network is shown of an environment, Harmony's state as a row of numbers, and which actions are allowed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gangplan.instances import InstanceError
from gangplan.instances.arrays import BoolArray

from ..interference.baselines import SCORES
from ..interference.environment import SERVER, WORKER, Environment
from .recipe import HarmonySettings

Row = NDArray[np.float32]
_MOST, _AGE = 4.0, 50.0
"""Tasks of a job, and intervals since its arrival, that count as 1."""
FOR_CRITIC = 2
"""Numbers at a row's end that the critic alone is shown, in training: how many jobs are yet to come, and how much those
that run have left. What they explain would else be noise of the rewards."""
RULES = ("best", "lb")
"""What explores: packing and balancing load."""


def widths(settings: HarmonySettings) -> tuple[int, int, int]:
    """Return how many numbers a row has of servers (v), of waiting jobs (x, r, w, p), and of running ones (d)."""
    k, m = settings.types, settings.servers
    return m * 3, settings.slots * (k + 6 + 2 * m), settings.running * (k + 2 * m)


def width(settings: HarmonySettings) -> int:
    """Return how many numbers a row has; after those of `widths` come how many more wait, and `FOR_CRITIC`."""
    return sum(widths(settings)) + 1 + FOR_CRITIC


def actions(settings: HarmonySettings) -> int:
    """Return how many actions there are: (job in sight, worker or parameter server, server), and the interval's end."""
    return settings.slots * 2 * settings.servers + 1


class Lane:
    """One environment as the network sees it.

    Raises:
        InstanceError: if it has other servers or types than the network is for.
    """

    def __init__(self, env: Environment, settings: HarmonySettings) -> None:
        self.env, self._of, jobs = env, settings, env.case.jobs
        found = (len(jobs.types.names), len(env.free))
        if found != (settings.types, settings.servers):
            words = f"has {found[0]} types and {found[1]} servers; the policy is for {settings.types}"
            raise InstanceError("case", f"{words} and {settings.servers}")
        self._one = np.eye(settings.types, dtype=np.float32)
        asked = np.stack([jobs.workers, jobs.worker[:, 0], jobs.servers, jobs.server[:, 1]], axis=1)
        asked = asked / np.array([_MOST, 1.0, _MOST, 4.0])
        long = np.log1p(env.profiled / env.case.interval)[:, None] * settings.waits
        none, here = np.zeros((len(jobs), 2 * settings.servers)), settings.types + 4
        self._still = np.concatenate([self._one[jobs.kind], asked, none, long, 0 * long], axis=1, dtype=np.float32)
        self._tasks = slice(here, here + 2 * settings.servers)
        self._known, self._d = (-1.0, -1), np.zeros(0, dtype=np.float32)
        self.look()

    def look(self) -> None:
        """Find out which jobs are in sight and which actions are allowed, bool (actions,)."""
        env, m = self.env, self._of.servers
        self.sight = env.in_order(self._of.waits)[: self._of.slots]
        self.mask: BoolArray = np.zeros(actions(self._of), dtype=np.bool_)
        tasks = self.mask[:-1].reshape(-1, 2, m)
        for at, job in enumerate(self.sight):
            if env.current in (-1, job):
                tasks[at] = env.mask(job)
        may_wait = self._of.waits and env.current < 0 and len(env.running) > 0
        self.mask[-1] = may_wait or not self.mask[:-1].any()

    @property
    def seen(self) -> Row:
        """What is seen, float32 (`width`,)."""
        env, of = self.env, self._of
        servers, waiting, running = widths(of)
        row = np.zeros(width(of), dtype=np.float32)
        row[:servers] = (env.free / env.size).ravel()
        jobs = row[servers : servers + waiting].reshape(of.slots, -1)[: len(self.sight)]
        jobs[:] = self._still[self.sight]
        if of.waits:
            jobs[:, -1] = (env.now - env.case.jobs.submit[self.sight]) / (_AGE * env.case.interval)
        if env.current >= 0:
            jobs[self.sight.index(env.current), self._tasks] = self._where(env.current).ravel()
        row[servers + waiting : servers + waiting + running] = self._running()
        come = len(env.start) - len(env.waiting) - len(env.running) - int(np.isfinite(env.finish).sum())
        left = 1.0 - env.done_epochs[env.running] / env.case.jobs.epochs[env.running]
        row[-3:] = (len(env.waiting) - len(self.sight)) / 10, min(come, 40) / 20, left.sum() / 4
        return row

    def _where(self, job: int) -> Row:
        found = np.zeros((self._of.servers, 2), dtype=np.float32)
        for server, tasks in self.env.rows(job).items():
            found[server] = tasks
        return found / np.float32(_MOST)

    def _running(self) -> Row:
        """Return d, of the youngest jobs if there are too many; it changes where a job starts or an interval ends."""
        env, of = self.env, self._of
        if self._known != (key := (env.now, len(env.running))):
            self._known, found = key, np.zeros((of.running, of.types + 2 * of.servers), dtype=np.float32)
            for row, job in zip(found, env.running[-of.running :], strict=False):
                row[env.case.jobs.kind[job]], row[of.types :] = 1.0, self._where(job).ravel()
            self._d = found.ravel()
        return self._d

    def explored(self, score: str) -> int:
        """Return the action of a rule: of the job that is begun, or of the first in sight that fits."""
        tasks = self.mask[:-1].reshape(-1, 2, self._of.servers)
        if not tasks.any():
            return len(self.mask) - 1
        at = int(tasks.any(axis=(1, 2)).argmax())
        kind = WORKER if tasks[at, WORKER].any() else SERVER
        scores = SCORES[score](self.env, self.sight[at], kind)
        server = int(np.where(tasks[at, kind], scores, np.inf).argmin())
        return int(np.ravel_multi_index((at, kind, server), tasks.shape))

    def place(self, action: int) -> None:
        """Place a task."""
        at, kind, server = np.unravel_index(action, (self._of.slots, 2, self._of.servers))
        self.env.place(self.sight[at], int(kind), int(server))
