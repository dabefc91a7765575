"""The network: one score a candidate, from what is seen of it and of the state."""

from __future__ import annotations

from gangplan.learned.training.perceptron import Perceptron

from .features import WIDTH


class Network(Perceptron):
    """Score rows by two hidden layers."""

    def __init__(self, width: int = 64) -> None:
        super().__init__(WIDTH, width)
