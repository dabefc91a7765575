"""Shards: Parquet files of labelled instances, filled, written whole or not at all, and read as problems and arrays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from gangplan.instances import InstanceError, PartitionProblem, content_hash, load
from gangplan.instances.arrays import require_number
from gangplan.instances.errors import BYTES, ROWS
from gangplan.instances.generators.families import make
from gangplan.instances.intake import io_error, read_json
from gangplan.instances.outlet import write_whole
from gangplan.solvers.run import OPTIMAL_GAP

from ..policy.settings import build
from ..training.lock import locked
from .actions import Labels, State
from .configuration import Configuration
from .engine import Engine
from .instance import Row, label_instance

COLUMNS = {
    **dict.fromkeys(("problem", "family", "split", "hash", "gangplan", "ortools"), "string"),
    **dict.fromkeys(("seed", "size"), "int64"),
    **dict.fromkeys(("objective", "bound", "seconds"), "double"),
    "infeasible": "bool",
    "plan": "list string",
    **dict.fromkeys(("plan_objective", "state_objective", "state_bound", "value", "lower"), "list double"),
    **dict.fromkeys(("state_plan", "state_depth", "label_state", "decision", "action"), "list int32"),
    "state_proved": "list bool",
}
"""The columns of a shard and their types; a row is an instance, and docs/labels.md says what they hold."""
MANIFEST = "labels.json"
"""The file beside the shards that says what they are."""


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """An instance and what was found out about it.

    Attributes:
        problem: made again, its hash that of the file.
        family, seed, split: where it comes from.
        objective, bound: of the best plan known, and what is proved; `None` if there is none.
        plans: the best first found and all others that are needed to show an action, each with its objective.
        states: each labelled state with its labels; a state's labels hold no plans of their own.
    """

    problem: PartitionProblem
    family: str
    seed: int
    split: str
    objective: float | None
    bound: float | None
    plans: tuple[tuple[Any, float], ...]
    states: tuple[tuple[State, Labels], ...]


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
    with locked(Path(folder)):
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


def open_folder(folder: str | Path, configuration: Configuration) -> Path:
    """Make `folder`, or check that what it holds is of the same configuration.

    Raises:
        InstanceError: naming the first setting that differs, or what cannot be written.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InstanceError("folder", io_error(error), str(folder)) from None
    wanted = asdict(configuration)
    if (path / MANIFEST).exists():
        there = asdict(configuration_of(path))
        for name, value in wanted.items():
            if there[name] != value:
                words = f"{value!r} is not {there[name]!r}, with which the labels there were made"
                raise InstanceError(name, words, str(folder))
    else:
        if any(path.glob("*.parquet")):
            raise InstanceError(
                "folder", f"holds Parquet files, and no {MANIFEST} that says what they are", str(folder)
            )
        write_whole({path / MANIFEST: (json.dumps(wanted) + "\n").encode()})
    return path


def configuration_of(folder: str | Path) -> Configuration:
    """Return what the labels in `folder` were made with.

    Raises:
        InstanceError: if that is not to be read there.
    """
    file = Path(folder) / MANIFEST
    data = read_json(file)
    try:
        if not isinstance(data, dict):
            raise InstanceError("content", "is not what labels are made with")
        return build(Configuration, data)
    except InstanceError as error:
        raise error.of(str(file)) from None


def shard_path(folder: Path, number: int) -> Path:
    """Return the file of shard `number`, from 0."""
    return folder / f"shard-{number:05d}.parquet"


def write_shard(folder: Path, number: int, rows: Sequence[Row]) -> None:
    """Write a shard beside its place, then move it there.

    Raises:
        InstanceError: naming the file, if it cannot be written.
    """
    pa, parquet = _pyarrow()
    types = {
        "string": pa.string(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "int32": pa.int32(),
    }
    fields = []
    for name, kind in COLUMNS.items():
        many, _, of = kind.rpartition(" ")
        fields.append(pa.field(name, pa.list_(types[of]) if many else types[of]))
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.Table.from_pylist(list(rows), pa.schema(fields)), sink, compression="zstd")
    write_whole({shard_path(folder, number): sink.getvalue().to_pybytes()})


def read_labels(folder: str | Path) -> Iterator[Labelled]:
    """Yield every labelled instance in `folder`, shard after shard, its problem made again from family and seed.

    Raises:
        InstanceError: if a file cannot be read, or an instance no longer comes out as it was.
    """
    path = Path(folder)
    configuration_of(path)
    _, parquet = _pyarrow()
    for file in sorted(path.glob("shard-*.parquet")):
        for i, row in enumerate(_rows(file, parquet)):
            try:
                yield _labelled(row, str(file))
            except (KeyError, TypeError, ValueError, IndexError) as error:
                if isinstance(error, InstanceError):
                    raise error.of(str(file)) from None
                raise InstanceError(f"row {i}", f"is no labelled instance: {error}", str(file)) from None


def _rows(file: Path, parquet: Any) -> list[Row]:
    """Return the rows of a shard, which may say a lot in few bytes: what they come to is looked at first."""
    try:
        with parquet.ParquetFile(file) as shard:
            meta = shard.metadata
            groups = range(meta.num_row_groups)
            BYTES.check(sum(max(0, meta.row_group(i).total_byte_size) for i in groups), "content")
            ROWS.check(meta.num_rows, "content")
            missing = [name for name in COLUMNS if name not in shard.schema_arrow.names]
            if missing:
                raise InstanceError("columns", f"lack {missing[0]!r}")
            found: list[Row] = shard.read(list(COLUMNS)).to_pylist()
            return found
    except InstanceError as error:
        raise error.of(str(file)) from None
    except (OSError, ValueError, MemoryError, NotImplementedError) as error:
        raise InstanceError("content", f"is no shard: {io_error(error)}", str(file)) from None


def _labelled(row: Row, file: str) -> Labelled:
    problem = make("throughput", row["family"], row["seed"], row["size"])
    if content_hash(problem) != row["hash"]:
        words = f"of {row['family']} {row['seed']} is not that of the instance made now: the generator has changed"
        raise InstanceError("hash", words, file)
    plans = tuple((load(text), value) for text, value in zip(row["plan"], row["plan_objective"], strict=True))
    of = np.array(row["label_state"], dtype=np.int32)
    columns = {
        "decision": np.array(row["decision"], dtype=np.int32),
        "action": np.array(row["action"], dtype=np.int32),
        "value": np.array([nan if x is None else x for x in row["value"]]),
        "lower": np.array(row["lower"]),
    }
    states = []
    for i, (plan, depth) in enumerate(zip(row["state_plan"], row["state_depth"], strict=True)):
        mine: dict[str, Any] = {name: column[of == i] for name, column in columns.items()}
        found = Labels(objective=row["state_objective"][i], bound=row["state_bound"][i], plans=(), **mine)
        states.append((State(plans[plan][0], depth), found))
    return Labelled(
        problem, row["family"], row["seed"], row["split"], row["objective"], row["bound"], plans, tuple(states)
    )


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise InstanceError("labels", 'need pyarrow: pip install "gangplan[learn]"') from None
    return pa, parquet
