"""On which nodes a pod may be: selectors, required affinity, taints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gangplan.instances.intake import parse_json

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
