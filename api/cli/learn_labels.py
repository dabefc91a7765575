"""`gangplan learn labels`: data sets of near-optimal actions from exact solves."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from gangplan.instances.generators.families import SPLITS
from gangplan.learned.labels import PROBLEMS, Configuration, Engine, collect, up_to

from . import options
from .numbers import number, whole
from .output import emit, emit_json
from .progress import Bar

INTERRUPTED = 130


def labels(
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help=", ".join(PROBLEMS))],
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="for the shards; what is there is not made again")],
    shards: Annotated[int, typer.Option(help="how many there are to be", metavar="N", parser=whole)] = 4,
    shard_size: Annotated[int, typer.Option(help="instances a shard", metavar="N", parser=whole)] = 16,
    size: Annotated[
        int,
        typer.Option(help="of an instance: ops at most, backward ones among them", metavar="N", parser=whole),
    ] = 50,
    family: Annotated[
        list[str] | None, typer.Option(help="of instances; may be repeated  [default: all of them]", metavar="NAME")
    ] = None,
    split: Annotated[str, typer.Option(help=f"{', '.join(SPLITS)}: their seeds are apart", metavar="NAME")] = "train",
    states: Annotated[
        int, typer.Option(help="labelled on the way, besides the empty one", metavar="N", parser=whole)
    ] = 8,
    near: Annotated[
        float, typer.Option(help="how much worse than the best an action may be", metavar="RATIO", parser=number)
    ] = 0.1,
    time_limit: Annotated[float, typer.Option(help="an instance", metavar="SECONDS", parser=number)] = 60.0,
    engine: Annotated[str, typer.Option(help="local or ray", metavar="NAME")] = "local",
    processes: Annotated[
        int | None, typer.Option(help="at a time  [default: as many as there are cores]", metavar="N", parser=whole)
    ] = None,
    address: Annotated[str, typer.Option(help="of the Ray cluster, or local for a new one", metavar="ADDRESS")] = "",
    as_json: options.AsJson = False,
) -> int:
    """Solve seeded instances of PROBLEM exactly, and keep all optimal and near-optimal actions with their values.

    A shard is a Parquet file, written once it is whole; the same command goes on where it was stopped.
    """
    configuration = Configuration(
        problem, tuple(family or ()), size, split, states, up_to(near), time_limit, shard_size
    )
    where = Engine(engine, processes or 0, address)
    try:
        with Bar("labelling", hidden=as_json) as bar:
            found = collect(folder, configuration, shards, where, bar)
    except KeyboardInterrupt:
        sys.stderr.write(f"interrupted: the finished shards stay in {folder}, the same command goes on from there\n")
        return INTERRUPTED
    if as_json:
        emit_json({"problem": problem, "folder": folder, **asdict(found)})
        return 0
    lines = [f"{found.shards} shards in {folder}, {found.written} of them new"]
    if found.written:
        rate = found.actions / found.seconds
        lines += [
            f"{found.instances} instances, {found.proved} proved; {found.states} states, {found.actions} actions",
            f"{found.settled} actions have a value, or are proved to be more than {near:.0%} worse",
            f"{found.seconds:.1f} s of solving, {rate:.1f} actions a second on one core",
        ]
    emit("\n".join(lines))
    return 0
