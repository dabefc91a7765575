"""What the tests of PyTorch models share; without torch they are skipped."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from gangplan.instances.torch_model.cost import profile  # noqa: E402
from gangplan.instances.torch_model.inplace import without_inplace  # noqa: E402
from gangplan.instances.torch_model.load import Model, load_model  # noqa: E402
from gangplan.instances.torch_model.ops import Ops  # noqa: E402
from gangplan.instances.torch_model.trace import export, symbolic  # noqa: E402

NETWORKS = Path(__file__).parent / "networks.py"
GPT2 = Path(__file__).parents[2] / "docs" / "examples" / "gpt2.py"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Keep torch to one thread: other tests run at the same time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def load() -> Callable[[str], Model]:
    """Return a call that loads a network by its name, ``gpt2`` being the documentation's example in miniature."""
    return lambda name: load_model(f"{GPT2}:tiny" if name == "gpt2" else f"{NETWORKS}:{name}")


@pytest.fixture
def traced() -> Callable[[Model, str], Ops]:
    """Return a call that traces a model in one way only, ``export`` or ``fx``."""

    def call(model: Model, way: str) -> Ops:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own, on its LSTM
            found = profile({"export": export, "fx": symbolic}[way](model))
        return Ops(profile(without_inplace(found.program, found.values)))

    return call
