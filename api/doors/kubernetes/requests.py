"""Count what pods ask of a node and what a node has, by name of the resource."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

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
