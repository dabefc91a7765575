"""The tables of docs/policies.md: regret, by policy and trace."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gangplan.simulator.metrics import interval

from .found import Found, table
from .policies_traces import TRACES
from .study import Tables

_AT_ONCE = 100.0
_ROWS_ONLY = ("synthetic, ",)
"""Traces without a column: the same policies are best, and five seeds decide little between them."""


def section(name: str) -> Callable[[Found], str]:
    """Return what makes the tables of a section: ``nodes`` or ``rounds``."""
    return lambda found: compared(found, rounds=name == "rounds")


def compared(found: Found, *, rounds: bool) -> str:
    """Return the traces of a section, and a table of regret: a line for each policy, a column for each trace."""
    legend: list[str] = []
    columns: list[dict[str, str]] = []
    policies: dict[str, None] = {}
    for trace in TRACES:
        if (trace.section == "rounds") != rounds or trace.case not in found.cases:
            continue
        if trace.case.startswith(_ROWS_ONLY):
            continue
        there = [p for p in trace.labels if (trace.case, p) in found.runs]
        policies |= dict.fromkeys(there)
        columns.append({policy: _regret(found, trace.case, policy) for policy in there})
        legend.append(f"{len(columns)}. {_words(found, trace.case, there)}")
    if not columns:
        return ""
    lines = [(f"`{policy}`", *(column.get(policy, "") for column in columns)) for policy in policies]
    heads = ("mean JCT above its bound, %", *(str(i) for i in range(1, len(columns) + 1)))
    return "\n".join(legend) + "\n\n" + table(heads, lines)


def _words(found: Found, case: str, policies: list[str]) -> str:
    name, _, cluster = case.rpartition(" on ")
    seeds = found.of(case, policies[0], "jobs")
    words = f"{name}: {next(iter(seeds.values())):,.0f} jobs on {cluster}"
    if len(seeds) > 1:
        return f"{words}, {len(seeds)} seeds"
    load, bound = (found.one(case, policies[0], figure) for figure in ("load", "jct_bound"))
    about = f"load {load:.0%}" if load < _AT_ONCE else "all at once"
    lp = next((x for p in policies for x in found.of(case, p, "unstopped_bound").values()), None)
    strict = "" if lp is None else f", {lp:,.0f} s without stops"
    return f"{words}, {about}, bound {bound:,.0f} s{strict}"


def _regret(found: Found, case: str, policy: str) -> str:
    """Return a mean regret in percent, over seeds with its interval; that it was cut off, if a seed was."""
    means, bounds = (found.of(case, policy, figure) for figure in ("mean_jct", "jct_bound"))
    if len(means) < len(bounds):
        return "cut off"
    mean, margin = interval(np.array([100 * (means[seed] / bounds[seed] - 1) for seed in bounds]))
    return f"{mean:,.1f}" if margin is None else f"{mean:,.1f} ± {margin:,.0f}"


TABLES: Tables = {name: section(name) for name in ("nodes", "rounds")}
