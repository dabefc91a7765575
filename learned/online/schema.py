"""What the graph of a decision is made of."""

from __future__ import annotations

from ..graph.schema import Schema

CANDIDATE = (
    *("wait", "length", "gpus", "work", "slowdown", "over_ideal", "over_best", "over_least", "waited", "rank"),
    *("of_idle", "idle_after", "whole_taken", "node_after", "rack_after", "nodes", "racks", "left_over"),
    *("gain_by_waiting", "better_in", "fit_after", "over_blocked", "delays_blocked", "ends_apart", "submitted"),
    *("duration", "like_it", "by_rule", "of_typical", "age", "too_slow"),
)
"""Of a candidate: the job, what its GPUs cost, what they leave, what it would gain by waiting for others, and what the
rule says. To wait has those of the candidate with the least work that it keeps from starting."""
SCHEMA = Schema(
    {
        "candidate": CANDIDATE,
        "job": ("fits", "length", "gpus", "work", "dearness", "waited", "key"),
        "run": ("left", "gpus", "nodes", "late"),
        "node": ("idle", "size", "count", "last", "whole"),
        "rack": ("idle", "whole", "largest", "count", "next"),
        "cluster": (
            *("waiting", "backlog", "idle", "whole", "largest", "rack", "broken", "next", "third", "load", "gpus"),
            *("seen", "dearness", "running", "left", "deviation", "surprise", "crowd"),
        ),
    },
    (
        ("candidate", "starts", "job"),
        ("job", "started_by", "candidate"),
        ("node", "taken_by", "candidate"),
        ("candidate", "takes", "node"),
        ("rack", "taken_by", "candidate"),
        ("run", "holds", "node"),
        ("node", "in", "rack"),
        ("rack", "has", "node"),
        ("rack", "in", "cluster"),
        ("run", "in", "cluster"),
        ("job", "in", "cluster"),
        ("candidate", "in", "cluster"),
        ("cluster", "has", "candidate"),
        ("cluster", "has", "job"),
    ),
    scored="candidate",
)
