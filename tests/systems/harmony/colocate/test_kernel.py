"""The compiled ensemble predicts what the torch one does, and to the bit what numba's kernel did."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from gangplan.instances.arrays import FloatArray
from gangplan.learned.training.interference.networks import batch_of
from gangplan.simulator.snapshots import Snapshots
from gangplan.solvers import native
from gangplan.systems.harmony.colocate import kernel
from gangplan.systems.harmony.colocate.learners import Ensemble, arrays, log_of
from gangplan.systems.harmony.colocate.policy import Fitted, Speeds
from gangplan.systems.harmony.colocate.recipe import ColocateSettings
from gangplan.systems.interference import speeds

from ....solvers.uncompiled import uncompiled
from ...interference.test_speeds import odd

GOLDEN = Path(__file__).with_suffix(".json")
"""What numba's kernel of commit feefd4b9 made of `ensemble`."""


@pytest.mark.parametrize("case", ["shared", "ps"])
def test_speeds_are_those_of_torch(case: str, one_thread: None) -> None:
    """On a log of shared servers and crossed links both agree to the precision of single floats, member by member."""
    settings = ColocateSettings(case=case, samples=200, members=3, kinds=3)
    samples = log_of(settings, 1)
    torch.manual_seed(5)
    network = Ensemble(samples.setting, settings)
    for x in network.parameters():
        torch.nn.init.normal_(x, -0.5, 0.5)
    fitted = arrays(network)
    with torch.inference_mode():
        logs = network(batch_of(samples)).double().numpy()
    unit = np.log(samples.setting.unit[samples.now.kind] * samples.now.total(samples.now.workers))
    assert np.allclose(np.log(Speeds(fitted).speeds(samples.now)), logs.mean(axis=0) + unit, atol=2e-5)
    low = logs.mean(axis=0) - 1.5 * logs.std(axis=0, ddof=1)
    assert np.allclose(np.log(Speeds(fitted, 1.5).speeds(samples.now)), low + unit, atol=5e-5)
    assert logs.std(axis=0).min() > 1e-4


def ensemble(seed: int) -> tuple[Fitted, Snapshots]:
    """Return members of random sizes and numbers, and snapshots."""
    truth, now, _ = odd(seed)
    rng, k, places = np.random.default_rng(seed), len(truth.step), truth.link.shape[1] + len(truth.quality)
    e, r = (int(x) for x in rng.integers(1, 4, 2))

    def numbers(*shape: int) -> FloatArray:
        return rng.random((e, *shape)) * rng.choice([*([0.0, 1e6] if seed % 2 else []), *9 * [1.0]], (e, *shape))

    return Fitted(
        truth.link, rng.normal(size=(1, k)), numbers(k, 2), numbers(k, 3 * r), numbers(k, 2 * r), numbers(k, 3 * r),
        numbers(k, 1), numbers(k), numbers(places), 1e-3 + rng.random((e, 3)),
    ), now  # fmt: skip


def outcome(seed: int, module: ModuleType = kernel) -> str:
    """Return a digest of what members say of all jobs."""
    return hashlib.sha256(repr(np.array(module.all_logs(*ensemble(seed))).tolist()).encode()).hexdigest()[:16]


@pytest.mark.parametrize("seed", range(40))
def test_logs_are_those_recorded(seed: int) -> None:
    """What members say is to the bit what numba's kernel made of them."""
    assert outcome(seed) == json.loads(GOLDEN.read_text())[seed]


@pytest.mark.parametrize("seed", range(6))
def test_the_source_does_what_is_compiled(seed: int) -> None:
    """Run from the source as plain Python the kernel says the same."""
    assert outcome(2 * seed, uncompiled(native, speeds, kernel)) == outcome(2 * seed)


@pytest.mark.parametrize("field", Fitted._fields)
def test_arrays_of_another_shape_are_refused(field: str) -> None:
    """What does not fit is not read or written beyond its end."""
    fitted, now = ensemble(4)
    with pytest.raises(ValueError, match="are not"):
        x = getattr(fitted, field)
        kernel.all_logs(fitted._replace(**{field: x + 99 if field == "link" else x[..., :-1].copy()}), now)
