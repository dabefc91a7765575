"""Declare what several commands ask for, read plans with the errors of problems, check paths before any work."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from inspect import Parameter, Signature, signature
from math import inf
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from gangplan.instances.errors import JSON_BYTES, InstanceError, in_file
from gangplan.instances.intake import parse_json, read_text
from gangplan.instances.kinds import GRAPHS, PLANS, objective_of
from gangplan.instances.outlet import check_writable

from .output import AS_JSON, Told


class Section(str):
    """The title in `--help` below which an option stands."""


READ, SEVERAL = object(), object()
"""Mark a file that a command reads, or several; and words that may be joined by commas, each of them given once."""


class Output:
    """Mark a file that a command writes, which has one of these endings and is refused by `check` before any work."""

    def __init__(self, *endings: str, check: Callable[[str], Any] = str) -> None:
        self.endings, self.check = endings, check

    def require(self, name: str, path: str, inputs: Sequence[str]) -> None:
        """Refuse a path that cannot be written, would overwrite an input or has another ending."""
        check_writable(path)
        same = False
        for other in inputs:
            with suppress(OSError, ValueError):  # one of them is not there
                same = same or os.path.samefile(path, other)
        if same:
            raise InstanceError("file", "is an input of this command and would be overwritten", path)
        if self.endings and (ending := Path(path).suffix.lower()) not in self.endings:
            known = "one of " * (len(self.endings) > 1) + ", ".join(self.endings)
            raise InstanceError(name, f"{ending!r} is not {known}", path)
        self.check(path)


def declared(command: Callable[..., Any], asked: Sequence[Parameter] = ()) -> Callable[..., Any]:
    """Return a command with what typer reads off its signature, in which `asked` stand for ``**given``.

    An argument or option is ``Annotated[type, help, ...]``; the rest, in any order, is the name of its value in
    capitals, ``--names`` other than the parameter's, the least and most of a number, what reads its text, its
    `Section`, `READ`, `SEVERAL` or `Output`. It is an argument if it has no ``--names``, and no default or the name of
    its value is in brackets. A parameter that is a dataclass stands for its fields of that form, below the attribute
    ``section`` of the class. A command that returns what was `Told` has ``--json`` too.
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[Parameter] = []
    tables: dict[str, tuple[Any, list[str]]] = {}
    marks: dict[str, Any] = {}

    def ask(x: Parameter, hint: Any, section: str = "") -> None:
        parameters.append(_asked(x, hint, section))
        marks.update((x.name, y) for y in get_args(hint)[1:] if y in (READ, SEVERAL) or isinstance(y, Output))

    for x in signature(command).parameters.values():
        kind: Any = hints.get(x.name)
        if x.kind is Parameter.VAR_KEYWORD:
            for y in asked:
                ask(y, y.annotation)
        elif is_dataclass(kind):
            table: Any = kind
            own, section = get_type_hints(table, include_extras=True), getattr(table, "section", "")
            fields = [y for y in signature(table).parameters.values() if get_origin(own[y.name]) is Annotated]
            for y in fields:
                ask(y, own[y.name], section)
            tables[x.name] = table, [y.name for y in fields]
        else:
            ask(x, kind)
    if hints.get("return") is Told:
        ask(Parameter("as_json", Parameter.KEYWORD_ONLY, default=False), _AS_JSON)

    def read(as_json: bool = False, **arguments: Any) -> Any:
        AS_JSON.set(as_json)
        _check_files(marks, arguments)
        several = (name for name, mark in marks.items() if mark is SEVERAL and arguments[name] is not None)
        arguments |= {name: _words(arguments[name], name) for name in several}
        for name, (table, fields) in tables.items():
            arguments[name] = table(**{field: arguments.pop(field) for field in fields})
        return command(**arguments)

    read.__name__, read.__doc__ = command.__name__, command.__doc__
    read.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    read.__annotations__ = {x.name: x.annotation for x in parameters}
    return read


