"""Sixteen episodes of TopDRL's cluster at once, compiled, seen as its network sees them."""

import numpy as np

from gangplan.systems.topdrl.batch import Batch
from gangplan.systems.topdrl.image import image
from gangplan.systems.topdrl.suites import TRAINING, suite


def main(decisions: int = 200) -> float:
    """Start the first job that fits, which is overtaking FIFO, and return the mean JCT of the episodes that ended."""
    small = suite("small")
    batch = Batch(small.draw, small.fleet, small.proximity, count=16, seed=TRAINING, slots=small.slots)
    for _ in range(decisions):
        seen = image(batch, width=small.width, step=small.step, backlog=small.backlog)
        assert seen.queue.shape == (16, 20, 30, 8)  # episodes, slots, rows, GPUs
        batch.act(batch.mask.argmax(axis=1))  # returns rewards, and which episodes ended
    return float(np.mean([outcome.mean_jct for outcome in batch.finished]))


if __name__ == "__main__":
    print(main())
