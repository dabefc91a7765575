"""Submissions: a plan that the verifier scores, a certificate that the checker accepts; what is better is taken."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

from gangplan.instances import InstanceError, dump, verify
from gangplan.instances.certificates import verify_bound
from gangplan.instances.errors import did_you_mean
from gangplan.instances.intake import parse_json
from gangplan.instances.kinds import PLANS, objective_of

from .library import JOURNAL, LIBRARY, Record, noted, of, read_library
from .rows import ONLINE, append
from .suite import Instance, make, read_manifest, suite, write_manifest


def submit_plan(plan: Any, name: str, *, by: str, ledger: Path, folder: Path) -> tuple[Instance, float, bool]:
    """Score a plan; if it is better than the best known, note it in the ledger, and keep it among the records.

    Returns:
        What was known of the instance before, the plan's value, and whether it is better.
    """
    instance = _known(name, ledger)
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
    document: Any = parse_json(dump(plan))
    record = Record(instance.id, instance.hash, verdict.objective, document, _by(by))
    return instance, verdict.objective, _take(instance, record, ledger, folder)


def submit_bound(data: Any, name: str, *, by: str, ledger: Path, folder: Path) -> tuple[Instance, float, bool]:
    """Check a certificate; if it proves more than is certified so far, note it in the ledger and keep it.

    Returns:
        What was known of the instance before, the bound, and whether it is better: than what the certificates of the
        library and of the folder prove, since a claim without a certificate is no rival.
    """
    instance = _known(name, ledger)
    problem: Any = make(instance)
    bound = verify_bound(problem, data)
    if bound <= of(instance, read_library(LIBRARY, folder).get(instance.id)).proves:
        return instance, float(bound), False
    text = "inf" if bound == inf else str(bound)
    proved = _by(by) | {"bytes": len(json.dumps(data, separators=(",", ":")))}
    _take(instance, Record(instance.id, instance.hash, bound=text, certificate=data, proved=proved), ledger, folder)
    return instance, float(bound), True


def _known(name: str, ledger: Path) -> Instance:
    known = {x.id: x for x in suite("all", ledger=ledger)}
    if name not in known:
        raise InstanceError("instance", f"there is no {name!r}{did_you_mean(name, known)}")
    if known[name].objective == ONLINE:
        raise InstanceError("instance", f"{name} is online: a policy plays it, by gangplan bench run --plugin")
    return known[name]


def _by(by: str) -> dict[str, Any]:
    return {"by": by, "date": datetime.now(UTC).date().isoformat()}


def _take(instance: Instance, record: Record, ledger: Path, folder: Path) -> bool:
    """Note what is better in the ledger; keep a certificate, or a plan that is better."""
    better = noted(instance, record)
    if better != instance:
        write_manifest((read_manifest(ledger) | {instance.id: better}).values(), ledger)
    if better != instance or record.certificate:
        folder.mkdir(parents=True, exist_ok=True)
        append([replace(record, key="submitted")], folder, JOURNAL)
    return better != instance
