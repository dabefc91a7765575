"""Fit compute and link speeds of one model: what the cost model makes of steps measured under many placements."""

from __future__ import annotations

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.instances.readers.measured import Steps

from .report import Fit


def fit_steps(steps: Steps, seed: int = 0) -> tuple[list[Fit], FloatArray]:
    """Fit seconds = a + b batch + 2 (W - 1)/W (g / link within a node, or g / NIC across), all >= 0.

    A fifth of the placements is held out, with all their batches. The relative error is minimised.

    Args:
        steps: the measurements.
        seed: of what is held out.

    Returns:
        The fits (compute alone, ring, hierarchical), and what the ring was fitted to with everything: a, b and the
        seconds to send the gradient once within a node and between nodes, float64 (4,).

    Raises:
        InstanceError: if there are too few placements.
    """
    from scipy.optimize import nnls

    kinds = np.array(sorted(set(steps.placement)))
    if len(kinds) < 5:
        raise InstanceError("placement", f"{len(kinds)} placements are too few to hold some out")
    np.random.default_rng(seed).shuffle(kinds)
    test = np.isin(steps.placement, kinds[: len(kinds) // 5])
    fits = []
    for name, columns in _designs(steps).items():
        weighted = columns / steps.seconds[:, None]
        found, _ = nnls(weighted[~test], np.ones((~test).sum()))
        fits.append(Fit.judge(steps.name, name, columns.shape[1], (columns @ found)[test], steps.seconds[test]))
    ring = _designs(steps)["ring"]
    whole, _ = nnls(ring / steps.seconds[:, None], np.ones(len(ring)))
    return fits, np.asarray(whole)


def _designs(steps: Steps) -> dict[str, FloatArray]:
    one, ring = np.ones(len(steps.batch)), _ring(steps.workers)
    apart = steps.nodes > 1
    compute = [one, steps.batch]
    return {
        "compute alone": np.stack(compute, axis=1),
        "ring": np.stack([*compute, ring * ~apart, ring * apart], axis=1),
        "hierarchical": np.stack([*compute, _ring(steps.most), _ring(steps.nodes)], axis=1),
    }


def _ring(members: IntArray) -> FloatArray:
    return np.asarray(2.0 * (members - 1) / members)
