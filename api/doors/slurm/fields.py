"""Read the fields of Slurm's JSON, however a version writes them: 22.05 has plain values, later ones have objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gangplan.instances import InstanceError

_TEXTS = (
    "account", "array_task_string", "burst_buffer", "comment", "cpus_per_tres", "dependency", "excluded_nodes",
    "exclusive", "features", "licenses", "name", "nodes", "partition", "qos", "required_nodes", "resv_name", "shared",
    "state_reason", "tres_alloc_str", "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task",
    "tres_req_str", "user_name",
)  # fmt: skip
_NUMBERS = (
    "array_job_id", "array_max_tasks", "array_task_id", "batch_flag", "contiguous", "cpus", "eligible_time", "end_time",
    "het_job_id", "job_id", "max_nodes", "minimum_cpus_per_node", "minimum_tmp_disk_per_node", "nice", "node_count",
    "priority", "requeue", "restart_cnt", "tasks", "tasks_per_node", "time_limit", "user_id",
)  # fmt: skip
"""Fields of a job that are read; all but `_NEEDED` may be missing."""
_NEEDED = ("job_id", "job_state", "name", "partition", "priority")


def job_row(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job of `squeue --json`: texts, "" if there is none; numbers, `None` if unset or without limit.

    Of what it holds, `seats` names the nodes; `states` are its state and what else is so, in capitals.

    Raises:
        InstanceError: naming a field that is missing or of another kind.
    """
    if lack := next((name for name in _NEEDED if told.get(name) is None), None):
        raise InstanceError("slurm", f"squeue: a job has no {lack}")
    row: dict[str, Any] = {name: text(told.get(name), name) for name in _TEXTS}
    row |= {name: number(told.get(name), name) for name in _NUMBERS}
    held = told.get("job_resources") or {}
    inside = held.get("nodes")  # a text, or since 24.05 an object
    seats = (inside.get("allocation") if isinstance(inside, dict) else held.get("allocated_nodes")) or []
    row["seats"] = [seat.get("nodename") or seat["name"] for seat in seats]
    row["gres_detail"] = [text(x, "gres_detail") for x in told.get("gres_detail") or []]
    return row | {"states": words(told["job_state"], "job_state")}


def node_row(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node, as `job_row` does; `states` are its state and its flags."""
    row: dict[str, Any] = {name: text(told.get(name), name) for name in ("name", "gres")}
    row |= {name: number(told.get(name), name) or 0 for name in ("cpus", "real_memory")}
    row |= {name: words(told.get(name), name, str) for name in ("partitions", "features", "active_features")}
    return row | {"states": words(told["state"], "state") + words(told.get("state_flags"), "state_flags")}


def number(told: object, name: str) -> Any:
    """Return a number, which may be in an object that says whether it is set and whether it is infinite."""
    if isinstance(told, dict) and "number" in told:
        told = told["number"] if told.get("set", True) and not told.get("infinite") else None
    if told is None or isinstance(told, int | float):
        return told
    raise InstanceError("slurm", f"{name}: {told!r} is no number")


def text(told: object, name: str) -> str:
    """Return a text, a list with commas between."""
    if isinstance(told, list):
        return ",".join(text(x, name) for x in told)
    if told is None or isinstance(told, str):
        return told or ""
    raise InstanceError("slurm", f"{name}: {told!r} is no text")


def words(told: object, name: str, case: Any = str.upper) -> list[str]:
    """Return the words of a list, or of a text with commas between, in capitals unless told otherwise."""
    return [case(word) for word in text(told, name).split(",") if word]
