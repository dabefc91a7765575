"""Environments with one agent: contracts, exact masks, what they pay, and the same schedules as the engine."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from gangplan.instances import InstanceError
from gangplan.instances.placement import Fleet, SpeedModel
from gangplan.instances.workload import Workload
from gangplan.simulator.engine import POLICIES, EngineScheduler, EngineView, simulate
from gangplan.simulator.envs import (
    ClusterEnv,
    EpisodeCase,
    PlaceEnv,
    SelectEnv,
    Synthetic,
    completion_time,
    progress,
    slowdown,
)
from gangplan.simulator.envs.observe import JOB, NODE
from gangplan.simulator.metrics import summary
from gangplan.simulator.trace import Outcome

FLEET = Fleet.regular(2, 2, 4)
MIXED = replace(FLEET, gpus=[4, 2, 4, 4], cpu=[4.0, 96.0, 8.0, 8.0])
"""Nodes of several sizes, some with too few cores for all of their GPUs."""
SPEEDS = SpeedModel(("a", "b"), ("A100",), [[0.1, 0.2]], [1e9, 5e9], [0.5, 0.0], [[0.1, 0.3], [0.2, 0.1]], np.eye(2))
STEADY = Synthetic(16, jobs=40, load=1.1)


Agent = Callable[[dict[str, Any], np.random.Generator], int]


def at_random(seen: dict[str, Any], rng: np.random.Generator) -> int:
    """Take any of the allowed actions."""
    return int(rng.choice(np.flatnonzero(seen["action_mask"])))


def select(key: str, sign: float, overtake: bool, seen: dict[str, Any], rng: np.random.Generator) -> int:
    """Start the job with the least key if it fits, ties by slot; else wait, or start the first that does."""
    mask, jobs = seen["action_mask"], seen["jobs"]
    there = np.flatnonzero(jobs[:, 0])
    for slot in there[np.argsort(sign * jobs[there, JOB.index(key)], kind="stable")].tolist():
        if mask[slot]:
            return int(slot)
        if not overtake:
            break
    return len(jobs)


def place(sign: int, seen: dict[str, Any], rng: np.random.Generator) -> int:
    """Take the first node allowed (0), that with the fewest GPUs free (1), or with the most (-1)."""
    allowed = np.flatnonzero(seen["action_mask"][:-1])
    free = seen["nodes"][allowed, NODE.index("free")] - seen["nodes"][allowed, NODE.index("staged")]
    return int(allowed[np.argmin(sign * free)])


SELECT: dict[str, Agent] = {
    "fifo": partial(select, "waited", -1.0, False),
    "first_fit": partial(select, "waited", -1.0, True),
    "sjf": partial(select, "duration", 1.0, False),
    "sjf_overtaking": partial(select, "duration", 1.0, True),
    "ljf": partial(select, "duration", -1.0, False),
    "smallest": partial(select, "gpus", 1.0, False),
}
PLACE: dict[str, Agent] = {
    "first_fit": partial(place, 0),
    "best_fit": partial(place, 1),
    "emptiest": partial(place, -1),
}


def fifo(discipline: str = "head", *, consolidate: bool = False, policy: str = "fifo") -> EngineScheduler:
    """Return a scheduler."""
    return EngineScheduler((POLICIES[policy](),), discipline, consolidate)


def play(env: ClusterEnv, agent: Agent = at_random, **reset: Any) -> tuple[float, list[int], dict[str, Any]]:
    """Play an episode; return what it paid, the actions, and the last info."""
    rng = np.random.default_rng(reset.get("seed"))
    seen, info = env.reset(**reset)
    paid, over, actions = 0.0, False, []
    while not over:
        assert env.observation_space.contains(seen)
        assert np.array_equal(seen["action_mask"], info["action_mask"])
        assert np.array_equal(info["action_mask"].astype(bool), env.action_masks())
        actions.append(agent(seen, rng))
        seen, reward, over, truncated, info = env.step(np.int64(actions[-1]))
        assert not truncated
        paid += reward
    return paid, actions, info


def same(a: Outcome, b: Outcome) -> bool:
    """Return whether two schedules are the same in every row."""
    rows = ("start", "finish", "row_job", "row_node", "row_gpus", "row_start", "row_end", "row_rate")
    order = [np.lexsort((o.row_node, o.row_start, o.row_job)) for o in (a, b)]
    pairs = ((getattr(a, f), getattr(b, f)) for f in rows)
    return all(
        np.array_equal(x[order[0]], y[order[1]]) if len(x) == len(a.row_job) else np.array_equal(x, y) for x, y in pairs
    )


def modelled(rng: np.random.Generator) -> EpisodeCase:
    """Draw jobs of two models that need cores."""
    work = STEADY(rng).workload
    models = tuple(rng.choice(["a", "b"], work.n_jobs).tolist())
    return EpisodeCase(replace(work, model=models, cpu=work.gpus * rng.choice([0.0, 1.0, 2.0], work.n_jobs)))


KINDS: dict[str, Callable[..., ClusterEnv]] = {
    "select": partial(SelectEnv, FLEET, STEADY, slots=5),
    "select_consolidated": partial(SelectEnv, MIXED, modelled, fifo(consolidate=True), speeds=SPEEDS),
    "place": partial(PlaceEnv, FLEET, STEADY),
    "place_modelled": partial(PlaceEnv, MIXED, modelled, speeds=SPEEDS),
    "place_consolidated": partial(PlaceEnv, MIXED, modelled, fifo(consolidate=True)),
    "place_workers": partial(PlaceEnv, MIXED, modelled, single=True),
}


@pytest.mark.parametrize("name", ["Select", "Place"])
def test_gymnasium_contract(name: str) -> None:
    """The registered environment passes Gymnasium's checks without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(f"gangplan/{name}-v0").unwrapped)


