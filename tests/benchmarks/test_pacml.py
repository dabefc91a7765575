"""The results of the PAC-ML policy: intervals, tables, searches, ablations, and what is shipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import pacml, pacml_figures, pacml_tables
from benchmarks.found import Found
from benchmarks.pacml import STUDY, file_of, measure, tasks
from benchmarks.pacml_ablations import SHIPPED
from benchmarks.pacml_suites import (
    BOTH,
    BOUND,
    DEGREE,
    DEGREES,
    LEARNED,
    PAST,
    PLAN,
    PLANS,
    PUBLISHED,
    RANDOM_BOTH,
    ROLLOUTS,
    SUITES,
    TRAINED,
    UNGUARDED,
    WHOLE,
    Cell,
)
from benchmarks.pacml_tables import Spread, apart, best, rates, spread
from benchmarks.rows import Row, Task, digest, read
from benchmarks.study import Options
from gangplan.learned.policy.weights import files

MAIN = next(cell for cell in SUITES["main"] if cell.units == "as-published")
T2 = 4.302652729911275
"""Student's t of two degrees of freedom, 95%."""

with_data = pytest.mark.skipif(not (Options().data / "pipedream").is_dir(), reason="there is no PipeDream data")


def row(policy: str, seed: int, rate: float, *, d: str = "A", weights: str = "", cell: Cell = MAIN) -> Row:
    """Return a row with the published rate given."""
    return Row(Task(cell.case(d), policy, seed, weights), {"blocked_or_running": rate})


def made(rows: list[Row]) -> Found:
    """Return what rows say."""
    return Found(rows, STUDY.alike)


def test_intervals_of_a_hand_case() -> None:
    """Means and differences over three seeds have the margins of Student's t, and a difference pairs equal seeds."""
    rows = [row(LEARNED, s, x) for s, x in enumerate((0.1, 0.2, 0.3))]
    rows += [row("constant-4", s, x) for s, x in ((2, 0.5), (0, 0.2), (1, 0.3), (3, 0.9))]
    found = made(rows)
    mean, margin = spread(found, MAIN, LEARNED, "A") or Spread(0, 0)
    # the standard deviation of 0.1, 0.2, 0.3 is 0.1; of -0.1, -0.1, -0.2 it is 0.1 / sqrt(3)
    assert mean == pytest.approx(0.2) and margin == pytest.approx(T2 * 0.1 / 3**0.5)
    mean, margin = apart(found, MAIN, LEARNED, "constant-4", "A") or Spread(0, 0)
    assert mean == pytest.approx(-0.4 / 3) and margin == pytest.approx(T2 * 0.1 / 3)
    assert apart(found, MAIN, LEARNED, "constant-8", "A") is None and spread(found, MAIN, LEARNED, "B") is None
    assert best(found, MAIN, ("constant-4", "constant-8"), "A") == "constant-4"
    assert spread(made(rows[:1]), MAIN, LEARNED, "A") == (0.1, None)


def test_a_mean_over_distributions_is_of_seeds_that_have_all() -> None:
    """A seed that lacks one of the distributions does not count in their mean."""
    found = made([row(LEARNED, s, r, d=d) for s, d, r in ((0, "A", 0.1), (0, "B", 0.3), (1, "A", 0.9))])
    assert rates(found, MAIN, LEARNED, "AB") == {0: pytest.approx(0.2)}


def test_only_the_newest_weights_count() -> None:
    """Rates of weights that were since replaced are not averaged with the new ones, be they of other distributions."""
    old = [row(LEARNED, s, 0.9, weights="old") for s in (0, 1)]
    found = made([*old, row(LEARNED, 0, 0.1, d="B", weights="new"), row(LEARNED, 0, 0.1, weights="new")])
    assert rates(found, MAIN, LEARNED, "A") == {0: 0.1}
    assert rates(made([*old, row(LEARNED, 0, 0.1, d="B", weights="new")]), MAIN, LEARNED, "A") == {}


def test_a_difference_is_bold_only_beyond_its_interval() -> None:
    """Bold letters say that the whole interval lies below zero."""
    cells = [pacml_tables.signed(x) for x in (Spread(-0.02, 0.01), Spread(-0.02, 0.03), Spread(0.02, 0.01), None)]
    assert cells == ["**-.0200 ± .0100**", "-.0200 ± .0300", "+.0200 ± .0100", "-"]


def test_verdicts() -> None:
    """The learned policy stands beside the best rival of each distribution, named, and its difference to that one."""
    rates = {LEARNED: (0.18, 0.21, 0.11, 0.1), "constant-8": (0.26,) * 4, "constant-4": (0.21, 0.5, 0.12, 0.09)}
    rates |= {"from-8+best": (0.19, 0.2, 0.13, 0.13), BOUND: (0.02, 0.04, 0.02, 0.02)}
    rows = [row(p, s, x, d=d) for p, of in rates.items() for d, x in zip("ABCD", of, strict=True) for s in (0, 1)]
    lines = pacml_tables.verdict(made(rows), "as-published").splitlines()
    cells = [
        "`constant-4` .2100: **-.0300 ± .0000**", "`constant-8` .2600: **-.0500 ± .0000**",
        "`constant-4` .1200: **-.0100 ± .0000**", "`constant-4` .0900: +.0100 ± .0000",
    ]  # fmt: skip
    assert lines[3] == f"| best constant | {' | '.join(cells)} |"
    assert "| the LP bound | .0200 | .0400 | .0200 | .0200 |" in lines
    assert pacml_tables.verdict(made(rows), "physical") == pacml_tables.NOT_RUN


