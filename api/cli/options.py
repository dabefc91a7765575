"""What several commands ask for: a file, and what to change in it."""

from __future__ import annotations

from typing import Annotated

import typer

from gangplan.instances import GraphProblem
from gangplan.instances.readers import read

from .numbers import number, whole

File = Annotated[
    str, typer.Argument(metavar="FILE", help="a gangplan document, PipeDream graph.txt, NeurIPS 2020 or networkx JSON")
]
Objective = Annotated[
    str | None,
    typer.Option(
        help="throughput (busiest device of a pipeline), latency (one sample), step (makespan of a step)  "
        "[default: the file's, or throughput]",
        metavar="NAME",
    ),
]
Contention = Annotated[
    bool | None, typer.Option("--contention/--no-contention", help="of a step: links carry one transfer at a time")
]
Variant = Annotated[
    str | None, typer.Option(help="contiguous, convex or free  [default: the file's, or contiguous]", metavar="NAME")
]
Devices = Annotated[
    int | None, typer.Option(help="accelerators, instead of the file's (4 if it has none)", metavar="N", parser=whole)
]
Kind = Annotated[
    str | None,
    typer.Option(help="of a file without devices: A100, V100, H100, ... or a name of its own", metavar="NAME"),
]
Memory = Annotated[
    float | None, typer.Option(help="of one accelerator, instead of the file's", metavar="BYTES", parser=number)
]
Bandwidth = Annotated[
    float | None, typer.Option(help="of a device's link, instead of the file's", metavar="BYTES/S", parser=number)
]
Training = Annotated[
    bool | None,
    typer.Option("--training/--no-training", help="of a PipeDream profile: with the backward pass, or without"),
]
KeepInputs = Annotated[
    bool | None,
    typer.Option("--keep-inputs/--no-keep-inputs", help="of a PipeDream profile: the ops that load data"),
]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object instead")]


def problem(
    file: str,
    objective: str | None,
    contention: bool | None,
    variant: str | None,
    devices: int | None,
    device_type: str | None,
    memory: float | None,
    bandwidth: float | None,
    training: bool | None,
    keep_inputs: bool | None,
) -> GraphProblem:
    """Read the problem in `file` with these options; what is None is left to the file.

    Raises:
        InstanceError: naming file, field and the value found.
    """
    return read(
        file,
        objective=objective,
        contention=contention,
        variant=variant,
        devices=devices,
        device_type=device_type,
        memory=memory,
        bandwidth=bandwidth,
        training=training,
        keep_inputs=keep_inputs,
    )
