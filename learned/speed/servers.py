"""Fit what parameter servers cost where they are on the worker's server, on another one, or on both."""

from __future__ import annotations

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import BoolArray, FloatArray
from gangplan.instances.readers.measured import Servers

from .report import Fit

_LEAST = 4


def fit_servers(servers: Servers) -> tuple[list[Fit], FloatArray]:
    """Fit seconds = compute + a + gradient / bandwidth, with one a and one bandwidth a placement, both >= 0.

    One model type after the other is held out, with all its placements: what is judged is how fast a type runs that
    was never measured. Its compute and its gradient are known. The relative error is minimised.

    Args:
        servers: the measurements.

    Returns:
        The fits (compute alone, bandwidth, latency and bandwidth), and for each placement what the last was fitted
        to with everything: seconds, and seconds a byte, float64 (3, 2).

    Raises:
        InstanceError: if there are too few model types.
    """
    n = len(servers.models)
    if n < _LEAST:
        raise InstanceError("model", f"{n} model types are too few to hold each out, {_LEAST} are needed")
    bytes_only = servers.gradient[:, None]
    both = np.stack([np.ones(n), servers.gradient], axis=1)
    fits = []
    for name, columns in (("compute alone", bytes_only[:, :0]), ("bandwidth", bytes_only), ("latency too", both)):
        predicted = np.empty_like(servers.seconds)
        for i in range(n):
            predicted[i] = servers.compute[i] + columns[i] @ _fitted(servers, columns, np.arange(n) != i).T
        count = 3 * columns.shape[1]
        fits.append(Fit.judge(servers.name, name, count, predicted.ravel(), servers.seconds.ravel()))
    return fits, _fitted(servers, both, np.ones(n, dtype=bool))


def _fitted(servers: Servers, columns: FloatArray, train: BoolArray) -> FloatArray:
    """Return the parameters of each placement, float64 (3, columns)."""
    from scipy.optimize import nnls

    found = np.zeros((3, columns.shape[1]))
    if columns.shape[1]:
        for p in range(3):
            seconds = servers.seconds[train, p]
            beyond = np.maximum(seconds - servers.compute[train], 0.0)
            found[p] = nnls(columns[train] / seconds[:, None], beyond / seconds)[0]
    return found
