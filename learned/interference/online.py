"""Speeds learned while jobs run: a linear correction of a model, made again in milliseconds with every sample.

A ridge regression of what a fitted model (or none) is off by, with a forgetting factor: a sample counts less the more
came after it, so that a cluster that changes is learned anew. Servers and links have columns of their own, for what
changes is one of them.
"""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.simulator.interference.snapshots import Snapshots

from .design import columns, per_job
from .ensemble import Model
from .forgetting import ForgettingRidge
from .samples import Samples, Setting, rows_of

_FIRST = 0.3
"""Deviation of the logarithm that a model without samples is taken to have."""
_MOST = 600
"""Columns of types on sites up to which there are any."""


class OnlineModel:
    """Predicts speeds and learns from each that is reported.

    Args:
        setting: where; of a `base` its own.
        base: a fitted model to correct; None begins with nothing.
        forget: weight of a sample after the next one, above 0 and up to 1; 1 forgets nothing. About 1 / (1 - forget)
            samples count.
        penalty: of the squared coefficients, in samples.

    Raises:
        InstanceError: naming the argument and the value found.
    """

    def __init__(
        self, setting: Setting, base: Model | None = None, *, forget: float = 0.998, penalty: float = 1.0
    ) -> None:
        self.setting, self.base, self.forget = setting, base, forget
        self._ridge, self._inverse = ForgettingRidge(forget, penalty), np.zeros((0, 0))
        self._squares, self._count = _FIRST**2, 1.0

    def update(self, samples: Samples) -> None:
        """Learn from speeds, the oldest first."""
        known = samples.known
        if not known.any():
            return
        base, table = self._base(samples.now), self._table(samples.now)[known]
        target = np.log(samples.speed[known]) - base[0][known]
        if not len(self._inverse):
            self._ridge.grow(table.shape[1])
        off = target - table @ self._ridge.weight  # what the model was off by before it saw them
        age = self.forget ** np.arange(len(target) - 1, -1, -1.0)
        kept = self.forget ** len(target)
        self._ridge.add_table(table, target)
        self._squares, self._count = kept * self._squares + float(age @ off**2), kept * self._count + float(age.sum())
        self._inverse = self._ridge.solve()

    def predict(self, now: Snapshots) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation of the logarithm of each job's speed relative to its workers alone, (n,) each.

        The deviation is that of what was reported lately, more where little like it was.
        """
        mean, deviation = self._base(now)
        if not len(self._inverse):
            return mean, deviation
        table = self._table(now)
        spread = np.einsum("nc,cd,nd->n", table, self._inverse, table, optimize=True)
        return mean + table @ self._ridge.weight, np.sqrt(self._squares / self._count * (1 + spread))

    def speeds(self, now: Snapshots) -> FloatArray:
        """Return the speed of each job in the unit of the log, float64 (n,); so the model stands in for a truth."""
        return np.asarray(np.exp(self.predict(now)[0]) * self.setting.unit[now.kind] * now.total(now.workers))

    def _base(self, now: Snapshots) -> tuple[FloatArray, FloatArray]:
        n = len(now.kind)
        return (np.zeros(n), np.full(n, _FIRST)) if self.base is None else self.base.predict(now)

    def _table(self, now: Snapshots) -> FloatArray:
        """Return a row for each job: its columns, where it is, and where it is by type."""
        asked = Samples(self.setting, now, np.full(len(now.kind), np.nan))
        rows, types, sites = rows_of(now, self.setting), len(self.setting.features), self.setting.sites
        at = per_job(rows, len(now.kind), np.eye(sites)[rows.site], rows.job >= 0, np.maximum)
        parts = [columns(asked), at]
        if types * sites <= _MOST:
            parts.append((np.eye(types)[now.kind][:, :, None] * at[:, None]).reshape(len(at), -1))
        return np.concatenate(parts, axis=1)
