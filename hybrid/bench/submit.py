"""Plans of others: scored by the verifier, and noted in a ledger where they are better than all that is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError, verify
from gangplan.instances.errors import did_you_mean
from gangplan.instances.kinds import PLANS, objective_of

from .rows import ONLINE
from .suite import Instance, make, read_manifest, suite, write_manifest


def submit(plan: Any, instance_id: str, *, by: str, ledger: Path) -> tuple[Instance, float, bool]:
    """Score a plan; if it is better than the best known, note it in the ledger.

    Returns:
        What was known of the instance before, the plan's value, and whether it is better.

    Raises:
        InstanceError: if there is no such instance, the plan is of another objective or instance, or it is infeasible.
    """
    known = {x.id: x for x in suite("all", ledger=ledger)}
    if instance_id not in known:
        raise InstanceError("instance", f"there is no {instance_id!r}{did_you_mean(instance_id, known)}")
    instance = known[instance_id]
    if instance.objective == ONLINE:
        raise InstanceError("instance", f"{instance_id} is online: a policy plays it, by gangplan bench run --plugin")
    if not isinstance(plan, PLANS[instance.objective]):
        raise InstanceError("plan", f"is of the objective {objective_of(plan)}, {instance.id} of {instance.objective}")
    if plan.instance not in (None, instance.hash):
        raise InstanceError("plan", f"was made for another instance: {plan.instance}, this one is {instance.hash}")
    try:
        problem: Any = make(instance)
        verdict = verify(problem, plan)
    except InstanceError as error:
        raise InstanceError(f"plan.{error.field}", error.problem) from None
    if verdict.objective is None:
        raise InstanceError("plan", f"is not feasible: {verdict.violations[0]}")
    better = instance.better(verdict.objective, None, by, None)
    if better != instance:
        write_manifest((read_manifest(ledger) | {instance.id: better}).values(), ledger)
    return instance, verdict.objective, better != instance
