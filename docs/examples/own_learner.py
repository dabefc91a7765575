"""A learner of one's own, reduced to the contract: what `gangplan.learned.training` trains, stops and resumes."""

from pathlib import Path

from gangplan.learned.training import TrainingStage, train_stages


class Halving:
    """Comes half of the way nearer to 3 with each update."""

    def __init__(self) -> None:
        self.at = 0.0

    def update(self, step):
        """Return figures of one update."""
        self.at = (self.at + 3) / 2
        return {"at": self.at}

    def validate(self):
        """Return figures, of which the least score is best."""
        return {"score": abs(self.at - 3)}

    def state(self):
        """Return tensors and plain values, all that the next update depends on."""
        return {}, {"at": self.at}

    def load(self, tensors, plain):
        """Take a state back."""
        self.at = plain["at"]


def main(folder: Path):
    """Train it, and return what was done."""
    stage = TrainingStage("walk", lambda before: Halving(), updates=10, validate_every=5, patience=3)
    return train_stages([stage], folder)["walk"]
