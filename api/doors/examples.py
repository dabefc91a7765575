"""Problems to begin with: a small one of each objective, the same each time."""

from __future__ import annotations

from functools import cache
from typing import Any

from gangplan.instances import dump
from gangplan.instances.generators import generate

from .limits import Refusal

EXAMPLES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "throughput": ("GPT-2 small as a pipeline on 4 GPUs", "gpt", {"devices": 4}),
    "step": ("A step of 80 ops on 4 GPUs", "layered", {"ops": 40, "layers": 8, "objective": "step", "seed": 1}),
    "latency": (
        "Latency of a forward pass of 60 ops on 4 GPUs",
        "series_parallel",
        {"ops": 60, "objective": "latency", "seed": 2},
    ),
    "stages": ("BERT in replicated stages on 8 GPUs", "bert", {"devices": 8, "objective": "stages"}),
    "schedule": ("24 jobs over time on 32 GPUs", "moldable", {"jobs": 24, "seed": 1}),
    "placement": ("24 gangs on two racks", "gangs", {"jobs": 24, "seed": 1}),
}
"""Title, generator and options of each example, by name."""


@cache
def example(name: str) -> str:
    """Return the document of an example."""
    if name not in EXAMPLES:
        raise Refusal(404, "example", f"{name[:40]!r} is not one of {', '.join(EXAMPLES)}")
    _, kind, options = EXAMPLES[name]
    return dump(generate(kind, **options))
