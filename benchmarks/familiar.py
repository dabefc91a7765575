"""Write hybrid/familiar.json: the ranges of encodings over training instances."""

from __future__ import annotations

import json

import numpy as np

_INSTANCES = 60
"""Of each family and size."""
_SIZES = {"throughput": (30, 100), "step": (30, 100), "placement": (8, 16, 64), "schedule": (10, 20, 100)}
_TAILS = (0.0, 100.0)


def main() -> int:
    """Look at training seeds only, and keep the least and the most of what is seen."""
    from gangplan.hybrid.familiar import RANGES, summary
    from gangplan.learned.labels import FAMILIES, make, seed_of

    found: dict[str, dict[str, list[float]]] = {}
    for problem, sizes in _SIZES.items():
        rows = [
            summary(make(problem, family, seed_of("train", i), size))
            for family in FAMILIES[problem]
            for size in sizes
            for i in range(_INSTANCES)
        ]
        names = sorted(set().union(*rows))
        seen = {name: np.array([row[name] for row in rows if name in row]) for name in names}
        found[problem] = {name: np.percentile(x, _TAILS).round(5).tolist() for name, x in seen.items()}
        print(f"{problem}: {len(rows)} instances, {len(names)} features")
    RANGES.write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")
    return 0
