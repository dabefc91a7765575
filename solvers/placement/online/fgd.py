"""FGD: fragmentation gradient descent (Weng et al., "Beware of Fragmentation", USENIX ATC 2023)."""

from __future__ import annotations

import numpy as np

from gangplan.instances.arrays import FloatArray

from .gradient import Gradient, Potential
from .mix import Fragmentation, Mix
from .policy import hundredths
from .slots import Slots
from .units import GPU, Long, Need

TYPICAL = 0.95
"""The share of tasks whose kinds the authors' simulator expects: rare ones, each of a few tasks, are left out."""


class FGD(Gradient):
    """Take the node and GPU where the expected fragmentation over a mix of tasks grows least.

    Growth d, in GPUs, scores 1 / (1 + exp(d)) in whole hundredths, as in the authors' simulator; steps are finest, 0.04
    GPUs, where little changes. Of equals the first node is taken, which fills the fleet from its start. As there, the
    tasks expected are the most frequent kinds of the mix, their memory does not count, and to those without GPUs all
    that is free on GPUs is a fragment.
    """

    def __init__(self, mix: Mix) -> None:
        """Expect the typical tasks of `mix`."""
        super().__init__()
        self.mix = mix.typical(TYPICAL)
        self._bare = sum(p for k, p in zip(self.mix.needs, self.mix.share.tolist(), strict=True) if not k.grants)

    def potential(self, state: Slots) -> Potential:
        """Return the expected fragmentation, but for tasks without GPUs."""
        return Fragmentation(self.mix, state)

    def score(self, state: Slots, wanted: Need, slots: Long) -> tuple[FloatArray, Long]:
        """Score slots by the growth of the fragmentation with the best GPU in each."""
        growth, level = super().score(state, wanted, slots)
        # tasks without GPUs see fewer fragments wherever GPUs are taken; it moves the bounds of the hundredths
        return hundredths(1 / (1 + np.exp(growth - self._bare * wanted.gpu / GPU))), level
