"""Speeds of jobs known by the name of their model alone, learned from reports one by one.

The logarithm of the seconds of a unit of work is taken to be a sum: of the job's model, its GPUs and its number of
nodes; of each node; and, for each model beside it, of a coefficient of the pair times log(1 + GPUs that others of that
model hold there), the most on one of its nodes. `ForgettingRidge` fits the coefficients; who comes later adds columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_number
from gangplan.simulator.snapshots import Long

_LARGE = 1e8


class ForgettingRidge:
    """The sums of a regression, and its coefficients as they were last computed.

    Args:
        forget: weight of a sample after the next one, above 0 and up to 1; 1 forgets nothing.
        penalty: of the squared coefficients, in samples.

    Attributes:
        weight: the coefficients, float64 (D,).
        products, moments: sums over columns, and over columns and targets, times `gain`, float64 (D, D) and (D,).
        gain: the weight of the latest sample.

    Raises:
        InstanceError: naming the argument and the value found.
    """

    def __init__(self, forget: float, penalty: float) -> None:
        require_number(forget, "forget", positive=True)
        require_number(penalty, "penalty", positive=True)
        if forget > 1:
            raise InstanceError("forget", f"{forget!r} is above 1")
        self.forget, self.penalty, self.gain = forget, penalty, 1.0
        self.products: FloatArray = np.zeros((0, 0))
        self.moments: FloatArray = np.zeros(0)
        self.weight: FloatArray = np.zeros(0)

    def grow(self, size: int) -> None:
        """Have `size` columns; the new ones were 0 in all samples."""
        more = size - len(self.weight)
        self.products = np.pad(self.products, (0, more))
        self.moments, self.weight = np.pad(self.moments, (0, more)), np.pad(self.weight, (0, more))

    def add(self, columns: Long, values: FloatArray, target: float) -> None:
        """Learn from a sample that is 0 but in `columns`, int64 (c,), each named once; `values` are float64 (c,)."""
        self.gain /= self.forget
        self.products[np.ix_(columns, columns)] += self.gain * np.outer(values, values)
        self.moments[columns] += self.gain * target * values
        if self.gain > _LARGE:
            self.products, self.moments, self.gain = self.products / self.gain, self.moments / self.gain, 1.0

    def improve(self, rounds: int = 20, enough: float = 1e-8) -> None:
        """Bring the coefficients nearer to the optimum by conjugate gradients, O(D^2) a round.

        Preconditioned by the diagonal (Hestenes and Stiefel 1952). It begins with the coefficients that there are,
        which are nearly right when few samples were added.
        """
        share = 1 / self.gain
        diagonal = self.products.diagonal() * share + self.penalty
        rest = (self.moments - self.products @ self.weight) * share - self.penalty * self.weight
        step = rest / diagonal
        before = float(rest @ step)
        for _ in range(rounds):
            if before <= enough:
                break
            along = (self.products @ step) * share + self.penalty * step
            length = before / float(step @ along)
            self.weight, rest = self.weight + length * step, rest - length * along
            now = float(rest @ (rest / diagonal))
            step, before = rest / diagonal + now / before * step, now


TYPES, NODES = 32, 128
"""Models that are told apart, further ones are taken for one; nodes up to which each has columns."""
PENALTY = 0.1
"""Of the squared coefficients, in reports."""
_OWN, _SITE = 5, 3
"""Columns of a model: it, its GPUs, its nodes, what it suffers from anyone and does to anyone; and of a node: jobs on
it, jobs beside others on it, jobs on it and elsewhere."""
_LEAST, _BETTER = 50, 0.9
"""Reports before it is used, and its error over that of speeds alone up to which it is."""
_RECENT = 200
"""Reports over which errors are compared."""


class Spot(NamedTuple):
    """Where a job is: the number of its model, its GPUs, its nodes, and the GPUs of others by model, most on a node."""

    kind: int
    gpus: int
    nodes: Sequence[int]
    others: FloatArray


class BesideModel:
    """What is known of models beside one another on m nodes.

    Args:
        nodes: m.
        forget: see `ForgettingRidge`.

    Attributes:
        kinds: the number of each model.
        pair: what one GPU and more of a model (column) does to one (row), float64 (T, T).
        site, crowded, across: what a node adds, to each pair, and to gangs on several nodes, float64 (m,).
        errors: number of recent reports, and sums of what the model and mean speeds were wrong by before it learned
            from them, logarithms, float64 (3,).
        stale: whether something was reported since coefficients were fitted.
    """

    def __init__(self, nodes: int, forget: float) -> None:
        self.ridge, self.kinds, self.errors = ForgettingRidge(forget, PENALTY), dict[str, int](), np.zeros(3)
        self._sites = nodes if nodes <= NODES else 0
        self.ridge.grow(_SITE * self._sites)
        self._own, self._pair = np.zeros((0, _OWN), dtype=np.int64), np.zeros((0, 0), dtype=np.int64)
        self._unit: dict[int, float] = {}
        self._usual: dict[tuple[int, int], tuple[float, float]] = {}  # reports and mean of a model on so many GPUs
        self.stale = False
        self.pair: FloatArray = np.zeros((0, 0))
        self.site, self.crowded, self.across = np.zeros((3, nodes))

    @property
    def trusted(self) -> bool:
        """Whether it was lately nearer to what was reported than the mean speed of each model."""
        errors = self.errors
        return bool(errors[0] >= _LEAST * 0.9 and errors[1] < _BETTER * errors[2])

    @property
    def slowdown(self) -> FloatArray:
        """How many times as long each model takes beside one GPU of another, on the mean node, float64 (T, T)."""
        return np.asarray(np.exp(np.clip(np.log(2.0) * (self.pair + self.crowded.mean()), -3.0, 3.0)))

    def kind(self, model: str) -> int:
        """Return the number of a model, a new one if it was not known."""
        if model not in self.kinds:
            k = self.kinds[model] = min(len(self.kinds), TYPES - 1)
            if k == len(self._own):
                begin = len(self.ridge.weight)
                self.ridge.grow(begin + _OWN + 2 * k + 1)
                new = np.arange(begin, len(self.ridge.weight))
                self._own = np.concatenate([self._own, new[None, :_OWN]])
                self._pair = np.pad(self._pair, (0, 1))
                self._pair[k], self._pair[:k, k] = new[_OWN : _OWN + k + 1], new[_OWN + k + 1 :]
                self._read()
        return self.kinds[model]

    def report(self, spot: Spot, speed: float) -> float:
        """Learn from a speed; return it as a share of that which the job would have with nobody beside it, up to 1."""
        k, key, target = spot.kind, (spot.kind, spot.gpus), -float(np.log(speed))
        unit = self._unit.setdefault(k, target)
        columns, values = self._columns(spot)
        parts = values * self.ridge.weight[columns]
        count, mean = self._usual.get(key, (0.0, 0.0))
        if count:
            wrong = 1.0, abs(unit + float(parts.sum()) - target), abs(mean - target)
            self.errors = (1 - 1 / _RECENT) * self.errors + wrong
        count = min(count + 1, float(_LEAST))
        self._usual[key] = count, mean + (target - mean) / count
        self.ridge.add(columns, values, target - unit)
        self.stale = True
        return float(np.exp(np.clip(unit + parts[:3].sum() - target, -3.0, 0.0)))

    def refresh(self) -> None:
        """Fit the coefficients to all that was reported."""
        if self.stale:
            self.ridge.improve()
            self._read()
            self.stale = False

    def _read(self) -> None:
        weight, sites = self.ridge.weight, self._sites
        self.pair = weight[self._pair] + weight[self._own[:, 3]][:, None] + weight[self._own[:, 4]]
        if sites:
            self.site, self.crowded, self.across = weight[: _SITE * sites].reshape(_SITE, sites).copy()
            self.site -= self.site.mean()
            self.across -= self.across.mean()

    def _columns(self, spot: Spot) -> tuple[Long, FloatArray]:
        """Return the columns that are not 0 for a job, and their values."""
        k, count, b = spot.kind, len(spot.nodes), np.flatnonzero(spot.others)
        beside, site = np.log1p(spot.others[b]), np.array(spot.nodes if self._sites else (), dtype=np.int64)
        own = [1.0, np.log2(spot.gpus), np.log2(count), beside.sum()]
        columns = [self._own[k, :4], self._pair[k, b], self._own[b, 4], site, self._sites + site]
        values = [np.array(own), beside, beside, np.ones(len(site)), np.full(len(site), beside.sum())]
        if count > 1:
            columns.append(2 * self._sites + site)
            values.append(np.ones(len(site)))
        return np.concatenate(columns), np.concatenate(values)

    def save(self) -> dict[str, Any]:
        """Return all of it, for JSON; it is fitted first."""
        self.refresh()
        ridge, upper = self.ridge, np.triu_indices(len(self.ridge.weight))
        at = np.flatnonzero(flat := ridge.products[upper] / ridge.gain)
        return {
            "forget": ridge.forget,
            "kinds": list(self.kinds),
            "unit": list(map(list, self._unit.items())),
            "usual": [[*key, *value] for key, value in self._usual.items()],
            "errors": self.errors.tolist(),
            "weight": ridge.weight.tolist(),
            "moments": (ridge.moments / ridge.gain).tolist(),
            "at": at.tolist(),
            "products": flat[at].tolist(),
        }

    @classmethod
    def load(cls, saved: Mapping[str, Any], nodes: int) -> BesideModel:
        """Return what `save` returned.

        Raises:
            InstanceError: naming what of it is wrong.
        """
        found = cls(nodes, saved["forget"])
        for name in saved["kinds"]:
            if not isinstance(name, str):
                raise InstanceError("kinds", f"{name!r} is no model")
            found.kind(name)
        ridge, size = found.ridge, len(found.ridge.weight)
        ridge.weight, ridge.moments = _numbers(saved, "weight", size), _numbers(saved, "moments", size)
        at, flat = _numbers(saved, "at", len(saved["products"])), np.zeros(size * (size + 1) // 2)
        if ((at < 0) | (at >= len(flat)) | (at % 1 != 0)).any():
            raise InstanceError("at", f"has an entry outside 0 to {len(flat) - 1}")
        flat[at.astype(np.int64)] = _numbers(saved, "products", len(at))
        ridge.products[np.triu_indices(size)] = flat
        ridge.products += np.triu(ridge.products, 1).T
        if (ridge.products.diagonal() < 0).any():
            raise InstanceError("products", "has a negative square")
        found._unit = {int(k): float(unit) for k, unit in saved["unit"]}
        found._usual = {(int(k), int(gpus)): (float(count), float(mean)) for k, gpus, count, mean in saved["usual"]}
        found.errors = _numbers(saved, "errors", 3)
        means = [*found._unit.values(), *(x for usual in found._usual.values() for x in usual)]
        if not np.isfinite(means).all() or min((count for count, _ in found._usual.values()), default=1) < 1:
            raise InstanceError("usual", "has what is no mean, or no number of reports")
        found._read()
        return found


def _numbers(saved: Mapping[str, Any], field: str, size: int) -> FloatArray:
    found = np.array(saved[field], dtype=np.float64)
    if found.shape != (size,) or not np.isfinite(found).all():
        raise InstanceError(field, f"is not {size} finite numbers")
    return found
