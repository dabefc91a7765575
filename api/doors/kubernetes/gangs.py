"""Which pods start together, and how many they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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


class Gang(NamedTuple):
    """Say what a pod says of its gang: ``namespace/name``, pods that start together, the object that says so or ""."""

    name: str
    size: int | None
    kind: str = ""


def gang_of(key: str, labels: Mapping[str, str], notes: Mapping[str, str], wrong: list[str]) -> Gang:
    """Return the gang of a pod, and append what is wrong with its size."""
    label, note, kind = next((row for row in _SOURCES if labels.get(row[0])), ("", "", ""))
    if not label:
        return Gang(key, 1)
    stated = {name: x for name, x in ((SIZE, labels.get(SIZE)), (SIZE, notes.get(SIZE)), (note, notes.get(note))) if x}
    for name, text in stated.items():
        if not text.isdecimal() or not int(text):
            wrong.append(f"{name}: {text!r} is no number of pods")
    size = next((int(text) for text in stated.values() if text.isdecimal() and int(text)), None)
    return Gang(f"{key.partition('/')[0]}/{labels[label]}", size, kind)


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
