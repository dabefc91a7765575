"""The policy: a way to place, chosen when the model was fitted, under the speeds that the model predicts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_number
from gangplan.learned.policy.network import NetworkPolicy
from gangplan.learned.policy.weights import Tensors
from gangplan.simulator.snapshots import Long, Snapshots, Truth

from ...interference.baselines import CONSOLIDATE, PATIENCE, Places, tuned
from ...interference.case import InterferenceCase
from ...interference.environment import Environment
from ...interference.greedy import Greedy
from ...interference.truths import HiddenTruth
from .kernel import all_logs
from .recipe import NAME, ColocateSettings

if TYPE_CHECKING:
    from .learners import Ensemble


TRIES, SPREAD, DELAY = 8, 0.5, 2.0
"""Orders that are tried; deviation of the logarithm of lengths by which they differ; intervals that a job is expected
to wait if it does not start."""


class Joint(Greedy):
    """Takes the order with the least sum of remaining times, `DELAY` added for each job that is left waiting.

    The first is that of the times on an empty cluster, as predicted; the others shuffle it.

    Args:
        truth, patience, words: as of `Greedy`.
        tries: orders.
    """

    def __init__(
        self, truth: Truth, patience: float = np.inf, *, tries: int = TRIES, seed: int = 0, **words: float
    ) -> None:
        super().__init__(truth, patience, **words)
        require_number(tries, "tries", positive=True, whole=True)
        self._tries, self._rng = tries, np.random.default_rng(seed)

    def place(self, env: Environment) -> None:
        """Place every job that fits and is not better off later, in the best order."""
        length = {job: np.log(max(self.least(env, job), 1e-9)) for job in env.waiting if env.fits(job)}
        orders = [tuple(sorted(length, key=length.__getitem__))]
        for _ in range(self._tries - 1 if len(length) > 1 else 0):
            noise = dict(zip(length, SPREAD * self._rng.standard_normal(len(length)), strict=True))
            orders.append(tuple(sorted(length, key=lambda job: length[job] + noise[job])))
        orders = list(dict.fromkeys(orders))
        if len(orders) == 1:
            self.place_in(env, orders[0])
            return
        tried = []
        for order in orders:
            tried.append(env.fork())
            self.place_in(tried[-1], order)
        best = tried[int(np.argmin([self.value(one) for one in tried]))]
        for job in best.running[len(env.running) :]:
            env.place_whole(job, best.rows(job))

    def value(self, env: Environment) -> float:
        """Return the remaining times of all jobs, added up, if those that wait do so for `DELAY`, seconds."""
        wait = DELAY * env.case.interval
        return self.remaining(env) + sum(self.least(env, job) + wait for job in env.waiting)


DOUBT, SLACK = 1.0, 0.05
"""Deviations of the members that a pessimistic way takes off the logarithm of a speed; slack of packed ones."""


WAYS: dict[str, Callable[[Truth, Truth], Places]] = {
    "tetris": lambda mean, low: tuned("tetris"),
    "lif": lambda mean, low: tuned("lif"),
    "consolidated": lambda mean, low: Greedy(mean, consolidate=CONSOLIDATE),
    "patient": lambda mean, low: Greedy(mean, PATIENCE),
    "joint, consolidated": lambda mean, low: Joint(mean, consolidate=CONSOLIDATE),
    "joint, patient": lambda mean, low: Joint(mean, PATIENCE),
    "joint, pessimistic": lambda mean, low: Joint(low, PATIENCE),
    "tetris, near": lambda mean, low: tuned("tetris", near=True),
    "lif, near": lambda mean, low: tuned("lif", near=True),
    "packed": lambda mean, low: Greedy(mean, consolidate=CONSOLIDATE, slack=SLACK),
    "joint, packed": lambda mean, low: Joint(mean, consolidate=CONSOLIDATE, slack=SLACK),
}
"""Ways to place by name, of predicted and of pessimistic speeds; weights keep the number of one."""
REPORTS, LIMIT = 200, 0.5
"""Reported speeds that the guard looks back at, and the mean error of their logarithm beyond which a rule decides."""


class Fitted(NamedTuple):
    """An ensemble: E members, K types, m servers, X links of L levels, R kinds of pressure.

    Attributes:
        link: by which link a server's traffic leaves its group of each level, (L, m).
        unit: logarithm of the speed of one worker of each type alone, epochs a second, (1, K).
        passes: seconds, over the compute alone, of bytes that pass once, and beyond, (E, K, 2).
        suffers: what a type suffers as workers, parameter servers, and on links, (E, K, 3 R).
        exerts: what a worker and a parameter server exert, (E, K, 2 R).
        crosses: what is exerted on a link: by crossing it, by bytes once, and beyond, (E, K, 3 R).
        fellow: what a type suffers from each further worker of its own on a server, (E, K, 1).
        compute: of a step over that alone, (E, K).
        site: factor of each server, then of each link, (E, m + X).
        curve: of workers, parameter servers and links, (E, 3).
    """

    link: Long
    unit: FloatArray
    passes: FloatArray
    suffers: FloatArray
    exerts: FloatArray
    crosses: FloatArray
    fellow: FloatArray
    compute: FloatArray
    site: FloatArray
    curve: FloatArray


class Speeds:
    """Predicted speeds, a `Truth` for `Greedy` and for cases.

    Args:
        doubt: deviations of the members that are taken off.
    """

    def __init__(self, fitted: Fitted, doubt: float = 0.0) -> None:
        self._fitted, self._doubt = fitted, doubt

    def speeds(self, now: Snapshots) -> FloatArray:
        """Return the epochs a second of each job, float64 (n,)."""
        logs = all_logs(self._fitted, now)
        low = self._doubt * logs.std(axis=0, ddof=1) if self._doubt else 0.0
        return np.asarray(np.exp(logs.mean(axis=0) - low))


class ColocatePolicy(NetworkPolicy):
    """A policy of `gangplan.systems.interference`, see `baselines.Policy` there.

    While the speeds that jobs report are far off those predicted, the rule ``tetris, near`` decides.

    Args:
        way: one of `WAYS`, by default the one that was chosen for the ensemble.
        members: those of the ensemble that predict, by default all.

    Attributes:
        fitted: these, as the compiled kernel takes them.
    """

    recipe, config = NAME, ColocateSettings

    def __init__(
        self, network: Ensemble, settings: ColocateSettings, *, way: str = "", members: Sequence[int] | None = None
    ) -> None:
        from .learners import arrays

        self.network, self.settings, self.fitted = network, settings, arrays(network, members)
        self.way = way or list(WAYS)[int(network.way)]
        self._case: InterferenceCase | None = None
        self._now = 0.0
        self._said: dict[int, float] = {}

    @classmethod
    def build(cls, settings: ColocateSettings, tensors: Tensors) -> Ensemble:
        """Return an ensemble for the cluster and the types of the weights."""
        from gangplan.learned.training.interference.samples import KnownSetting

        from .learners import Ensemble

        names = "members.0.features", "unit", "link"
        for name in names:
            if name not in tensors:
                raise InstanceError(f"tensors[{name!r}]", "is missing")
        features, unit, link = (tensors[x].numpy() for x in names)
        return Ensemble(KnownSetting(features.astype(np.float64), np.exp(unit), link), settings)

    @property
    def error(self) -> float:
        """Mean absolute error of the logarithm of the speeds that were reported last."""
        return float(np.mean(self._errors)) if self._errors else 0.0

    @property
    def guarded(self) -> bool:
        """Whether the rule decides."""
        return len(self._errors) >= REPORTS // 4 and self.error > LIMIT

    def place(self, env: Environment) -> None:
        """Place tasks of waiting jobs, once an interval.

        Raises:
            InstanceError: if the environment has other servers or types than the policy is for.
        """
        if env.case is not self._case or env.now < self._now:
            self._begin(env)
        self._now = env.now
        reported = [(job, said) for job, said in self._said.items() if np.isfinite(env.speed[job])]
        self._errors.extend(abs(float(np.log(env.speed[job] / said))) for job, said in reported)
        (self._rule if self.guarded else self._policy).place(env)
        speeds = self._mean.speeds(env.snapshot()).tolist() if env.running else []
        self._said = dict(zip(env.running, speeds, strict=True))

    def _begin(self, env: Environment) -> None:
        m, types = self.fitted.link.shape[1], self.fitted.unit.shape[1]
        if len(env.free) != m or len(env.case.jobs.types.names) != types:
            words = (
                f"has {len(env.free)} servers and {len(env.case.jobs.types.names)} types of jobs, not {m} and {types}"
            )
            raise InstanceError("case", words)
        self._mean = Speeds(self.fitted)
        self._policy = WAYS[self.way](self._mean, Speeds(self.fitted, DOUBT))
        self._rule = WAYS["tetris, near"](self._mean, self._mean)
        self._case, self._now = env.case, 0.0
        self._said = {}
        self._errors: deque[float] = deque(maxlen=REPORTS)


class Slowdowns:
    """Speeds alone, times what a job keeps beside those that run with it; a `Truth` for `Greedy`.

    What it keeps is a ratio of two predictions of an ensemble, with the others and without, in which all servers and
    links of a level are alike: so it holds on servers that the ensemble never saw.

    Args:
        fitted: the ensemble, of any cluster with the same types of jobs.
        alone: speeds without interference, of these servers.
    """

    def __init__(self, fitted: Fitted, alone: HiddenTruth) -> None:
        link = alone.hidden.link
        sites = link.shape[1] + int(link.max()) + 1
        self._fitted = fitted._replace(link=link, site=np.ones((len(fitted.site), sites)))
        self._alone = alone

    def speeds(self, now: Snapshots) -> FloatArray:
        """Return the epochs a second of each job, float64 (n,)."""
        together = all_logs(self._fitted, now)
        apart = all_logs(self._fitted, replace(now, first=np.arange(len(now.kind) + 1)))
        return np.asarray(self._alone.speeds(now) * np.exp((together - apart).mean(axis=0)))
