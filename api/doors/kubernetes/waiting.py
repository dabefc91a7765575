"""Gather pods that wait to start together, and say on which nodes they may."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from gangplan.instances.arrays import BoolArray
from gangplan.instances.intake import parse_json

from .objects import PODGROUPS, KubeNode, Needs, Pod, incomplete, needs_of
from .requests import CPU, GPU, MEMORY, ROUNDING, Amounts, left_of, most

SHARED = ("within", "topology")
"""Terms that say what the pods of a unit share."""
Sizes = Mapping[str, Mapping[str, int]]
"""Number of pods that start together, by kind and name of the object that states it."""
_REST = 2 * 10**9
"""Priority of pods others of whose gang hold GPUs already."""
_REASONS = 4
"""Reasons against nodes that are given, the most frequent first."""


@dataclass(frozen=True, slots=True)
class PodUnit:
    """Pods that are to start together; two are equal if they ask for the same.

    Attributes:
        pods: which they are, as they are seated.
        needs: of the pod that needs most.
        mark: on which nodes they may be, as text: what `place_of` reads.
        seconds, terms: as of `Scheduler.submit`.
    """

    pods: Sequence[Pod] = field(compare=False)
    count: int
    needs: Needs
    mark: str
    seconds: float | None
    terms: Mapping[str, Any]

    @classmethod
    def of(cls, pods: Sequence[Pod], rest: bool) -> PodUnit:
        """Return pods as a unit; `rest` tells whether others of their gang hold GPUs already."""
        asks = reduce(most, (x.asks for x in pods))
        placed = {name: x for name, x in asks.items() if name not in (CPU, MEMORY)}
        mark = json.dumps([sorted({x.where for x in pods}), placed, len(pods)], sort_keys=True)
        terms = {n: x for pod in reversed(pods) for n, x in pod.terms.items() if GPU in asks or n not in SHARED}
        terms["priority"] = _REST if rest else max(x.terms["priority"] for x in pods)
        terms |= {"preempts": all(x.terms["preempts"] for x in pods), "await_nodes": True}
        terms["grace"] = max(x.terms["grace"] for x in pods) if GPU in asks else None
        seconds = max((x.seconds for x in pods if x.seconds), default=None)
        return cls(pods, len(pods), needs_of(asks), mark, seconds, terms)

    @property
    def created(self) -> float:
        """When the last of its pods was made."""
        return max(pod.created for pod in self.pods)


def unplaced(pods: Mapping[str, Pod], placed: Container[str]) -> dict[str, list[Pod]]:
    """Return the pods of each gang that are to be placed and are not, by name."""
    found = defaultdict[str, list[Pod]](list)
    for pod in sorted(pods.values(), key=lambda x: (len(x.key), x.key)):
        if pod.ours and pod.live and not pod.leaving and pod.uid not in placed:
            found[pod.gang].append(pod)
    return found


def units(
    pods: Mapping[str, Pod], free: Mapping[str, Sequence[Pod]], sizes: Sizes, waits: dict[str, str]
) -> Iterator[tuple[str, PodUnit]]:
    """Yield the units that may start, by name, and note why other pods do not.

    Args:
        pods: by uid.
        free: what `unplaced` returned of them.
        sizes: of gangs whose pods do not state them.
        waits: reasons by the key of a pod; those that are found are entered.
    """
    gangs = defaultdict[str, list[Pod]](list)
    for pod in pods.values():
        if pod.ours and pod.live and not pod.leaving:
            gangs[pod.gang].append(pod)
    for gang, some in free.items():
        pending = [pod for pod in some if not pod.node]
        if not pending:
            continue
        seated, group = len(gangs[gang]) - len(pending), pending[0].group
        stated = sizes_of(gangs[gang], sizes)
        wrong = [pod for pod in pending if pod.wrong]
        why = incomplete(gang, stated, group.kind, len(gangs[gang]))
        if wrong or why:
            waits |= {pod.key: pod.wrong or why or f"of its gang, {wrong[0].key} waits" for pod in pending}
            continue
        size = next(iter(stated))
        if group.kind == PODGROUPS and seated >= size:
            yield from ((f"{gang}#{pod.key}", PodUnit.of([pod], False)) for pod in pending)
            continue
        if seated < size:
            yield gang, PodUnit.of(pending[: size - seated], seated > 0)
        waits |= {pod.key: f"the {size} pods of gang {gang} come first" for pod in pending[max(0, size - seated) :]}


def sizes_of(gang: Sequence[Pod], sizes: Sizes) -> set[int]:
    """Return the sizes that are stated of a gang: by its pods, or else by an object."""
    known = sizes.get(gang[0].group.kind, {}).get(gang[0].gang)
    return {pod.group.size for pod in gang if pod.group.size} or ({known} if known else set())


class UnitPlace(NamedTuple):
    """Say where a unit may be: on which nodes, how many of its pods on each, and the reasons against others."""

    row: BoolArray
    most: int
    why: str


def place_of(
    mark: str, nodes: Sequence[KubeNode], left: Mapping[str, Amounts], stoppable: Mapping[str, Sequence[Amounts]]
) -> UnitPlace:
    """Return where a unit may be by constraints, and by what is left of resources that the scheduler does not count.

    As many of its pods may be on a node as let all find a place; nodes that take fewer are left out.
    """
    wheres, asks, count = parse_json(mark)
    room, reasons = list[int](), Counter[str]()
    for node in nodes:
        why = next((x for where in wheres if (x := node.refuses(where))), "")
        most, lack = (0, "") if why else _room(asks, count, left[node.name], stoppable.get(node.name, ()))
        if not most:
            reasons[why or f"too little {lack}"] += 1
        room.append(most)
    steps = sorted({*room} - {0}, reverse=True) or [1]
    together = next((n for n in steps if n * sum(x >= n for x in room) >= count), steps[-1])
    words = (f"{n} of {len(nodes)} nodes: {why}" for why, n in reasons.most_common(_REASONS))
    return UnitPlace(np.array(room) >= together, together, "; ".join(words))


def _room(asks: Amounts, count: int, left: Amounts, stoppable: Sequence[Amounts]) -> tuple[int, str]:
    """Return how many pods of a unit fit on a node, GPUs, cores and memory apart, and what is too little for more.

    What pods hold that may be stopped counts if each GPU, held by them or free, comes with as much as the unit asks
    for with one: the scheduler frees GPUs, and knows of nothing else.
    """
    lack, need = "", asks.get(GPU, 0.0)
    for name, x in asks.items():
        has, held = left_of(left, name), [(pod.get(GPU, 0.0), pod.get(name, 0.0)) for pod in stoppable]
        if need and all(mine * need >= gpus * x for gpus, mine in ((left.get(GPU, 0.0), has), *held)):
            has += sum(mine for _, mine in held)
        if name != GPU and (most := int((has + ROUNDING) / x)) < count:
            count, lack = max(most, 0), name
    return count, lack
