"""Refuse options of `gangplan simulate` that would change nothing: one that is not heard misleads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gangplan.instances import InstanceError
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import POLICIES


def check_effects(engine: Mapping[str, Any], policies: Mapping[str, Any], failures: bool) -> None:
    """Refuse an option of the engine that changes nothing for any of the policies.

    Args:
        engine: the options by name, None or their defaults where they are not given.
        policies: names, or what makes a policy, by label.
        failures: whether nodes fail.
    """
    parts = [(POLICIES[maker] if isinstance(maker, str) else maker)() for maker in policies.values()]
    stops = [bool(getattr(part, "preemptive", False) or engine["preemptive"]) for part in parts]
    own = "is decided by the policy itself"
    if engine["preemptive"] and all(hasattr(part, "preempt") for part in parts):
        raise InstanceError("preempt", own)
    if set(policies) == {"online"}:
        for name in ("discipline", "consolidate"):
            if engine[name] not in ("head", "easy", "conservative", False):
                raise InstanceError(name, own)
    degrees = engine["degrees"]
    if degrees and min(degrees) > 0 and not any(hasattr(part, "degree") for part in parts):
        raise InstanceError("degrees", "are chosen by none of the policies; optimus and online do")
    for name, given, needs, wanted in (
        ("overhead", engine["overhead"] != 0.1, degrees, "--degrees"),
        ("checkpoint_interval", engine["checkpoint_interval"] is not None, failures, "--mtbf and --mttr"),
        ("preempt_cost", engine["preempt_cost"] > 0, failures or any(stops), "a policy that stops jobs, or --mtbf"),
    ):
        if given and not needs:
            raise InstanceError(name, f"changes nothing without {wanted}")


def check_wanted(workload: Workload, engine: Mapping[str, Any], lasts: Mapping[str, float]) -> None:
    """Refuse an option about something that the trace does not have."""
    for name in lasts:
        if name not in workload.model:
            raise InstanceError("lasts", f"{name!r} is no application of the trace")
    for name, words in (("cpu", "cores"), ("memory", "memory")):
        if engine.get(name) is not None and not np.any(getattr(workload, name)):
            raise InstanceError(f"node_{name}", f"changes nothing: the trace says of no job what {words} it needs")
    if engine.get("per_queue") and len(set(workload.queue)) == 1:
        raise InstanceError("per_queue", "changes nothing: the jobs are all of one queue")
