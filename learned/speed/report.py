"""How well a fit does on what it has not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Fit:
    """One fit, judged.

    Attributes:
        data: the data set.
        model: what was fitted.
        parameters: how many numbers that took.
        held_out: how many measurements the errors are of.
        median, p90: of the absolute error over the measured value.
    """

    data: str
    model: str
    parameters: int
    held_out: int
    median: float
    p90: float

    @classmethod
    def judge(cls, data: str, model: str, parameters: int, predicted: FloatArray, measured: FloatArray) -> Fit:
        """Return the fit with the errors of `predicted`, (n,), against `measured`, (n,)."""
        error = np.abs(predicted - measured) / measured
        return cls(data, model, parameters, len(error), float(np.median(error)), float(np.quantile(error, 0.9)))
