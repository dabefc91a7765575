"""Fits of the cost model: parameters that are known are found, and errors are those of what was held out."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import nnls

from gangplan.instances import InstanceError
from gangplan.instances.readers.measured import MeasuredSteps, Pairs, Servers, read_measured
from gangplan.learned.training.speed import Fit, fit_duty, fit_pairs, fit_servers, fit_steps, least_costs, low_rank


def pairs(rank: int, seed: int = 0, n: int = 14) -> Pairs:
    """Make pairs whose added shares have this rank, some unknown."""
    rng = np.random.default_rng(seed)
    added = rng.uniform(0, 1, (n, rank)) @ rng.uniform(0, 1, (rank, n))
    kept = 1 / (1 + added)
    kept[rng.random((n, n)) < 0.1] = np.nan
    return Pairs("made", tuple(map(str, range(n))), np.ones(n), kept)


def test_rank_is_found() -> None:
    """Pairs made by a rank-2 table are predicted by rank 2, and not by less."""
    constant, one, two = fit_pairs(pairs(2), ranks=(1, 2))
    assert two.median < 0.01 < one.median < constant.median


def test_held_out_is_not_seen() -> None:
    """Changing what is held out changes nothing that was learned from the rest."""
    values = np.arange(1.0, 17.0).reshape(4, 4)
    known = np.ones((4, 4), dtype=bool)
    known[1, 2] = False
    other = values.copy()
    other[1, 2] = 1e6
    assert (low_rank(values, known, 1) == low_rank(other, known, 1)).all()


def test_both_ways_are_held_out_together() -> None:
    """Pure noise cannot be predicted from the pair's other direction, however symmetric it is."""
    rng = np.random.default_rng(0)
    noise = rng.uniform(0.1, 0.9, (30, 30))
    symmetric = np.minimum(noise, noise.T)
    fits = fit_pairs(Pairs("noise", tuple(map(str, range(30))), np.ones(30), symmetric))
    assert min(fit.median for fit in fits) > 0.15


def test_steps_are_found() -> None:
    """Steps made by the ring's formula are predicted by it, and by no other."""
    shapes = ["1", "2", "4", "11", "22", "112", "1111", "44"]
    batch = np.tile([8.0, 16.0, 32.0], len(shapes))
    placement = tuple(np.repeat(shapes, 3).tolist())
    nodes = np.array([len(p) for p in placement], dtype=np.int32)
    workers = np.array([sum(map(int, p)) for p in placement], dtype=np.int32)
    most = np.array([max(map(int, p)) for p in placement], dtype=np.int32)
    ring = 2 * (workers - 1) / workers
    seconds = 0.1 + 0.02 * batch + ring * np.where(nodes > 1, 0.5, 0.05)
    errors = {
        fit.model: fit.p90 for fit in fit_steps(MeasuredSteps("made", placement, nodes, workers, most, batch, seconds))
    }
    assert errors["ring"] < 1e-9 < errors["hierarchical"] < errors["compute alone"]


def test_duties_are_found() -> None:
    """Pairs made by shares of time and duties are predicted by these, which a fair share cannot."""
    rng = np.random.default_rng(1)
    u, d = rng.uniform(0.2, 1.0, 20), rng.uniform(0.1, 1.0, 20)
    kept = 1 / (1 + np.outer(u, d))
    kept[rng.random((20, 20)) < 0.1] = np.nan
    fair, duty = fit_duty(Pairs("made", tuple(map(str, range(20))), np.ones(20), kept))
    assert duty.p90 < 0.001 and fair.median > 0.05


def test_duties_stay_within_what_is_possible() -> None:
    """Where jobs keep less than half, shares and duties stop at 1: the cost model can say no more."""
    kept = np.full((6, 6), 0.2)
    fits = fit_duty(Pairs("harsh", tuple("abcdef"), np.ones(6), kept))
    assert [fit.median for fit in fits] == pytest.approx([(0.5 - 0.2) / 0.2] * 2)


def test_errors_are_relative() -> None:
    """The error is over what was measured."""
    fit = Fit.judge("d", "m", 1, np.array([1.0, 3.0, 2.0]), np.array([1.0, 2.0, 4.0]))
    assert (fit.median, fit.held_out) == (0.5, 3)
    assert fit.p90 == pytest.approx(0.5)


