"""What a configuration of the policy may say."""

from __future__ import annotations

from dataclasses import dataclass

from gangplan.instances import InstanceError

from .schema import BASE


@dataclass(frozen=True, slots=True)
class Settings:
    """Hyper-parameters of the step-time policy and its training.

    Attributes:
        families: of the instances it is trained and validated on.
        width, rounds: of the network; 0 rounds see the problem's own features only.
        book, drawn: settings of the dials in the book, and random ones from which they are picked.
        book_cases, book_size: small instances by which they are picked, and most ops of an eighth of these, which are
            large.
        cases, size: instances of imitation, and their most ops.
        temperature: regret at which a setting counts 1/e of the best; 0 takes the best alone for the label.
        imitation_updates, imitation_rate: of imitation; 0 updates leave it out.
        rl_updates, rl_rate: of the policy gradient; 0 updates leave it out.
        calm: what scores are multiplied by between the two: imitation leaves them so far apart that little is drawn
            but the first choice.
        rl_cases, rl_sizes: its instances of each size beside those of imitation, and their most ops.
        minibatch: instances an update.
        validate_every: updates from one validation to the next.
        validation_cases: instances of a validation, as many small ones and half as many of the largest.
    """

    families: tuple[str, ...] = ("layered", "fork_join", "series_parallel")
    width: int = 32
    rounds: int = 0
    book: int = 64
    drawn: int = 300
    book_cases: int = 80
    book_size: int = 400
    cases: int = 400
    size: int = 100
    temperature: float = 0.003
    imitation_updates: int = 600
    imitation_rate: float = 1e-3
    rl_updates: int = 400
    rl_rate: float = 1e-3
    calm: float = 0.3
    rl_cases: int = 120
    rl_sizes: tuple[int, ...] = (300, 1000)
    minibatch: int = 24
    validate_every: int = 50
    validation_cases: int = 120

    def __post_init__(self) -> None:
        positive = ("width", "book", "drawn", "book_cases", "book_size", "cases", "size", "minibatch")
        for name in (*positive, "validate_every", "validation_cases", "imitation_rate", "rl_rate", "calm"):
            if getattr(self, name) <= 0:
                raise InstanceError(name, f"{getattr(self, name)!r} is not positive")
        for name in ("rounds", "imitation_updates", "rl_updates", "temperature", "rl_cases"):
            if getattr(self, name) < 0:
                raise InstanceError(name, f"{getattr(self, name)!r} is negative")
        if self.book <= BASE:
            raise InstanceError("book", f"{self.book!r} is not more than the {BASE} settings of the base")
        if self.book > self.drawn:
            raise InstanceError("book", f"{self.book!r} is more than the {self.drawn!r} that are drawn")
        if not self.families:
            raise InstanceError("families", "names none")
        if not self.rl_sizes:
            raise InstanceError("rl_sizes", "names none")
