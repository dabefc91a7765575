"""FGD: fragmentation gradient descent (Weng et al., "Beware of Fragmentation", USENIX ATC 2023)."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray

from .gradient import Gradient, Potential
from .mix import Fragmentation, Mix
from .policy import hundredths
from .slots import Slots
from .units import Long, Need


class FGD(Gradient):
    """Take the node and GPU where the expected fragmentation over a mix of tasks grows least.

    Growth d, in GPUs, scores 1 / (1 + exp(d)) in whole hundredths, as in the authors' simulator; steps are finest, 0.04
    GPUs, where little changes. Of equals the first node is taken, which fills the fleet from its start.
    """

    def __init__(self, mix: Mix) -> None:
        """Expect tasks of `mix`."""
        super().__init__()
        self.mix = mix

    def potential(self, state: Slots) -> Potential:
        """Return the expected fragmentation."""
        return Fragmentation(self.mix, state)

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score slots by the growth of the fragmentation with the best GPU in each."""
        growth, level = super().score(state, wanted, slots)
        return hundredths(1 / (1 + np.exp(growth))), level
