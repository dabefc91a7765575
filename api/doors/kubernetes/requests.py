"""What pods ask of a node and what a node has, by name of the resource; on which nodes a pod may be."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from gangplan.instances.intake import parse_json

Amounts = Mapping[str, float]
"""Amounts by name of the resource; what is not named is 0."""
GPU, CPU, MEMORY, PODS, PORT = "GPUs", "cpu", "memory", "pods", "host port "
"""Names of resources: every pod asks for one of ``pods``, and for all of each port of its node that it takes."""
COUNTED = GPU, CPU, MEMORY
"""Those that the scheduler counts; it knows of the others on which nodes there is enough."""
KUBELET = {PODS: 110.0}
"""Pods and ports of a node that states nothing else."""
ROUNDING = 5e-4
"""Error of a sum of amounts: half of the least part of a core that can be asked for."""
_UNITS = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_UNITS |= {f"{unit}i": 1024.0 ** (i + 1) for i, unit in enumerate("KMGTPE")}


def quantity(text: Any) -> float:
    """Return a quantity of Kubernetes, such as ``500m`` or ``64Gi``, as a number.

    Raises:
        ValueError: if it is none.
    """
    text = str(text)
    digits = text.rstrip("KMGTPEinumk")
    value = float(digits) * _UNITS[text[len(digits) :]] if text[len(digits) :] in _UNITS else float(text)
    if not 0 <= value < math.inf:
        raise ValueError(f"{text!r} is no amount")
    return value


def amounts(given: Mapping[str, Any] | None) -> dict[str, float]:
    """Return a list of resources as numbers, without those of which there is nothing."""
    return {name: value for name, text in (given or {}).items() if (value := quantity(text))}


def total(*parts: Amounts) -> dict[str, float]:
    """Return the sum."""
    return {name: sum(x.get(name, 0.0) for x in parts) for name in dict.fromkeys(n for x in parts for n in x)}


def most(a: Amounts, b: Amounts) -> dict[str, float]:
    """Return the larger of each."""
    return {name: max(a.get(name, 0.0), b.get(name, 0.0)) for name in {**a, **b}}


def left_of(has: Amounts, name: str) -> float:
    """Return how much there is of a resource; each port of a node is there once."""
    return has.get(name, 1.0 if name.startswith(PORT) else 0.0)


def less(a: Amounts, b: Amounts) -> dict[str, float]:
    """Return what is left of an amount, below 0 where it was too little."""
    return {name: left_of(a, name) - b.get(name, 0.0) for name in {**a, **b}}


def short(left: Amounts, asks: Amounts) -> str:
    """Return the first resource of which too little is left, "" if there is enough."""
    return next((name for name, x in asks.items() if left_of(left, name) < x - ROUNDING), "")


def requests_of(spec: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, float]:
    """Return what a pod holds of its node, as kube-scheduler counts it.

    That is the sum of its containers and sidecars, or what an init container needs beside the sidecars before it if
    that is more; cores, memory and huge pages that the pod states as a whole in place of these; and its overhead.

    Raises:
        ValueError: if an amount is none.
    """
    held = {
        row["name"]: most(amounts(row.get("allocatedResources")), amounts((row.get("resources") or {}).get("requests")))
        for row in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    }  # more than is asked for while a container is made smaller
    running, first = dict[str, float](), dict[str, float]()
    for container in spec.get("initContainers") or ():
        asks = _container(container, held)
        first = most(first, total(running, asks))
        if container.get("restartPolicy") == "Always":
            running = total(running, asks)
    asks = most(first, total(running, *(_container(x, held) for x in spec.get("containers") or ())))
    whole = spec.get("resources") or {}
    asks = amounts(whole.get("limits")) | asks | amounts(whole.get("requests"))
    return total(asks, amounts(spec.get("overhead")), {PODS: 1.0, **dict.fromkeys(_ports(spec), 1.0)})


def _container(container: Mapping[str, Any], held: Mapping[str, Amounts]) -> dict[str, float]:
    given = container.get("resources") or {}
    asks = amounts({**(given.get("limits") or {}), **(given.get("requests") or {})})
    return most(asks, held.get(container.get("name", ""), {}))


def _ports(spec: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ports of its node that a pod takes."""
    containers: Iterable[Mapping[str, Any]] = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    for port in (x for container in containers for x in container.get("ports") or ()):
        number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else None)
        if number:
            yield f"{PORT}{number}/{port.get('protocol') or 'TCP'}"


