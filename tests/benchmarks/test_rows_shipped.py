"""What ships learned is better, by the rows, than random scores, a linear or no score, and search without learning.

`harmony-more.csv` has more test seeds than the tables show: ``python -m benchmarks harmony --seeds 60 --policy colocate
--policy alone-joint --rows benchmarks/rows/harmony-more.csv``, and the rules that are best on a case; so has
`offline-more.csv`, of pipelines of 1,000 ops.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from benchmarks import harmony, offline, online, pacml
from benchmarks.found import Found
from benchmarks.rows import FOLDER, digest, read
from benchmarks.study import Study
from gangplan.hybrid.table import ENTRIES
from gangplan.learned.policy.weights import FOLDER as WEIGHTS
from gangplan.simulator.metrics import interval

FEWEST = 5
"""Test seeds."""
BIDS = "85bdc3fb84b9"
"""Of the weights by which markets bid in the rows, which do not name them."""


@dataclass(frozen=True)
class Claim:
    """Where learned weights pay.

    Attributes:
        weights: their name.
        study: whose rows say so.
        cases: whose mean counts.
        policy: who decides by the weights.
        rivals: of whom each is worse.
        rows: names of the files.
        figure: the lower, the better.
    """

    weights: str
    study: Study
    cases: tuple[str, ...]
    policy: str
    rivals: tuple[str, ...]
    rows: tuple[str, ...]
    figure: str = "mean_jct"
    level: tuple[str, ...] = ()
    """Parts of it, of which none is better."""


def blocking(weights: str, units: str) -> Claim:
    """Return what a policy of PAC-ML's cluster claims: plans of two futures take as long as it does."""
    cases = tuple(f"{units} five 4x4x2 0.936 1000 {d}" for d in "ABCD")
    rules = "constant-8+best", "about-2+best", "from-2+best", "about-8+best", "from-8+best", "smallest+best"
    rivals = "random scores", *rules, "plans of 2 futures, drawn from the past"
    return Claim(weights, pacml.STUDY, cases, "learned", rivals, ("pacml",), "blocked_or_running")


def speeds(case: str, *rules: str, weights: str = "") -> Claim:
    """Return what a model of speeds claims: the same search by the speeds that jobs have alone is worse, and so are
    the rules that are best on the case."""
    name, rivals = weights or f"colocate-{case}", ("alone-joint", *rules)
    return Claim(name, harmony.STUDY, (case,), "colocate", rivals, ("harmony", "harmony-more"))


RULES = tuple(
    f"{rule}+closest" for rule in ("least_work+head", "least_work+overtake", "sjf+overtake", "tetris+overtake")
)
CLAIMS = (
    blocking("pacml-as-published", "as-published"),
    blocking("pacml", "physical"),
    Claim(
        "gnn", online.STUDY, online.SYNTHETIC, "gnn-unguarded",
        (
            "patient", "rollout", "linear", *RULES,
            *(f"gnn-{part}-unguarded" for part in ("alone", "exact", "rl-only", "random")),
        ),
        ("online",), level=("gnn-rollouts-unguarded", "gnn-imitation-unguarded"),
    ),
    Claim(
        "offline-throughput", offline.STUDY, ("throughput, 1000",), "network of 16",
        ("random of 16", "rule", "classic"), ("offline", "offline-more"), "log",
        ("no messages of 16", "no imitation of 16", "no RL of 16"),
    ),
    Claim(
        "offline-placement", offline.STUDY, ("placement, 160",), "network of 16",
        ("random of 16", "rule", "classic", "CP-SAT", "no imitation of 16", "no RL of 16"), ("offline",), "log",
        ("no messages of 16",),
    ),
    speeds("shared", "tetris-near", weights="colocate"),
    speeds("poisson", "alone"),
    speeds("ps", "alone"),
    speeds("ring", "alone", "tetris-near"),
    speeds("gavel-mix", "lb-near", "tetris-near", "lif-near"),
    speeds("gavel-pairs", "tetris-near"),
    # of many schedulers, none of which sees all: rules that do are no rivals
    Claim(
        "colocate-leaf-spine", harmony.STUDY, ("leaf-spine-gavel",), "market-learned",
        ("market-packed", "market", "market-ask-2", "agents-alone", "agents-lif"), ("harmony",),
    ),
)  # fmt: skip
SYSTEMS = {"pacml-published", "topdrl", "topdrl-large", "harmony", "harmony-ps", "harmony-shared", "marl"}
"""Others' published policies, which ship to be compared with."""


def test_every_weight_makes_a_claim() -> None:
    """Nothing learned ships of which no row says that it pays."""
    claimed = {claim.weights for claim in CLAIMS} | SYSTEMS
    assert claimed == {path.stem for path in WEIGHTS.glob("*.safetensors")}


def test_auto_uses_no_network() -> None:
    """What is level with search in equal time, or behind it, is reached by name alone."""
    assert not any(entry.learned or entry.name == "gnn" for entry in ENTRIES)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.weights)
def test_what_ships_pays(claim: Claim) -> None:
    """On test seeds of the very weights that ship each rival is worse, by an interval without 0; no part is better."""
    found = Found([row for name in claim.rows for row in read(FOLDER / f"{name}.csv")], claim.study.alike)
    for case in claim.cases:
        used = {row.task.weights for row in found.runs[case, claim.policy].values()}
        if claim.policy == "market-learned":
            assert used == {""}
            used = {BIDS}
        assert used == {digest(WEIGHTS / f"{claim.weights}.safetensors")}, case
    for rival in (*claim.rivals, *claim.level):
        apart = shares(found, claim, rival)
        assert len(apart) >= FEWEST, rival
        mean, margin = interval(apart)
        assert margin is not None
        most = mean + margin if rival in claim.rivals else mean - margin
        assert most < 0, f"{rival}: {mean:.4g} ± {margin:.2g}"


def shares(found: Found, claim: Claim, rival: str) -> np.ndarray:
    """Return by seed how far a claim's policy is from a rival, as a share of the rival's mean, in the mean of cases."""
    parts = []
    for case in claim.cases:
        mine, theirs = (found.of(case, policy, claim.figure) for policy in (claim.policy, rival))
        unit = abs(float(np.mean([*theirs.values()])))
        parts.append({seed: (mine[seed] - theirs[seed]) / unit for seed in mine.keys() & theirs.keys()})
    seeds = sorted(set.intersection(*map(set, parts)))
    return np.array([np.mean([part[seed] for part in parts]) for seed in seeds])
