"""The published graphs: values of the NeurIPS 2020 paper, or found here by two independent exact methods."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gangplan import solve
from gangplan.instances import PartitionPlan, verify
from gangplan.instances.readers import read

# ../shared/specs/pipeline-partition.md; the two of inceptionv3 by dynamic programming and CP-SAT, which agree
OPTIMA = {
    "layer-bert24_inference": "17.7899",
    "layer-bert24_training": "41.7458",
    "layer-gnmt_inference": "32.9107",
    "layer-gnmt_training": "107.004",
    "layer-resnet50_inference": "33.7747",
    "layer-resnet50_training": "78.6318",
    "layer-inceptionv3_inference": "51.5519",
    "layer-inceptionv3_training": "122.7616",
    "operator-bert_l-3_inference": "27.9186",
    "operator-resnet50_inference": "124.349",
}
EXPERTS = {
    "bert24_inference": "20.084",
    "bert24_training": "49.4049",
    "gnmt_inference": "46.2085",
    "inceptionv3_inference": "102.482",
    "resnet50_inference": "43.9183",
}


@pytest.mark.parametrize("name", OPTIMA)
def test_contiguous(name: str, data: Path) -> None:
    """The optimum is proved, has the published digits, and the plan passes the verifier."""
    problem = read(data / f"msr-placement/throughput/{name}.json")
    result = solve(problem, time_limit=60, workers=2)
    assert (result.status, result.stop_reason) == ("OPTIMAL", "proved")
    assert result.plan is not None and result.objective is not None and result.bound is not None
    digits = len(OPTIMA[name].replace(".", ""))
    assert float(f"{result.objective:.{digits}g}") == float(OPTIMA[name])
    assert result.bound >= result.objective * (1 - 1e-6)
    assert verify(problem, result.plan).objective == result.objective


@pytest.mark.parametrize("name", ["layer-bert24_inference", "layer-bert24_training", "layer-gnmt_inference"])
def test_variants_nest(name: str, data: Path) -> None:
    """Free is no worse than convex, convex no worse than contiguous, by the bounds too; all are within 2%."""
    problem = read(data / f"msr-placement/throughput/{name}.json")
    results = [solve(replace(problem, variant=v), time_limit=120, workers=1, gap=0.02) for v in ("free", "convex")]
    best = float(OPTIMA[name]) * (1 + 1e-4)
    for result in results:
        assert result.gap is not None and result.gap <= 0.02
        assert result.objective is not None and result.bound is not None
        assert result.bound <= best
        assert result.objective <= best / 0.98
    assert results[0].bound <= results[1].objective  # type: ignore[operator]


@pytest.mark.parametrize("name", EXPERTS)
def test_human_experts(name: str, data: Path) -> None:
    """The experts' splits have the published load, above the optimum, and are a plan to start from."""
    problem = replace(read(data / f"msr-placement/throughput/layer-{name}.json"), variant="free")
    split = json.loads((data / f"msr-placement/experts/{name}_expert.json").read_text())
    place = {str(v): d for d, part in enumerate(split["fpgas"] + split["cpus"]) for v in part["nodes"]}
    device = np.array([place[v] for v in problem.graph.names])
    used = np.unique(device)
    expert = PartitionPlan(problem.graph.names, device, np.searchsorted(used, device))
    verdict = verify(problem, expert)
    assert verdict.violations == ()
    digits = len(EXPERTS[name].replace(".", ""))
    assert verdict.objective is not None
    assert float(f"{verdict.objective:.{digits}g}") == float(EXPERTS[name])
    assert verdict.objective > float(OPTIMA[f"layer-{name}"])
    result = solve(problem, time_limit=10, method="local_search", initial=expert, workers=1)
    assert (result.trace[0].by, result.trace[0].objective) == ("initial", verdict.objective)
    assert result.objective is not None and result.objective <= verdict.objective
