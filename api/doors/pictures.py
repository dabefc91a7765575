"""Pictures of plans and of clusters as SVG, and logs as steps that a page can go through."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.errors import brief
from gangplan.instances.kinds import with_objective
from gangplan.scheduler import Scheduler
from gangplan.scheduler.described import cluster_of
from gangplan.scheduler.journal.read import read_log
from gangplan.scheduler.journal.replay import replay

from ..plot import picture
from ..plot.cluster import MOST_COLOURS, fleet_scene
from ..plot.colours import FEW, colours
from ..plot.progress import progress_scene
from ..plot.svg import PIXELS, draw
from .core import FAULTS, Core, encoded
from .figures import figures_of, rows_of

PICTURE = ("problem", "plan", "status", "bound", "objective")
"""Fields of a request for the picture of a plan."""
_NODES, _LINES, _NAMES = 4096, 20_000, 30
"""Maximum number of nodes that are drawn, of lines that are played, and of waiting jobs that are named."""
_ROWS = 200
"""Maximum number of jobs that run, and that wait, whose figures are told."""


def picture_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the picture of a plan, and of each of its panels alone if it has several."""
    problem = with_objective(given["problem"], given["objective"]) if "objective" in given else given["problem"]
    try:
        scene = picture(problem, given["plan"], status=given.get("status"), bound=given.get("bound"))
        names = dict.fromkeys(panel.name for panel in scene.panels)
        return {"svg": draw(scene), "panels": {name: draw(scene.only(name)) for name in names if len(names) > 1}}
    except InstanceError:
        raise
    except FAULTS as error:  # it is infeasible, or status and bound are no such
        raise InstanceError("plan", str(error)) from None


def cluster_picture(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the picture of a cluster: `held` says by job and node which GPUs it has, `down` which nodes fail.

    Jobs have a number each in `colours`, so that they keep their colour from picture to picture.
    """
    fleet, palette = cluster_of(data["cluster"]), [*FEW, *colours(MOST_COLOURS)[len(FEW) :]]
    if len(fleet.names) > _NODES:
        raise InstanceError("cluster", f"{len(fleet.names)} nodes are more than {_NODES}")
    try:
        held = {job: nodes for job, nodes in data.get("held", {}).items() if any(nodes.values())}
        numbers = data.get("colours", {})
        shades = [palette[numbers.get(job, i) % len(palette)] for i, job in enumerate(held)]
        fleet = replace(fleet, usable=np.asarray(fleet.usable) & ~np.isin(fleet.names, data.get("down", [])))
        return {"svg": draw(fleet_scene(fleet, held, shades=shades).only("cluster"))}
    except InstanceError:
        raise
    except FAULTS as error:
        raise InstanceError("held", f"cannot be drawn: {error}") from None


def progress_picture(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the picture of best plan and bound over the time of a solve, `width` pixels wide; see `progress_scene`."""
    try:
        time, width = (float(given["now"]), float(given.get("until", 0.0))), max(320.0, float(given["width"])) / PIXELS
        return {"svg": draw(progress_scene(given["progress"], *time, width, given.get("unit", "s")))}
    except FAULTS as error:
        raise InstanceError("progress", f"cannot be drawn: {error}") from None


def holdings(scheduler: Scheduler) -> dict[str, dict[str, list[int]]]:
    """Return what each running job holds: GPUs by the name of the node, none of a node where it has tasks without."""
    names = scheduler._state.fleet.names
    return {name: _named(names, job.nodes) for name, job in scheduler._state.running.items()}


def _named(names: Sequence[str], nodes: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {names[node]: [gpu for gpu in gpus if gpu >= 0] for node, gpus in nodes.items()}


def _down(scheduler: Scheduler) -> list[str]:
    state = scheduler._state
    return [name for name, up in zip(state.fleet.names, state.up, strict=True) if not up]


def state_of(core: Core, search: str = "", after: int = -1) -> dict[str, Any] | None:
    """Return what is so now, `None` if the log has got no line after that number."""
    scheduler = core.scheduler
    if (line := scheduler._journal.lines if scheduler._journal else 0) == after:
        return None
    with core.at():
        running, waiting = rows_of(scheduler, search, _ROWS)
    decided = next(reversed(scheduler._explained.values()), None)
    return {
        **figures_of(scheduler), "now": core.now, "line": line, "cluster": encoded(scheduler._state.fleet),
        "held": holdings(scheduler), "down": _down(scheduler), "running": running, "waiting": waiting,
        "runs": len(scheduler.running), "waits": len(scheduler.waiting), "tier": decided and decided.tier,
    }  # fmt: skip


def frames_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cluster of a log, and for each event what it says and what it changed."""
    if not isinstance(text := given["log"], str):
        raise InstanceError("log", f"{brief(text)} is not text")
    frames: list[dict[str, Any]] = []
    with TemporaryDirectory() as folder:
        (path := Path(folder, "log.jsonl")).write_text(text)
        try:
            log = read_log(path)
            if len(log.rows) > _LINES:
                raise InstanceError("log", f"{len(log.rows)} events are more than {_LINES}")
            replay(log, after=_follow(frames))
        except InstanceError as error:
            raise InstanceError(error.field, error.problem) from None  # without the name of our file
    return {"cluster": encoded(log.fleet), "frames": frames}


def _follow(frames: list[dict[str, Any]]) -> Callable[[Scheduler, Mapping[str, Any]], None]:
    """Return what notes the changes of each line."""
    before: dict[str, Any] = {"held": {}}

    def note(scheduler: Scheduler, row: Mapping[str, Any]) -> None:
        names, waiting = scheduler._state.fleet.names, scheduler.waiting
        held = {name: job.nodes for name, job in scheduler._state.running.items()}
        told = {"waiting": list(waiting[:_NAMES]), "waits": len(waiting), "down": _down(scheduler)}
        changed: dict[str, Any] = {name: None for name in before["held"] if name not in held}
        changed |= {job: _named(names, x) for job, x in held.items() if before["held"].get(job) is not x}
        frame = {"now": scheduler.now, "text": words_of(row)} | ({"held": changed} if changed else {})
        frames.append(frame | {key: value for key, value in told.items() if before.get(key) != value})
        before.update(told, held=held)

    return note


def words_of(row: Mapping[str, Any]) -> str:
    """Return what a line of a log says."""
    if row["event"] == "decide":
        stops = [f"{stop['job']} stops ({stop['cause']})" for stop in row.get("stops", ())]
        starts = [f"{start['job']} starts on {', '.join(start['nodes'])}" for start in row.get("starts", ())]
        return f"decision {row['number']}: " + ("; ".join([*stops, *starts]) or "nothing changes")
    parts = [str(row["event"]).replace("_", " ")]
    if isinstance(job := row.get("job"), dict):
        parts.append(f"{job.get('name')} ({', '.join(map(str, job.get('workers', ())))} GPUs)")
    plain = {k: v for k, v in row.items() if k not in ("event", "now") and isinstance(v, str | int | float)}
    return " ".join([*parts, *(str(v) if k in ("job", "node") else f"{k} {v}" for k, v in plain.items())])