def test_too_little() -> None:
    """Data too few to hold some out are refused."""
    with pytest.raises(InstanceError, match="pairs: 9 measured pairs are too few"):
        fit_pairs(Pairs("few", ("a", "b", "c"), np.ones(3), np.full((3, 3), 0.5)))


def test_measured_duties(data: Path) -> None:
    """On DeepShare's pairs that were held out, duties halve the error of fair shares."""
    measured = read_measured(data / "deepshare" / "shared_thp_ratio.csv")[0]
    assert isinstance(measured, Pairs) and measured.links
    fair, duty = fit_duty(measured)
    assert 2 * duty.median < fair.median and duty.median < 0.08


@pytest.mark.parametrize("gpu", ["k80", "p100"])
def test_measured_interference(data: Path, gpu: str) -> None:
    """Low rank halves the constant's error on pairs of Gavel that were held out."""
    found = read_measured(data / "gavel" / "simulation_throughputs.json")
    measured = next(pairs for pairs in found if isinstance(pairs, Pairs) and pairs.name == gpu)
    error = {fit.model: fit.median for fit in fit_pairs(measured)}
    assert error["rank 3"] < 0.06
    assert 2 * error["rank 3"] < error["constant"]


def test_servers_are_found() -> None:
    """Steps made of compute, a latency and a bandwidth are predicted by these, and not by compute alone."""
    rng = np.random.default_rng(4)
    compute, gradient = rng.uniform(0.1, 1.0, 8), rng.uniform(1e6, 1e9, 8)
    latency, each = np.array([0.05, 0.02, 0.0]), np.array([8e-9, 4e-9, 1e-10])
    seconds = compute[:, None] + latency + gradient[:, None] * each
    fits = fit_servers(Servers("made", tuple("abcdefgh"), compute, gradient, seconds))
    assert fits[2].median < 1e-9 < fits[0].median
    with pytest.raises(InstanceError, match="model: 3 model types are too few"):
        fit_servers(Servers("few", tuple("abc"), compute[:3], gradient[:3], seconds[:3]))


HARMONY = re.compile(r"([A-Z][\w-]+) ([\d.]+)/([\d.]+)/([\d.]+)" + r",\s+([\d.]+)" * 4)


def test_harmony(data: Path, tmp_path: Path) -> None:
    """A type that was never measured is predicted better from its gradient than from its compute alone."""
    spec = data.parent / "specs" / "placement.md"
    if not spec.exists():
        pytest.skip("no table of Harmony")
    rows = ["model,apart,mixed,together,compute,gradient,batch"]
    for model, *rates, compute, size, _, batch in HARMONY.findall(spec.read_text()):
        cells = model, *rates, float(compute) / 1e3, float(size) * 1e6, batch.rstrip(".")
        rows.append(",".join(map(str, cells)))
    path = tmp_path / "harmony.csv"
    path.write_text("\n".join(rows))
    (found,) = read_measured(path)
    assert isinstance(found, Servers) and len(found.models) == 8
    alone, bandwidth, latency = fit_servers(found)
    assert latency.median < bandwidth.median < alone.median
    assert latency.p90 < alone.p90


def test_wrong_servers(tmp_path: Path) -> None:
    """A table with a hole names the line."""
    path = tmp_path / "x.csv"
    path.write_text("model,apart,mixed,together,compute,gradient,batch\na,1,2,3,0.1,1e6\n")
    with pytest.raises(InstanceError, match="line 2: columns: the row has 6 of them"):
        read_measured(path)


@pytest.mark.parametrize("seed", range(20))
def test_costs_are_least_squares(seed: int) -> None:
    """What columns take is the least squares without negative ones, of relative errors."""
    rng = np.random.default_rng(seed)
    columns, seconds, beyond = rng.normal(size=(8, seed % 4 + 1)), rng.uniform(1, 2, 8), rng.normal(size=8)
    found, error = nnls(columns / seconds[:, None], beyond / seconds)
    ours = least_costs(columns, seconds, beyond)
    assert ours == pytest.approx(found, abs=1e-9)
    assert np.linalg.norm((columns @ ours - beyond) / seconds) == pytest.approx(error)
