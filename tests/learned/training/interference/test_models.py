"""Models of speed: what they learn, that they never see what is held out, that intervals hold what they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.readers.measured import Pairs
from gangplan.learned.training.interference.judge import hold_out, judge
from gangplan.learned.training.interference.measured import pair_samples
from gangplan.learned.training.interference.models import MODELS, available, fit
from gangplan.learned.training.interference.samples import Samples

pytest.importorskip("torch")
pytest.importorskip("sklearn")


def pairs(n: int = 12, noise: float = 0.0) -> Pairs:
    """Make pairs of which each job suffers in proportion to what the other exerts."""
    rng = np.random.default_rng(0)
    kept = 1 / (1 + np.outer(rng.uniform(0.1, 1.5, n), rng.uniform(0.1, 1.5, n)))
    kept *= np.exp(noise * rng.standard_normal((n, n)))
    return Pairs("made", tuple(f"job{i}" for i in range(n)), np.ones(n), kept)


def mape(name: str, fitted: Samples, held_out: Samples) -> float:
    """Return the mean error of one member of the ensemble on what was held out."""
    point = MODELS[name][0](fitted, 0)
    known = held_out.known
    return float(np.abs(np.exp(point(held_out.only(~known))) / held_out.speed - 1)[known].mean())


def test_every_model_learns_from_a_log(samples: Samples) -> None:
    """On combinations never seen in a small log, most models beat the mean ratio, ours all others."""
    assert available() == list(MODELS)
    fitted, held_out = hold_out(samples, 0)
    some = fitted.first(600)
    error = {name: mape(name, some, held_out) for name in MODELS}
    ours, mean = error.pop("pressure"), error["mean ratio"]
    assert ours < min(0.18, *error.values())
    assert error["trees"] < mean, error


def test_ours_finds_products() -> None:
    """What is a product of suffering and exerting is found from four fifths of the pairs, and not by a mean."""
    fitted, held_out = hold_out(pair_samples(pairs()), 1)
    assert mape("mean ratio", fitted, held_out) > 0.1
    assert mape("pressure", fitted, held_out) < 0.04


@pytest.mark.parametrize("name", ["mean ratio", "ridge", "pressure"])
def test_held_out_is_not_seen(name: str) -> None:
    """Changing the speeds that are held out changes no prediction."""
    samples = pair_samples(pairs())
    fitted, held_out = hold_out(samples, 0)
    other = replace(samples, speed=np.where(held_out.known, 1e-3, samples.speed))
    first, second = (MODELS[name][0](hold_out(x, 0)[0], 3)(samples) for x in (samples, other))
    assert (first == second).all()
    assert not (fitted.known & held_out.known).any()


def test_intervals_hold_what_they_say() -> None:
    """Of noisy pairs that were held out, about as many are in each interval as it states."""
    scores = []
    for seed in range(3):
        fitted, held_out = hold_out(pair_samples(pairs(24, noise=0.05)), seed)
        scores.append(judge(fit(fitted, seed, model="ridge"), fitted, held_out).within)
    half, most, nearly = np.mean(scores, axis=0)
    assert 0.4 < half < 0.62 and 0.7 < most < 0.9 and 0.88 < nearly <= 1.0


def test_a_model_stands_in_for_the_truth(samples: Samples) -> None:
    """Speeds are in the unit of the log, and one seed gives one model."""
    model, again = (fit(samples.first(200), 5, model="ridge") for _ in range(2))
    mean, deviation = model.predict(samples.now)
    assert (deviation > 0).all() and (mean == again.predict(samples.now)[0]).all()
    back = Samples.measured(samples.setting, samples.now, model.speeds(samples.now))
    assert np.allclose(np.log(back.speed), mean)


def test_refusals() -> None:
    """Too few samples, an unknown model and a log without combinations are refused."""
    samples = pair_samples(pairs(4))
    with pytest.raises(InstanceError, match="samples: 16 speeds of 10 combinations are too few"):
        fit(samples)
    with pytest.raises(InstanceError, match="model: 'presure' is not one of"):
        fit(samples, model="presure")
    with pytest.raises(InstanceError, match="samples: 1 combinations of jobs are too few"):
        hold_out(pair_samples(pairs(1)), 0)
