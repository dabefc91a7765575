"""Cases are the same for the same seed, of the load that was asked for, and their data come by path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.systems.interference.baselines import ScoreRule, run
from gangplan.systems.interference.case import harmony_fleet
from gangplan.systems.interference.cases import CASES, DATA_CASES, poisson
from gangplan.systems.interference.environment import check
from gangplan.systems.interference.truths import MEASURED, TESTBED, filled, gangs_of, link_pairs


@pytest.mark.parametrize("name", CASES)
def test_by_name(name: str) -> None:
    """A seed gives the same jobs again, another one others; the truth is that of the cluster."""
    one, same, other = (CASES[name](seed) for seed in (3, 3, 4))
    assert np.array_equal(one.jobs.submit, same.jobs.submit) and np.array_equal(one.jobs.epochs, same.jobs.epochs)
    assert not np.array_equal(one.jobs.submit, other.jobs.submit)
    assert np.array_equal(one.truth.hidden.host, other.truth.hidden.host)  # type: ignore[attr-defined]
    ring = one.jobs.servers == 0
    assert ring.all() if name == "ring" else not ring.any() if name == "ps" else 0.3 < ring.mean() < 0.7


@pytest.mark.parametrize(("load", "share"), [(0.4, 1.0), (0.8, 0.5)])
def test_load(load: float, share: float) -> None:
    """As many GPU seconds arrive a second as were asked for, counted by the speeds of jobs mixed and alone."""
    case = poisson(0, jobs=4000, load=load, share=share)
    jobs = case.jobs
    seconds = jobs.epochs * (MEASURED[1] * TESTBED.batches)[jobs.kind] * jobs.worker[:, 0]
    assert seconds.sum() / (jobs.submit[-1] * case.fleet.n_gpus) == pytest.approx(load, rel=0.06)


@pytest.mark.parametrize("name", DATA_CASES)
def test_data(name: str, data: Path) -> None:
    """Jobs and truths that others measured run to their end."""
    where, make = DATA_CASES[name]
    case = make(str(data / where), 1, jobs=30)
    assert check(run(case, ScoreRule("lif", "shortest", together=True)).outcome()) == []
    if name in ("gavel-pairs", "deepshare"):
        assert np.array_equal(case.jobs.workers, np.array(gangs_of(case.jobs.types.names))[case.jobs.kind])


def test_deepshare_by_hand(data: Path) -> None:
    """Two gangs of four GPUs on two nodes each that share a link run as fast as DeepShare says."""
    fleet = harmony_fleet(4, gpus=4)
    types, truth = link_pairs(data / "deepshare", fleet)
    from gangplan.instances.readers.measured import Pairs, read_measured
    from tests.systems.interference.test_speeds import snapshot

    (pairs,) = read_measured(data / "deepshare" / "shared_thp_ratio.csv")
    assert isinstance(pairs, Pairs)
    a, b = types.names.index("FSDP x4"), types.names.index("DLRM x4")
    kept = pairs.kept[pairs.jobs.index("FSDP,4,2"), pairs.jobs.index("DLRM,4,2")]
    alone, beside = (
        truth.speeds(snapshot([(a, {0: (2, 0), 1: (2, 0)}), (b, rows)]))[0]
        for rows in ({2: (2, 0), 3: (2, 0)}, {1: (2, 0), 2: (2, 0)})
    )
    assert beside / alone == pytest.approx(kept)


def test_filled() -> None:
    """What was not measured is filled in so that a table of products stays one."""
    table = np.outer([0.5, 0.8, 1.0], [0.9, 0.7, 1.0])
    assert np.array_equal(filled(table), table)
    hole = table.copy()
    hole[1, 1] = np.nan
    assert 0 < filled(hole)[1, 1] <= 1 and np.array_equal(np.delete(filled(hole), 4), np.delete(table, 4))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"load": 0.0}, "load: 0.0 is not positive"),
        ({"jobs": 0}, "jobs: 0 is not positive"),
        ({"kind": "tree"}, "kind: 'tree' is not one of"),
        ({"servers": 12}, "servers: 12 do not fill racks of 8"),
        ({"servers": 1}, r"jobs.workers\[\d+\]: [34] do not fit the empty fleet"),
    ],
)
def test_bad_input(words: dict[str, object], message: str) -> None:
    """Bad input names the field and the value."""
    with pytest.raises(InstanceError, match=message):
        poisson(0, **words)  # type: ignore[arg-type]