@pytest.mark.parametrize("kind", KINDS)
def test_gymnasium_contract_of_variants(kind: str) -> None:
    """Whatever the options, Gymnasium's checks pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(KINDS[kind](), skip_render_check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_trajectory(kind: str) -> None:
    """Two environments with one seed agree in every observation and reward, also in the episode after."""

    def trace(seed: int) -> list[Any]:
        env, found = KINDS[kind](), []
        rng = np.random.default_rng(0)
        for reset in ({"seed": seed}, {}):
            seen, _ = env.reset(**reset)
            over, reward = False, 0.0
            while not over:
                found.append((reward, *(value.tolist() for value in seen.values())))
                seen, reward, over, _, _ = env.step(at_random(seen, rng))
        return found

    assert trace(3) == trace(3)
    assert trace(3) != trace(4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_rewards_add_up(kind: str, seed: int) -> None:
    """Over an episode the rewards are minus the sum of JCT, minus the sum of slowdowns, and the number of jobs."""
    for reward, total in (
        (completion_time, lambda o: -(o.finish - o.workload.submit).sum()),
        (slowdown, lambda o: -((o.finish - o.workload.submit) / o.workload.duration).sum()),
        (progress, lambda o: o.workload.n_jobs),
    ):
        env = KINDS[kind](reward=reward)
        paid, _, _ = play(env, seed=seed)
        assert paid == pytest.approx(total(env.outcome), rel=1e-9)


@pytest.mark.parametrize("consolidate", [False, True])
@pytest.mark.parametrize(
    ("agent", "policy", "discipline"),
    [("fifo", "fifo", "head"), ("first_fit", "fifo", "overtake"), ("sjf", "sjf", "head"), ("ljf", "ljf", "head"),
     ("sjf_overtaking", "sjf", "overtake"), ("smallest", "smallest", "head")],
)  # fmt: skip
def test_select_is_the_engine(agent: str, policy: str, discipline: str, consolidate: bool) -> None:
    """A queue policy played through the environment makes the engine's schedule, row by row."""
    for seed in range(3):
        case = STEADY(np.random.default_rng(seed))
        env = SelectEnv(FLEET, STEADY, fifo(consolidate=consolidate), slots=40)
        play(env, SELECT[agent], options={"case": case})
        expected = simulate(case.workload, FLEET, fifo(discipline, consolidate=consolidate, policy=policy))
        assert same(env.outcome, expected)
        assert expected.start.max() > expected.workload.submit.max()


