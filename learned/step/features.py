"""What the network sees of a step-time problem: the shared encoding, and what list scheduling makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray, IntArray
from gangplan.solvers.partition.step.bounds import tails
from gangplan.solvers.partition.step.model import Prepared

from ..encode import encode_partition
from ..encode.encoding import Columns, Encoding, log_over, over
from .arrays import Arrays, arrays_of
from .decode import build, zeros
from .dials import Basis, basis_of
from .polish import polish

_KEPT = ("ops", "classes", "problem")
"""Types of nodes: devices have no names here, what they cost is weighed by the decoder."""
_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Case:
    """A problem ready for network and decoder.

    Attributes:
        p: the problem, prepared.
        arrays: for the decoder.
        basis: what the dials multiply.
        encoding: for the network.
        alone: seconds with everything on one device, infinite if it does not fit, and that device.
        heft: seconds of the plan that scores of zero give, infinite if memory leads it into a dead end.
        where, start: that plan, device of each group and start of each op.
    """

    p: Prepared
    arrays: Arrays
    basis: Basis
    encoding: Encoding
    alone: tuple[float, int]
    heft: float
    where: IntArray
    start: FloatArray

    @property
    def unit(self) -> float:
        """Seconds to measure plans of this problem by."""
        known = min(self.heft, self.alone[0])
        return known if np.isfinite(known) and known > 0 else self.arrays.even


def case_of(p: Prepared) -> Case:
    """Look at a problem: a pass of list scheduling, then the features."""
    a = arrays_of(p)
    state, _, fits = build(a, zeros(p.n, len(p.edges[0])), p.memory_binds)
    length = np.inf
    if fits:
        length = polish(a, state.where, state.start, state.finish, _ROUNDS)
    alone = _alone(p)
    encoding = Encoding()
    full = encode_partition(p.problem)
    for kind in _KEPT:
        encoding.nodes[kind], encoding.columns[kind] = full.nodes[kind], full.columns[kind]
    for relation in (("ops", "mirror", "ops"), ("ops", "rev_mirror", "ops")):
        _copy(full, encoding, relation)
    for relation in (("ops", "of", "classes"), ("classes", "rev_of", "ops")):
        _copy(full, encoding, relation)
    _add(encoding, "ops", _ops(p, a, state, fits))
    _add(encoding, "problem", _problem(p, a, length, alone[0]))
    u, v = p.edges
    encoding.join(("ops", "feed", "ops"), u, v, _edges(p, a, state, fits))
    encoding.join(("problem", "has", "ops"), np.zeros(p.n), np.arange(p.n))
    return Case(p, a, basis_of(p, a), encoding, alone, float(length), state.where, state.start)


def _alone(p: Prepared) -> tuple[float, int]:
    fits = p.allowed.all(axis=0) & (p.group_memory.sum() <= p.room)
    seconds = np.where(fits, p.time.sum(axis=1)[p.type_of], np.inf)
    best = int(seconds.argmin())
    return float(seconds[best]), best


def _copy(source: Encoding, to: Encoding, relation: tuple[str, str, str]) -> None:
    to.edges[relation], to.weights[relation] = source.edges[relation], source.weights[relation]
    to.weight_columns[relation] = source.weight_columns[relation]


def _add(encoding: Encoding, kind: str, columns: Columns) -> None:
    """Add columns to those of a type of nodes."""
    more = np.stack([np.broadcast_to(x, len(encoding.nodes[kind])) for x in columns.values()], axis=1)
    encoding.nodes[kind] = np.concatenate([encoding.nodes[kind], more.astype(np.float32)], axis=1)
    encoding.columns[kind] += tuple(columns)


def _ops(p: Prepared, a: Arrays, state: Any, fits: bool) -> dict[str, FloatArray]:
    length = max(float(state.finish.max()), 1e-300) if fits else 1.0
    load = state.load / a.even
    where = np.maximum(state.where[p.group_of], 0)
    delay = p.delay[p.used_levels] if len(p.used_levels) else np.zeros((1, p.n))
    return {
        "rank": a.rank / max(float(a.rank.max()), 1e-300),
        "start": state.start / length * fits,
        "slack": (length - state.finish - np.array(tails(p))).clip(0) / length * fits,
        "crowded": load[where] * fits,
        "group_load": over(np.where(np.isfinite(p.group_time), p.group_time, 0.0).max(axis=0), a.even)[p.group_of],
        "group_room": over(p.group_memory, float(p.capacity.min(initial=np.inf)))[p.group_of],
        "send_near": log_over(delay[0], a.unit),
        "send_far": log_over(delay[-1], a.unit),
    }


def _edges(p: Prepared, a: Arrays, state: Any, fits: bool) -> dict[str, FloatArray]:
    u, v = p.edges
    there, here = state.where[p.group_of[u]], state.where[p.group_of[v]]
    level = p.level[there, here]
    delay = p.delay[p.used_levels] if len(p.used_levels) else np.zeros((1, p.n))
    wait = state.start[v] - state.finish[u] - a.delay[level, u]
    return {
        "send_near": log_over(delay[0][u], a.unit),
        "send_far": log_over(delay[-1][u], a.unit),
        "together": (level < 0) * 1.0 * fits,
        "near": a.near[there, here] * 1.0 * fits,
        "wait": log_over(wait.clip(0), a.unit) * fits,
        "fixed": (p.group_of[u] == p.group_of[v]) * 1.0,
    }


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
    }
