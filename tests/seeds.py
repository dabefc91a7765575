"""Seeds and long tests of which each run plays a share that the commit chooses: in the course of commits all are."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")
CHOICE = "GANGPLAN_TEST_SEEDS"
"""The environment variable that chooses the share: a commit, of which the first digits count, or `all`."""
ALL = "all"
_DIGITS = 12
_ROOT = Path(__file__).parents[1]
_LEARNERS = ("learned/training", "simulator/ground.py")
_METHODS = ("instances", "solvers", "hybrid")
_LISTS = ("simulator", "solvers/placement/online", "instances/readers/openb.py")
_SPLIT = ("api/torch_split", "api/cli/split.py", "instances/torch_model")
_ABOUT: dict[tuple[str, ...], str] = {
    # train, run notebooks, or programs that die, or play published lists
    ("benchmarks", "systems/pacml"): "benchmarks/test_pacml.py",
    ("api/doors",): "doors/test_serving.py",
    ("hybrid/bench", "solvers"): "hybrid/bench/peers hybrid/bench/test_plugins.py hybrid/bench/test_run.py",
    ("instances/layout", "benchmarks/sailor.py"): "benchmarks/test_sailor.py",
    _LEARNERS: """
        learned/training/interference/test_models.py learned/training/offline learned/training/online
    """,
    _LISTS: """
        simulator/test_ceiling.py::test_published_list simulator/test_replay.py::test_published_policies
        simulator/test_replay_lists.py
    """,
    (*_LEARNERS, "systems/harmony"): """
        systems/harmony/colocate/test_learners.py systems/harmony/colocate/test_policy.py
        systems/harmony/test_learners.py
    """,
    (*_LEARNERS, "systems/marl"): "systems/marl/test_learners.py systems/marl/test_recipe.py",
    (*_LEARNERS, "systems/pacml"): """
        systems/pacml/learned systems/pacml/published/test_learners.py
        systems/pacml/test_simulate.py::test_published_rates
    """,
    (*_LEARNERS, "systems/topdrl"): "systems/topdrl/published/test_learners.py systems/topdrl/test_rollout.py",
    ("api/teach", "api/cli/teach.py", "docs/course"): """
        cli/test_teach.py teach/test_grading.py teach/test_notebooks.py
    """,
    _SPLIT: "cli/test_split.py torch_split/test_schedule.py torch_split/test_pieces.py",
    # try many cases, of which each run plays a third
    (): "test_docs.py::test_snippets_run",
    ("instances/addons.toml",): "test_layout.py::test_the_core_runs_without",
    ("tests/simulation",): """
        simulation/test_simulation.py::test_faults_are_noticed
        simulation/test_simulation_operator.py::test_faults_of_what_operators_do_are_noticed
    """,
    _METHODS: """
        hybrid/test_solve.py::test_callback hybrid/test_solve.py::test_result_is_consistent
        hybrid/test_solve.py::test_same_seed_same_trace hybrid/test_solve.py::test_time_limit_of_each_method
        referee/test_referee.py::test_agrees referee/test_referee.py::test_methods_at_nasty_scales
        solvers/test_check.py::test_every_method_keeps_the_contract
        solvers/test_exactness.py::test_exact_methods_are_right
    """,
    ("instances/certificates", "solvers/certificates"): """
        adversary/test_adversary_peers.py::test_reported solvers/certificates/test_make.py
    """,
    ("instances/layout", "solvers/layout"): """
        solvers/layout/test_exactness.py solvers/layout/test_explain.py::test_best
        solvers/layout/test_explain.py::test_rivals
    """,
    ("solvers/partition",): """
        solvers/partition/latency/test_constraints.py::test_method
        solvers/partition/latency/test_properties.py solvers/partition/latency/test_published.py
        solvers/partition/latency/test_series_bound.py::test_branches_beside_take_calls
        solvers/partition/stages/test_plain.py solvers/partition/stages/test_stages.py::test_published_four_devices[gnmt
        solvers/partition/step/test_moves.py::test_the_most_promising_is_taken
        solvers/partition/throughput/test_constraints.py::test_constraint
        solvers/partition/throughput/test_exactness.py::test_all_agree_with_enumeration
        solvers/partition/throughput/test_exactness.py::test_generated_graphs
        solvers/partition/throughput/test_published.py solvers/partition/throughput/test_share_bound.py
    """,
    ("solvers/pipeline",): "solvers/pipeline/test_methods.py",
    ("solvers/placement",): """
        solvers/placement/online/test_placer.py::test_every_decision_is_feasible
        solvers/placement/test_placement.py solvers/placement/test_eviction.py::test_a_plain_model
        solvers/placement/test_patterns.py solvers/placement/test_plain.py
    """,
    ("solvers/schedule",): """
        solvers/schedule/test_kernels.py solvers/schedule/test_methods.py::test_exact_methods_agree
    """,
    ("scheduler", "solvers/placement"): """
        scheduler/explaining/test_intervals.py scheduler/journal/test_play.py
        scheduler/journal/test_history.py::test_each_kind_of_event
        scheduler/moving/test_defragment.py::test_enumeration scheduler/policies/test_engine_policy.py
        scheduler/queueing/test_held_jobs.py::test_snapshots_keep_who_is_held_back
        scheduler/snapshots/test_snapshot.py::test_any_value_in_a_snapshot
        scheduler/starting/test_reservations.py::test_the_bound_on_waiting_is_kept
        scheduler/test_settings.py::test_nobody_waits_beyond_the_bound
        scheduler/test_state.py::test_finished_jobs_are_forgotten
        scheduler/test_state.py::test_nothing_starts_or_stops_before_the_wake
        simulation/test_simulation_seeds.py::test_what_is_known_of_room_changes_no_decision
    """,
    ("simulator",): """
        simulator/engine/test_state.py simulator/test_fit.py simulator/trace/test_loop.py::test_places_are_within_arrays
    """,
    ("learned/online", "simulator"): "learned/online/test_episodes_recorded.py",
    ("api/plot",): "plot/test_cluster.py::test_no_link_is_too_busy plot/test_scene.py::test_ends",
    ("api/doors", "scheduler"): """
        doors/kubernetes/test_conversations.py::test_what_is_decided doors/test_kubernetes_random.py
        doors/test_page.py
    """,
    ("api/teach", "solvers"): "teach/test_files.py",
    ("instances/torch_model",): """
        instances/torch_model/test_build.py::test_problem_survives_its_document
        instances/torch_model/test_ops_pipelining.py instances/torch_model/test_trace.py::test_flops
        instances/torch_model/test_trace.py::test_parameters_are_all_there
        instances/torch_model/test_trace.py::test_program_computes_the_same
        instances/torch_model/test_trace.py::test_values_have_the_shapes_they_have
    """,
    ("systems", "simulator"): """
        hybrid/bench/test_makers_grounds.py systems/topdrl/test_oracle.py systems/topdrl/test_simulate_bound.py
    """,
}  # fmt: skip
RARE = {f"tests/{test}": paths for paths, tests in _ABOUT.items() for test in tests.split()}
"""Tests that take long, each with what they are about: a run plays a third of their cases, and all after a change."""
LONGEST = ("tests/test_layout.py::test_wheel_is_whole",)
"""Tests that are begun first, because nothing else would be left to do while they end."""


def commit() -> str:
    """Return the commit of the clone, zeros where there is none."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "0" * _DIGITS


def choose(everything: bool) -> str:
    """Choose the share for this process and for those it starts, unless it is chosen; return the choice."""
    if everything:
        os.environ[CHOICE] = ALL
    return os.environ.setdefault(CHOICE, commit()[:_DIGITS])


def some(seeds: Sequence[T], share: int = 10) -> Sequence[T]:
    """Return one of each `share` seeds, other ones by another commit; with `--all` return all of them."""
    choice = os.environ.get(CHOICE, ALL)
    return seeds if choice == ALL else seeds[int(choice[:_DIGITS], 16) % share :: share]


@cache
def changed(*paths: str) -> bool:
    """Return whether something in these paths is not as the commit before has it; `False` where that is not known."""
    diff = ["git", "diff", "--quiet", "HEAD~1", "--", *paths]
    return subprocess.run(diff, cwd=_ROOT, capture_output=True, check=False).returncode == 1


def turn(test: str) -> bool:
    """Return whether a test has its turn: one of `RARE` after a change of what it is about, and by one commit in three.

    A file of the clone that its case is called after is such a thing too.

    Args:
        test: its path, `::`, its name, and its case in brackets.
    """
    choice = os.environ.get(CHOICE, ALL)
    if choice == ALL or not test.startswith(tuple(RARE)) or (int(choice[:_DIGITS], 16) + crc32(test.encode())) % 3 == 0:
        return True
    start, case = next(start for start in RARE if test.startswith(start)), test.partition("[")[2].rstrip("]")
    about = (start.partition("::")[0], *RARE[start], *([case] if case and (_ROOT / case).is_file() else []))
    return changed(*about)


def examples(count: int) -> int:
    """Return how many examples hypothesis draws, which are others each time: a fifth, but 5; with `--all`, `count`."""
    return count if os.environ.get(CHOICE, ALL) == ALL else max(count // 5, 5)
