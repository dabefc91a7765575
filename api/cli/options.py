"""Declare what several commands ask for, read plans with the errors of problems, check paths before any work."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from math import inf, isfinite
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from gangplan.instances.errors import JSON_BYTES, InstanceError, in_file
from gangplan.instances.intake import parse_json, read_text
from gangplan.instances.outlet import check_writable


def _parser(kind: Callable[[str], Any], words: str, least: float = -inf, most: float = inf) -> Any:
    def parse(text: Any) -> Any:
        try:
            value = kind(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not {words}") from None
        if not least <= value <= most and (isfinite(least) or isfinite(most)):
            raise typer.BadParameter(f"{value!r} is not from {least} to {most}")
        return value

    return parse


whole, number = _parser(int, "a whole number"), _parser(float, "a number")
N: Any = {"metavar": "N", "parser": whole}
X: Any = {"metavar": "X", "parser": number}
"""What an option is told that takes a whole number, or a number."""


def whole_from(least: int, most: int) -> Any:
    """Return what an option is told that takes a whole number in a range."""
    return N | {"parser": _parser(int, "a whole number", least, most)}


def numbers(text: Any) -> Any:
    """Return the number that `text` says, or of several joined by commas a tuple."""
    found = tuple(map(number, str(text).split(",")))
    return found if len(found) > 1 else found[0]


def wholes(text: Any) -> tuple[int, ...]:
    """Return the whole numbers that `text` says, joined by commas."""
    return tuple(map(whole, str(text).split(",")))


def by_dimension(text: Any) -> dict[str, int]:
    """Return the sizes that ``batch=8,length=128`` says."""
    return by_name(str(text), "size", whole)


AsJson = Annotated[bool, typer.Option("--json", help="print JSON instead")]
File = Annotated[
    str,
    typer.Argument(metavar="FILE", help="a gangplan document, PipeDream graph.txt, networkx JSON, DOT, ONNX, ..."),
]
Picture = Annotated[
    str | None, typer.Option(help="draw it here: .png, .svg, or .html with what a pointer is told", metavar="FILE")
]
Panel = Annotated[str | None, typer.Option(help="of the picture only this panel, e.g. load or queue")]
Problem = Annotated[str, typer.Argument(metavar="PROBLEM", help="the problem, in any known format")]
Plan = Annotated[str, typer.Argument(metavar="PLAN", help="the plan, or what `gangplan solve --json` printed")]
Plans = Annotated[list[str], typer.Argument(metavar="PLAN...", help="plans, or what `gangplan solve --json` printed")]
Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="my_module:build or file.py:build; build() returns (module, inputs)")
]
Seed = Annotated[int, typer.Option(help="of every random choice", **N)]
FirstSeed = Annotated[int, typer.Option(help="of the first sample", **whole_from(0, 2**31))]
Queue = Annotated[str | None, typer.Option(help="only the jobs of this virtual cluster of the trace")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="leave out rows that are wrong, and count them")]


def by_name(text: str, field: str, read: Callable[[str], Any] = float) -> dict[str, Any]:
    """Return the values that ``a=1,b=0.3`` says, numbers unless `read` makes something else of a word."""
    found: dict[str, Any] = {}
    for part in text.split(",") if text else []:
        name, _, value = (word.strip() for word in part.partition("="))
        try:
            if not name or not value or name in found:
                raise ValueError
            found[name] = read(value)
        except ValueError:
            wrong = "there twice" if name in found else f"not name={'number' if read is float else 'word'}"
            raise InstanceError(field, f"{part!r} is {wrong}") from None
    return found


def option(kind: Any, text: str, default: Any = None, *names: str, panel: str = "", **more: Any) -> Parameter:
    """Return an option for a table: its type, what it says in `--help`, its default, and its names if they differ."""
    optional = kind | None if default is None else kind
    known = {int: N, float: X}.get(kind, {})
    asked = typer.Option(*names, help=text, rich_help_panel=panel or None, **known | more)
    return Parameter("_", Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[optional, asked])


def _switch(name: str, text: str, panel: str) -> Parameter:
    return option(bool, text, None, f"--{name}/--no-{name}", panel=panel)


_PROBLEM, _CLUSTER, _STAGES = "The problem, instead of the file's", "Its devices, instead of the file's", "Of stages"
_OBJECTIVES = """throughput (busiest device of a pipeline), latency (one pass), step (makespan of a step), \
stages (slowest of replicated stages)  [default: the file's, or throughput]"""
_CLUSTERS = "instead of --devices: 2x8 is two nodes of 8 devices, with a --bandwidth each"
_BANDWIDTH = "of a device's link; of a cluster's levels from the inside out: IN,BETWEEN"
_TYPE = "of a file without devices: A100, V100, H100, ... or a name of its own"
PROBLEM = {
    "objective": option(str, _OBJECTIVES, panel=_PROBLEM),
    "contention": _switch("contention", "of a step: links carry one transfer at a time", _PROBLEM),
    "variant": option(str, "contiguous, convex or free  [default: the file's, or contiguous]", panel=_PROBLEM),
    "devices": option(int, "accelerators (4 if the file has none)", panel=_CLUSTER),
    "cluster": option(str, _CLUSTERS, panel=_CLUSTER, metavar="NxM"),
    "device_type": option(str, _TYPE, panel=_CLUSTER),
    "memory": option(float, "of one accelerator", panel=_CLUSTER, metavar="BYTES"),
    "bandwidth": option(float, _BANDWIDTH, panel=_CLUSTER, metavar="BYTES/S", parser=numbers),
    "training": _switch("training", "of a PipeDream profile: with the backward pass, or without", _PROBLEM),
    "size": option(
        str, "of open dimensions of an ONNX model", panel=_PROBLEM, metavar="NAME=N,...", parser=by_dimension
    ),
    "keep_inputs": _switch("keep-inputs", "of a PipeDream profile: the ops that load data", _PROBLEM),
    "activations": _switch("activations", "moving activations takes time", _STAGES),
    "recompute": _switch("recompute", "keep inputs only, run forward again", _STAGES),
    "stashing": _switch("stashing", "a version of the weights a pass under way", _STAGES),
    "memory_model": option(str, "1f1b, pipedream or none", panel=_STAGES),
    "degrees": option(str, "how many devices may share ops, e.g. 1,2,4", panel=_STAGES, metavar="N,N", parser=wholes),
}
"""What can be said of a problem besides its file; keyword arguments of `read`."""


def signed(command: Callable[..., Any], parameters: Sequence[Parameter], name: str, about: str) -> Callable[..., Any]:
    """Return the command with what typer reads off it."""
    command.__name__, command.__doc__ = name, about
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {x.name: x.annotation for x in parameters}
    return command


def with_tables(**tables: Mapping[str, Parameter]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of each table, handed over as one dict, the argument of that name."""

    def wrap(command: Callable[..., Any]) -> Callable[..., Any]:
        hints = get_type_hints(command, include_extras=True)
        parameters: list[Parameter] = []
        for name, x in signature(command).parameters.items():
            own = {name: x.replace(annotation=hints[name])}
            parameters += [y.replace(name=n, kind=Parameter.KEYWORD_ONLY) for n, y in tables.get(name, own).items()]

        def wrapped(**arguments: Any) -> Any:
            return command(**{t: {n: arguments.pop(n) for n in table} for t, table in tables.items()}, **arguments)

        return signed(wrapped, parameters, command.__name__, command.__doc__ or "")

    return wrap


with_problem = with_tables(given=PROBLEM)


def problem(file: str, given: Mapping[str, Any]) -> Any:
    """Read the problem in `file` with the options of `PROBLEM`; what is None is left to the file."""
    from gangplan.instances.readers import read

    return read(file, **given)


def problem_for(plan: Any, file: str, given: Mapping[str, Any]) -> Any:
    """Read the problem in `file` that `plan` answers: the plan says what the options leave open."""
    from gangplan.instances.kinds import GRAPHS, objective_of

    told = dict(given)
    objective = objective_of(plan)
    if told["objective"] is None and objective in GRAPHS:
        told["objective"] = objective
    if told["contention"] is None and objective == "step" and len(plan.sent):
        told["contention"] = True
    return problem(file, told)


def read_answer(path: str, kinds: Any = None) -> Any:
    """Return the plan in a file; see `read_result`."""
    return read_result(path, kinds)[0]


def read_result(path: str, kinds: Any = None) -> tuple[Any, dict[str, Any]]:
    """Read a plan of one of these kinds, and what `solve --json` says of it if that is what the file holds."""
    from gangplan.instances.documents import from_document
    from gangplan.instances.kinds import PLANS

    text = read_text(path, limit=JSON_BYTES)
    claims: dict[str, Any] = {}
    with in_file(path):
        data = parse_json(text)
        if isinstance(data, dict) and "plan" in data and "schema_version" not in data:
            claims, data = data, data["plan"]  # what `solve --json` prints
            if data is None:
                raise InstanceError("plan", "is null: that solve found none")
        value = from_document(data)
        if not isinstance(value, kinds or tuple(PLANS.values())):
            of = {"placement_plan": "gangs", "schedule_plan": "jobs over time"}.get(data["kind"])
            words = "is no plan" if of is None else f"is a plan of {of}, not of ops"
            raise InstanceError("kind", f"{data['kind']!r} {words}")
    return value, claims


def read_certificate(path: str) -> Any:
    """Return the certificate in a file, which may be what `solve --json` prints."""
    data = parse_json(read_text(path, limit=JSON_BYTES))
    return data["certificate"] if isinstance(data, dict) and "standing" in data else data


def foreign(plan: Any, own: str) -> list[str]:
    """Return a note if `plan` names another problem than the one whose content hash is `own`."""
    other = plan.instance is not None and plan.instance != own
    return [f"was made for another problem: {plan.instance}, this one is {own}"] if other else []


def check_output(path: str | None, *inputs: str) -> None:
    """Refuse, before any work is done, a path that cannot be written or would overwrite an input."""
    if path is None:
        return
    check_writable(path)
    for other in inputs:
        try:
            same = os.path.samefile(path, other)
        except (OSError, ValueError):  # one of them is not there
            same = False
        if same:
            raise InstanceError("file", "is an input of this command and would be overwritten", path)


def check_picture(path: str | None, panel: str | None, kind: type | None, *inputs: str) -> None:
    """Refuse, before any work is done, a picture that cannot be written or drawn, and a panel that it will not have."""
    if path is None and panel is None:
        return
    from ..plot import check, check_panel

    if kind is not None:
        check_panel(panel, kind)
    if path is not None:
        check_output(path, *inputs)
        check(path)


def check_page(path: str | None, *inputs: str) -> None:
    """Refuse, before any work is done, a page that cannot be written."""
    if path is not None and (suffix := Path(path).suffix).lower() != ".html":
        raise InstanceError("html", f"{suffix!r} is not .html", path)
    check_picture(path, None, None, *inputs)
