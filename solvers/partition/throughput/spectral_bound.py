"""A bound for every variant from eigenvalues: parts of equal work cannot all be cut off cheaply.

A device with the groups S has a load of at least w(S) + cut(S), where cut(S) sums c[e] over nets of which S has some
pins and not all. Replace each net of p pins by a clique of weight c[e] / (floor(p/2) ceil(p/2)) an edge: j pins on one
side cut j (p - j) edges, so at most c[e]. With L the Laplacian of all cliques and x the indicator of S,

    cut(S) >= x' L x,    and    sum over devices of x' (L + diag(d)) x <= sum of cuts    for any d that sums up to 0,

as each group is on one device. Let D = diag(w + a), a > 0 a little for all, and A = D^-1/2 (L + diag(d)) D^-1/2. The
vectors D^1/2 x / sqrt(m), m the mass of S, are orthonormal, so the sums are at least

    lambda_1 m_1 + lambda_2 m_2 + ...    lambda ascending, m descending (Donath and Hoffman 1973, by Ky Fan's theorem).

In a plan without a load above T no mass is above T + a G (G groups), and the masses sum up to w(all) + a G: the sum is
least if the first are as large as that. With k devices there is no such plan if k T < w(all) + that sum. The d that
says most is approached by subgradients (Cullum, Donath and Wolfe 1975): mass times squared eigenvectors.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib import import_module

import numpy as np

from gangplan.instances.arrays import FloatArray

from .quotient import Quotient
from .stage_bound import has_stages

_LITTLE = 1e-4
"""Of all work, what masses are more than that: a group without work has a mass too."""
_STEPS, _FIRST, _LESS = 200, 0.3, 0.1
"""Steps of d; the first one as a share of what transfers come to, and how it shrinks from step to step."""
_LEAST = 0.02
"""The same as a share of the work, where the bound says nothing of transfers yet."""
_SHY = 1e-14
"""What eigenvalues may be wrong by, of the norm of the matrix, for each row."""
_HALVINGS = 60
_CUBE = 6e-10
"""Seconds that eigenvalues take, over the cube of the rows: nothing stops that once it has begun."""


def spectral_bounds(
    q: Quotient, stopped: Callable[[], bool], remaining: Callable[[], float] = lambda: np.inf
) -> Iterator[float]:
    """Yield greater and greater lower bounds in seconds on the load of plans of any variant, while there is time."""
    k = min(int(q.counts.sum()), q.n_groups)
    if k < 2 or not has_stages(q) or not q.work.any():
        return
    total, more = float(q.work.sum()), _LITTLE * float(q.work.sum())
    root = 1 / np.sqrt(q.work + more / q.n_groups)
    laplacian, shift, best = _laplacian(q), np.zeros(q.n_groups), 0.0
    takes, one_thread = _CUBE * q.n_groups**3, _one_thread()
    for step in range(_STEPS):
        if stopped() or remaining() < takes:
            return
        began = time.perf_counter()
        matrix = (laplacian + np.diag(shift)) * root[:, None] * root
        with one_thread():
            values, vectors = (x[..., :k] for x in np.linalg.eigh(matrix))
        takes = 1.2 * (time.perf_counter() - began)
        values = values - _SHY * q.n_groups * float(np.abs(matrix).sum(axis=1).max())
        load = _least_load(values, total, more, int(q.counts.sum()))
        if load > best:
            best = load
            yield load * (1 - 1e-9)
        slope = (vectors * root[:, None]) ** 2 @ _masses(len(values), total + more, load + more)
        slope -= slope.mean()
        far = float(slope @ slope)
        if not far > 0:
            return
        paid = k * load - total
        size = _FIRST * paid if paid > 1e-3 * total else _LEAST * total
        shift = shift + size / far / (1 + _LESS * step) * slope
        shift -= shift.mean()


def _one_thread() -> Callable[[], AbstractContextManager[object]]:
    """Return what keeps linear algebra to one core, if there is any: the others are the search's.

    It looks for libraries once, which takes as long as the eigenvalues of some hundred groups.
    """
    try:
        controller = import_module("threadpoolctl").ThreadpoolController()
    except ImportError:
        return nullcontext
    return partial(controller.limit, limits=1)


def _laplacian(q: Quotient) -> FloatArray:
    found = np.zeros((q.n_groups, q.n_groups))
    for pins, cost in q.nets:
        which, size = sorted(pins), len(pins)
        weight = cost / ((size // 2) * (size - size // 2))
        found[np.ix_(which, which)] -= weight
        found[which, which] += weight * size
    return found


def _masses(count: int, total: float, most: float) -> FloatArray:
    """Return masses of at most `most` that sum up to `total`, or as near as so many come, the first ones full."""
    masses: FloatArray = np.minimum(np.maximum(total - most * np.arange(count), 0.0), most)
    return masses


def _least_load(values: FloatArray, total: float, more: float, devices: int) -> float:
    low, high = 0.0, 2 * total
    for _ in range(_HALVINGS):
        load = (low + high) / 2
        sums = total + float(values @ _masses(len(values), total + more, load + more))
        refuted = (load + more) * len(values) < total + more or sums > devices * load
        low, high = (load, high) if refuted else (low, load)
    return low
