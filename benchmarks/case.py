"""What a case of a suite is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gangplan.instances import GraphProblem
from gangplan.instances.placement import PlacementProblem


@dataclass(frozen=True, slots=True)
class Case:
    """One solve to do.

    Attributes:
        instance: a name that says how it was made; unique together with the variant.
        variant, method, time_limit: as for `gangplan.solve`, the variant being the objective where there is none; the
            method may also be a rival's name.
        make: builds the problem, given the folder of published data.
    """

    instance: str
    variant: str
    method: str
    time_limit: float
    make: Callable[[Path], GraphProblem | PlacementProblem]
