"""Pods, gangs and nodes as the API server writes them, and what of them a scheduler has to know."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from gangplan.instances.arrays import BoolArray
from gangplan.instances.placement import Fleet
from gangplan.scheduler.described import fleet_of, racks_of

from . import requests
from .requests import Amounts

GANG, SIZE = "gangplan/gang", "gangplan/size"
"""Labels of a pod: its gang, and how many pods that has."""
PODGROUPS, JOBSETS = "podgroups", "jobsets"
"""Kinds of objects that state how many pods start together."""
OBJECTS = {PODGROUPS: ("scheduling.x-k8s.io", "v1alpha1"), JOBSETS: ("jobset.x-k8s.io", "v1alpha2")}
"""API group and version of each kind."""
_SOURCES = (
    (GANG, "", ""),
    ("kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count", ""),
    ("leaderworkerset.sigs.k8s.io/group-key", "leaderworkerset.sigs.k8s.io/size", ""),
    ("scheduling.x-k8s.io/pod-group", "", PODGROUPS),
    ("pod-group.scheduling.sigs.k8s.io", "", PODGROUPS),
    ("jobset.sigs.k8s.io/jobset-name", "", JOBSETS),
)
"""Label that names a gang, annotation with its size, kind of the object with its size; the first that a pod has."""


class PodGang(NamedTuple):
    """Say what a pod says of its gang: ``namespace/name``, pods that start together, the object that says so or ""."""

    name: str
    size: int | None
    kind: str = ""


def gang_of(key: str, labels: Mapping[str, str], notes: Mapping[str, str], wrong: list[str]) -> PodGang:
    """Return the gang of a pod, and append what is wrong with its size."""
    label, note, kind = next((row for row in _SOURCES if labels.get(row[0])), ("", "", ""))
    if not label:
        return PodGang(key, 1)
    stated = {name: x for name, x in ((SIZE, labels.get(SIZE)), (SIZE, notes.get(SIZE)), (note, notes.get(note))) if x}
    for name, text in stated.items():
        if not text.isdecimal() or not int(text):
            wrong.append(f"{name}: {text!r} is no number of pods")
    size = next((int(text) for text in stated.values() if text.isdecimal() and int(text)), None)
    return PodGang(f"{key.partition('/')[0]}/{labels[label]}", size, kind)


def size_of(kind: str, data: Mapping[str, Any]) -> int:
    """Return how many pods start together by an object.

    Raises:
        ValueError, KeyError, TypeError: if it does not say.
    """
    spec = data["spec"]
    if kind == PODGROUPS:
        return int(spec["minMember"])
    jobs = [(row.get("replicas", 1), row["template"]["spec"]) for row in spec["replicatedJobs"]]
    return sum(int(n) * min(x.get("parallelism", 1), x.get("completions") or x.get("parallelism", 1)) for n, x in jobs)


def incomplete(gang: str, stated: set[int], kind: str, there: int) -> str:
    """Return why a gang of the sizes that are stated, with so many pods, does not start, "" if it may."""
    if not stated:
        beside = f", and no object of {kind} is known that does" if kind else ""
        return f"no pod of gang {gang} states its size by the label {SIZE}{beside}"
    if len(stated) > 1:
        return f"pods of gang {gang} state different sizes: {', '.join(map(str, sorted(stated)))}"
    size = next(iter(stated))
    return f"{there} of the {size} pods of gang {gang} are there" if there < size else ""


SECONDS, QUEUES = "gangplan/seconds", ("gangplan/queue", "kueue.x-k8s.io/queue-name")
"""Labels of a pod: how long it is expected to run, and its queue."""
NODE = "gangplan/node"
"""Annotation by which a pod that kube-scheduler binds says where it may go."""
REQUIRED, PREFERRED = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology"
"""Annotations by which Kueue says that pods are to be under one value of a label of nodes."""
SLICES = "kueue.x-k8s.io/podset-slice-required-topology"
"""Annotation by which Kueue says so of parts of a gang."""
HOST, PRODUCT = "kubernetes.io/hostname", "nvidia.com/gpu.product"
_GRACE = 30.0
"""Seconds that a pod has to end if it says nothing else, as Kubernetes has it."""


@dataclass(frozen=True, slots=True)
class ReadingRules:
    """Say how pods and nodes are read.

    Attributes:
        rack: labels of nodes; the first that a node has says its rack.
        beside: whether kube-scheduler binds the pods, and heeds what is not heeded here.
    """

    name: Annotated[str, "schedulerName of the pods that are scheduled"] = "gangplan"
    gpu: Annotated[str, "resource that counts as GPUs"] = "nvidia.com/gpu"
    rack: tuple[str, ...] = ("cloud.provider.com/topology-rack", "cloud.provider.com/topology-block")
    beside: bool = False


Needs = tuple[int, float, float]
"""GPUs, cores, bytes of memory: what the scheduler counts."""


Rules = ReadingRules
"""Its name up to release 0.2.1, for one more."""


def needs_of(given: Amounts) -> Needs:
    """Return what the scheduler counts of an amount."""
    gpus, cores, memory = (given.get(name, 0.0) for name in requests.COUNTED)
    return int(gpus), cores, memory


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod.

    Attributes:
        key: ``namespace/name``.
        node: where it is bound, "" if it is not.
        phase: ``Pending``, ``Running``, ``Succeeded`` or ``Failed``.
        leaving: whether it is being deleted.
        ours: whether this scheduler is to place it; not while it has gates.
        group: what it says of its gang.
        asks: what it holds of its node, or will; nothing if that cannot be read.
        where: on which nodes it may be, as text.
        terms: fields of `Terms`.
        created, since: seconds since 1970 when it was made, and when it started if its node says so.
        wrong: what of it cannot be read or heeded, "" if nothing.
    """

    key: str
    uid: str
    node: str
    phase: str
    leaving: bool
    ours: bool
    group: PodGang
    asks: Amounts
    where: str
    seconds: float | None
    terms: Mapping[str, Any]
    created: float
    since: float | None
    wrong: str

    @property
    def needs(self) -> Needs:
        """Return what the scheduler counts of it."""
        return needs_of(self.asks)

    @property
    def live(self) -> bool:
        """Tell whether it holds what it needs, or will."""
        return self.phase not in ("Succeeded", "Failed")

    @property
    def gang(self) -> str:
        """``namespace/gang``, or its key if it is alone."""
        return self.group.name


