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
from gangplan.instances.generators.fitted import fit_workload
from gangplan.instances.outlet import write_whole
from gangplan.instances.placement import PlacementProblem
from gangplan.instances.readers.traces import as_csv, read_trace
from gangplan.instances.schedule import ScheduleProblem
from gangplan.instances.workload import Workload

from .files import check_output
from .numbers import number, whole
from .output import emit, emit_blocks, table

generate = typer.Typer(
    help="Generate the op graph of a network, or a random one; a batch of jobs on a cluster; or jobs that arrive.",
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
    """Generate the op graph of a network, or a random one; a batch of jobs on a cluster; or jobs that arrive."""
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
        _write(JOBS[kind](**options) if kind in JOBS else make(kind, **options), out)

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


@generate.command("like")
def _like(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="any trace that `gangplan simulate` reads")],
    jobs: Annotated[int, typer.Option(help="how many", metavar="N", parser=whole)] = 1000,
    load: Annotated[float, typer.Option(help="arrivals come so many times as fast", metavar="X", parser=number)] = 1.0,
    queue: Annotated[str | None, typer.Option(help="only the jobs of this virtual cluster", metavar="NAME")] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="leave bad rows out")] = False,
    seed: Annotated[int, typer.Option(help=HELP["seed"], metavar="N", parser=whole)] = 0,
    out: Annotated[str | None, typer.Option(help="write the jobs here", metavar="NAME")] = None,
) -> None:
    """Make jobs that arrive, ask for GPUs and last like those of a trace."""
    if out is not None:
        check_output(out)
    read = read_trace(trace, skip_bad=skip_bad).workload
    model = fit_workload(read if queue is None else read.only(queue))
    _write(model.draw(jobs, seed, load), out)


def _write(made: GraphProblem | PlacementProblem | ScheduleProblem | Workload, out: str | None) -> None:
    """Print a document, or a workload as CSV, or write it and say what it is."""
    document = as_csv(made) if isinstance(made, Workload) else f"{dump(made)}\n"
    if out is None:
        emit(document)
        return
    write_whole({out: document.encode()})
    emit(f"{out}: {_words(made)}")


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


def _words(problem: GraphProblem | PlacementProblem | ScheduleProblem | Workload) -> str:
    if isinstance(problem, Workload):
        days = float(problem.submit.max() - problem.submit.min()) / 86400
        return f"{problem.n_jobs} jobs of 1 to {problem.gpus.max()} GPUs, arriving in {days:.3g} days"
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
