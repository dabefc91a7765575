"""The tables of latency, step time and replicated stages, each made from ledger rows alone."""

from __future__ import annotations

from math import exp, log

from .cells import bound, clock, excess, gap, seconds, table, times, value
from .ledger import Row
from .rows import Rows
from .suites import LATENCY, REPLICATED, SYNTHETIC, TRAINED

GREEDY = {
    "layer-bert24_inference": 100.219,
    "layer-gnmt_inference": 268.5,
    "layer-inceptionv3_inference": 2485.24,
    "layer-resnet50_inference": 4197.06,
    "operator-bert_l-3_inference": 416.204,
}
"""What the greedy of Tarnawski et al. (NeurIPS 2020) reaches."""
PIPEDREAM = {("vgg16", "2x8"): 8.579, ("gnmt", "4"): 3.4566, ("alexnet", "4"): 2.8898, ("resnet50", "4"): 3.7066}
"""How many times one GPU's throughput PipeDream's optimiser says its plan has."""


def latency(rows: Rows) -> str:
    """Compare with the published greedy, and the methods with one another."""
    lines = []
    for name in LATENCY:
        found = {
            m: rows.find("latency", f"msr/{name}", "latency", m)
            for m in ("auto", "cpsat", "milp", "greedy", "local_search")
        }
        row = found["auto"]
        size = ("", "") if row is None else (str(row.ops), str(row.devices - 8))
        best = None if row is None else row.objective
        others = (
            seconds(found["cpsat"]),
            seconds(found["milp"]),
            *(excess(found[m], best) for m in ("greedy", "local_search")),
        )
        lines.append((name, *size, f"{GREEDY[name]:g}", value(row), bound(row), gap(row), clock(row), *others))
    ours = ("graph", "ops", "accelerators", "published greedy", "latency", "proved bound", "gap", "seconds")
    return table((*ours, "cpsat, s", "milp, s", "greedy, above the best", "local_search, above the best"), lines)


def steps(rows: Rows) -> str:
    """Show synthetic steps on two servers of four devices, by seed."""
    lines = []
    for name, _, limit, _ in SYNTHETIC:
        found = [rows.find("step", f"{name}/seed{seed}@2x4", "step") for seed in range(5)]
        ops = next((str(row.ops) for row in found if row), "")
        lines.append((name, ops, str(limit), *map(seconds, found)))
    return table(("graph", "ops", "limit, s", *(f"seed {seed}" for seed in range(5))), lines)


def trained(rows: Rows) -> str:
    """Show the steps of PipeDream's profiles, with ample memory and with 16 GB a device."""
    lines = []
    for name in TRAINED:
        places = [f"{cluster}{memory}" for memory in ("", "-16GB") for cluster in ("2x2", "2x4")]
        found = [rows.find("step", f"pipedream/{name}@{place}", "step") for place in places]
        ops = next((str(row.ops) for row in found if row), "")
        lines.append((name, ops, *(f"{value(row)} in {seconds(row)}" if row else "" for row in found)))
    return table(("profile", "ops", "2 x 2, 80 GB", "2 x 4, 80 GB", "2 x 2, 16 GB", "2 x 4, 16 GB"), lines)


def replicated(rows: Rows) -> str:
    """Compare with PipeDream's optimiser."""
    lines = []
    for name, cluster, _ in REPLICATED:
        row = rows.find("stages", f"pipedream/{name}@{cluster}", "stages")
        published = PIPEDREAM.get((name, cluster))
        lines.append(
            (name, cluster, value(row), bound(row), seconds(row), "" if published is None else f"{published:g}")
        )
    return table(("profile", "cluster", "seconds a minibatch", "proved bound", "seconds", "published speed-up"), lines)


def objectives(rows: Rows) -> str:
    """Compare with plain formulations: seconds to the proof, and how many times longer the plain model takes."""
    lines, ratios = [], dict[str, list[float]]()
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows.of("objectives"):
        found.setdefault((row.variant, row.instance), {})[row.method] = row
    for (variant, instance), methods in found.items():
        mine = methods.get("auto")
        for name, other in methods.items():
            if name == "auto" or mine is None:
                continue
            ratio = other.seconds / mine.seconds
            both = mine.status == "OPTIMAL" or other.status == "OPTIMAL"
            sign = "≥ " if other.status != "OPTIMAL" else "≤ " if mine.status != "OPTIMAL" else ""
            if both:
                ratios.setdefault(f"{variant}, {name}", []).append(ratio)
            cells = (variant, instance, name, seconds(mine), seconds(other), sign + times(ratio) if both else "neither")
            lines.append(cells)
    means = [
        (
            f"**{name}: geometric mean of {len(found)}**",
            "",
            "",
            "",
            "",
            f"**{times(exp(sum(map(log, found)) / len(found)))}**",
        )
        for name, found in ratios.items()
    ]
    return table(("objective", "instance", "rival", "auto, s", "rival, s", "ratio"), [*lines, *means])


TABLES = {f.__name__: f for f in (latency, steps, trained, replicated, objectives)}
