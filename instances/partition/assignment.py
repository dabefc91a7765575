"""What all plans say of each op, checked where a plan is made."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import frozen, require, require_text


def check_assignment(plan: Any, *whole: str) -> None:
    """Check and freeze `plan.ops`, `plan.instance` and the int32 (n,) fields named in `whole`, none of it negative.

    Raises:
        InstanceError: naming the field and the value found.
    """
    object.__setattr__(plan, "ops", tuple(plan.ops))
    if set(map(type, plan.ops)) != {str} or not all(plan.ops):
        for i, name in enumerate(plan.ops):
            require_text(name, f"ops[{i}]")
    if plan.instance is not None:
        require_text(plan.instance, "instance")
    for field in whole:
        object.__setattr__(plan, field, frozen(getattr(plan, field), np.int32, field, (len(plan.ops),)))
        values = getattr(plan, field)
        require(values >= 0, values, field, "is negative")
