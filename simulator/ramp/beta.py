"""How patient users are: PAC-ML's distributions of beta.

A user states the most that a job may take, as a fraction beta of its sequential completion time. Published are a
uniform and three skew-normal distributions of beta, drawn to two decimals within [0.1, 1], as moments and pictures but
not as parameters. Those here were fitted: see `DISTRIBUTIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import FloatArray, require_number

LEAST, MOST = 0.1, 1.0


@dataclass(frozen=True, slots=True)
class Fractions:
    """A distribution of beta: skew normal (Azzalini 1985), cut off outside [0.1, 1], or uniform if it has no scale.

    Attributes:
        skew: shape parameter; 0 is normal, below 0 the long tail is on the left.
        location: of the skew normal; of the uniform its lower end.
        scale: of the skew normal, 0 for the uniform.
        upper: where it is cut off, or the upper end of the uniform.
    """

    skew: float = 0.0
    location: float = LEAST
    scale: float = 0.0
    upper: float = MOST

    def __post_init__(self) -> None:
        require_number(self.scale, "scale")
        if not LEAST <= self.upper <= MOST:
            raise InstanceError("upper", f"{self.upper!r} is not from {LEAST} to {MOST}")

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n fractions of two decimals, float64 (n,)."""
        if not self.scale:
            return np.round(rng.uniform(self.location, self.upper, n), 2)
        found = np.empty(0)
        lean = self.skew / np.hypot(1.0, self.skew)
        for _ in range(1000):
            if len(found) >= n:
                return np.round(found[:n], 2)
            z = rng.standard_normal((2, 2 * n))
            drawn = self.location + self.scale * (lean * np.abs(z[0]) + np.sqrt(1 - lean**2) * z[1])
            found = np.append(found, drawn[(drawn >= LEAST) & (drawn <= self.upper)])
        raise InstanceError("location", f"{self.location!r} leaves nearly nothing within [{LEAST}, {self.upper}]")


DISTRIBUTIONS = {
    "A": Fractions(),
    "B": Fractions(4.0, 0.118, 0.195),
    "C": Fractions(0.0, 0.489, 0.110),
    "D": Fractions(-5.0, 0.850, 0.175),
}
"""The published four. Only moments are stated: mean .551, .284, .467, .727, standard deviation .263, .120, .110, .109.

A is as stated. The others were fitted to the published blocking of the constants, which tells how many users accept
half (beta >= .51 for the four models whose speed-up falls short of 2), a quarter or an eighth, while the standard
deviation is kept. That moves means to .279, .489 and .714. For C the stated mean cannot be right: with
constant 2 blocking .5574 about 44% accept half; with the stated moments 36% would.
"""
