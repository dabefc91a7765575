"""A folder of shards, filled: what is missing is labelled, what is there stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gangplan.instances.arrays import require_number
from gangplan.solvers.result import OPTIMAL_GAP

from ..training.alone import alone
from .configuration import Configuration
from .engine import Engine
from .row import Row, label_instance
from .shards import open_folder, shard_path, write_shard


@dataclass(frozen=True, slots=True)
class Collected:
    """What a call of `collect` has done.

    Attributes:
        shards: how many are there now.
        written: how many of them this call wrote.
        instances, states, actions: labelled by this call, in shards that are written.
        settled: of the actions, how many have a value or are proved to be worse than the last level.
        proved: of the instances, how many are solved to proved optimality, or proved to have no plan.
        seconds: that labelling took, added up over processes.
    """

    shards: int
    written: int
    instances: int
    states: int
    actions: int
    settled: int
    proved: int
    seconds: float


def collect(
    folder: str | Path,
    configuration: Configuration,
    shards: int,
    engine: Engine | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Collected:
    """Write the first `shards` shards of a data set that are not in `folder` yet.

    A shard is written once all of its instances are labelled; Ctrl-C, or anything else that ends this, loses only
    shards that are not. More shards may be asked for later.

    Args:
        folder: is made if it is not there.
        configuration: what labels, see `Configuration`.
        shards: how many there are to be in the end.
        engine: where the work is done, by default in this process.
        progress: called with the share done.

    Raises:
        InstanceError: if the folder holds labels of another configuration, or cannot be written.
    """
    require_number(shards, "shards", positive=True, whole=True)
    with alone(Path(folder)):
        return _collect(open_folder(folder, configuration), configuration, shards, engine, progress)


def _collect(
    path: Path, configuration: Configuration, shards: int, engine: Engine | None, progress: Callable[[float], None]
) -> Collected:
    size = configuration.shard
    missing = [k for k in range(shards) if not shard_path(path, k).exists()]
    tasks = [index for k in missing for index in range(k * size, (k + 1) * size)]
    waiting: dict[int, dict[int, Row]] = {k: {} for k in missing}
    done: list[Row] = []
    progress(1 - len(missing) / shards)
    count = (shards - len(missing)) * size
    for index, row in (engine or Engine()).map(partial(label_instance, configuration), tasks) if tasks else ():
        rows = waiting[index // size]
        rows[index] = row
        count += 1
        progress(count / (shards * size))
        if len(rows) == size:
            write_shard(path, index // size, [rows[i] for i in sorted(rows)])
            done += waiting.pop(index // size).values()
    return _summary(configuration, shards, len(done) // size, done)


def _summary(configuration: Configuration, shards: int, written: int, rows: list[Row]) -> Collected:
    near = 1 + configuration.levels[-1]
    settled = 0
    for row in rows:
        worst = [near * objective for objective in row["state_objective"]]
        for state, value, lower in zip(row["label_state"], row["value"], row["lower"], strict=True):
            settled += value is not None or lower >= worst[state] * (1 - OPTIMAL_GAP)
    return Collected(
        shards=shards,
        written=written,
        instances=len(rows),
        states=sum(len(row["state_plan"]) for row in rows),
        actions=sum(len(row["value"]) for row in rows),
        settled=settled,
        proved=sum(row["infeasible"] or _proved(row) for row in rows),
        seconds=sum(row["seconds"] for row in rows),
    )


def _proved(row: Row) -> bool:
    objective, bound = row["objective"], row["bound"]
    return objective is not None and (objective == 0 or (bound is not None and objective <= bound * (1 + OPTIMAL_GAP)))
