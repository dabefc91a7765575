"""Ridge regression in which a sample counts less the more came after it, and which columns may be added to.

Products and moments with exponential forgetting (recursive least squares; Ljung, System Identification, 1999, section
11.2). New samples gain weight instead of old ones losing it, so that a sample of few columns costs no pass over all.
"""

from __future__ import annotations

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
