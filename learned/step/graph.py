"""What a network with messages sees besides: ops, what is colocated, and the edges in the plan of HEFT."""

from __future__ import annotations

from typing import Any

import numpy as np

from gangplan.instances.arrays import FloatArray
from gangplan.solvers.partition.step.bounds import tails
from gangplan.solvers.partition.step.improve.arrays import Arrays
from gangplan.solvers.partition.step.model import Prepared

from ..encode import encode_partition
from ..encode.encoding import Encoding, log_over, over

_COPIED = (
    ("ops", "mirror", "ops"), ("ops", "rev_mirror", "ops"), ("ops", "of", "classes"), ("classes", "rev_of", "ops"),
)  # fmt: skip


def add_graph(encoding: Encoding, p: Prepared, a: Arrays, state: Any, fits: bool) -> None:
    """Add ops, classes and their relations; devices have no names here, what they cost is weighed by the decoder.

    Args:
        encoding: has the problem's node; is written.
        p, a: the problem.
        state: the plan of HEFT.
        fits: whether it is whole.
    """
    full = encode_partition(p.problem)
    for kind in ("ops", "classes"):
        encoding.nodes[kind], encoding.columns[kind] = full.nodes[kind], full.columns[kind]
    for relation in _COPIED:
        encoding.edges[relation], encoding.weights[relation] = full.edges[relation], full.weights[relation]
        encoding.weight_columns[relation] = full.weight_columns[relation]
    columns = _ops(p, a, state, fits)
    more = np.stack(list(columns.values()), axis=1).astype(np.float32)
    encoding.nodes["ops"] = np.concatenate([encoding.nodes["ops"], more], axis=1)
    encoding.columns["ops"] += tuple(columns)
    u, v = p.edges
    encoding.join(("ops", "feed", "ops"), u, v, _edges(p, a, state, fits))
    encoding.join(("problem", "has", "ops"), np.zeros(p.n), np.arange(p.n))


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
