"""`gangplan generate KIND`: a command for each generator, made from its own arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import Parameter, Signature, cleandoc, signature
from typing import Annotated, Any

import typer

from gangplan.instances import GraphProblem, dump
from gangplan.instances.generators import GENERATORS, JOBS, defaults
from gangplan.instances.generators import generate as make
from gangplan.instances.placement import PlacementProblem
from gangplan.instances.schedule import ScheduleProblem

from .files import check_output, write_all
from .numbers import number, whole
from .output import emit, emit_blocks, table

generate = typer.Typer(
    help="Generate the op graph of a network, or a random one, on a server of GPUs; or a batch of jobs on a cluster.",
    invoke_without_command=True,
    no_args_is_help=True,
)

COMMON = {name: x for name, x in signature(make).parameters.items() if x.kind is Parameter.KEYWORD_ONLY}
TYPES: dict[str, Any] = {"memory": float | None, "bandwidth": float | None}
"""Of the options whose default does not tell."""
PARSERS: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    int: ("N", whole),
    float: ("X", number),
    float | None: ("X", number),
}
HELP = {
    "training": "add the backward pass",
    "efficiency": "share of the peak FLOP/s that is reached",
    "devices": "GPUs",
    "device_type": "P100, V100, A100, H100, H200 or B200",
    "memory": "bytes of a GPU, instead of the data sheet's",
    "bandwidth": "bytes/s of a GPU's link, instead of the data sheet's",
    "variant": "contiguous, convex or free",
    "seed": "of the random choices",
    "out": "write the problem here instead of printing it",
}


@generate.callback()
def _list(
    context: typer.Context,
    kinds: Annotated[bool, typer.Option("--list", help="list the kinds and their options")] = False,
) -> None:
    """Generate the op graph of a network, or a random one, on a server of GPUs; or a batch of jobs on a cluster."""
    if kinds:
        rows = [
            (kind, _summary(kind), ", ".join(f"{name}={value}" for name, value in defaults(kind).items()))
            for kind in (*GENERATORS, *JOBS)
        ]
        every = ", ".join(f"{name}={x.default}" for name, x in COMMON.items())
        emit_blocks(table(("kind", "makes", "options"), rows, left=3), f"every op graph: {every}")
        raise typer.Exit(0)


def _command(kind: str) -> Callable[..., None]:
    def command(out: str | None, **options: Any) -> None:
        if out is not None:
            check_output(out)
        if "seed" not in defaults(kind):
            options.pop("seed")
        problem = JOBS[kind](**options) if kind in JOBS else make(kind, **options)
        document = f"{dump(problem)}\n"
        if out is None:
            emit(document)
            return
        write_all({out: document.encode()})
        emit(f"{out}: {_words(problem)}")

    explained = {**HELP, **_arguments(_docstring(kind))}
    own = defaults(kind)
    if kind in GENERATORS:
        own |= {name: x.default for name, x in COMMON.items()}
    if "seed" not in own:
        own["seed"] = 0
        explained["seed"] = "changes nothing: the architecture leaves nothing to chance"
    parameters = [_option("out", str | None, None, HELP["out"])]
    parameters += [_option(n, TYPES.get(n, type(x)), x, explained.get(n, "")) for n, x in own.items()]
    command.__doc__ = _summary(kind)
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _option(name: str, kind: Any, default: Any, text: str) -> Parameter:
    if kind in PARSERS:
        annotation: Any = Annotated[kind, typer.Option(help=text, metavar=PARSERS[kind][0], parser=PARSERS[kind][1])]
    else:
        annotation = Annotated[kind, typer.Option(help=text, metavar=None if kind is bool else "NAME")]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _summary(kind: str) -> str:
    return cleandoc(_docstring(kind)).splitlines()[0]


def _docstring(kind: str) -> str:
    return (JOBS[kind] if kind in JOBS else GENERATORS[kind]).__doc__ or ""


def _arguments(docstring: str) -> dict[str, str]:
    """Return what the Args section says of each argument."""
    section = re.search(r"Args:\n(.*?)(?:\n\n|\Z)", cleandoc(docstring), re.DOTALL)
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.group(1).splitlines() if section else []:
        entry = re.match(r"    (\w+(?:, \w+)*): (.*)", line)
        if entry:
            names = entry.group(1).split(", ")
            found |= dict.fromkeys(names, entry.group(2))
        else:
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return {name: text.rstrip(".") for name, text in found.items()}


def _words(problem: GraphProblem | PlacementProblem | ScheduleProblem) -> str:
    if isinstance(problem, ScheduleProblem):
        from .schedules import capacity_words

        return f"{len(problem.jobs)} jobs on {capacity_words(problem.capacity)}, {problem.goal}"
    if isinstance(problem, PlacementProblem):
        fleet = problem.fleet
        return f"{len(problem.jobs)} jobs on {fleet.n_nodes} nodes with {fleet.n_gpus} GPUs, {problem.goal}"
    kind = problem.cluster.device_types[0].name
    graph = problem.graph
    return f"{graph.n_ops} ops, {graph.n_edges} edges on {problem.cluster.n_devices} x {kind}, {problem.variant}"


for _kind in (*GENERATORS, *JOBS):
    generate.command(name=_kind)(_command(_kind))
