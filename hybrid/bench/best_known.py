"""What is known of each instance, in the shape in which libraries of job shops publish it, and how hard it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import inf, nextafter
from typing import Any

from .library import Record, of
from .suite import Instance

EASY = 10.0
"""Seconds of the last solve of an easy instance."""
CLASSES = ("easy", "hard", "open")
_COUNTS = ("ops", "jobs", "nodes", "gpus", "devices")


def class_of(instance: Instance, record: Record | None) -> str:
    """Return the class of an instance, by rule.

    - ``open``: no plan is claimed optimal, and nothing says that there is none;
    - ``easy``: closed, and the solve that closed it (found the better of plan and bound last) took at most `EASY`
      seconds, with a method of gangplan;
    - ``hard``: closed otherwise: it took longer, or a submission.
    """
    if not closed(instance, record):
        return "open"
    if instance.value is None:
        return "easy"  # a solve said so within its limit, and no plan had to be found
    return "easy" if instance.seconds is not None and instance.seconds <= EASY else "hard"


def closed(instance: Instance, record: Record | None) -> bool:
    """Return whether a plan is claimed optimal, or that there is none."""
    own = of(instance, record)
    return instance.proved or own.status == "INFEASIBLE" or own.proves == inf


def standing(instance: Instance, record: Record | None) -> str:
    """Return ``open``, or whether it is optimal or infeasible and whether that is certified or claimed."""
    if not closed(instance, record):
        return "open"
    word = "optimal" if instance.value is not None else "infeasible"
    return f"{word} ({'certified' if certified(instance, record) else 'claimed'})"


def certified(instance: Instance, record: Record | None) -> bool:
    """Return whether the certificate on file proves the plan on file optimal, or that there is none."""
    return of(instance, record).certified(instance.zero)


def why(instance: Instance, record: Record | None) -> str:
    """Return why a closed instance is not certified, in a few words that many share; empty if it is, or open."""
    if not closed(instance, record) or certified(instance, record):
        return ""
    record = of(instance, record)
    if not (record.bound or record.plan):
        return "not in a pass yet"
    if record.bound and not record.certificate:
        return "certificate too long"
    if instance.value is not None and (record.value is None or record.value > instance.value * (1 + 1e-6)):
        return "optimal plan not on file"
    return f"{record.proved['by']} proves less" if record.certificate else "no argument"


def best_known(instances: Iterable[Instance], records: Mapping[str, Record]) -> list[dict[str, Any]]:
    """Return an object an instance: ``name``, ``optimum`` (null if open), ``bounds`` of ``upper`` and ``lower``."""
    return [_entry(x, records.get(x.id)) for x in instances]


def _entry(x: Instance, record: Record | None) -> dict[str, Any]:
    found: dict[str, Any] = {"name": x.id, "objective": x.objective, "family": x.family, "size": x.size}
    found |= {name: x.arguments[name] for name in _COUNTS if name in x.arguments}
    own = of(x, record)
    lower = max(0.0, nextafter(float(own.proves), 0.0)) if own.certificate and own.proves != inf else None
    return found | {
        "optimum": x.value if x.proved else None,
        "bounds": {"upper": x.value, "lower": x.bound, "certified": lower},
        "upper_by": x.by, "lower_by": x.bound_by, "class": class_of(x, record), "standing": standing(x, record),
        "uncertified": why(x, record), "generator": x.generator, "arguments": dict(x.arguments), "hash": x.hash,
        "path": f"{x.objective}-{x.family}.jsonl.gz" if record is not None else None,
    }  # fmt: skip


def text_of(entries: Iterable[Mapping[str, Any]]) -> bytes:
    """Return entries as a JSON file, a line each."""
    lines = ",\n".join(json.dumps(entry, allow_nan=False) for entry in entries)
    return f"[\n{lines}\n]\n".encode()
