"""Pods and nodes as the API server writes them, and what of them a scheduler has to know."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gangplan.instances.cluster import Level, TreeTopology
from gangplan.instances.intake import parse_json
from gangplan.instances.placement import Fleet

GANG, SIZE, SECONDS = "gangplan/gang", "gangplan/size", "gangplan/seconds"
"""Labels of a pod: its gang, how many pods that has, and how long it is expected to run."""
NODE = "gangplan/node"
"""Annotation by which a pod that kube-scheduler binds says where it may go."""
JOBSET = "jobset.sigs.k8s.io/jobset-name"
"""Label by which JobSet says of which set a pod is."""
REQUIRED, PREFERRED = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology"
"""Annotations by which Kueue says that pods are to be under one value of a label of nodes."""
HOST, PRODUCT = "kubernetes.io/hostname", "nvidia.com/gpu.product"
_OWN = "node.kubernetes.io/"
"""Prefix of taints that say what conditions say too."""
_UNITS = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_UNITS |= {f"{unit}i": 1024.0 ** (i + 1) for i, unit in enumerate("KMGTPE")}
_LINK, _NIC = 300e9, 25e9
"""Bytes/s within a node and of its link, which Kubernetes does not know."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Say how pods and nodes are read.

    Attributes:
        name: of this scheduler, as pods have it in ``schedulerName``.
        gpu: the resource that counts as GPUs.
        rack: labels of nodes; the first that a node has says its rack.
    """

    name: str = "gangplan"
    gpu: str = "nvidia.com/gpu"
    rack: tuple[str, ...] = ("cloud.provider.com/topology-rack", "cloud.provider.com/topology-block")


USUAL = Rules()


def quantity(text: Any) -> float:
    """Return a quantity of Kubernetes, such as ``500m`` or ``64Gi``, as a number."""
    text = str(text)
    digits = text.rstrip("KMGTPEinumk")
    if digits != text and text[len(digits) :] in _UNITS:
        return float(digits) * _UNITS[text[len(digits) :]]
    return float(text)


Needs = tuple[int, float, float]
"""GPUs, cores, bytes of memory."""


def _needs(amounts: Mapping[str, Any], rules: Rules) -> Needs:
    return int(quantity(amounts.get(rules.gpu, 0))), quantity(amounts.get("cpu", 0)), quantity(amounts.get("memory", 0))


def total(parts: Iterable[Needs]) -> Needs:
    """Return the sum."""
    rows = list(parts)
    return sum(x[0] for x in rows), sum(x[1] for x in rows), sum(x[2] for x in rows)


def most(a: Needs, b: Needs) -> Needs:
    """Return the larger of each."""
    return max(a[0], b[0]), max(a[1], b[1]), max(a[2], b[2])


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod.

    Attributes:
        key: ``namespace/name``.
        node: where it is bound, "" if it is not.
        phase: ``Pending``, ``Running``, ``Succeeded`` or ``Failed``.
        leaving: whether it is being deleted.
        ours: whether this scheduler is to place it; not while it has gates.
        gang: ``namespace/gang``, or its key if it is alone.
        size: pods of the gang.
        needs: of its containers together.
        where: selector, required affinity and tolerations as text.
        within, topology: as of `Terms`.
    """

    key: str
    uid: str
    node: str
    phase: str
    leaving: bool
    ours: bool
    gang: str
    size: int
    needs: Needs
    where: str
    priority: int
    seconds: float | None
    limit: float | None
    within: str
    topology: str
    created: float

    @property
    def live(self) -> bool:
        """Tell whether it holds what it needs, or will."""
        return self.phase not in ("Succeeded", "Failed")


def pod_of(data: Mapping[str, Any], rules: Rules) -> Pod:
    """Read a pod.

    Raises:
        ValueError: if a label or quantity is no number.
    """
    meta, spec, status = data["metadata"], data["spec"], data.get("status") or {}
    labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    space, limit = meta["namespace"], spec.get("activeDeadlineSeconds")
    key, gang = f"{space}/{meta['name']}", labels.get(GANG) or labels.get(JOBSET)
    domain = notes.get(REQUIRED) or notes.get(PREFERRED) or ""
    within = "node" if domain == HOST else "rack" if domain in rules.rack else ""
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    tolerations = [x for x in spec.get("tolerations") or () if not x.get("key", "").startswith(_OWN)]
    where = [spec.get("nodeSelector") or {}, (affinity or {}).get("nodeSelectorTerms") or [], tolerations]
    seconds = labels.get(SECONDS) or notes.get(SECONDS)
    return Pod(
        key=key, uid=meta["uid"], node=spec.get("nodeName") or "", phase=status.get("phase") or "Pending",
        leaving=bool(meta.get("deletionTimestamp")),
        ours=spec.get("schedulerName") == rules.name and not spec.get("schedulingGates"),
        gang=f"{space}/{gang}" if gang else key, size=max(1, int(labels.get(SIZE, 1))),
        needs=_requests(spec, rules), where=json.dumps(where, sort_keys=True), priority=spec.get("priority") or 0,
        seconds=float(seconds) if seconds else None, limit=float(limit) if limit else None,
        within=within, topology="required" if notes.get(REQUIRED) else "preferred",
        created=datetime.fromisoformat(meta["creationTimestamp"]).timestamp(),
    )  # fmt: skip


