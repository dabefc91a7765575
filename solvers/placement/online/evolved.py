"""A rule found by search: who goes first depends on the crowd, who waits for close GPUs on how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.arrays import plain, require_choice, require_number

from .patient import Patient

TERMS = {
    "gpus": "order: log GPUs",
    "slowdown": "order: log slowdown",
    "crowded": "order: crowd log GPUs",
    "wait": "wait: 1",
    "length": "wait: log(seconds/typical)",
    "width": "wait: log GPUs",
    "runs": "wait: log(1 + running)",
    "crowd": "wait: crowd",
    "age": "wait: log(1 + waited/seconds)",
}
"""The terms of `gangplan.simulator.gangs.formula` by name of the weight; those that are not here weigh nothing."""
MOST = 100.0
"""The largest weight of a term of `wait`, of the others 8."""


class Sight(NamedTuple):
    """What a cluster looks like as a decision begins.

    Attributes:
        typical: mean logarithm of the seconds of the jobs that run, 0 if none does.
        runs: log(1 + running).
        crowd: log(1 + waiting/running), with at least one that runs.
    """

    typical: float = 0.0
    runs: float = 0.0
    crowd: float = 0.0

    @classmethod
    def of(cls, waiting: int, running: int, logs: float) -> Self:
        """Return what so many jobs look like; `logs` is the sum of the logarithms of the seconds of those that run."""
        n = max(running, 1)
        return cls(logs / n, float(np.log1p(running)), float(np.log1p(waiting / n)))


@dataclass(frozen=True, slots=True)
class Evolved:
    """Start jobs by two formulas that ``gangplan learn evolve`` found, in place of the three numbers of `Patient`.

    The order is that of log seconds + a log GPUs + b log least slowdown; a is `gpus` + `crowded` times the crowd. A job
    that would be r times as slow as at its best place waits, as long as anything runs, where log(r - 1) is above `wait`
    plus the other weights times their terms; those behind it may pass. That it has waited counts in the next decision:
    `Scheduler.wake` does not tell of it.

    Attributes:
        gpus, slowdown, crowded: weights of log GPUs, of log least slowdown and of crowd times log GPUs.
        wait: where a job of typical length and one GPU waits that has just come where nobody runs or waits.
        length, width, runs, crowd, age: weights of log(seconds/typical), log GPUs, log(1 + running), the crowd, and
            log(1 + waited/seconds).
    """

    tier: ClassVar[str] = "evolved"
    gpus: float = 0.0
    slowdown: float = 0.725
    crowded: float = -0.929
    wait: float = -2.2
    length: float = -1.11
    width: float = -0.364
    runs: float = 0.0
    crowd: float = -0.223
    age: float = 0.17

    def __post_init__(self) -> None:
        for name, term in TERMS.items():
            value = plain(getattr(self, name))
            require_number(abs(value) if isinstance(value, int | float) else value, name)
            most = 8.0 if term.startswith("order") else MOST
            if abs(value) > most:
                raise InstanceError(name, f"{value!r} is not from -{most:g} to {most:g}")
            object.__setattr__(self, name, float(value))

    @classmethod
    def of(cls, weights: Mapping[str, float]) -> Self:
        """Return the rule of weights as ``gangplan learn evolve --json`` names them; those left out are 0."""
        named = {term: name for name, term in TERMS.items()}
        for term in weights:
            require_choice(term, "weights", named)
        return cls(**{name: weights.get(term, 0.0) for term, name in named.items()})

    @property
    def weights(self) -> dict[str, float]:
        """The weights by their terms, see `of`."""
        return {TERMS[field.name]: getattr(self, field.name) for field in fields(self)}

    def order(self, sight: Sight) -> float:
        """Return the weight of log GPUs."""
        return self.gpus + self.crowded * sight.crowd

    def most(self, least: float, gpus: int, seconds: Any, waited: Any, sight: Sight) -> Any:
        """Return the largest slowdown with which a job starts, a number, or an array where seconds and waited are.

        Args:
            least: its slowdown at its best place.
            gpus: that it holds.
            seconds: that it is expected to run at no slowdown.
            waited: seconds since it was submitted.
            sight: of the cluster.
        """
        seconds = np.maximum(seconds, 1e-9)
        bound = self.wait + self.width * np.log(gpus) + self.runs * sight.runs + self.crowd * sight.crowd
        bound = bound + self.length * (np.log(seconds) - sight.typical) + self.age * np.log1p(waited / seconds)
        return least * (1 + np.exp(np.minimum(bound, 700.0)) + 1e-9)


Waits = Patient | Evolved
"""Rules by which jobs wait for close GPUs."""
