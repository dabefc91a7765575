"""Networks of two hidden layers in compiled code: their weights as arrays, and the scores of the rows of a decision."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gangplan.solvers.compiled.kernel import Singles, Singles2, inner


class Weights(NamedTuple):
    """Weights of a network of width w.

    Attributes:
        first: of the features of a row, float32 (features, w).
        first_bias: float32 (w,).
        hidden: of the first layer's units, float32 (w, w).
        hidden_bias: float32 (w,).
        last: float32 (w,).
    """

    first: Singles2
    first_bias: Singles
    hidden: Singles2
    hidden_bias: Singles
    last: Singles


def weights_of(network: Any, first: Any) -> Weights:
    """Return the weights of a torch module with layers `hidden` and `out`; of the first layer they are given."""
    found = first, network.rows.bias, network.hidden.weight.T, network.hidden.bias, network.out.weight[0]
    return Weights(*(np.array(x.detach().numpy(), dtype=np.float32, order="C") for x in found))


@inner
def forward(rows: Singles2, k: int, weights: Weights, out: Singles) -> None:
    """Write the scores of the first k rows, features of a decision."""
    zero = np.float32(0)
    x = np.dot(rows[:k], weights.first)
    for i in range(k):
        for j in range(x.shape[1]):
            x[i, j] = max(x[i, j] + weights.first_bias[j], zero)
    y = np.dot(x, weights.hidden)
    for i in range(k):
        total = zero
        for j in range(y.shape[1]):
            total += max(y[i, j] + weights.hidden_bias[j], zero) * weights.last[j]
        out[i] = total
