"""Generated pipelines: bytes are micro-batches, and shapes are as said."""

from __future__ import annotations

from typing import Any

import pytest

from gangplan.instances import InstanceError
from gangplan.instances.generators import generate


def test_shapes() -> None:
    """Stages go round, or there and back; a device has the seconds and bytes it was given, however many it has."""
    loop = generate("micro_batches", devices=2, chunks=3, memory=4, weight=0.5)
    there = generate("micro_batches", devices=3, chunks=2, shape="v")
    assert loop.device.tolist() == [0, 1, 0, 1, 0, 1] and there.device.tolist() == [0, 1, 2, 2, 1, 0]
    assert loop.load() == pytest.approx([20.0, 20.0]) and loop.capacity.tolist() == [4, 4]
    assert loop.activation[loop.device == 0].sum() == pytest.approx(1.0) and not len(there.capacity)
    uneven = generate("micro_batches", spread=0.3, seed=5)
    assert 0.7 <= uneven.forward.min() < uneven.forward.max() <= 1.3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"devices": 0}, "devices: 0 is not positive"),
        ({"shape": "w"}, "shape: 'w' is not"),
        ({"shape": "v", "chunks": 3}, "chunks: 3 is more than 2"),
        ({"spread": 1.0}, "spread: 1.0 is not below 1"),
        ({"forward": -1.0}, "forward: -1.0 is negative"),
        ({"transfer": float("nan")}, "transfer: nan is not finite"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    """Wrong options are named."""
    with pytest.raises(InstanceError, match=words):
        generate("micro_batches", **options)
