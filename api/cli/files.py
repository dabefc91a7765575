"""Files in and out: plans read with the errors of problems, results written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError, Plan
from gangplan.instances.documents import from_document, parse_json
from gangplan.instances.placement import PlacementPlan
from gangplan.instances.schedule import SchedulePlan


def read_text(path: str) -> str:
    """Return the text of a file.

    Raises:
        InstanceError: if it cannot be read, is empty or no UTF-8 text.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InstanceError("file", (error.strerror or str(error)).lower(), path) from None
    except ValueError as error:
        raise InstanceError("file", str(error), path) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"byte {content[error.start]:#04x} at offset {error.start} is not UTF-8 text"
        raise InstanceError("content", problem, path) from None
    if not text.strip():
        raise InstanceError("content", "the file is empty", path)
    return text


def read_answer(path: str) -> Any:
    """Read the document of a plan of any problem.

    Raises:
        InstanceError: naming file, field and the value found.
    """
    return _read(path, Plan | PlacementPlan | SchedulePlan)[0]


def read_plan(path: str) -> Plan:
    """Read the document of a plan of a partition problem.

    Raises:
        InstanceError: naming file, field and the value found.
    """
    return read_result(path)[0]


def read_result(path: str) -> tuple[Plan, dict[str, Any]]:
    """Read a plan, and what `solve --json` says of it if that is what the file holds.

    Raises:
        InstanceError: naming file, field and the value found.
    """
    found: tuple[Plan, dict[str, Any]] = _read(path, Plan)
    return found


def _read(path: str, kinds: Any) -> tuple[Any, dict[str, Any]]:
    text = read_text(path)
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
    """Return a note if `plan` names another instance than the one whose content hash is `own`."""
    other = plan.instance is not None and plan.instance != own
    return [f"was made for another instance: {plan.instance}, this one is {own}"] if other else []


def check_output(path: str, *inputs: str) -> None:
    """Refuse, before any work is done, a path that cannot be written or would overwrite an input.

    Raises:
        InstanceError: naming the path.
    """
    target = Path(path)
    try:
        if not path or target.is_dir():
            raise InstanceError("file", "is a directory" if path else "no name is given", path)
        if not target.parent.is_dir():
            raise InstanceError("file", f"the folder {str(target.parent)!r} does not exist", path)
        for other in inputs:
            if target.exists() and Path(other).exists() and target.samefile(other):
                raise InstanceError("file", "is an input of this command and would be overwritten", path)
        writable = target if target.exists() and not target.is_file() else target.resolve().parent
        if not os.access(writable, os.W_OK):
            raise InstanceError("file", "permission denied", path)
    except OSError as error:
        raise InstanceError("file", (error.strerror or str(error)).lower(), path) from None


def write_all(files: Mapping[str, bytes]) -> None:
    """Write each content to its path: all to temporary files first, so that nothing is left half-written.

    Raises:
        InstanceError: naming the path that cannot be written.
    """
    ready: list[tuple[Path, Path]] = []
    try:
        for path, content in files.items():
            try:
                target = Path(path).resolve()  # write through a link, do not replace it
                if target.exists() and not target.is_file():
                    target.write_bytes(content)  # a device or a pipe
                    continue
                part = target.with_name(f".{target.name[:200]}.{os.getpid()}.part")
                ready.append((part, target))
                part.write_bytes(content)
            except OSError as error:
                raise InstanceError("file", (error.strerror or str(error)).lower(), path) from None
        for part, target in ready:
            os.replace(part, target)
    finally:
        for part, _ in ready:
            part.unlink(missing_ok=True)
