"""What several commands ask for: a file, and what to change in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, get_type_hints

import typer

from .numbers import number, numbers, whole, wholes

AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object instead")]
File = Annotated[
    str, typer.Argument(metavar="FILE", help="a gangplan document, PipeDream graph.txt, NeurIPS 2020 or networkx JSON")
]
Picture = Annotated[
    str | None, typer.Option(help="draw it here: .png, .svg, or .html with what a pointer is told", metavar="FILE")
]
Panel = Annotated[str | None, typer.Option(help="of the picture only this panel, e.g. load or queue", metavar="NAME")]


def _option(kind: Any, text: str, panel: str, metavar: str | None = "NAME", parser: Any = None) -> Any:
    return Annotated[kind | None, typer.Option(help=text, metavar=metavar, parser=parser, rich_help_panel=panel)]


def _switch(name: str, text: str, panel: str) -> Any:
    return Annotated[bool | None, typer.Option(f"--{name}/--no-{name}", help=text, rich_help_panel=panel)]


_PROBLEM, _CLUSTER, _STAGES = "The problem, instead of the file's", "Its devices, instead of the file's", "Of stages"
PROBLEM: dict[str, Any] = {
    "objective": _option(
        str,
        "throughput (busiest device of a pipeline), latency (one sample), step (makespan of a step), "
        "stages (slowest of replicated stages)  [default: the file's, or throughput]",
        _PROBLEM,
    ),
    "contention": _switch("contention", "of a step: links carry one transfer at a time", _PROBLEM),
    "variant": _option(str, "contiguous, convex or free  [default: the file's, or contiguous]", _PROBLEM),
    "devices": _option(int, "accelerators (4 if the file has none)", _CLUSTER, "N", whole),
    "cluster": _option(
        str, "instead of --devices: 2x8 is two servers of 8 devices, with a --bandwidth each", _CLUSTER, "NxM"
    ),
    "device_type": _option(str, "of a file without devices: A100, V100, H100, ... or a name of its own", _CLUSTER),
    "memory": _option(float, "of one accelerator", _CLUSTER, "BYTES", number),
    "bandwidth": _option(
        float, "of a device's link; of a cluster's levels from the inside out: IN,BETWEEN", _CLUSTER, "BYTES/S", numbers
    ),
    "training": _switch("training", "of a PipeDream profile: with the backward pass, or without", _PROBLEM),
    "keep_inputs": _switch("keep-inputs", "of a PipeDream profile: the ops that load data", _PROBLEM),
    "activations": _switch("activations", "moving activations takes time", _STAGES),
    "recompute": _switch("recompute", "keep inputs only, run forward again", _STAGES),
    "stashing": _switch("stashing", "a version of the weights a sample under way", _STAGES),
    "memory_model": _option(str, "1f1b, pipedream or none", _STAGES),
    "degrees": _option(str, "how many devices may share ops, e.g. 1,2,4", _STAGES, "N,N", wholes),
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


def problem(file: str, given: Mapping[str, Any]) -> Any:
    """Read the problem in `file` with the options of `PROBLEM`; what is None is left to the file.

    Raises:
        InstanceError: naming file, field and the value found.
    """
    from gangplan.instances.readers import read

    return read(file, **given)


def problem_for(plan: Any, file: str, given: Mapping[str, Any]) -> Any:
    """Read the problem in `file` that `plan` answers: the plan says what the options leave open.

    Raises:
        InstanceError: naming file, field and the value found.
    """
    from gangplan.instances.kinds import GRAPHS, objective_of

    told = dict(given)
    objective = objective_of(plan)
    if told["objective"] is None and objective in GRAPHS:
        told["objective"] = objective
    if told["contention"] is None and objective == "step" and len(plan.sent):
        told["contention"] = True
    return problem(file, told)
