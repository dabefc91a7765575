"""A scheduler's state as JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number, require_text
from gangplan.instances.placement import Demand, Fleet, GangJob

from .book import Stint
from .desk import Desk
from .guard import Guard
from .job import Request

VERSION = 3


def save(desk: Desk, guard: Guard, count: int) -> dict[str, Any]:
    """Return the state: names, numbers, lists and dicts only."""
    book, fleet = desk.book, desk.book.fleet
    return {
        "gangplan": "scheduler",
        "version": VERSION,
        "settings": asdict(desk.settings),
        "nodes": fleet.n_nodes,
        "gpus": fleet.n_gpus,
        "now": book.now,
        "serial": book.serial,
        "decisions": count,
        "down": [node for node, up in enumerate(book.up) if not up],
        "waiting": [asdict(request) for request in book.waiting.values()],
        "running": [_stint(stint) for stint in book.running.values()],
        "finished": list(book.finished),
        "guess": desk.guess.state(),
        "faults": dict(guard.faults),
    }


def _stint(stint: Stint) -> dict[str, Any]:
    nodes = [[node, list(gpus)] for node, gpus in stint.nodes.items()]
    plain = {"degree": stint.degree, "since": stint.since, "end": stint.end, "nodes": nodes}
    return {"request": asdict(stint.request), **plain}


def load(document: Mapping[str, Any], desk: Desk, guard: Guard) -> int:
    """Enter a state into a desk on which nothing has happened yet; return how many decisions there were.

    Raises:
        InstanceError: naming what of the document is wrong.
    """
    try:
        _whole(document, desk.book.fleet)
        return _load(document, desk, guard)
    except InstanceError as error:
        raise error.within("snapshot") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, AssertionError, ArithmeticError) as error:
        raise InstanceError("snapshot", f"is not what snapshot returned: {type(error).__name__}: {error}") from None


def _whole(document: Mapping[str, Any], fleet: Fleet) -> None:
    if document.get("gangplan") != "scheduler" or document.get("version") != VERSION:
        raise InstanceError("version", f"{document.get('version')!r} of {document.get('gangplan')!r} cannot be read")
    for field, value in (("nodes", fleet.n_nodes), ("gpus", fleet.n_gpus)):
        if document[field] != value:
            raise InstanceError(field, f"{document[field]!r} where the cluster has {value}")


def _load(document: Mapping[str, Any], desk: Desk, guard: Guard) -> int:
    book = desk.book

    up = {node for node, is_up in enumerate(book.up) if is_up}
    for node in document["down"]:
        book.node(node)
    for node in up & set(document["down"]):
        desk.fail(node, None)
    for node in set(range(len(book.up))) - up - set(document["down"]):
        desk.repair(node, None)
    for row in document["running"]:
        request = _request(row["request"])
        desk.check(request)
        for field in ("since", "end"):
            require_number(row[field], f"running.{field}")
        if row["degree"] not in request.job.workers:
            raise InstanceError("running.degree", f"{row['degree']!r} is not on the menu of {request.name!r}")
        nodes = {node: tuple(gpus) for node, gpus in row["nodes"]}
        desk.enter(Stint(request, row["degree"], row["since"], row["end"], nodes))
    for row in document["waiting"]:
        request = _request(row)
        desk.check(request)
        desk.wait(request)
    for i, name in enumerate(document["finished"]):
        require_text(name, f"finished[{i}]")
        book.over(name)
    require_number(document["now"], "now")
    for field in ("serial", "decisions"):
        require_number(document[field], field, whole=True)
    book.now, book.serial = float(document["now"]), document["serial"]
    desk.guess.load(document["guess"])
    for tier, count in document["faults"].items():
        require_text(tier, "faults")
        require_number(count, f"faults.{tier}", whole=True)
        guard.faults[tier] = count
    return int(document["decisions"])


def _request(row: Mapping[str, Any]) -> Request:
    job = dict(row["job"])
    for part in ("worker", "server"):
        job[part] = Demand(**job[part])
    require_number(row["price"], "price", optional=True)
    seconds = row["seconds"]
    for field in ("submit", "left", "done"):
        require_number(row[field], field)
    for i, value in enumerate(seconds):
        require_number(value, f"seconds[{i}]")
    require_number(row["serial"], "serial", whole=True)
    for field in ("told", "together", "again"):
        if not isinstance(row[field], bool):
            raise InstanceError(field, f"{row[field]!r} is not true or false")
    if len(seconds) != len(job["workers"]):
        raise InstanceError("seconds", f"has {len(seconds)} entries for {len(job['workers'])} numbers of workers")
    rest = {key: value for key, value in row.items() if key not in ("job", "seconds")}
    return Request(job=GangJob(**job), seconds=tuple(row["seconds"]), **rest)
