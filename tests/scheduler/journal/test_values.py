"""Arguments as JSON and back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gangplan.instances import InstanceError
from gangplan.instances.documents import to_data
from gangplan.instances.placement import Demand, Fleet, GangJob, Proximity, SpeedModel
from gangplan.scheduler import Evolved, Patient
from gangplan.scheduler.journal.values import decode, encode, pairs

INF = float("inf")


@pytest.mark.parametrize(
    "value",
    [
        GangJob("j", "m", (1, 2), Demand(2.0, 0.1), requires=("a",), apart=("b",), most_per_node=2, whole_nodes=True),
        Fleet.regular(2, 3, 4),
        Proximity(0.1, 0.2, 0.3, {"m": 1 / 3}),
        Patient(0.5, 0.25, 0.125),
        Evolved(0.5, -0.25, wait=0.125),
        SpeedModel(("m", "n"), ("A",), [[1.0, INF]], [1.0, 2.0], [0.0, 1.0], np.zeros((2, 2)), np.zeros((2, 2))),
    ],
    ids=lambda value: type(value).__name__,
)
def test_there_and_back(value: Any) -> None:
    """Each field of what a scheduler is told comes back from JSON as it was."""
    again = decode(json.loads(json.dumps(value, default=encode)))
    assert type(again) is type(value)
    assert to_data(again) == to_data(value)


def test_what_is_as_usual_is_left_out() -> None:
    """A plain gang is its name, model and workers, and seconds by number of workers keep their numbers."""
    assert encode(GangJob("j", "m", (8,))) == {"type": "GangJob", "name": "j", "model": "m", "workers": (8,)}
    whole = json.dumps(GangJob("j", "m", (8,), Demand(1)), default=encode)
    assert decode(json.loads(whole)).worker.gpu == 1 and '"gpu": 1}' in whole
    assert decode(json.loads(json.dumps(pairs({2: 1.5, 4: 1.0})))) == {2: 1.5, 4: 1.0}


@pytest.mark.parametrize("tag", ["GangPlan", "os:path", "..os:system", "instances.arrays:np", 3, None, "object"])
def test_only_types_of_this_package(tag: Any) -> None:
    """A tag that names no dataclass of the package is refused, and nothing is imported for it."""
    with pytest.raises(InstanceError, match="type"):
        decode({"type": tag})
