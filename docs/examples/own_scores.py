"""A learned policy of one's own, reduced to the contract that `check_policy` tests; one number is all its weights."""

import numpy as np

from gangplan.learned import Case, check_policy


class Tightest:
    """Of nodes with free GPUs takes the one with the least that holds three; `steep` says how much that counts."""

    def __init__(self, steep=1.0):
        self.steep = steep

    def score(self, free):
        """Return a number for each node, minus infinity where the job does not fit."""
        return np.where(free >= 3, -self.steep * free / free.max(), -np.inf)

    def choose(self, free, seed=None):
        """Return the index of the best node or, with a seed, of one drawn by the scores."""
        noise = 0.0 if seed is None else np.random.default_rng(seed).gumbel(size=len(free))
        return int(np.argmax(self.score(free) + noise))

    def save(self, path):
        """Write the weights."""
        path.write_text(repr(self.steep))

    @classmethod
    def load(cls, path):
        """Read them."""
        return cls(float(path.read_text()))


def case(free, larger):
    """Return a decision on nodes, and the same with the nodes in reverse order."""
    place = np.arange(len(free))[::-1]  # node i becomes node place[i]
    return Case(f"{len(free)} nodes", free, free >= 3, [(free[::-1], place)], larger)


check_policy(Tightest(), [case(np.array([8.0, 2.0, 5.0, 3.0]), False), case(np.arange(500.0), True)])
