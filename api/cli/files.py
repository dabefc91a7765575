"""Files in and out: plans read with the errors of problems, paths checked before any work is done."""

from __future__ import annotations

import os
from typing import Any

from gangplan.instances import InstanceError, Plan
from gangplan.instances.documents import from_document
from gangplan.instances.errors import JSON_BYTES
from gangplan.instances.intake import parse_json, read_text
from gangplan.instances.outlet import check_writable
from gangplan.instances.placement import PlacementPlan
from gangplan.instances.schedule import SchedulePlan

ANSWERS: Any = Plan | PlacementPlan | SchedulePlan


def read_answer(path: str, kinds: Any = ANSWERS) -> Any:
    """Return the plan in a file; see `read_result`."""
    return read_result(path, kinds)[0]


def read_result(path: str, kinds: Any = ANSWERS) -> tuple[Any, dict[str, Any]]:
    """Read a plan of one of these kinds, and what `solve --json` says of it if that is what the file holds."""
    text = read_text(path, limit=JSON_BYTES)
    claims: dict[str, Any] = {}
    try:
        data = parse_json(text)
        if isinstance(data, dict) and "plan" in data and "schema_version" not in data:
            claims, data = data, data["plan"]  # what `solve --json` prints
            if data is None:
                raise InstanceError("plan", "is null: that solve found none")
        value = from_document(data)
        if not isinstance(value, kinds):
            of = {PlacementPlan: "gangs", SchedulePlan: "jobs over time"}.get(type(value))
            words = "is no plan" if of is None else f"is a plan of {of}, not of ops"
            raise InstanceError("kind", f"{data['kind']!r} {words}")
    except InstanceError as error:
        raise error.of(path) from None
    return value, claims


def foreign(plan: Any, own: str) -> list[str]:
    """Return a note if `plan` names another problem than the one whose content hash is `own`."""
    other = plan.instance is not None and plan.instance != own
    return [f"was made for another problem: {plan.instance}, this one is {own}"] if other else []


def check_output(path: str, *inputs: str) -> None:
    """Refuse, before any work is done, a path that cannot be written or would overwrite an input."""
    check_writable(path)
    for other in inputs:
        try:
            same = os.path.samefile(path, other)
        except (OSError, ValueError):  # one of them is not there
            same = False
        if same:
            raise InstanceError("file", "is an input of this command and would be overwritten", path)


def check_picture(path: str | None, panel: str | None, kind: type | None, *inputs: str) -> None:
    """Refuse, before any work is done, a picture that cannot be written or drawn, and a panel that it will not have."""
    if path is None and panel is None:
        return
    from ..plot import check, check_panel

    if kind is not None:
        check_panel(panel, kind)
    if path is not None:
        check_output(path, *inputs)
        check(path)
