"""Read Alibaba's GPU trace of 2023, OpenB, as published beside FGD (Weng et al., USENIX ATC 2023).

A node list has the columns ``sn, cpu_milli, memory_mib, gpu, model``; a pod list has ``name, cpu_milli, memory_mib,
num_gpu, gpu_milli, gpu_spec`` and others that are not needed. CPU is in thousandths of a core, memory in MiB,
``gpu_milli`` in thousandths of one GPU; ``gpu_spec`` names the models a pod accepts, with ``|`` between them. Nothing
there, or ``nan`` as the publisher's page shows it, is any model, or none for a node without GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import NamedTuple, TypeVar

import numpy as np

from ..cluster import Level, TreeTopology
from ..errors import InstanceError, in_file
from ..intake import read_text
from ..placement.fleet import Fleet
from ..placement.job import Demand, Task
from .trace_formats import MEBIBYTE, MILLI
from .trace_rows import Format, TraceRow, table

LINK, NIC = 50e9, 12.5e9
"""Bytes/s between GPUs of a node and of its NIC, which the files do not state; placing single pods needs neither."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods of a list."""

    names: tuple[str, ...]
    tasks: tuple[Task, ...]
    skipped: int = 0


def read_nodes(path: str | PathLike[str], *, skip_bad: bool = False) -> Fleet:
    """Read a node list."""
    rows, _ = _read(path, NODES, skip_bad)
    number = {model: i for i, model in enumerate(dict.fromkeys(node.model for node in rows if node.gpus))}
    amounts = np.array([[node.cpu, node.memory, node.gpus] for node in rows], dtype=np.float64)
    with in_file(path):
        return Fleet(
            names=tuple(node.name for node in rows),
            gpu_types=tuple(number) or ("none",),
            gpu_type=np.array([number[node.model] if node.gpus else 0 for node in rows], dtype=np.int32),
            gpus=amounts[:, 2].astype(np.int64),
            cpu=amounts[:, 0] / MILLI,
            memory=amounts[:, 1] * MEBIBYTE,
            link=np.full(len(rows), LINK),
            topology=TreeTopology.regular((Level("cluster", NIC),), (len(rows),)),
        )


def read_pods(path: str | PathLike[str], *, skip_bad: bool = False) -> Pods:
    """Read a pod list. Columns ``memory_mib`` and ``gpu_spec`` may be absent: no memory, any model."""
    rows, skipped = _read(path, PODS, skip_bad)
    return Pods(tuple(name for name, _ in rows), tuple(task for _, task in rows), len(skipped))


def _read(path: str | PathLike[str], form: Format[T], skip_bad: bool) -> tuple[list[T], list[str]]:
    """Return what is made of each row, and what is wrong with those left out."""
    content = read_text(path)
    with in_file(path):
        return form.read(table(content), skip_bad)


class Node(NamedTuple):
    """A row of a node list, in its units."""

    name: str
    cpu: int
    memory: int
    gpus: int
    model: str


def _node(row: TraceRow) -> Node:
    gpus, model = row.whole("gpu", 0), _model(row["model"])
    if gpus and not model:
        raise InstanceError("model", f"is missing for {gpus} GPUs")
    return Node(row.text("sn"), row.whole("cpu_milli", 0), row.whole("memory_mib", 0), gpus, model)


def _pod(row: TraceRow) -> tuple[str, Task]:
    gpus, milli = row.whole("num_gpu", 0), row.whole("gpu_milli", 0)
    if gpus and not 0 < milli <= MILLI:
        raise InstanceError("gpu_milli", f"{milli} is not from 1 to {MILLI}")
    if gpus > 1 and milli < MILLI:
        raise InstanceError("gpu_milli", f"{milli} is a share, of {gpus} GPUs")
    memory = row.whole("memory_mib", 0) * MEBIBYTE if "memory_mib" in row else 0
    models = [_model(model) for model in row.get("gpu_spec", "").split("|")] if gpus else []
    demand = Demand(gpus if milli == MILLI else gpus * milli / MILLI, row.whole("cpu_milli", 0) / MILLI, float(memory))
    return row.text("name"), Task(demand, tuple(filter(None, models)))


def _model(name: str) -> str:
    return "" if name.strip().lower() == "nan" else name.strip()


NODES = Format("a node list", "sn cpu_milli memory_mib gpu model", "", _node, unique="sn")
PODS = Format("a pod list", "name cpu_milli num_gpu gpu_milli", "memory_mib gpu_spec", _pod)