@pytest.mark.parametrize("fleet", [FLEET, MIXED])
def test_select_is_the_engine_beside_others(fleet: Fleet) -> None:
    """So it does where jobs slow one another down and need cores."""
    for seed in range(3):
        case = modelled(np.random.default_rng(seed))
        env = SelectEnv(fleet, modelled, fifo(), slots=40, speeds=SPEEDS)
        play(env, SELECT["first_fit"], options={"case": case})
        expected = simulate(case.workload, fleet, fifo("overtake"), speeds=SPEEDS)
        assert same(env.outcome, expected)
        assert (expected.row_rate < 0.9).any()


def test_slots_show_who_is_first() -> None:
    """With one slot in the order of shortest first, taking whatever fits is that policy, head of line."""
    case = STEADY(np.random.default_rng(0))
    env = SelectEnv(FLEET, STEADY, fifo(policy="sjf"), slots=1)
    play(env, SELECT["first_fit"], options={"case": case})
    assert same(env.outcome, simulate(case.workload, FLEET, fifo(policy="sjf")))


@pytest.mark.parametrize(
    ("agent", "consolidate"), [("first_fit", False), ("best_fit", True), ("first_fit", True), ("emptiest", False)]
)
def test_place_is_the_engine(agent: str, consolidate: bool) -> None:
    """First fit is the engine's default and best fit its consolidated one; others differ, not always in the starts."""
    agree = []
    for seed in range(3):
        case = STEADY(np.random.default_rng(seed))
        env = PlaceEnv(FLEET, STEADY, fifo(consolidate=consolidate))
        play(env, PLACE[agent], options={"case": case})
        expected = simulate(case.workload, FLEET, fifo(consolidate=consolidate))
        agree.append(same(env.outcome, expected))
        if not consolidate:
            assert np.array_equal(env.outcome.start, expected.start)
    assert all(agree) is (agent == ("best_fit" if consolidate else "first_fit"))


class Two:
    """A policy that chooses places."""

    def place(self, job: int, degree: int, view: EngineView) -> None:
        """Start nobody."""


