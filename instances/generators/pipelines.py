"""Pipelines of micro-batches: even ones, as published schedules are stated for, and stages of unequal seconds."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from ..arrays import NONE, require_choice, require_counts, require_number
from ..pipeline import PipelineProblem

SHAPES = ("loop", "v")


def micro_batches(
    devices: Annotated[int, "of the pipeline"] = 4,
    micro_batches: Annotated[int, "of a step"] = 8,
    memory: Annotated[float | None, "micro-batches that a device has room for"] = None,
    *,
    forward: Annotated[float, "seconds of a micro-batch on a device, forward"] = 1.0,
    backward: Annotated[float, "of its gradients of the input"] = 1.0,
    weight: Annotated[float, "of its gradients of the weights"] = 1.0,
    transfer: Annotated[float, "seconds between stages on different devices"] = 0.0,
    chunks: Annotated[int, "stages of a device, which share these seconds evenly"] = 1,
    shape: Annotated[str, "loop (stages go round) or v (there and back, two a device)"] = "loop",
    split: Annotated[bool, "let gradients of the weights wait"] = True,
    barrier: Annotated[bool, "devices wait for each other between steps"] = True,
    spread: Annotated[float, "of the seconds of stages: a factor from 1 - spread to 1 + spread"] = 0.0,
    seed: Annotated[int, "of these factors"] = 0,
) -> PipelineProblem:
    """Make a pipeline whose bytes are micro-batches: one holds 1 B on each device, all of it up to its last pass."""
    require_counts(devices=devices, micro_batches=micro_batches, chunks=chunks)
    require_choice(shape, "shape", SHAPES)
    require_number(spread, "spread", below=1)
    for name, x in (("transfer", transfer), ("forward", forward), ("backward", backward), ("weight", weight)):
        require_number(x, name)
    line = range(devices)
    if shape == "v":
        chunks = max(chunks, 2)
        require_number(chunks, "chunks", most=2)
    device = np.array([*line, *line[::-1]] if shape == "v" else [*line] * chunks, dtype=np.int32)
    share = np.random.default_rng(seed).uniform(1 - spread, 1 + spread, (3, len(device))) / chunks
    ahead, back, weights = np.array([forward, backward, weight])[:, None] * share
    even, room = np.ones(len(device)), np.full(0 if memory is None else devices, 0.0 if memory is None else memory)
    return PipelineProblem(
        device, ahead, back, weights, micro_batches, split, transfer * even, even / chunks, NONE, room, barrier
    )
