"""Tell which format a file is in, and read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from inspect import Parameter, signature
from math import prod
from os import PathLike
from pathlib import PurePath
from typing import Any

from ..arrays import plain, require_number
from ..devices import server
from ..documents import from_document
from ..errors import JSON_BYTES, InstanceError, did_you_mean, in_file
from ..graph import OpGraph
from ..intake import file_name, parse_json, read_text
from ..kinds import GRAPHS, PROBLEMS, with_objective
from ..partition import GraphProblem, PartitionProblem, StagesProblem, megatron
from . import dot, msr, networkx_graph, pipedream, shops
from .models import LOADERS, Loaded
from .overrides import arranged, shape, with_cluster, with_speeds


def read(path: str | PathLike[str], *, objective: str | None = None, **options: Any) -> Any:
    """Read a problem from a file of any known format.

    Formats: a gangplan document of any problem, PipeDream's ``graph.txt``, the NeurIPS 2020 device-placement JSON,
    networkx' JSON and GraphML, DOT, job shops (see `shops.read_jobshop`); by their endings ``.fjs``, ``.onnx`` and
    ``.pt2``, what `torch.export.save` writes.
    ``devices``, ``memory``, ``bandwidth`` and ``variant`` apply to all of a graph on devices;
    a batch of gangs, jobs over time and the layout of a model have no options.

    Args:
        path: the file.
        objective: ``throughput``, ``latency``, ``step``, ...; by default a document's own, ``throughput`` for other
            formats. Latency is of a forward pass, so a PipeDream profile is then read without the backward one.
        options: fields of the problem of that objective, such as ``contention`` of ``step``, or ``degrees``, a menu of
            tensor parallelism for ``stages`` (see `megatron`); ``cluster``, e.g. ``2x8`` for two servers of eight
            devices, with a ``bandwidth`` for each level of links, the inner one first (see `arranged`); and keyword
            arguments of the format's own function: `from_gangplan`, `pipedream.from_pipedream`, `msr.from_msr`,
            `networkx_graph.from_node_link`, `shops.parse_jobshop`. One that is None is as if not given.

    Raises:
        InstanceError: naming file, field and the value found, whatever is wrong with the file or an option.
    """
    source = file_name(path)
    load = {**LOADERS, ".fjs": _flexible}.get(PurePath(source).suffix.lower())
    text = "" if load else read_text(path, limit=JSON_BYTES)
    given = {name: plain(value) for name, value in options.items()}
    with in_file(source):
        return _problem(load(source) if load else _loaded(text), objective=objective, **given)


def _flexible(path: str) -> Loaded:
    return Loaded(read_text(path), "a flexible job shop", shops.parse_flexible)


def parse(text: str, **options: Any) -> Any:
    """Read a problem from text; see `read`."""
    return _problem(_loaded(text), **options)


def _loaded(text: str) -> Loaded:
    """Return what a text holds, by the first format that recognises it or what its JSON, DOT or GraphML says."""
    data: Any = text
    if text.lstrip().startswith(("{", "[")):
        data = parse_json(text)
    elif dot.is_dot(text):
        data = dot.dot_link(text)
    elif text.lstrip().startswith("<"):
        data = networkx_graph.graphml(text)
    for kind, recognises, name, build in FORMATS:
        if isinstance(data, kind) and recognises(data):
            return Loaded(data, name, build)
    if not text.strip():
        raise InstanceError("content", "the file is empty")
    if isinstance(data, str):
        raise InstanceError("content", f"{text.strip().splitlines()[0]!r} begins no known format")
    keys = ", ".join(sorted(data)[:8]) if isinstance(data, dict) else ""
    what = f"JSON with {keys or 'no field'}" if isinstance(data, dict) else "a JSON list"
    raise InstanceError("content", f"{what} is no known format")


def _problem(
    found: Loaded,
    *,
    objective: str | None = None,
    cluster: str | None = None,
    bandwidth: float | Sequence[float] | None = None,
    degrees: Sequence[int] | None = None,
    **options: Any,
) -> Any:
    """Build the problem of what a file holds, with the options of `read`."""
    jobs = found.model.get("kind") if isinstance(found.model, dict) else None
    if isinstance(jobs, str) and jobs in NO_GRAPH:
        other = None if objective == jobs else objective
        known = {"objective": other, "cluster": cluster, "bandwidth": bandwidth, "degrees": degrees, **options}
        for name, value in known.items():
            if value is not None:
                raise InstanceError(name, f"{value!r} does not apply to {NO_GRAPH[jobs]}")
        return from_document(found.model)
    if objective == "latency" and options.get("training") is None and "training" in _own(found.build):
        options["training"] = False
    if objective not in (None, PartitionProblem.objective) and options.get("variant") is not None:
        raise InstanceError("variant", f"{options['variant']!r} does not apply to the objective {objective}")
    own = {name: options.pop(name) for name in OWN_FIELDS if name in options}
    problem = _clustered(found, cluster, bandwidth, **options)
    objective = problem.objective if objective is None else objective
    problem = with_objective(problem, objective)
    if degrees is not None:
        if not isinstance(problem, StagesProblem):
            raise InstanceError("degrees", f"{degrees!r} do not apply to the objective {objective}")
        own["menu"] = megatron(problem.graph, problem.cluster.device_types[problem.kind].name, degrees)
    own = {name: value for name, value in own.items() if value is not None}
    return with_objective(problem, objective, **own)


NO_GRAPH = {
    "placement": "a batch of gangs",
    "schedule": "jobs over time",
    "layout": "the layout of a model",
    "pipeline": "a pipeline of micro-batches",
}
"""Kinds of problems that are of no graph on a cluster, in words; their documents say all."""
OWN_FIELDS = {f.name for x in GRAPHS for f in fields(PROBLEMS[x])} - {"graph", "cluster", "variant", "menu"}
"""Options that are fields of the problem of some objective."""


def _clustered(
    found: Loaded,
    cluster: str | None,
    bandwidth: float | Sequence[float] | None,
    *,
    devices: int | None = None,
    memory: float | None = None,
    variant: str | None = None,
    **options: Any,
) -> GraphProblem:
    """Build; put a graph without devices on a server, or change what is said of those that the file has."""
    speeds = (bandwidth,) if isinstance(bandwidth, int | float) else bandwidth
    for i, x in enumerate(speeds or ()):
        require_number(x, "bandwidth" if len(speeds or ()) == 1 else f"bandwidth[{i}]", positive=True)
    members = None if cluster is None else shape(cluster)
    if members and devices is not None:
        raise InstanceError("devices", f"{devices!r} besides a cluster of {cluster}")
    # a tree that is arranged anew needs nothing of the cluster but the type of its devices
    one = speeds[0] if speeds and (members or len(speeds) == 1) else None
    parts = {"devices": prod(members) if members else devices, "memory": memory, "bandwidth": one, "variant": variant}
    built = found.build(found.model, **_applicable(found, {**options, **parts}))
    built = getattr(built, "problem", built)
    if isinstance(built, OpGraph):
        kind = options.get("device_type") or built.device_types[0]
        machines = server(4 if devices is None else devices, kind, memory, one)
        problem: GraphProblem = PartitionProblem(built, machines, "contiguous" if variant is None else variant)
    else:
        problem = with_cluster(built, devices, memory)
        if variant is not None:
            if not isinstance(problem, PartitionProblem):
                raise InstanceError("variant", f"{variant!r} does not apply to the objective {problem.objective}")
            problem = replace(problem, variant=variant)
    if members:
        return arranged(problem, members, speeds)
    return problem if speeds is None else with_speeds(problem, speeds)


def from_gangplan(data: dict[str, Any]) -> GraphProblem:
    """Build the problem of a parsed gangplan document."""
    problem = from_document(data)
    if not isinstance(problem, GraphProblem):
        plan = "; a plan is read by gangplan.load" if data["kind"].endswith("_plan") else ""
        raise InstanceError("kind", f"{data['kind']!r} is not a problem{plan}")
    return problem


FORMATS: tuple[tuple[type, Callable[[Any], bool], str, Callable[..., OpGraph | GraphProblem]], ...] = (
    (dict, lambda data: "schema_version" in data, "a gangplan document", from_gangplan),
    (dict, msr.recognises, "a NeurIPS 2020 placement input", msr.from_msr),
    (dict, networkx_graph.recognises, "a networkx graph", networkx_graph.from_node_link),
    (str, pipedream.recognises, "a PipeDream profile", pipedream.from_pipedream),
    (str, shops.recognises, "a job shop", shops.parse_jobshop),
)
"""Parsed or text, how it is recognised, what it is called, and what builds a graph or a problem of it."""


def _own(build: Callable[..., Any]) -> set[str]:
    """Return the options of a format."""
    return {p.name for p in signature(build).parameters.values() if p.kind is Parameter.KEYWORD_ONLY}


def _applicable(found: Loaded, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are the format's own; those of clusters are for `_clustered`, others an error."""
    known = _own(found.build) | {"devices", "memory", "bandwidth", "variant"}
    given = {option: value for option, value in options.items() if value is not None}
    for option, value in given.items():
        if option not in known:
            raise InstanceError(option, f"{value!r} does not apply to {found.name}{did_you_mean(option, known)}")
    return {option: value for option, value in given.items() if option in _own(found.build)}
