"""What several commands ask for: a file, and what to change in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer

from gangplan.instances import GraphProblem
from gangplan.instances.readers import read

from .numbers import number, numbers, whole, wholes

File = Annotated[
    str, typer.Argument(metavar="FILE", help="a gangplan document, PipeDream graph.txt, NeurIPS 2020 or networkx JSON")
]
Objective = Annotated[
    str | None,
    typer.Option(
        help="throughput (busiest device of a pipeline), latency (one sample), step (makespan of a step), "
        "stages (slowest of replicated stages)  [default: the file's, or throughput]",
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
    float | None,
    typer.Option(
        help="of a device's link, instead of the file's; of a cluster's levels from the inside out: IN,BETWEEN",
        metavar="BYTES/S",
        parser=numbers,
    ),
]
Shape = Annotated[
    str | None,
    typer.Option(help="instead of --devices: 2x8 is two servers of 8 devices, with a --bandwidth each", metavar="NxM"),
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


Activations = Annotated[
    bool | None, typer.Option("--activations/--no-activations", help="of stages: moving activations takes time")
]
Recompute = Annotated[
    bool | None, typer.Option("--recompute/--no-recompute", help="of stages: keep inputs only, run forward again")
]
Stashing = Annotated[
    bool | None, typer.Option("--stashing/--no-stashing", help="of stages: a version of the weights a sample under way")
]
MemoryModel = Annotated[str | None, typer.Option(help="of stages: 1f1b, pipedream or none", metavar="NAME")]
Degrees = Annotated[
    str | None,
    typer.Option(help="of stages: how many devices may share ops, e.g. 1,2,4", metavar="N,N", parser=wholes),
]
PROBLEM: dict[str, Any] = {
    "objective": Objective,
    "contention": Contention,
    "variant": Variant,
    "devices": Devices,
    "cluster": Shape,
    "device_type": Kind,
    "memory": Memory,
    "bandwidth": Bandwidth,
    "training": Training,
    "keep_inputs": KeepInputs,
    "activations": Activations,
    "recompute": Recompute,
    "stashing": Stashing,
    "memory_model": MemoryModel,
    "degrees": Degrees,
}
"""What can be said of a problem besides its file; keyword arguments of `read`."""


def with_problem(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of `PROBLEM`, handed over as one dict, its argument ``given``."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[Parameter] = []
    for name, x in signature(command).parameters.items():
        asked = PROBLEM if name == "given" else {name: hints[name]}
        default = None if name == "given" else x.default
        parameters += [Parameter(n, Parameter.KEYWORD_ONLY, default=default, annotation=a) for n, a in asked.items()]

    def wrapped(**arguments: Any) -> Any:
        given = {name: arguments.pop(name) for name in PROBLEM}
        return command(given=given, **arguments)

    wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
    wrapped.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {x.name: x.annotation for x in parameters}
    return wrapped


def problem(file: str, given: Mapping[str, Any]) -> GraphProblem:
    """Read the problem in `file` with the options of `PROBLEM`; what is None is left to the file.

    Raises:
        InstanceError: naming file, field and the value found.
    """
    return read(file, **given)
