"""All kernels, each with a test of what it makes, and `pytest -p tests.source`, by which they run as plain Python.

Most of these tests run a few cases `uncompiled` themselves. `python -m tests.source` names those that do not.
"""

from __future__ import annotations

import sys
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).parents[1]
_LISTED = {
    "learned/offline/test_graphs.py": "learned/offline/graphs",
    "learned/online/test_episodes_recorded.py": """
        learned/graph/compiled learned/online/candidates learned/online/episodes learned/online/features
        learned/online/graph learned/online/rollouts
    """,
    "scheduler/policies/test_rollouts.py": "scheduler/policies/rollouts",
    "simulator/engine/test_simulate.py": "simulator/engine/kernels",
    "simulator/gangs/test_arrays.py": """
        simulator/gangs/allocate simulator/gangs/arrays simulator/gangs/formula simulator/gangs/listing
        simulator/gangs/step solvers/placement/online/closest
    """,
    "simulator/rounds/test_loop.py": "simulator/rounds/loop",
    "simulator/test_fit.py": "simulator/fit",
    "simulator/trace/test_loop.py": "simulator/trace/loop",
    "solvers/partition/latency/test_kernels.py": "solvers/partition/latency/kernels",
    "solvers/partition/step/test_step_kernels.py": """
        solvers/partition/step/arrays solvers/partition/step/list_scheduler solvers/partition/step/moves
        solvers/partition/step/timing
    """,
    "solvers/partition/throughput/test_kernels.py": """
        solvers/partition/throughput/cut_kernels solvers/partition/throughput/kernels
    """,
    "solvers/placement/ruin_recreate/test_search.py": """
        solvers/placement/ruin_recreate/arrays solvers/placement/ruin_recreate/costs
        solvers/placement/ruin_recreate/gpus solvers/placement/ruin_recreate/moves
        solvers/placement/ruin_recreate/places solvers/placement/ruin_recreate/search
    """,
    "solvers/placement/test_pricing.py": "solvers/placement/pricing",
    "solvers/schedule/test_kernels.py": """
        solvers/schedule/annealing solvers/schedule/kernels solvers/schedule/price_kernels solvers/schedule/run_kernels
    """,
    "solvers/test_native.py": "solvers/native",
    "systems/harmony/colocate/test_kernel.py": "systems/harmony/colocate/kernel",
    "systems/interference/test_places.py": "systems/interference/places",
    "systems/interference/test_speeds.py": "systems/interference/speeds",
    "systems/pacml/learned/test_learned_recorded.py": """
        systems/pacml/learned/features systems/pacml/learned/tables systems/pacml/learned/worth
    """,
    "systems/topdrl/test_kernels.py": "systems/topdrl/kernels",
}
PLAYED = {f"tests/{test}": [f"{kernel}.py" for kernel in kernels.split()] for test, kernels in _LISTED.items()}
"""Each test of kernels, and the modules that it plays."""


def _sources(path: str) -> FileFinder:
    """Return what finds sources alone in a folder of the clone, and refuse any other folder."""
    if not Path(path).is_relative_to(ROOT) or ".venv" in Path(path).parts:
        raise ImportError
    return FileFinder(path, (SourceFileLoader, SOURCE_SUFFIXES))


def pytest_load_initial_conftests() -> None:
    """Have the modules of the clone be imported from their sources, before any is imported."""
    sys.path_hooks.insert(0, _sources)
    sys.path_importer_cache.clear()


if __name__ == "__main__":
    print(*(test for test in PLAYED if "uncompiled" not in (ROOT / test).read_text()))
