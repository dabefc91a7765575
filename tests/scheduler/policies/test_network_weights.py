"""Where the graph policy's weights come from: by name, of a file, without torch; and files that are wrong."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from gangplan import InstanceError, Scheduler
from gangplan.instances.placement import Fleet, GangJob
from gangplan.instances.placement.proximity import Proximity
from gangplan.learned.online.policy import GnnPolicy
from gangplan.learned.policy.weights import find

FLEET, NEAR = Fleet.regular(2, 4, 4), Proximity()


def test_weights_by_name_by_file_and_as_a_policy(tmp_path: Path) -> None:
    """All three decide, and alike if they are the same."""
    path = tmp_path / "mine.safetensors"
    GnnPolicy.load(find("gnn")).save(path)
    decided = []
    for policy in ("gnn", str(path), GnnPolicy.load(path)):
        scheduler = Scheduler(FLEET, policy, speeds=NEAR)
        for i in range(4):
            scheduler.submit(GangJob(f"j{i}", "any", (2 + i,)), 10.0 + i)
        decided.append([(x.job, dict(x.nodes), x.tier) for x in scheduler.decide(60.0).starts])
    assert len(decided[0]) == 4
    assert decided == [decided[0]] * 3


def test_it_needs_no_torch() -> None:
    """Where torch cannot be imported it loads, decides and is guarded all the same."""
    script = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "torch_geometric", "torchrl", "tensordict"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
from gangplan import Scheduler
from gangplan.instances.placement import Fleet, GangJob, Proximity
scheduler = Scheduler(Fleet.regular(2, 4, 4), policy="gnn-unguarded", speeds=Proximity())
tiers = set()
for i in range(60):
    scheduler.submit(GangJob(f"j{i}", "any", (1 + i % 5,)), 10.0 + i, now=float(i))
    decision = scheduler.decide(60.0)
    tiers |= {x.tier for x in decision.starts}
    assert all("unlike" in note for note in decision.notes), decision
    if i % 2:
        scheduler.finish(scheduler.running[0])
assert len(scheduler.running) > 3 and "gnn" in tiers and "torch" not in sys.modules
print("decided")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("decided\n", 0), done.stderr


def broken(path: Path, change: Callable[[dict[str, np.ndarray]], None], **card: Any) -> Path:
    """Write the weights of the package, changed, with a card that is about them."""
    tensors = load_file(find("gnn"))
    change(tensors)
    save_file(tensors, path)
    known = json.loads(find("gnn").with_suffix(".json").read_text())
    known |= {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()} | card
    path.with_suffix(".json").write_text(json.dumps(known))
    return path


def not_a_number(tensors: dict[str, np.ndarray]) -> None:
    """Have one number of the last layer be none."""
    tensors["last.weight"][0, 3] = np.nan


@pytest.mark.parametrize(
    ("change", "card", "words"),
    [
        (not_a_number, {}, r"tensors\['last.weight'\]: holds a number that is not finite"),
        (lambda x: x.pop("head.bias"), {}, r"tensors\['head.bias'\]: is missing"),
        (lambda x: x.update(more=x["head.bias"]), {}, r"tensors\['more'\]: is none of the network's"),
        (lambda x: x.update({"head.bias": x["head.bias"][:3].copy()}), {}, r"tensors\['head.bias'\]: has shape \(3,\)"),
        (lambda x: None, {"policy": "marl"}, "policy: 'marl' is not gnn"),
        (lambda x: None, {"settings": {"width": 0}}, r"settings.width: 0"),
        (lambda x: None, {"sha256": "0"}, "sha256: the tensors are not those"),
    ],
)
def test_weights_that_are_wrong(tmp_path: Path, change: Any, card: dict[str, Any], words: str) -> None:
    """They are refused when the scheduler is made, with the name of the file."""
    path = broken(tmp_path / "mine.safetensors", change, **card)
    with pytest.raises(InstanceError, match=words) as error:
        Scheduler(FLEET, str(path), speeds=NEAR)
    assert str(tmp_path / "mine") in str(error.value)


def test_weights_that_are_cut_or_missing(tmp_path: Path) -> None:
    """Likewise."""
    path = broken(tmp_path / "mine.safetensors", lambda x: None)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InstanceError, match=r"mine\.safetensors: tensors: are broken or cut off"):
        Scheduler(FLEET, str(path), speeds=NEAR)
    with pytest.raises(InstanceError, match=r"'gone\.safetensors' is no file"):
        Scheduler(FLEET, "gone.safetensors", speeds=NEAR)
