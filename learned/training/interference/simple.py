"""Models that a few lines hold: the mean ratio, ridge regression, boosted trees.

Each takes samples and a seed and returns what predicts the logarithm of the speed of each job, float64 (n,).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray, offsets, ranges
from gangplan.simulator.snapshots import Long

from .samples import JobRows, Samples, rows_of


def columns(samples: Samples, *, crossed: bool = False) -> FloatArray:
    """Return a row of numbers for each job, float64 (n, C).

    They are its type (one column each), the type's features, what it has itself (of servers and of links, and of each
    amount, the sum and the most of one place), what others have where it is (by type and amount, the most of one of its
    servers and of one of its links), and their features.

    Args:
        samples: the jobs.
        crossed: add products of the job's type with what it has itself, and with what others of each type have.
    """
    rows, features = rows_of(samples.now, samples.setting), samples.setting.features
    kind, n = samples.now.kind[rows.job], len(samples.speed)
    one = np.eye(len(features))[samples.now.kind]
    by_type = np.zeros((len(kind), len(features), rows.amount.shape[1]))
    by_type[np.arange(len(kind)), kind] = rows.amount
    beside = rows.others(by_type).reshape(len(kind), -1)
    parts = [one, features[samples.now.kind], per_job(rows, n, rows.others(features[kind]), ~rows.link, np.maximum)]
    own = [per_job(rows, n, rows.amount, ~rows.link, np.maximum), per_job(rows, n, rows.amount, rows.link, np.maximum)]
    own.append(per_job(rows, n, np.concatenate([rows.amount, rows.amount > 0], axis=1), rows.job >= 0, np.add))
    mine = np.concatenate(own, axis=1)
    theirs = np.concatenate([per_job(rows, n, beside, x, np.maximum) for x in (~rows.link, rows.link)], axis=1)
    parts += [mine, theirs]
    if crossed:
        parts += [(one[:, :, None] * x[:, None]).reshape(n, -1) for x in (mine, theirs)]
    return np.concatenate(parts, axis=1)


def per_job(rows: JobRows, jobs: int, values: FloatArray, chosen: BoolArray, over: np.ufunc) -> FloatArray:
    """Return the sum or the maximum of `values`, (m, ...), over the chosen rows of each job, from 0 on, (n, ...)."""
    found = np.zeros((jobs, *values.shape[1:]))
    over.at(found, rows.job[chosen], values[chosen])
    return found


Point = Callable[[Samples], FloatArray]
"""What predicts the logarithm of the speed of each job; it looks at no speed of what it is asked."""
Fit = Callable[[Samples, int], Point]

_SHRINK = 1.0
"""Samples that a mean of a few is drawn to the more general one by."""
_PENALTIES = np.logspace(-3, 4, 15)
_WIDEST = 1500
"""Columns, with products of types, up to which these are tried."""


def mean_ratio(samples: Samples, seed: int) -> Point:
    """Predict the mean of the job's type, and where pairs were seen what it keeps beside each of the others."""
    kind, target = samples.now.kind[samples.known], np.log(samples.speed[samples.known])
    overall = float(target.mean())
    by_type = _means(kind, target - overall, len(samples.setting.features))
    pairs, job = _beside(samples)
    rest = np.where(samples.known, np.log(samples.speed) - overall - by_type[samples.now.kind], 0.0)
    seen = samples.known[job]
    by_pair = _means(pairs[seen], rest[job[seen]], len(samples.setting.features) ** 2)

    def predict(asked: Samples) -> FloatArray:
        pairs, job = _beside(asked)
        count = np.maximum(np.bincount(job, minlength=len(asked.speed)), 1)
        extra = np.bincount(job, by_pair[pairs], len(asked.speed)) / count
        return np.asarray(overall + by_type[asked.now.kind] + extra)

    return predict


def ridge(samples: Samples, seed: int) -> Point:
    """Fit a linear model of the logarithm; products of types or not, and the penalty, by generalised cross-validation.

    Source: Golub, Heath and Wahba, Technometrics 1979.
    """
    target = np.log(samples.speed[samples.known])
    best, found = np.inf, None
    products = len(samples.setting.features) * columns(samples).shape[1]
    for crossed in (False, True)[: 1 + (products < _WIDEST)]:
        table = columns(samples, crossed=crossed)[samples.known]
        centre, spread = table.mean(axis=0), table.std(axis=0)
        spread[spread < 1e-9] = np.inf  # a column that never changes says nothing
        u, s, vt = np.linalg.svd((table - centre) / spread, full_matrices=False)
        middle = target.mean()
        along = u.T @ (target - middle)
        for penalty in _PENALTIES:
            share = s**2 / (s**2 + penalty)
            rest = target - middle - u @ (share * along)
            score = float((rest**2).mean() / max(1 - (share.sum() + 1) / len(target), 1e-3) ** 2)
            if score < best:
                weight = vt.T @ (share / np.maximum(s, 1e-12) * along) / spread
                best, found = score, (crossed, middle - centre @ weight, weight)
    assert found is not None
    crossed, offset, weight = found
    return lambda asked: np.asarray(columns(asked, crossed=crossed) @ weight + offset)


def boosted_trees(samples: Samples, seed: int) -> Point:
    """Fit gradient-boosted trees to the logarithm (scikit-learn), with smaller leaves for smaller logs."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    known = samples.known
    table = columns(samples)[known]
    used = table.min(axis=0) < table.max(axis=0)
    leaf = int(np.clip(known.sum() // 100, 3, 20))
    trees = HistGradientBoostingRegressor(max_iter=300, learning_rate=0.06, min_samples_leaf=leaf, random_state=seed)
    with threadpool_limits(1):  # more threads than idle cores take a hundred times as long
        trees.fit(table[:, used], np.log(samples.speed[known]))
    return lambda asked: np.asarray(trees.predict(columns(asked)[:, used]))


def _means(index: Long, values: FloatArray, count: int) -> FloatArray:
    """Return the mean of the values at each index, drawn to 0 where there are few."""
    total = np.bincount(index, values, count)
    return np.asarray(total / (np.bincount(index, minlength=count) + _SHRINK))


def _beside(samples: Samples) -> tuple[Long, Long]:
    """Return each pair of jobs that share a server, as type * T + other's type, and whose it is."""
    t, rows = len(samples.setting.features), rows_of(samples.now, samples.setting)
    order = np.argsort(rows.place[~rows.link], kind="stable")
    job, place = rows.job[order], rows.place[order]
    size = np.bincount(place)
    first = np.repeat(np.arange(len(job)), size[place])
    begin = offsets(size)
    second = ranges(begin[place], begin[place + 1])
    mine, other = job[first], job[second]
    pairs = np.unique(np.stack([mine, other], axis=1)[mine != other], axis=0).reshape(-1, 2)
    return samples.now.kind[pairs[:, 0]] * t + samples.now.kind[pairs[:, 1]], pairs[:, 0]
