"""Make a failing scenario small, and print it as a script that shows the fault by itself."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from typing import Any

from gangplan import Scheduler

from .check import Make, Player
from .policies import NAMES
from .policies import source as policy_source
from .scenario import Event
from .wrong import Wrong

Case = tuple[dict[str, Any], list[Event]]
PLAIN = {
    "model": "m", "requires": [], "apart": [], "most_per_node": None, "whole_nodes": False, "together": None,
    "begin": 0.0, "after": [], "queue": "", "user": "", "priority": 0,
    "price": None, "worker": [1, 0.0, 0.0, 0.0], "tolerates": [], "gpu_types": [], "on": None, "within": "",
    "topology": "required", "group": 1, "mixed": False, "servers": 0, "grace": None, "await_nodes": False,
}  # fmt: skip
"""What a job is like that is nothing special."""


def fails(case: Case, make: Make = Scheduler) -> Wrong | None:
    """Return what goes wrong in a scenario; it has the events up to there that mean anything."""
    try:
        Player(case[0], make).play(copy.deepcopy(case[1]))
    except Wrong as wrong:
        return wrong
    except Exception:  # a cut cluster may be none, and a cut scenario is only of use if it is one
        return None
    return None


def shrunk(cluster: dict[str, Any], wrong: Wrong, seconds: float = 60.0, make: Make = Scheduler) -> tuple[Case, Wrong]:
    """Return a scenario that breaks the same rule and is as small as it gets in so many seconds."""
    case: Case = (cluster, wrong.events)
    stop = time.monotonic() + seconds

    def try_(smaller: Case) -> bool:
        nonlocal case, wrong
        if time.monotonic() > stop or smaller == case:
            return False
        now = fails(smaller, make)
        if now is None or now.rule != wrong.rule:
            return False
        case, wrong = (smaller[0], now.events), now
        return True

    size = 0.0
    for change in ({"double": False}, {"policy": "heuristic"}, {"runs": None}, {"near": None}):
        try_((case[0] | change, case[1]))
    try_((case[0], [event for event in case[1] if event[0] not in ("snap", "explain", "odd", "report")]))
    while size != (size := len(str(case))) and time.monotonic() < stop:
        _fewer_events(lambda: case, try_)
        for step in (_fewer_nodes, _plainer_cluster, _plainer_jobs, _rounder):
            while any(try_(smaller) for smaller in step(*case)):
                pass
    return case, wrong


def _fewer_events(case: Callable[[], Case], try_: Callable[[Case], bool]) -> None:
    """Leave out events: halves, quarters, and so on down to single ones (ddmin; Zeller and Hildebrandt, TSE 2002)."""
    part = max(1, len(case()[1]) // 2)
    while part:
        at = len(case()[1])
        while at > 0:
            cluster, events = case()
            try_((cluster, events[: max(0, at - part)] + events[at:]))
            at = min(at - part, len(case()[1]))
        part //= 2


def _fewer_nodes(cluster: dict[str, Any], events: list[Event]) -> Iterator[Case]:
    nodes = cluster["nodes"]
    for part in (len(nodes) // 2, len(nodes) // 4, 1):
        for i in range(0, len(nodes) if part else 0, max(1, part)):
            yield cluster | {"nodes": nodes[:i] + nodes[i + part :]}, events


def _plainer_cluster(cluster: dict[str, Any], events: list[Event]) -> Iterator[Case]:
    for key, value in (
        ("policy", "heuristic"),
        ("racks", 1),
        ("double", False),
        ("labels", []),
        ("runs", None),
        ("taints", []),
    ):
        yield cluster | {key: value}, events
    if cluster["runs"] is None and not any(
        e[0] == "submit" and (e[2].get("on") or e[2].get("gpu_types")) for e in events
    ):
        yield cluster | {"types": ["A"], "nodes": [n | {"type": "A"} for n in cluster["nodes"]]}, events
    for key in cluster["options"]:
        yield cluster | {"options": {k: v for k, v in cluster["options"].items() if k != key}}, events
    for i, node in enumerate(cluster["nodes"]):
        for change in (
            {"cpu": 96.0}, {"memory": 1e12}, {"labels": []}, {"usable": True}, {"gpus": 1}, {"gpus": node["gpus"] - 1}
        ):  # fmt: skip
            if node["gpus"] > 0 and all(value != node[key] for key, value in change.items()):
                yield cluster | {"nodes": [n | change if i == j else n for j, n in enumerate(cluster["nodes"])]}, events


def _plainer_jobs(cluster: dict[str, Any], events: list[Event]) -> Iterator[Case]:
    for i, event in enumerate(events):
        if event[0] not in ("submit", "array"):
            continue
        spec = event[2]
        changes: list[dict[str, Any]] = [{key: value} for key, value in PLAIN.items() if spec.get(key, value) != value]
        changes += [{"worker": [*spec["worker"][:k], 0.0, *spec["worker"][k + 1 :]]} for k in (1, 2, 3)]
        changes += [{"workers": [d]} for d in spec["workers"] if len(spec["workers"]) > 1]
        changes += [{"workers": [max(1, d - n) for d in spec["workers"]]} for n in (4, 1) if len(spec["workers"]) == 1]
        for change in changes:
            if any(spec.get(key, PLAIN.get(key)) != value for key, value in change.items()):
                if isinstance(spec["seconds"], list) and "workers" in change:
                    change = change | {"seconds": max(spec["seconds"])}  # noqa: PLW2901
                yield cluster, [*events[:i], [*event[:2], spec | change, *event[3:]], *events[i + 1 :]]


def _rounder(cluster: dict[str, Any], events: list[Event]) -> Iterator[Case]:
    """Yield scenarios of rounder times: as the event before, whole seconds, an estimate of 10, 100 or 1,000 s."""
    for i, event in enumerate(events):
        before = events[i - 1][1] if i else 0.0
        for now in (before, float(round(event[1])) if abs(event[1]) < 1e9 else 0.0):
            if event[0] != "odd" and before <= now < event[1]:
                yield cluster, [*events[:i], [event[0], now, *event[2:]], *events[i + 1 :]]
        if event[0] == "submit":
            for seconds in (10.0, 100.0, 1000.0):
                old = event[2]["seconds"]
                if isinstance(old, list) or old is None or (old not in (10.0, 100.0) and seconds < old):
                    yield cluster, [*events[:i], [*event[:2], event[2] | {"seconds": seconds}], *events[i + 1 :]]


def script(case: Case, wrong: Wrong, make: Make = Scheduler) -> str:
    """Return a program that makes the calls of a scenario, and says what should be otherwise."""
    cluster, events = case
    player = Player(cluster, make)
    try:
        player.play(copy.deepcopy(events))
    except Wrong as now:
        wrong = now
    policy = cluster["policy"]
    lines = [
        f'"""{wrong.rule}: {wrong.words}"""', "import json", "", "import numpy as np", "",
        "from gangplan import InstanceError, Level, Scheduler, TreeTopology",
        "from gangplan.instances.placement import Demand, Fleet, GangJob, Proximity, SpeedModel", "",
        "nan, inf = np.nan, np.inf",
        f"fleet = {fleet_source(cluster)}", "speeds = None",
    ]  # fmt: skip
    if near := cluster["near"]:
        lines[-1] = f"speeds = Proximity(*{near['links']}, intensity={{'m': {near['m']}}})"
    elif (runs := cluster["runs"]) is not None:
        compute, n = [[1.0 if t in runs[m] else float("inf") for m in runs] for t in cluster["types"]], len(runs)
        lines[-1] = f"compute = np.array({compute})"
        lines += [
            f"speeds = SpeedModel({tuple(runs)}, {tuple(cluster['types'])}, compute, np.ones({n}), np.ones({n}),"
            f" np.zeros(({n}, {n})), np.zeros(({n}, {n})))"
        ]
    made = repr(policy)
    if policy in NAMES:
        lines += ["", "", policy_source(policy), ""]
        made = f"{policy}()"
    options = "".join(f", {key}={value!r}" for key, value in cluster["options"].items())
    options += f", sharing={cluster['sharing']!r}" if cluster.get("sharing") else ""
    for i, (name, method, args, named, refused) in enumerate(player.log):
        if refused and i + 1 < len(player.log):
            continue
        if method == "new":
            there = "fleet" if args[0]["nodes"] == cluster["nodes"] else fleet_source(args[0])
            lines.append(f"{name} = Scheduler({there}, {made}, speeds=speeds{options})")
        elif method == "snapshot":
            lines.append("saved = json.loads(json.dumps(s.snapshot()))")
        elif method == "restore" and i and player.log[i - 2][1] == "snapshot":
            lines.append(f"{name}.restore(saved{''.join(f', {k}={v!r}' for k, v in named.items())})")
        else:
            words = [source(x) if isinstance(x, dict) and {"workers", "racks"} & {*x} else repr(x) for x in args]
            call = f"{name}.{method}({', '.join([*words, *(f'{k}={v!r}' for k, v in named.items())])})"
            lines.append(f"print({call})" if method in ("decide", "explain", "fail_node") else call)
    lines += ['print("run:", s.running, "wait:", s.waiting, "idle:", s.idle)', f"# {wrong.rule}: {wrong.words}"]
    return "\n".join(lines) + "\n"


def source(spec: dict[str, Any]) -> str:
    """Return a job, or a cluster, as it is written."""
    if "racks" in spec:
        return fleet_source(spec)
    words = [repr(spec["name"]), repr(spec["model"]), repr(tuple(spec["workers"]))]
    if spec["worker"] != PLAIN["worker"]:
        words.append(f"Demand({', '.join(map(repr, spec['worker']))})")
    for key in ("requires", "apart", "most_per_node", "whole_nodes", "tolerates", "gpu_types"):
        if spec.get(key, PLAIN[key]) != PLAIN[key]:
            words.append(f"{key}={tuple(spec[key]) if isinstance(spec[key], list) else spec[key]!r}")
    if spec.get("servers"):
        words.append(
            f"collective='ps', servers={spec['servers']}, server=Demand({', '.join(map(repr, spec['server']))})"
        )
    return f"GangJob({', '.join(words)})"


def fleet_source(cluster: dict[str, Any]) -> str:
    """Return a cluster as it is written."""
    nodes = cluster["nodes"]
    words = "\n    ".join(
        f"names={tuple(n['name'] for n in nodes)}, gpu_types={tuple(cluster['types'])},\n"
        f"    gpu_type=np.array({[cluster['types'].index(n['type']) for n in nodes]}, dtype=np.int32),\n"
        f"    gpus=np.array({[n['gpus'] for n in nodes]}, dtype=np.int32), cpu=np.array({[n['cpu'] for n in nodes]}),\n"
        f"    memory=np.array({[n['memory'] for n in nodes]}), link=np.full({len(nodes)}, 3e11),\n"
        f"    topology=TreeTopology((Level('rack', {cluster['nic']!r}), Level('cluster', 1e11)),"
        f" np.array({[[n.get('rack', i % cluster['racks']) for i, n in enumerate(nodes)], [0] * len(nodes)]},"
        f" dtype=np.int64)),\n"
        f"    labels={tuple(cluster['labels'])},"
        f" labelled=np.array({[[x in n['labels'] for n in nodes] for x in cluster['labels']]}, dtype=bool)"
        f".reshape({len(cluster['labels'])}, {len(nodes)}),\n"
        f"    taints={tuple(cluster['taints'])},"
        f" tainted=np.array({[[x in n['taints'] for n in nodes] for x in cluster['taints']]}, dtype=bool)"
        f".reshape({len(cluster['taints'])}, {len(nodes)}),\n"
        f"    usable=np.array({[n['usable'] for n in nodes]}, dtype=bool),".splitlines()
    )
    return f"Fleet(\n    {words}\n)"
