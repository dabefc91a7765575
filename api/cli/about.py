"""`gangplan schema`, `versions` and `methods`: what this installation knows."""

from __future__ import annotations

import json
import platform
from typing import Annotated

import typer

from gangplan.hybrid.solve import versions as used
from gangplan.instances import InstanceError, json_schema
from gangplan.instances.kinds import DOCUMENTS

from . import options
from .output import emit, emit_blocks, emit_json, facts, table


def schema(kind: Annotated[str, typer.Argument(metavar="KIND", help=" or ".join(DOCUMENTS))]) -> None:
    """Print the JSON Schema of one kind of document."""
    if kind not in DOCUMENTS:
        raise InstanceError("kind", f"{kind!r} is not one of {', '.join(DOCUMENTS)}")
    emit(json.dumps(json_schema(kind), indent=2))


def versions(as_json: options.AsJson = False) -> None:
    """List the versions of everything that can change a result."""
    found = {**used(), "platform": platform.platform()}
    if as_json:
        emit_json(found)
    else:
        emit_blocks(facts(found.items()))


def methods(as_json: options.AsJson = False) -> None:
    """List the methods that `gangplan solve --method` knows, by objective."""
    from gangplan.hybrid.table import named
    from gangplan.solvers.method import OBJECTIVES, suite

    suites = {objective: suite(objective) for objective in OBJECTIVES}
    if as_json:
        emit_json(
            {
                objective: {
                    name: {"variants": list(tools.variants_of(x)), "exact": x.exact}
                    for name, x in named(objective).items()
                }
                for objective, tools in suites.items()
            }
        )
        return
    rows = []
    for objective, tools in suites.items():
        rows.append((objective, "auto", ", ".join(tools.variants), "yes"))
        rows += [
            ("", name, ", ".join(tools.variants_of(x)), "yes" if x.exact else "no")
            for name, x in named(objective).items()
        ]
    emit_blocks(table(("objective", "method", "variants", "can prove"), rows, left=4))