def pod_of(data: Mapping[str, Any], rules: ReadingRules) -> Pod:
    """Read a pod.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: if it is no object of the API.
    """
    meta, spec, status = data["metadata"], data["spec"], data.get("status") or {}
    labels, notes = meta.get("labels") or {}, meta.get("annotations") or {}
    key, wrong = f"{meta['namespace']}/{meta['name']}", list[str]()
    asks = _read(wrong, "its requests", requests.requests_of, spec, status) or {}
    group = gang_of(key, labels, notes, wrong)
    if others := "" if rules.beside else ", ".join(requests.unheeded(spec)):
        wrong.append(f"{others}: gangplan does not heed it, kube-scheduler beside its extender does")
    limit, started = spec.get("activeDeadlineSeconds"), status.get("startTime")
    terms = {
        "user": meta["namespace"], "title": group.name, "limit": float(limit) if limit else None,
        "priority": spec.get("priority") or 0, "preempts": spec.get("preemptionPolicy") != "Never",
        "queue": next((labels[name] for name in QUEUES if labels.get(name)), ""),
        "grace": float(spec.get("terminationGracePeriodSeconds", _GRACE)),
    }  # fmt: skip
    return Pod(
        key=key, uid=meta["uid"], node=spec.get("nodeName") or "", phase=status.get("phase") or "Pending",
        leaving=bool(meta.get("deletionTimestamp")),
        ours=spec.get("schedulerName") == rules.name and not spec.get("schedulingGates"),
        group=group, asks=_counted(asks, rules),
        where=_read(wrong, "where it may be", requests.where_of, spec) or requests.ANYWHERE,
        seconds=_read(wrong, SECONDS, _seconds, labels.get(SECONDS) or notes.get(SECONDS)),
        terms=terms | _topology(notes, rules, wrong), created=_time(meta["creationTimestamp"]),
        since=_time(started) if started else None, wrong="; ".join(wrong),
    )  # fmt: skip


