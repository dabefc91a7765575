"""Gradient-boosted trees on the features of a group alone, to compare networks with; their scores have one head."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.learned.throughput.decode import Decoder
from gangplan.learned.throughput.encode import encode
from gangplan.learned.throughput.examples import Example


class Trees:
    """Scores groups by a regressor.

    Args:
        model: from features to the distance from PipeDream's order.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def scores(self, made: Decoder) -> FloatArray:
        """Return the scores, (G, 1)."""
        return np.asarray(self.model.predict(_features(encode(made))))[:, None]


def fit(examples: Sequence[Example], path: Path) -> None:
    """Fit trees to the best plan of each example and write them."""
    import joblib
    from sklearn.ensemble import HistGradientBoostingRegressor

    given, wanted = [], []
    for one in examples:
        if len(one.stages):
            # where a group would be if the groups of each stage came as one
            stage, n = one.stages[0], one.decoder.q.n_groups
            size = np.bincount(stage)
            middle = (np.cumsum(size) - size / 2) / n
            given.append(_features(one.encoding))
            wanted.append(middle[stage] - one.decoder.place)
    model = HistGradientBoostingRegressor(max_iter=300, learning_rate=0.05, early_stopping=True, random_state=0)
    joblib.dump(model.fit(np.concatenate(given), np.concatenate(wanted)), path)


def _features(encoding: Any) -> FloatArray:
    own = encoding.nodes["groups"]
    about = np.repeat(encoding.nodes["problem"], len(own), axis=0)
    return np.concatenate([own, about], axis=1).astype(float)