def test_where_the_gain_comes_from() -> None:
    """Of the way from the published rate to the learned one, the share of the best constant in the best block."""
    rates = {LEARNED: (0.1038, 0.1567, 0.0166, 0.0492), "constant-8+best": (0.1538, 0.2067, 0.0666, 0.0742)}
    rates |= {DEGREE: (0.18, 0.24, 0.11, 0.09)}
    rows = [row(p, s, x, d=d) for p, of in rates.items() for d, x in zip("ABCD", of, strict=True) for s in (0, 1)]
    lines = pacml_tables.sources(made(rows)).splitlines()
    assert any(line.endswith("by the best constant degree, best block | 50% | 50% | 50% | 50% |") for line in lines)
    trained = "| **degree only, trained for that** | .1800 ± .0000 | .2400 ± .0000 | .1100 ± .0000 | .0900 ± .0000 |"
    assert trained in lines


def test_where_a_constant_is_better_is_told() -> None:
    """Under a table of other settings stands where the learned policy blocks a point more than the best constant."""
    cell, loads = SUITES["loads"][0], ("loads",)
    rows = [
        row(p, s, x, d=d, cell=cell) for s in (0, 1) for d in "ABCD" for p, x in ((LEARNED, 0.2), ("constant-4", 0.3))
    ]
    assert pacml_tables.zero_shot(made(rows), loads).endswith("in 0 of 4 cases, by more than 1 point in 0.")
    rows += [row("constant-2", s, 0.15 if d == "C" else 0.195, d=d, cell=cell) for s in (0, 1) for d in "CD"]
    words = pacml_tables.zero_shot(made(rows), loads).splitlines()[-1]
    assert "in 2 of 4 cases, by more than 1 point in 1: " in words and "50%, C: +5.0 points" in words
    rows += [row(UNGUARDED, s, 0.4, d=d, cell=cell) for s in (0, 1) for d in "ABCD"]
    words = pacml_tables.zero_shot(made(rows), loads).splitlines()[-1]
    assert words == "Without the guard in 4 of 4 cases, by more than 1 point in 4."


def test_a_case_has_its_name() -> None:
    """What is read from the name of a case in the rows is the cell and the distribution that it was made of."""
    for cell in (cell for cells in SUITES.values() for cell in cells):
        assert Cell.read(cell.case("C")) == (replace(cell, policies=(), seeds=10), "C")


@with_data
def test_runs_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each policy, bound and search gets a row, and no schedule passes the bound; who has no weights is left out."""
    few = Cell("physical", (LEARNED, BOUND, PLAN, "constant-4", "smallest+best"), jobs=40, seeds=1)
    monkeypatch.setattr(pacml, "SUITES", {"few": (few,)})
    said, options = list[str](), Options(("few",), only=" A ", rows=tmp_path / "rows.csv", weights=tmp_path)
    found = {x.task.policy: x.figures for x in STUDY.run(options, said.append)}
    assert tuple(found) == few.policies[1:] and "learned: left out, policy: " in said[0]
    for x in found.values():
        assert all(found[BOUND][name] <= x[name] for name in STUDY.figures[:2])


@with_data
@pytest.mark.parametrize("name", [ROLLOUTS, DEGREES, PLANS, *PAST, BOTH, RANDOM_BOTH])
def test_searches_keep_to_free_blocks(name: str) -> None:
    """Each search accepts jobs, with a checked outcome."""
    assert measure(Task(Cell("physical", (), jobs=12).case("D"), name, 0), Options())["blocked"] < 0.5


def test_ablations_are_trained_only_if_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A run of everything trains nothing; that suite trains each variant in its folder."""
    trained: list[str] = []
    monkeypatch.setattr(pacml, "train", lambda name, units, out, data: trained.append(f"{name} {units}"))
    assert list(tasks(Options(seeds=1))) and trained == []
    list(tasks(Options(("ablations",), (WHOLE,), out=tmp_path)))
    assert trained == [f"{WHOLE} as-published", f"{WHOLE} physical"]
    assert file_of(WHOLE, "physical", Options(out=tmp_path)) == tmp_path / "physical/imitation_only/pacml.safetensors"


def test_loads_are_shares_of_capacity() -> None:
    """The published load is exactly once the published one, and full capacity a little more."""
    assert Cell("physical", ()).multiple == 1.0 and PUBLISHED == 0.936
    assert Cell("physical", (), load=1.0).multiple == pytest.approx(1 / 0.93579, rel=1e-4)


def test_ablations_differ_in_one_thing() -> None:
    """Every variant's configuration is one that the policy takes, and what is left out of it is left out."""
    from gangplan.instances.typed import SETTINGS
    from gangplan.learned.policy.settings import read_config
    from gangplan.systems.pacml.learned.recipe import PacmlSettings

    for units, config in SHIPPED.items():
        _, table = read_config(config)
        made = {name: SETTINGS.read(PacmlSettings, table | own) for name, own in TRAINED.items()}
        whole = made[WHOLE]
        assert whole.units == (units,)
        assert not made[DEGREE].blocks and made[DEGREE].searched > 0


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    """The picture of the blocking is drawn from the rows."""
    pytest.importorskip("matplotlib")
    pacml_figures.draw_blocking(STUDY.found(), tmp_path / "blocking.png")
    assert (tmp_path / "blocking.png").stat().st_size > 10_000


def test_rows_are_of_what_is_shipped() -> None:
    """The newest rows of the learned policy are of the weights that come with the package."""
    newest = {x.task.case.partition(" ")[0]: x.task.weights for x in read(STUDY.path) if x.task.policy == LEARNED}
    there = {units: file_of(LEARNED, units, Options()) for units in SHIPPED}
    assert newest == {units: digest(files(path)[0]) for units, path in there.items() if path and path.is_file()}