def _check_files(marks: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse, before any work is done, files that cannot be written, that are read, or that are of two options."""
    read = [given[name] for name, mark in marks.items() if mark is READ and given[name]]
    inputs = [path for one in read for path in ([one] if isinstance(one, str) else one)]
    options: dict[str, str] = {}
    for name, mark in marks.items():
        if isinstance(mark, Output) and (path := given[name]) is not None:
            mark.require(name, path, inputs)
            if path in options:
                raise InstanceError(name, f"is the file of --{options[path]} too", path)
            options[path] = name


def _words(given: Sequence[str], field: str) -> list[str]:
    words = [word.strip() for one in given for word in one.split(",")]
    for word in words:
        if words.count(word) > 1:
            raise InstanceError(field, f"{word!r} is given {words.count(word)} times")
    return words


def _asked(x: Parameter, hint: Any, section: str = "") -> Parameter:
    """Return a parameter of a command in the words of typer."""
    if get_origin(hint) is not Annotated:
        return x.replace(annotation=hint)
    kind, text, *more = get_args(hint)
    bare: Any = next(iter(get_args(kind)), kind) if isinstance(kind, UnionType) else kind
    names = [y for y in more if type(y) is str and y.startswith("--")]
    value = next((y for y in more if type(y) is str and y not in names), None)
    section = next((y for y in more if isinstance(y, Section)), section)
    metavar = value or {bool: None, int: "N", float: "X"}.get(bare, "NAME")
    how: dict[str, Any] = {"help": text, "metavar": metavar, "rich_help_panel": section or None}
    if bare in (int, float):
        how["parser"] = _parser(bare, *(y for y in more if isinstance(y, tuple)))
    elif parser := READS.get(bare) or next(filter(callable, more), None):
        how["parser"], kind = _parser(parser), Any
    if not names and (x.default is Parameter.empty or (value or "").startswith("[")):
        asked = typer.Argument(**how)
    else:
        asked = typer.Option(*(names or [f"--{x.name.replace('_', '-')}"] * (x.default is False)), **how)
    return x.replace(annotation=Annotated[kind, asked], kind=Parameter.KEYWORD_ONLY)


def _parser(kind: Callable[[Any], Any], limits: tuple[float, float] = (-inf, inf)) -> Callable[[Any], Any]:
    def parse(text: Any) -> Any:
        if not isinstance(text, str):  # a default
            return text
        try:
            value = kind(text)
        except InstanceError as error:
            raise typer.BadParameter(error.problem) from None
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not a {'whole ' * (kind is int)}number") from None
        if limits[1] < inf and not limits[0] <= value <= limits[1]:
            raise typer.BadParameter(f"{value!r} is not from {limits[0]} to {limits[1]}")
        return value

    return parse


whole, number = _parser(int), _parser(float)


def numbers(text: Any) -> Any:
    """Return the number that `text` says, or of several joined by commas a tuple."""
    found = tuple(map(number, text.split(",")))
    return found if len(found) > 1 else found[0]


def wholes(text: Any) -> tuple[int, ...]:
    """Return the whole numbers that `text` says, joined by commas."""
    return tuple(map(whole, text.split(",")))


READS: dict[Any, Callable[..., Any]] = {Sequence[int]: wholes, Sequence[float]: lambda x: (*map(number, x.split(",")),)}
"""What reads several values joined by commas."""


def _drawable(path: str) -> None:
    from ..plot import check

    check(path)


def drawn(path: str, problem: Any, plan: Any, **more: Any) -> bytes:
    """Return the picture of a plan, or of a result, by the ending of `path`; few commands draw, so few import it."""
    from ..plot import render

    return render(path, problem, plan, **more)


def check_panel(panel: str | None, kind: type) -> None:
    """Refuse a panel that no picture of such a problem, or outcome, has."""
    if panel is not None:
        from ..plot import check_panel

        check_panel(panel, kind)


_AS_JSON = Annotated[bool, "print JSON instead", "--json"]
File = Annotated[str, "a gangplan document, PipeDream graph.txt, networkx JSON, DOT, ONNX, ...", "FILE", READ]
DRAWN = Output(check=_drawable)
Picture = Annotated[str | None, "draw it here: .png, .svg, or .html with what a pointer is told", "FILE", DRAWN]
Panel = Annotated[str | None, "of the picture only this panel, e.g. load or queue"]
Problem = Annotated[str, "the problem, in any known format", "PROBLEM", READ]
Plan = Annotated[str, "the plan, or what `gangplan solve --json` printed", "PLAN", READ]
Log = Annotated[str, "what Scheduler(log=...) wrote", "LOG", READ]
Page = Annotated[str | None, "write one page with tables and pictures", "FILE.html", Output(".html")]
Model = Annotated[str, "my_module:build or file.py:build; build() returns (module, inputs)", "MODEL"]
Seed = Annotated[int, "of every random choice"]
FirstSeed = Annotated[int, "of the first sample", (0, 2**31)]


def by_name(text: str | None, field: str, read: Callable[[str], Any] = float) -> dict[str, Any]:
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


_sizes = partial(by_name, field="size", read=whole)
_PROBLEM, _CLUSTER, _STAGES = map(
    Section, ("The problem, instead of the file's", "Its devices, instead of the file's", "Of stages")
)
_OBJECTIVES = """throughput (busiest device of a pipeline), latency (one pass), step (makespan of a step), \
stages (slowest of replicated stages)  [default: the file's, or throughput]"""
_BANDWIDTH = "of a device's link; of a cluster's levels from the inside out: IN,BETWEEN"
_GIVEN_CLUSTER = "instead of --devices: 2x8 is two nodes of 8 devices, with a --bandwidth each"
_DEVICE_TYPE = "of a file without devices: A100, V100, H100, ... or a name of its own"


@dataclass(frozen=True)
class Given:
    """What can be said of a problem besides its file; keyword arguments of `gangplan.instances.readers.read`."""

    objective: Annotated[str | None, _OBJECTIVES, _PROBLEM] = None
    contention: Annotated[bool | None, "of a step: links carry one transfer at a time", _PROBLEM] = None
    shop: Annotated[str | None, "of a file of several job shops: its name", _PROBLEM] = None
    variant: Annotated[str | None, "contiguous, convex or free  [default: the file's, or contiguous]", _PROBLEM] = None
    devices: Annotated[int | None, "accelerators (4 if the file has none)", _CLUSTER] = None
    cluster: Annotated[str | None, _GIVEN_CLUSTER, "NxM", _CLUSTER] = None
    device_type: Annotated[str | None, _DEVICE_TYPE, _CLUSTER] = None
    memory: Annotated[float | None, "of one accelerator", "BYTES", _CLUSTER] = None
    bandwidth: Annotated[Any, _BANDWIDTH, "BYTES/S", numbers, _CLUSTER] = None
    training: Annotated[bool | None, "of a PipeDream profile: with the backward pass, or without", _PROBLEM] = None
    size: Annotated[Any, "of open dimensions of an ONNX model", "NAME=N,...", _sizes, _PROBLEM] = None
    keep_inputs: Annotated[bool | None, "of a PipeDream profile: the ops that load data", _PROBLEM] = None
    activations: Annotated[bool | None, "moving activations takes time", _STAGES] = None
    recompute: Annotated[bool | None, "keep inputs only, run forward again", _STAGES] = None
    stashing: Annotated[bool | None, "a version of the weights a pass under way", _STAGES] = None
    memory_model: Annotated[str | None, "1f1b, pipedream or none", _STAGES] = None
    degrees: Annotated[Sequence[int] | None, "how many devices may share ops, e.g. 1,2,4", "N,N", _STAGES] = None


def problem(file: str, given: Given) -> Any:
    """Read the problem in `file`; what is None is left to the file."""
    from gangplan.instances.readers import read

    return read(file, **vars(given))


def answered(file: str, path: str, given: Given, kinds: Any = None) -> tuple[Any, Any]:
    """Read a plan, and the problem in `file` that it answers: the plan says what the options leave open."""
    plan, _ = read_result(path, kinds)
    objective = objective_of(plan)
    if given.objective is None and objective in GRAPHS:
        given = replace(given, objective=objective)
    if given.contention is None and objective == "step" and len(plan.sent):
        given = replace(given, contention=True)
    return problem(file, given), plan


def read_result(path: str, kinds: Any = None) -> tuple[Any, dict[str, Any]]:
    """Read a plan of one of these kinds, and what `solve --json` says of it if that is what the file holds."""
    from gangplan.instances.documents import from_document

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
            others = {
                "placement_plan": "gangs", "schedule_plan": "jobs over time", "layout_plan": "a model's training",
                "pipeline_plan": "passes",
            }  # fmt: skip
            of = others.get(data["kind"])
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


def refuse(*rows: tuple[str, Any, str]) -> None:
    """Refuse the first option of which it is true that something is wrong; in words what."""
    for field, wrong, words in rows:
        if wrong:
            raise InstanceError(field, words)


def require_positive(**numbers: Any) -> None:
    """Refuse a number of an option, or of several, that is neither `None` nor positive and finite."""
    for field, values in numbers.items():
        for x in values if isinstance(values, tuple) else (values,):
            if x is not None and not 0 < x < inf:
                raise InstanceError(field, f"{x!r} is not a positive number")