Taint = tuple[str, str, str]
"""Key, value and effect."""
CORDONED: Taint = ("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""The taint that a cordoned node has, or is about to get."""
ANYWHERE = "[{}, null, []]"
"""Where a pod without constraints may be, see `where_of`."""
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_WHEN = "requiredDuringSchedulingIgnoredDuringExecution"


def where_of(spec: Mapping[str, Any]) -> str:
    """Return as text on which nodes a pod may be: selector, terms of affinity or none, tolerations.

    Raises:
        ValueError: if an operator is not known.
    """
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_WHEN)
    terms = None if required is None else required.get("nodeSelectorTerms") or []
    for each in (x for term in terms or () for part in term.values() for x in part or ()):
        if each["operator"] not in _OPERATORS:
            raise ValueError(f"operator {each['operator']!r} of its node affinity is not known")
    return json.dumps([spec.get("nodeSelector") or {}, terms, spec.get("tolerations") or []], sort_keys=True)


def taints_of(spec: Mapping[str, Any]) -> tuple[Taint, ...]:
    """Return the taints of a node that keep pods from it."""
    rows = [(x["key"], x.get("value") or "", x["effect"]) for x in spec.get("taints") or ()]
    rows += [CORDONED] if spec.get("unschedulable") else []
    return tuple(dict.fromkeys(x for x in rows if x[2] != "PreferNoSchedule"))


def unheeded(spec: Mapping[str, Any]) -> list[str]:
    """Return what a pod asks for that only kube-scheduler can give."""
    affinity, spread = spec.get("affinity") or {}, spec.get("topologySpreadConstraints") or ()
    asked = {
        "required affinity to pods": (affinity.get("podAffinity") or {}).get(_WHEN),
        "required anti-affinity to pods": (affinity.get("podAntiAffinity") or {}).get(_WHEN),
        "required spreading": any(x.get("whenUnsatisfiable") != "ScheduleAnyway" for x in spread),
        "resource claims": spec.get("resourceClaims"),
        "a group of the Workload API": spec.get("workloadRef") or spec.get("schedulingGroup"),
    }
    return [words for words, given in asked.items() if given]


@lru_cache(maxsize=1024)
def _parsed(where: str) -> Any:
    return parse_json(where)


def refusal(name: str, labels: Mapping[str, str], taints: tuple[Taint, ...], where: str) -> str:
    """Return why a node is not for a pod, "" if it is."""
    selector, terms, tolerations = _parsed(where)
    if wrong := next((key for key, value in selector.items() if labels.get(key) != value), ""):
        return f"not {wrong}={selector[wrong]}"
    if terms is not None and not any(_matches(name, labels, term) for term in terms):
        return "outside its node affinity"
    for key, value, effect in taints:
        if not any(_tolerates(x, (key, value, effect)) for x in tolerations):
            return f"taint {key}{'=' * bool(value)}{value}:{effect}"
    return ""


def _matches(name: str, labels: Mapping[str, str], term: Mapping[str, Any]) -> bool:
    rows = [(labels.get(x["key"]), x) for x in term.get("matchExpressions") or ()]
    rows += [(name if x["key"] == "metadata.name" else None, x) for x in term.get("matchFields") or ()]
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


def _tolerates(toleration: Mapping[str, Any], taint: Taint) -> bool:
    key, value, effect = taint
    if (toleration.get("effect") or effect) != effect or (toleration.get("key") or key) != key:
        return False
    if (operator := toleration.get("operator") or "Equal") == "Exists":
        return True
    return operator == "Equal" and bool(toleration.get("key")) and (toleration.get("value") or "") == value
