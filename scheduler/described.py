"""Clusters and schedulers that a caller describes: ``20x8``, or arguments of `Fleet`, `Fleet.regular`, `Scheduler`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError, Level, TreeTopology
from gangplan.instances.arrays import require_choice
from gangplan.instances.errors import brief, require_known
from gangplan.instances.intake import as_float, cluster_sizes
from gangplan.instances.placement import Fleet

from .configure import LIVE
from .journal.read import BEGIN
from .journal.values import TYPES, decode
from .journal.write import OF_LOG
from .scheduler import SCHEDULER_POLICIES, Scheduler
from .settings import Sharing

Arguments = Mapping[str, Any]
"""Arguments of `Scheduler` by name."""
_NODES = 100_000
"""Maximum number of nodes of a cluster that a few words describe."""
LINK, NIC = 300e9, 25e9
"""Bytes/s within a node and of its link, which Slurm, Kubernetes and Ray do not know."""


def only_known(data: Any) -> None:
    """Raise if a value anywhere inside is said to be of a type that no event has."""
    if isinstance(data, dict):
        tag = data.get("type", "pairs")
        if not isinstance(tag, str) or tag not in (*TYPES, "infinite", "pairs"):
            raise InstanceError("type", f"{brief(tag)} is no type that an event has")
    if isinstance(data, dict | list):
        for each in data.values() if isinstance(data, dict) else data:
            only_known(each)


def cluster_of(data: Any, field: str = "cluster") -> Fleet:
    """Return the cluster that a text like ``20x8`` says, or an object.

    Raises:
        InstanceError: naming the field.
    """
    if isinstance(data, str):
        form = ("racks x nodes x GPUs", "4x8x8") if data.lower().count("x") == 2 else ("nodes x GPUs", "20x8")
        sizes = cluster_sizes(data, *form, 10**9)
        data = dict(zip(("racks", "nodes", "gpus"), (1, *sizes)[-3:], strict=True))
    if not isinstance(data, dict):
        raise InstanceError(field, f"{brief(data)} is neither like 20x8 nor an object")
    only_known(data)
    try:
        if "names" in data:
            found = decode({"type": "Fleet"} | data)
            if not isinstance(found, Fleet):
                raise InstanceError("type", f"{brief(data['type'])} is no Fleet")
            return found
        require_known(data, inspect.signature(Fleet.regular).parameters)
        if lack := [x for x in ("racks", "nodes") if x not in data]:
            raise InstanceError(lack[0], "is missing")
        for x in ("cpu", "memory", "link", "nic"):
            as_float(data.get(x, 0.0), x)
        count = data.get("racks"), data.get("nodes")
        if isinstance(count[0], int) and isinstance(count[1], int) and count[0] * count[1] > _NODES:
            raise InstanceError("nodes", f"{count[0] * count[1]} are more than {_NODES}")
        return Fleet.regular(**data)
    except InstanceError as error:
        raise error.within(field) from None
    except (TypeError, ValueError, AttributeError, KeyError, IndexError, ArithmeticError) as error:
        raise InstanceError(field, f"cannot be read: {error}".replace("Fleet.regular()", "it")) from None


def racks_of(racks: Sequence[str]) -> TreeTopology:
    """Return the tree of a cluster, given the name of the rack of each node."""
    known, m = list(dict.fromkeys(racks)), len(racks)
    groups: Any = [[known.index(x) for x in racks], [0] * m]
    return TreeTopology((Level("rack", NIC), Level("cluster", NIC * max(1, m) / 2)), groups)


def fleet_of(types: Sequence[str], labels: Mapping[str, Any], **columns: Any) -> Fleet:
    """Return nodes as a scheduler sees them: GPU type of each, labels with the nodes that carry them, other fields."""
    kinds = tuple(dict.fromkeys(types))
    columns |= {"gpu_type": [kinds.index(x) for x in types], "link": [LINK] * len(types)}
    columns |= {"labels": tuple(labels), "labelled": [list(row) for row in labels.values()]}
    return Fleet(gpu_types=kinds, **columns)


def scheduler_of(data: Mapping[str, Any], log: Path | None = None, *, sync: bool = False) -> Scheduler:
    """Return a new scheduler of a cluster and arguments that a stranger sent.

    Raises:
        InstanceError: naming the field.
    """
    require_known(data, [x for x in inspect.signature(Scheduler).parameters if x not in OF_LOG])
    if "cluster" not in data:
        raise InstanceError("cluster", "is missing: write 20x8, or its nodes")
    fleet = cluster_of(data["cluster"])
    given = {key: value for key, value in data.items() if key != "cluster"}
    only_known(given)
    require_choice(given.get("policy", "hybrid"), "policy", SCHEDULER_POLICIES)
    for name in ("together", "reserve"):
        if not isinstance(given.get(name), bool | None):
            raise InstanceError(name, f"{brief(given[name])} is not true or false")
    try:
        return Scheduler(fleet, **{key: decode(value) for key, value in given.items()}, log=log, sync=sync)
    except InstanceError:
        raise
    except (TypeError, ValueError, AttributeError, KeyError, IndexError, ArithmeticError) as error:
        raise InstanceError("arguments", f"cannot be read: {type(error).__name__}: {error}") from None


def reopened(log: Path, given: Arguments | Callable[[Arguments], Arguments], *, sync: bool = False) -> Scheduler:
    """Return the scheduler of a log, so that a command goes on with it, with the settings that it names.

    Args:
        log: the file.
        given: arguments of `Scheduler` that the command names, or what returns those of the log with them.
        sync: as of `Scheduler`.

    Raises:
        InstanceError: if it names others than those of the log which do not change live.
    """
    policy = given.get("policy") if isinstance(given, Mapping) else None
    scheduler = Scheduler.open(log, None if isinstance(policy, str) else policy, sync=sync)
    known = scheduler._arguments | {"policy": scheduler._policy}
    named = {**known, **given} if isinstance(given, Mapping) else given(known)
    named = {**named, "sharing": Sharing.of(named["sharing"])}
    changes = {name: value for name, value in named.items() if name not in OF_LOG and value != known.get(name)}
    if fixed := [name for name in changes if name not in LIVE]:
        raise InstanceError("set", f"{fixed[0]} is not as in the log, and stays: name another --log", f"{log}")
    if changes:
        scheduler.configure(**changes)
    return scheduler


def has_begun(log: Path) -> bool:
    """Return whether a log can be gone on with; a file that was cut off in its first line is removed."""
    if not log.exists():
        return False
    if log.is_dir():
        raise InstanceError("log", "is a directory", str(log))
    with log.open("rb") as file:
        first = file.readline()
    if first.endswith(b"\n") or not (first.startswith(BEGIN) or BEGIN.startswith(first)):
        return True
    os.unlink(log)
    return False
