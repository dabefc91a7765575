"""The log of a case, the fit of the ensemble to it, and the choice of how to place, under the fitted speeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import huber_loss, softplus

from gangplan.instances.arrays import FloatArray
from gangplan.learned.training.imitation import Imitation
from gangplan.learned.training.interference.networks import RowBatch, batch_of
from gangplan.learned.training.interference.pressure import Pressure
from gangplan.learned.training.interference.samples import KnownSetting, Samples
from gangplan.learned.training.trainer import Trainer
from gangplan.solvers.processes import one_thread

from ...interference.baselines import ScoreRule, run, tuned
from ...interference.cases import TRAINING, VALIDATION
from ...interference.environment import Environment
from ...interference.samples import Log, log, log_samples
from .policy import WAYS, ColocatePolicy, Fitted, Speeds
from .recipe import ColocateSettings


class Ensemble(nn.Module):
    """Members that have each not seen some combinations of types, and what they are used for.

    Args:
        setting: types, servers and links.
        settings: how many members, of how many kinds of pressure.
    """

    def __init__(self, setting: KnownSetting, settings: ColocateSettings) -> None:
        super().__init__()
        self.members = nn.ModuleList(Pressure(setting, settings.kinds) for _ in range(settings.members))
        self.register_buffer("link", torch.from_numpy(setting.link))
        self.register_buffer("unit", torch.from_numpy(np.log(setting.unit)))
        self.register_buffer("way", torch.zeros((), dtype=torch.int64))

    def forward(self, x: RowBatch) -> Tensor:
        """Return the logarithm of the relative speed of each job by each member, (E, n)."""
        return torch.stack([member(x) for member in self.members])


def arrays(ensemble: Ensemble, members: Sequence[int] | None = None) -> Fitted:
    """Return an ensemble, or some of its members, as the kernel takes it."""
    parts: list[tuple[Tensor, ...]] = []
    with torch.no_grad():
        for x in ensemble.members if members is None else [ensemble.members[i] for i in members]:
            r = x.kinds
            table = softplus(x.own + x.features @ x.shared + x.common).split([2, 3 * r, 2 * r, 3 * r, 1], dim=1)
            parts.append((*table, x.compute.exp(), x.site.exp(), x.curve.exp()))
    stacked = (np.ascontiguousarray(torch.stack(x).double().numpy()) for x in zip(*parts, strict=True))
    return Fitted(ensemble.link.numpy().astype(np.int64), ensemble.unit.double().numpy()[None].copy(), *stacked)


_DELTA = 0.1
"""Errors of the logarithm from which on they count by their size."""
_LOGGED = tuned("tetris")


def log_of(settings: ColocateSettings, seed: int) -> Samples:
    """Return the log of training cases under a tuned rule, a share of it under random placements."""
    rng, parts, size = np.random.default_rng([seed, 5]), list[Log](), 0

    def anywhere(env: Environment, job: int, kind: int) -> FloatArray:
        return rng.random(len(env.free))

    number = TRAINING + 1000 * seed
    random = ScoreRule(anywhere, "shortest")
    for policy, until in ((random, settings.explore * settings.samples), (_LOGGED, settings.samples)):
        while size < until:
            case = settings.make(number)
            parts.append(log(case, policy, limit=int(until - size) + 1, noise=settings.noise, seed=number))
            size, number = size + len(parts[-1].speed), number + 1
    return log_samples(case, Log.join(parts))


def unseen(samples: Samples, members: int, seed: int) -> list[np.ndarray]:
    """Return which samples each member is fitted to: none with its share of the combinations of types."""
    each = samples.combination()
    found = np.unique(each[each >= 0])
    np.random.default_rng(seed).shuffle(found)
    return [~samples.touching(found[e::members]) for e in range(members)]


class ColocateTraining(Trainer[ColocateSettings]):
    """Fit an ensemble to a log, and then choose the way to place under the speeds that it predicts."""

    def __init__(self, settings: ColocateSettings, seed: int) -> None:
        super().__init__(settings, seed)
        self.samples, self._fitted = log_of(settings, seed), False

    def network(self) -> Ensemble:
        """Return an ensemble for what the log is of."""
        return Ensemble(self.samples.setting, self.settings)

    def validate(self, network: Ensemble) -> dict[str, float]:
        """Choose the way; before the fit a rule places, with a score of 1."""
        return choose(network, self.settings) if self._fitted else {"score": 1.0}

    def fit(self, network: Ensemble) -> EnsembleFit:
        """Return what fits an ensemble by minibatches of the log."""
        samples, of = self.samples, self.settings
        pieces = max(1, round(len(samples.speed) / of.minibatch))
        parts, seen = [], np.stack(unseen(samples, of.members, self.seed))
        for chosen in np.array_split(np.random.default_rng(self.seed).permutation(len(samples.now)), pieces):
            some, jobs = samples.take(chosen), samples.now.take(chosen)[1]
            target = torch.from_numpy(np.log(some.speed)).float()
            parts.append((batch_of(some), target, torch.from_numpy(seen[:, jobs]).float()))
        count = len(samples.speed)

        def draw(rng: np.random.Generator) -> Tensor:
            self._fitted = True
            batch, target, weight = parts[rng.integers(len(parts))]
            found = network(batch)
            error = huber_loss(found, target.expand_as(found), reduction="none", delta=_DELTA) / _DELTA
            penalty = sum(member.penalty() for member in network.members)
            return (error * weight).sum() / weight[0].sum() + penalty / count

        return EnsembleFit(network, draw, self.validate, rate=of.rate, updates=of.updates, seed=self.seed, clip=20.0)


class EnsembleFit(Imitation):
    """Imitate on one thread: of more most of the time is lost."""

    def update(self, step: int) -> dict[str, float]:
        """Make one step on a minibatch."""
        with one_thread():
            return super().update(step)


def choose(network: Ensemble, settings: ColocateSettings) -> dict[str, float]:
    """Enter the way that is best under the fitted speeds, and return mean JCTs over that of the first, a rule.

    In each case one member is the truth, and the others predict: a way that builds on the errors of the fit gains
    nothing by them.
    """
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for seed in range(VALIDATION, VALIDATION + settings.validation_seeds):
        case, apart = settings.make(seed), seed % settings.members
        others = [e for e in range(settings.members) if e != apart]
        believed = replace(case, truth=Speeds(arrays(network, [apart])))
        for way, jcts in found.items():
            env = run(believed, ColocatePolicy(network, settings, way=way, members=others))
            jcts.append(float(env.outcome().jct.mean()))
    first = np.array(next(iter(found.values())))
    means = {way: float((np.array(jcts) / first).mean()) for way, jcts in found.items()}
    best = min(means, key=means.__getitem__)
    network.way.fill_(list(means).index(best))
    return {"score": means[best], **means}