def able(env: ClusterEnv, job: int, taken: Any) -> list[int]:
    """Return from the rows of the running jobs alone how many GPUs of a job each node can take."""
    view, work, fleet = env._episode.view, env._episode.case.workload, env.fleet
    gpus, cpu = fleet.gpus.astype(float), fleet.cpu.copy()
    for other in view.running.tolist():
        rows = view.rows(other)
        gpus[rows.node] -= rows.gpus
        cpu[rows.node] -= rows.gpus * work.cpu[other] / work.gpus[other]
    each = work.cpu[job] / work.gpus[job]
    gpus, cpu = gpus - taken, cpu - taken * each
    return [int(min(g, (c + 1e-6) // each if each else g)) for g, c in zip(gpus, cpu, strict=True)]


def held(env: ClusterEnv, job: int) -> list[int]:
    """Return how many GPUs of a job each node would take if it were empty."""
    work, fleet = env._episode.case.workload, env.fleet
    each = work.cpu[job] / work.gpus[job]
    return [int(min(g, (c + 1e-6) // each if each else g)) for g, c in zip(fleet.gpus, fleet.cpu, strict=True)]


def completes(room: list[int], whole: list[int], left: int, order: Sequence[int]) -> bool:
    """Return whether a gang larger than any node is placed on whole nodes taken in that order, the first at once."""
    for at, n in enumerate(order):
        part = min(left, whole[n])
        if room[n] >= part > 0:
            left -= part
        elif not at:
            return False
    return not left


@pytest.mark.parametrize("kind", ["select", "select_consolidated"])
def test_select_masks_are_exact(kind: str) -> None:
    """A job is on offer if and only if what is free holds it by the scheduler's rule."""
    env, rng, seen_both = KINDS[kind](), np.random.default_rng(0), set()
    for seed in range(4):
        seen, _ = env.reset(seed=seed)
        over = False
        while not over:
            jobs = env._episode.queue.jobs[: env.action_space.n - 1].tolist()
            for slot in range(env.action_space.n - 1):
                fits = False
                if slot < len(jobs):
                    whole = held(env, jobs[slot])
                    room = able(env, jobs[slot], np.zeros(4))
                    need = int(env._episode.case.workload.gpus[jobs[slot]])
                    if not env.scheduler.consolidate:
                        fits = sum(room) >= need
                    elif need <= max(whole):
                        fits = max(room) >= need
                    else:  # the engine goes through the nodes once
                        idle = [
                            r * (not jobs) for r, jobs in zip(room, seen["nodes"][:, NODE.index("jobs")], strict=True)
                        ]
                        first = next((n for n in range(4) if idle[n] >= whole[n]), 0)
                        fits = completes(idle, whole, need, range(first, 4))
                assert fits == seen["action_mask"][slot]
                seen_both.add(fits)
            seen, _, over, _, _ = env.step(at_random(seen, rng))
    assert seen_both == {False, True}


@pytest.mark.parametrize("kind", ["place", "place_modelled", "place_consolidated", "place_workers"])
def test_place_masks_are_exact(kind: str) -> None:
    """A node is on offer if and only if the gang in hand can be completed after taking it."""
    env, rng, seen_both = KINDS[kind](), np.random.default_rng(0), set()
    for seed in range(3):
        seen, _ = env.reset(seed=seed)
        over = False
        while not over:
            gang = env._gang
            room, tight = able(env, gang.job, gang.staged), env.scheduler.consolidate
            whole = held(env, gang.job)
            if tight and gang.degree > max(whole):
                busy = (seen["nodes"][:, NODE.index("jobs")] > 0) | (gang.staged > 0)
                room = np.where(busy, 0, room).tolist()
                ways = {n: [p for p in permutations(range(4)) if p[0] == n] for n in range(4)}
                fits = [any(completes(room, whole, gang.left, p) for p in ways[n]) for n in range(4)]
            elif tight:
                fits = [r >= gang.degree for r in room]
            else:
                fits = [r > 0 and sum(room) >= gang.left for r in room]
            assert fits == seen["action_mask"][:-1].astype(bool).tolist()
            assert gang.left == gang.degree or not seen["action_mask"][-1]
            assert seen["jobs"][0, JOB.index("left")] == gang.left
            seen_both.update(fits)
            seen, _, over, _, _ = env.step(at_random(seen, rng))
    assert seen_both == {False, True}


@pytest.mark.parametrize("kind", KINDS)
def test_waiting_is_forbidden_where_it_would_be_for_good(kind: str) -> None:
    """Where waiting is masked before a gang is begun, nothing would ever happen again, and the engine says so."""
    env, rng, found = KINDS[kind](), np.random.default_rng(0), 0
    wait = env.action_space.n - 1
    for seed in range(30):
        seen, _ = env.reset(seed=seed)
        over = False
        while not over:
            gang = getattr(env, "_gang", None)
            if not seen["action_mask"][wait] and (gang is None or gang.left == gang.degree):
                found += 1
                with pytest.raises(InstanceError, match="waiting for good"):
                    env._episode.advance()
                break
            action = wait if seen["action_mask"][wait] and rng.random() < 0.7 else at_random(seen, rng)
            seen, _, over, _, _ = env.step(action)
    assert found > 5


@pytest.mark.parametrize("name", ["Select", "Place"])
def test_wrong_actions(name: str) -> None:
    """A forbidden action truncates the episode and says so; one outside of the space, or after the end, is an error."""
    env = gymnasium.make(f"gangplan/{name}-v0").unwrapped
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    _, info = env.reset(seed=0)
    with pytest.raises(InstanceError, match="action"):
        env.step(env.action_space.n)
    while info["action_mask"].all():
        _, _, _, _, info = env.step(1)
    action = int(np.argmin(info["action_mask"]))
    seen, reward, over, truncated, info = env.step(action)
    assert (reward, over, truncated) == (0.0, False, True)
    assert f"action {action}: " in info["forbidden"] and not info["action_mask"].any()
    assert env.observation_space.contains(seen)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    with pytest.raises(InstanceError, match="outcome"):
        PlaceEnv().outcome  # noqa: B018


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("scheduler", lambda: SelectEnv(scheduler=EngineScheduler((POLICIES["srtf"](),)))),
        ("scheduler", lambda: PlaceEnv(scheduler=EngineScheduler((POLICIES["tetris"](),)))),
        ("scheduler", lambda: PlaceEnv(scheduler=EngineScheduler((Two(),)))),
        ("discipline", lambda: SelectEnv(scheduler=fifo("easy"))),
        ("slots", lambda: SelectEnv(slots=0)),
        ("discipline", lambda: PlaceEnv(scheduler=fifo("overtake"))),
        ("single", lambda: PlaceEnv(scheduler=fifo(consolidate=True), single=True)),
        ("horizon", lambda: SelectEnv(horizon=0.0)),
        ("case", lambda: SelectEnv().reset(options={"case": 3})),
        ("gpus[0]", lambda: SelectEnv().reset(options={"case": EpisodeCase(Workload(("a",), [0.0], [33], [1.0]))})),
        ("load", lambda: Synthetic(load=0.0)),
    ],
)
def test_bad_arguments(field: str, make: Callable[[], Any]) -> None:
    """What makes no environment or episode is an error that names it."""
    with pytest.raises(InstanceError) as caught:
        make()
    assert caught.value.field == field


def test_observations_of_a_hand_made_case() -> None:
    """Nodes, jobs and backlog say what there is, in GPUs and seconds."""
    work = Workload(("a", "b", "c", "d"), [0.0, 0.0, 10.0, 10.0], [4, 3, 2, 8], [100.0, 50.0, 7.0, 2.0])
    env = SelectEnv(Fleet.regular(1, 2, 4), STEADY, fifo(), slots=2)
    seen, _ = env.reset(options={"case": EpisodeCase(work)})
    assert seen["nodes"][:, :2].tolist() == [[4, 4], [4, 4]]
    assert seen["jobs"][:, :5].tolist() == [[1, 4, 4, 100, 0], [1, 3, 3, 50, 0]]
    env.step(0)  # a goes to node 0
    seen, reward, _, _, info = env.step(0)  # b goes to node 1, and at 10 s nothing fits its last GPU; b ends at 50 s
    assert reward == -(10 * 2 + 40 * 4)
    assert seen["nodes"][:, NODE.index("until")].tolist() == [50, 0]
    assert seen["nodes"][:, NODE.index("free")].tolist() == [0, 4]
    assert seen["jobs"][:, :5].tolist() == [[1, 2, 2, 7, 40], [1, 8, 8, 2, 40]]
    assert seen["backlog"].tolist() == [0, 0, 0, 1]
    assert info["action_mask"].tolist() == [1, 0, 1]


@pytest.mark.parametrize("make", [gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv])
def test_vectors(make: Callable[..., gymnasium.vector.VectorEnv]) -> None:
    """Two environments in a vector see what each sees alone, and carry on with a new episode after the end."""
    kinds = [KINDS["select"], KINDS["select"]]
    vector, alone = make(kinds), [kind() for kind in kinds]
    try:
        rngs = [np.random.default_rng(i) for i in range(2)]
        seen, _ = vector.reset(seed=[0, 1])
        single = [env.reset(seed=i)[0] for i, env in enumerate(alone)]
        ended, episodes = [False, False], 0
        for _ in range(150):
            for i in range(2):
                assert all(np.array_equal(seen[key][i], single[i][key]) for key in seen)
            actions = np.array([0 if e else at_random(s, r) for e, s, r in zip(ended, single, rngs, strict=True)])
            seen, rewards, over, _, info = vector.step(actions)
            for i, env in enumerate(alone):
                if ended[i]:
                    single[i], ended[i] = env.reset()[0], False
                    assert rewards[i] == 0 and not over[i]
                else:
                    single[i], reward, ended[i], _, _ = env.step(actions[i])
                    assert (rewards[i], over[i]) == (reward, ended[i])
                if ended[i]:
                    episodes += 1
                    assert info["metrics"]["mean_jct"][i] == summary(env.outcome).mean_jct
        assert episodes > 2
    finally:
        vector.close()


def test_registered_vector() -> None:
    """Gymnasium makes vectors of the registered environments by name, with arguments."""
    vector = gymnasium.make_vec("gangplan/Place-v0", num_envs=3, vectorization_mode="sync", single=True)
    seen, _ = vector.reset(seed=0)
    assert seen["action_mask"].shape == (3, 9) and seen["nodes"].shape == (3, 8, len(NODE))
    vector.close()


@pytest.mark.parametrize(("package", "module"), [("gymnasium", "simulator.envs"), ("pettingzoo", "systems.marl.env")])
def test_missing_packages(package: str, module: str) -> None:
    """Without the extra, importing the environments says how to install it."""
    program = f"import sys; sys.modules[{package!r}] = None; import gangplan.{module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith(
        'ImportError: environments need Gymnasium and PettingZoo; in the clone of gangplan: pip install ".[envs]"\n'
    )
