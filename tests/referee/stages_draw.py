"""Tiny problems of replicated stages: backward passes, menus, recomputation, memory that just fits, any magnitude."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from gangplan.instances import (
    Cluster,
    DeviceType,
    Level,
    OpGraph,
    RampTopology,
    StagesProblem,
    TensorMenu,
    TreeTopology,
)

from .graphs import _STYLES, _amounts

_SHAPES = ((1,), (2,), (3,), (4,), (2, 2), (3, 2), (2, 3), (2, 1, 2), (2, 2, 2))


def draw(seed: int) -> StagesProblem:
    """Return a problem of two to four units on up to eight devices."""
    rng = np.random.default_rng([seed, 13])
    forward = int(rng.integers(1, 5))
    twins = int(rng.integers(0, forward + 1)) if rng.random() < 0.7 else 0
    alone = int(rng.random() < 0.2) if twins and forward < 4 else 0
    n = forward + twins + alone
    back = np.arange(n) >= forward
    twin, colocation = np.full(n, -1), np.full(n, -1)
    for i, v in enumerate(rng.permutation(forward)[:twins]):
        twin[v], twin[forward + i], colocation[[v, forward + i]] = forward + i, v, i
    if rng.random() < 0.15:
        colocation[rng.integers(0, forward)] = colocation[rng.integers(0, forward)]
    ends = [(a, b) for a, b in product(range(n), repeat=2) if a < b and rng.random() < 0.5]
    style = rng.choice(_STYLES, 5)
    kind = DeviceType("gpu")
    time = _amounts(rng, n, style[0])
    memory, weights, kept = (_amounts(rng, n, x) * float(rng.random() < 0.8) for x in style[1:4])
    graph = OpGraph(
        tuple(f"op{i}" for i in range(n)),
        ("gpu",),
        time[None],
        memory,
        weights,
        kept,
        np.array([a for a, _ in ends], dtype=np.int32),
        np.array([b for _, b in ends], dtype=np.int32),
        _amounts(rng, len(ends), style[4]),
        colocation,
        twin,
        back,
    )
    shape = _SHAPES[int(rng.integers(len(_SHAPES)))]
    levels = tuple(
        Level(f"level{i}", float(rng.choice([1.0, 2.0, 1e-6, 1e6])), float(rng.choice([0, 0, 0.1, 1e-9])))
        for i in range(len(shape))
    )
    topology = TreeTopology.regular(levels, shape)
    if len(shape) > 1 and rng.random() < 0.3:
        topology = TreeTopology(levels, topology.group[:, rng.permutation(prod(shape))])
    wires = RampTopology(prod(shape), 1, 1) if len(shape) == 1 and rng.random() < 0.1 else topology
    menu = None
    if rng.random() < 0.4:
        degree = np.array([(1, 2), (1, 2, 4), (2,), (1, 3)][int(rng.integers(4))])
        part = 1 / degree[:, None]
        seconds = time * part * rng.choice([1.0, 1.5], (len(degree), n))
        seconds[rng.random(seconds.shape) < 0.07] = np.inf
        moved = _amounts(rng, n, style[4]) * (1 - part)
        menu = TensorMenu(degree, seconds, memory * part, weights * part, kept * part, moved)
    some = rng.random(n) < 0.6
    versions = int(rng.integers(0, 3))
    need = float(memory[some].sum() + versions * (weights[some].sum() + kept[some & ~back].sum()))
    if need > 0 and rng.random() < 0.7:
        kind = DeviceType("gpu", memory=float(f"{need:.9g}") if rng.random() < 0.3 else need)
    cluster = Cluster((kind,), np.zeros(prod(shape), dtype=np.int32), wires)
    return StagesProblem(
        graph,
        cluster,
        activations=bool(rng.random() < 0.8),
        recompute=bool(back.any() and rng.random() < 0.35),
        stashing=bool(rng.random() < 0.7),
        memory_model=str(rng.choice(["1f1b", "1f1b", "pipedream", "none"])),
        menu=menu,
    )
