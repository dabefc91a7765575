"""`gangplan schema`, `versions`, `methods` and `warm-up`: what this installation knows."""

from __future__ import annotations

import json
import platform
from typing import Annotated, Any

from gangplan.instances import json_schema
from gangplan.instances.arrays import require_choice
from gangplan.instances.kinds import DOCUMENTS
from gangplan.solvers.method import OBJECTIVES, suite

from .output import Told, emit, facts, table, tell


def schema(kind: Annotated[str, ", ".join(DOCUMENTS), "KIND"]) -> None:
    """Print the JSON Schema of one kind of document."""
    require_choice(kind, "kind", DOCUMENTS)
    emit(json.dumps(json_schema(kind), indent=2))


def versions() -> Told:
    """List the versions of everything that can change a result."""
    from gangplan.hybrid.solve import VERSIONS

    found = {**VERSIONS, "platform": platform.platform()}
    return tell(found, facts(found.items()))


def methods(objective: Annotated[str | None, "throughput, step, ...  [default: all]", "[OBJECTIVE]"] = None) -> Told:
    """List the methods that `gangplan solve --method` knows, by objective."""
    from gangplan.hybrid.table import named

    found: dict[str, dict[str, Any]] = {
        x: {name: {"variants": [*suite(x).variants_of(m)], "exact": m.exact} for name, m in named(x).items()}
        for x in ([objective] if objective else OBJECTIVES)
    }
    rows = []
    for x, entries in found.items():
        rows.append((x, "auto", ", ".join(suite(x).variants), "yes"))
        rows += [("", name, ", ".join(m["variants"]), "yes" if m["exact"] else "no") for name, m in entries.items()]
    return tell(found, table(("objective", "method", "variants", "can prove"), rows, left=4))


def warm_up(objectives: Annotated[list[str] | None, "ignored", "[OBJECTIVE]..."] = None) -> Told:
    """Do nothing: `solve` has nothing to compile any more. The command goes with the next release."""
    return tell({}, "gangplan warm-up does nothing: kernels are compiled when gangplan is built")
