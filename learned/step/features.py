"""What the network sees of a step-time problem: the shared encoding, and what list scheduling makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.partition.step.improve.arrays import Arrays, arrays_of
from gangplan.solvers.partition.step.improve.polish import polish
from gangplan.solvers.partition.step.improve.workroom import workroom
from gangplan.solvers.partition.step.model import Prepared

from ..encode.encoding import Encoding, log_over, over
from .decode import build, zeros
from .dials import Basis, basis_of
from .graph import add_graph
from .plans import ROUNDS, Found, alone, decode
from .schema import BASE
from .state import empty


@dataclass(frozen=True, slots=True)
class Case:
    """A problem ready for network and decoder.

    Attributes:
        p: the problem, prepared.
        arrays: for the decoder.
        basis: what the dials multiply.
        encoding: for the network.
        heft: the plan that dials of zero give; none if memory leads it into a dead end.
        base: plans that do not need the network: HEFT's, everything on one device, those of the base settings.
    """

    p: Prepared
    arrays: Arrays
    basis: Basis
    encoding: Encoding
    heft: Found | None
    base: tuple[Found, ...]

    @property
    def unit(self) -> float:
        """Seconds to measure plans of this problem by."""
        known = min((x[0] for x in self.base), default=0.0)
        return known if known > 0 else self.arrays.even


def case_of(p: Prepared, settings: FloatArray | None = None, *, messages: bool = True) -> Case:
    """Look at a problem: some passes of list scheduling, then the features.

    Args:
        p: the problem.
        settings: of the dials, those of the base, (`BASE`, D); with none only HEFT's plan and one device are looked at.
        messages: whether the network sees the graph too, see `add_graph`; else it is told of the problem alone.
    """
    a = arrays_of(p)
    basis = basis_of(p, a)
    state, heft = empty(a), None
    fits = build(a, zeros(p.n, len(p.edges[0])), state, p.memory_binds)
    if fits:
        length = polish(a, workroom(a), state.where, state.start, state.finish, ROUNDS)
        heft = float(length), state.where, state.start
    made = [heft, alone(p, a), *(decode(p, a, basis, x) for x in ([] if settings is None else settings))]
    encoding = Encoding()
    plain = [np.inf if x is None else x[0] for x in made[:2]]
    encoding.add("problem", 1, _problem(p, a, *plain) | _base(made))
    if messages:
        add_graph(encoding, p, a, state, fits)
    return Case(p, a, basis, encoding, heft, tuple(x for x in made if x is not None))


def _problem(p: Prepared, a: Arrays, length: float, alone: float) -> dict[str, FloatArray]:
    path = float(a.rank.max(initial=0.0))
    levels = p.used_levels
    send = p.delay[levels].mean(axis=1) if len(levels) else np.zeros(1)
    worth = np.array
    return {
        "devices": worth(np.log(p.n_devices)),
        "ops": worth(np.log(p.n) / 5),
        "groups": worth(p.n_groups / p.n),
        "path": over(path, p.n_devices * a.even),
        "heft": over(length, max(a.even, 1e-300)) if np.isfinite(length) else worth(0.0),
        "heft_path": over(length, path) if np.isfinite(length) else worth(0.0),
        "heft_fails": worth(float(not np.isfinite(length))),
        "alone": over(alone, length) if np.isfinite(alone) and np.isfinite(length) else worth(0.0),
        "binds": worth(float(p.memory_binds)),
        "tight": over(float(p.group_memory.sum()), float(p.capacity.sum())),
        "large": over(float(p.group_memory.max()), float(p.capacity.max())),
        "send_near": log_over(send[0], a.unit),
        "send_far": log_over(send[-1], a.unit),
        "levels": worth(float(len(levels) > 1)),
        "contention": worth(float(p.contention)),
        "crowded": worth(np.log(p.n / p.n_devices)),
        "edges": worth(np.log1p(len(p.edges[0]) / p.n)),
        "longest": over(float(p.fastest[np.isfinite(p.fastest)].max(initial=0.0)), a.even),
    }


def _base(made: Sequence[Found | None]) -> dict[str, FloatArray]:
    """Return how each setting of the base does beside HEFT and one device."""
    plain = [x[0] for x in made[:2] if x is not None]
    columns = {}
    for i in range(BASE):
        x = made[2 + i] if 2 + i < len(made) else None
        better = np.log(x[0] / min(plain)) if x is not None and plain and min(plain) > 0 else 0.0
        columns[f"base_{i}"] = np.array(max(-3.0, min(3.0, 5 * better)))
        columns[f"base_{i}_fails"] = np.array(float(x is None))
    return columns
