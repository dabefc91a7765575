"""Samples as a table of numbers, a row a job: what models that know nothing of places get to see."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import BoolArray, FloatArray

from .samples import Rows, Samples, rows_of


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
    table = np.concatenate(parts, axis=1)
    return table


def per_job(rows: Rows, jobs: int, values: FloatArray, chosen: BoolArray, over: np.ufunc) -> FloatArray:
    """Return the sum or the maximum of `values`, (m, ...), over the chosen rows of each job, from 0 on, (n, ...)."""
    found = np.zeros((jobs, *values.shape[1:]))
    over.at(found, rows.job[chosen], values[chosen])
    return found