def _requests(spec: Mapping[str, Any], rules: Rules) -> Needs:
    """Return what a pod holds: its containers and sidecars, or the init container that needs more."""
    running, first = (0, 0.0, 0.0), (0, 0.0, 0.0)
    for container in spec.get("initContainers") or ():
        needs = _needs((container.get("resources") or {}).get("requests") or {}, rules)
        first = most(first, total((running, needs)))
        if container.get("restartPolicy") == "Always":
            running = total((running, needs))
    parts = [_needs((x.get("resources") or {}).get("requests") or {}, rules) for x in spec.get("containers") or ()]
    return total((most(first, total((running, *parts))), _needs(spec.get("overhead") or {}, rules)))


@dataclass(frozen=True, slots=True)
class Node:
    """A node: what pods may use of it, where it is, whether pods may start there."""

    name: str
    has: Needs
    rack: str
    product: str
    open: bool
    labels: tuple[tuple[str, str], ...]
    taints: tuple[tuple[str, str, str], ...]


def node_of(data: Mapping[str, Any], rules: Rules) -> Node:
    """Read a node."""
    meta, spec, status = data["metadata"], data.get("spec") or {}, data.get("status") or {}
    labels = meta.get("labels") or {}
    ready = any(x["type"] == "Ready" and x["status"] == "True" for x in status.get("conditions") or ())
    taints = [
        (x["key"], x.get("value") or "", x["effect"])
        for x in spec.get("taints") or ()
        if x["effect"] != "PreferNoSchedule" and not x["key"].startswith(_OWN)
    ]
    return Node(
        meta["name"], _needs(status.get("allocatable") or {}, rules),
        next((labels[name] for name in rules.rack if name in labels), ""), labels.get(PRODUCT, "gpu"),
        ready and not spec.get("unschedulable"), tuple(sorted(labels.items())), tuple(taints),
    )  # fmt: skip


def admits(node: Node, where: str) -> bool:
    """Return whether the constraints of a pod let it be on a node."""
    selector, terms, tolerations = parse_json(where)
    labels = dict(node.labels)
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    if terms and not any(_matches(node, labels, term) for term in terms):
        return False
    return all(any(_tolerates(x, taint) for x in tolerations) for taint in node.taints)


def _matches(node: Node, labels: Mapping[str, str], term: Mapping[str, Any]) -> bool:
    rows = [(labels.get(x["key"]), x) for x in term.get("matchExpressions") or ()]
    rows += [(node.name if x["key"] == "metadata.name" else None, x) for x in term.get("matchFields") or ()]
    return bool(rows) and all(_expression(value, x["operator"], x.get("values") or []) for value, x in rows)


def _expression(value: str | None, operator: str, values: list[str]) -> bool:
    if operator in ("In", "NotIn"):
        return (value in values) == (operator == "In")
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    try:
        number, limit = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > limit if operator == "Gt" else number < limit


def _tolerates(toleration: Mapping[str, Any], taint: tuple[str, str, str]) -> bool:
    key, value, effect = taint
    if toleration.get("effect") not in (None, "", effect) or toleration.get("key") not in (None, "", key):
        return False
    return toleration.get("operator") == "Exists" or (
        bool(toleration.get("key")) and toleration.get("value", "") == value
    )


def fleet_of(nodes: Iterable[Node], wheres: Iterable[str], room: Mapping[str, tuple[float, float]]) -> Fleet:
    """Return the nodes as a scheduler sees them.

    Args:
        nodes: one or more.
        wheres: constraints of pods; each is a label of the nodes that it admits.
        room: cores and memory of each node that gangs may use.
    """
    rows, marks = list(nodes), list(wheres)
    racks, types = [x.rack for x in rows], list(dict.fromkeys(x.product for x in rows))
    known, m = list(dict.fromkeys(racks)), len(rows)
    groups = [[known.index(x) for x in racks], [0] * m]
    return Fleet(
        names=tuple(x.name for x in rows),
        gpu_types=tuple(types),
        gpu_type=[types.index(x.product) for x in rows],  # type: ignore[arg-type]  # made arrays
        gpus=[x.has[0] for x in rows],  # type: ignore[arg-type]
        cpu=[room[x.name][0] for x in rows],  # type: ignore[arg-type]
        memory=[room[x.name][1] for x in rows],  # type: ignore[arg-type]
        link=[_LINK] * m,  # type: ignore[arg-type]
        topology=TreeTopology((Level("rack", _NIC), Level("cluster", _NIC * max(1, m) / 2)), groups),  # type: ignore[arg-type]
        labels=tuple(marks),
        labelled=[[admits(x, where) for x in rows] for where in marks],  # type: ignore[arg-type]
    )


def room_of(
    nodes: Iterable[Node], ours: Mapping[str, Needs], others: Mapping[str, Needs]
) -> dict[str, tuple[float, float]]:
    """Return cores and memory of each node that gangs may use: what others leave, in whole cores and GiB."""
    found = {}
    for node in nodes:
        _, cpu, memory = others.get(node.name, (0, 0.0, 0.0))
        held = ours.get(node.name, (0, 0.0, 0.0))
        left = node.has[1] - math.ceil(cpu), node.has[2] - math.ceil(memory / 2**30) * 2.0**30
        found[node.name] = max(held[1], left[0], 0.0), max(held[2], left[1], 0.0)
    return found
