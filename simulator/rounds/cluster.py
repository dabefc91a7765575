"""A cluster of GPUs of several types, one GPU a server: what a round-based scheduler leases."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gangplan.instances import InstanceError
from gangplan.instances.arrays import require_number, require_text, require_unique

_PART = re.compile(r"(\d+)x([A-Za-z][\w.-]*)")


@dataclass(frozen=True, slots=True)
class Cluster:
    """GPUs by type; each type's GPUs are numbered on from the type before it.

    Attributes:
        types: names, in lower case, the most wanted first: who is heterogeneity-aware fills them in this order.
        count: GPUs of each type.
    """

    types: tuple[str, ...]
    count: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.types or len(self.types) != len(self.count):
            raise InstanceError("cluster", f"has {len(self.types)} types and {len(self.count)} counts")
        for i, (name, count) in enumerate(zip(self.types, self.count, strict=True)):
            require_text(name, f"types[{i}]")
            require_number(count, f"count[{i}]", positive=True, whole=True)
        require_unique(self.types, "types")

    @property
    def gpus(self) -> int:
        """How many GPUs there are."""
        return sum(self.count)


def parse_cluster(text: str) -> Cluster:
    """Build a cluster from words like ``8xV100+8xP100+8xK80``.

    Raises:
        InstanceError: naming the part that is wrong.
    """
    types, count = [], []
    for part in text.split("+"):
        match = _PART.fullmatch(part.strip())
        if match is None or not 0 < int(match[1]) <= 10**6:
            raise InstanceError("cluster", f"{part!r} of {text!r} is not GPUs x type, like 8xV100")
        types.append(match[2].lower())
        count.append(int(match[1]))
    return Cluster(tuple(types), tuple(count))
