"""`gangplan schema`, `versions`, `methods` and `warm-up`: what this installation knows, and has compiled."""

from __future__ import annotations

import json
import platform
import time
from typing import Annotated, Any

from gangplan.instances import json_schema
from gangplan.instances.arrays import require_choice
from gangplan.instances.kinds import DOCUMENTS
from gangplan.solvers.kernels import folder
from gangplan.solvers.method import OBJECTIVES, suite

from .output import Told, emit, facts, listed, progress, table, tell


def schema(kind: Annotated[str, ", ".join(DOCUMENTS), "KIND"]) -> None:
    """Print the JSON Schema of one kind of document."""
    require_choice(kind, "kind", DOCUMENTS)
    emit(json.dumps(json_schema(kind), indent=2))


def versions() -> Told:
    """List the versions of everything that can change a result."""
    from gangplan.hybrid.solve import versions as used

    found = {**used(), "platform": platform.platform()}
    return tell(found, facts(found.items()))


def methods(objective: Annotated[str | None, "throughput, step, ...  [default: all]", "[OBJECTIVE]"] = None) -> Told:
    """List the methods that `gangplan solve --method` knows, by objective."""
    from gangplan.hybrid.table import named

    found: dict[str, dict[str, Any]] = {
        x: {
            name: {"variants": list(suite(x).variants_of(method)), "exact": method.exact}
            for name, method in named(x).items()
        }
        for x in ([objective] if objective else OBJECTIVES)
    }
    rows = []
    for x, entries in found.items():
        rows.append((x, "auto", ", ".join(suite(x).variants), "yes"))
        rows += [("", name, ", ".join(m["variants"]), "yes" if m["exact"] else "no") for name, m in entries.items()]
    return tell(found, table(("objective", "method", "variants", "can prove"), rows, left=4))


def warm_up(objectives: Annotated[list[str] | None, "as of `solve`  [default: all]", "[OBJECTIVE]..."] = None) -> Told:
    """Compile what `solve` uses, so that no later process has to.

    Nobody needs this to solve something: `solve` compiles what it lacks beside its methods. It is for images of
    containers, and says where compiled code is kept; GANGPLAN_CACHE_DIR names another folder.
    """
    from gangplan.hybrid import warm_up as warm
    from gangplan.hybrid.compiling import kernels

    chosen = objectives or list(OBJECTIVES)
    found = {}
    with progress("compiling") as bar:
        for i, objective in enumerate(chosen):
            started = time.process_time()
            warm(objective, tell=lambda _, done, count, at=i: bar((at + done / count) / len(chosen)))  # type: ignore[misc]
            seconds = time.process_time() - started
            found[objective] = {"kernels": len(kernels(objective)), "processor_seconds": seconds}
    columns = {"objective": "{name}", "kernels": "{kernels}", "processor time": "{processor_seconds:.1f} s"}
    rows = listed([{"name": name, **row} for name, row in found.items()], columns)
    return tell({"folder": str(folder()), "objectives": found}, rows, f"compiled code: {folder()}")
