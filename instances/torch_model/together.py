"""Which ops must share a device: tied parameters, modules kept whole, memory written into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

import numpy as np

from ..arrays import IntArray
from ..errors import InstanceError
from .load import Model
from .ops import Ops


def tied_ops(ops: Ops) -> list[set[int]]:
    """Return the ops that read one parameter, a set for each parameter that several read."""
    users: dict[str, set[int]] = {}
    for i, op in enumerate(ops.ops):
        for name in op.state:
            if ops.profile.program.is_parameter(name):
                users.setdefault(name, set()).add(i)
    return [found for found in users.values() if len(found) > 1]


def whole_modules(ops: Ops, model: Model, patterns: Sequence[str]) -> list[set[int]]:
    """Return the ops of each module whose qualified name matches a shell pattern.

    Raises:
        InstanceError: if a pattern matches no module.
    """
    groups = []
    for pattern in patterns:
        names = [name for name, _ in model.module.named_modules() if fnmatchcase(name, pattern)]
        if not names:
            raise InstanceError("whole", f"{pattern!r} matches no module")
        groups += [{i for i, op in enumerate(ops.ops) if f"{op.module}.".startswith(f"{name}.")} for name in names]
    return [group for group in groups if len(group) > 1]


def classes(n: int, groups: list[set[int]]) -> IntArray:
    """Return the colocation class of each of n ops: ops of one group share a class, and so do groups that overlap."""
    leader = list(range(n))

    def find(i: int) -> int:
        while leader[i] != i:
            leader[i] = leader[leader[i]]
            i = leader[i]
        return i

    for group in groups:
        for a, b in pairwise(sorted(group)):
            leader[find(b)] = find(a)
    roots = [find(i) for i in range(n)]
    shared = {root: i for i, root in enumerate(sorted(r for r, members in Counter(roots).items() if members > 1))}
    return np.array([shared.get(root, -1) for root in roots], dtype=np.int32)