def _counted(given: Amounts, rules: ReadingRules) -> Amounts:
    """Return amounts in which GPUs are called so."""
    return {requests.GPU if name == rules.gpu else name: x for name, x in given.items()}


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _topology(notes: Mapping[str, str], rules: ReadingRules, wrong: list[str]) -> dict[str, str]:
    """Return what the pods of a gang are to share by Kueue's annotations; append what is not known of these."""
    domain = notes.get(REQUIRED) or notes.get(PREFERRED) or ""
    within = "node" if domain == HOST else "rack" if domain in rules.rack else ""
    if (notes.get(REQUIRED) and not within) or notes.get(SLICES):
        wrong.append(f"required topology {notes.get(SLICES) or domain}: only whole gangs in one host or rack are known")
    return {"within": within, "topology": "required" if notes.get(REQUIRED) else "preferred"} if within else {}


def _read(wrong: list[str], what: str, parse: Callable[..., Any], *given: Any) -> Any:
    """Return a part of a pod; of one that cannot be read `None`, and append why."""
    try:
        return parse(*given)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        wrong.append(f"{what}: {error}")
        return None


def _seconds(text: str | None) -> float | None:
    with suppress(ValueError):
        if not text or 0 < float(text) < math.inf:
            return float(text) if text else None
    raise ValueError(f"{text!r} is no number of seconds")


@dataclass(frozen=True, slots=True)
class KubeNode:
    """A node: what pods may use of it, where it is, whether pods may start there."""

    name: str
    has: Amounts
    rack: str
    product: str
    open: bool
    labels: Mapping[str, str]
    taints: tuple[requests.Taint, ...]

    def refuses(self, where: str) -> str:
        """Return why it is not for a pod, "" if it is."""
        return "not ready" if not self.open else requests.refusal(self.name, self.labels, self.taints, where)


def node_of(data: Mapping[str, Any], rules: ReadingRules) -> KubeNode:
    """Read a node."""
    meta, spec, status = data["metadata"], data.get("spec") or {}, data.get("status") or {}
    labels = meta.get("labels") or {}
    ready = any(x["type"] == "Ready" and x["status"] == "True" for x in status.get("conditions") or ())
    has = requests.KUBELET | requests.amounts(status.get("allocatable") or status.get("capacity"))
    return KubeNode(
        meta["name"], _counted(has, rules),
        next((labels[name] for name in rules.rack if name in labels), ""), labels.get(PRODUCT, "gpu"),
        ready, dict(sorted(labels.items())), requests.taints_of(spec),
    )  # fmt: skip


def fleet_with(nodes: Sequence[KubeNode], rows: Mapping[str, BoolArray], room: Mapping[str, Needs]) -> Fleet:
    """Return the nodes as a scheduler sees them.

    Args:
        nodes: one or more.
        rows: labels, and which nodes carry each.
        room: GPUs, cores and memory of each node that gangs may use.
    """
    gpus, cpu, memory = ([room[x.name][k] for x in nodes] for k in range(3))
    names, topology = tuple(x.name for x in nodes), racks_of([x.rack for x in nodes])
    return fleet_of([x.product for x in nodes], rows, names=names, gpus=gpus, cpu=cpu, memory=memory, topology=topology)
