"""`gangplan generate KIND`: a command for each generator, made from its own arguments."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, cleandoc
from typing import Annotated, Any, get_origin, get_type_hints

import typer

from gangplan.instances import dump
from gangplan.instances.generators import COMMON, GENERATORS, JOBS, defaults
from gangplan.instances.generators import generate as make
from gangplan.instances.generators.fitted import fit_workload
from gangplan.instances.outlet import write_whole
from gangplan.instances.readers.traces import read_trace

from . import options
from .app import Group, made_of
from .output import Told, emit, tell

_NO_SEED = Annotated[int, "changes nothing: the architecture leaves nothing to chance"]


def _function(kind: str) -> Callable[..., Any]:
    made: Callable[..., Any] = _like if kind == "like" else JOBS[kind] if kind in JOBS else GENERATORS[kind]
    return made


def _command(kind: str) -> Any:
    out = "more.csv" if kind in ("arrivals", "like") else f"{kind}.json"
    example = f"{'jobs.csv ' * (kind == 'like')}--out {out}"
    if kind == "like":
        return made_of("generate like", _like, example)
    own = defaults(kind)

    def command(
        out: Annotated[str | None, "write the problem here instead of printing it", options.Output()] = None,
        **given: Any,
    ) -> None:
        _write(make(kind, **{name: x for name, x in given.items() if name != "seed" or name in own}), out)

    command.__doc__ = _summary(kind)
    given = {**own, **(COMMON if kind in GENERATORS else {}), "seed": own.get("seed", 0)}
    hints = {"seed": _NO_SEED, **get_type_hints(make, include_extras=True)}
    hints |= get_type_hints(_function(kind), include_extras=True)
    told = {n: x if get_origin(x) is Annotated else Annotated[x, ""] for n, x in hints.items()}
    asked = [Parameter(n, Parameter.KEYWORD_ONLY, default=x, annotation=told[n]) for n, x in given.items()]
    return made_of(f"generate {kind}", command, example, asked)


def _like(
    trace: Annotated[str, "any trace that `gangplan simulate` reads", "TRACE"],
    jobs: Annotated[int, "how many"] = 1000,
    load: Annotated[float, "arrivals come so many times as fast"] = 1.0,
    queue: Annotated[str | None, "only the jobs of this virtual cluster"] = None,
    skip_bad: Annotated[bool, "leave bad rows out"] = False,
    seed: Annotated[int, "of the random choices"] = 0,
    out: Annotated[str | None, "write the jobs here", options.Output()] = None,
) -> None:
    """Make jobs that arrive, ask for GPUs and last like those of a trace."""
    read = read_trace(trace, skip_bad=skip_bad).workload
    _write(fit_workload(read if queue is None else read.only(queue)).draw(jobs, seed, load), out)


def _write(made: Any, out: str | None) -> None:
    """Print a document, or a workload as CSV, or write it and say what it is."""
    if hasattr(made, "objective"):
        document = f"{dump(made)}\n"
    else:
        from gangplan.instances.readers.traces import as_csv

        document = as_csv(made)
    if out is None:
        emit(document)
        return
    write_whole({out: document.encode()})
    emit(f"{out}: {repr(made).partition('(')[2][:-1]}")


def _summary(kind: str) -> str:
    return cleandoc(_function(kind).__doc__ or "").splitlines()[0]


GROUPS = {
    "Networks": ("bert", "gpt", "moe", "gnmt", "resnet", "vgg", "inception", "dlrm"),
    "Random graphs": ("layered", "fork_join", "series_parallel", "pipeline"),
    "Jobs": ("gangs", "moldable", "arrivals", "like"),
    "Pipelines": ("micro_batches",),
}
"""The kinds; `like` makes arrivals after a trace."""


def _list(kinds: Annotated[bool, "list the kinds and their options", "--list"] = False) -> Told:
    if not kinds:
        return Told(0)
    known, common = {kind: defaults(kind) for kind in (*GENERATORS, *JOBS)}, dict.fromkeys(GENERATORS, COMMON)
    data = {k: {"about": _summary(k), "options": own | common.get(k, {})} for k, own in known.items()}
    told = {f"{kind}: {_summary(kind)}": own for kind, own in known.items()} | {"every op graph:": COMMON}
    tell(data, *(f"{x}\n  {', '.join(f'{name}={y}' for name, y in own.items())}" for x, own in told.items()))
    raise typer.Exit(0)


_ABOUT = """Generate the op graph of a network, or a random one; a batch of gangs; jobs over time; jobs that arrive.

`gangplan generate KIND --help` explains the options of a kind.
"""
kinds = Group("generate", _ABOUT, GROUPS, _command, _summary, "kind", _list)
