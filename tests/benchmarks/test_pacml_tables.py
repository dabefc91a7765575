"""The results of the PAC-ML policy: rows kept and not run again, intervals, and a page that agrees with the rows."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gangplan.learned.policy.weights import files

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:  # a folder of the repository, not of the package
    sys.path.insert(0, str(ROOT))

from benchmarks import pacml, pacml_ablations, pacml_curves, pacml_rows, pacml_tables  # noqa: E402
from benchmarks.pacml_rows import BOUND, LEARNED, PLAN, PROTOCOL, UNGUARDED, PacmlRow  # noqa: E402
from benchmarks.pacml_suites import PUBLISHED, ROLLOUTS, SAMPLED, SUITES, Cell  # noqa: E402
from benchmarks.pacml_tables import Found, Spread  # noqa: E402

DATA = ROOT.parent / "shared" / "data" / "pipedream"
MAIN = next(cell for cell in SUITES["main"] if cell.units == "as-published")
T2 = 4.302652729911275
"""Student's t of two degrees of freedom, 95%."""

with_data = pytest.mark.skipif(not DATA.is_dir(), reason="there is no PipeDream data")


def row(policy: str, seed: int, rate: float, *, d: str = "A", weights: str = "", cell: Cell = MAIN) -> PacmlRow:
    """Return a row with the published rate given."""
    return PacmlRow("2026-01-01", "abc", PROTOCOL, weights, *cell.place, policy, d, seed, 0.0, rate, 1.0)


def test_intervals_of_a_hand_case() -> None:
    """Means and differences over three seeds have the margins of Student's t, and a difference pairs equal seeds."""
    rows = [row(LEARNED, s, x) for s, x in enumerate((0.1, 0.2, 0.3))]
    rows += [row("constant-4", s, x) for s, x in ((2, 0.5), (0, 0.2), (1, 0.3), (3, 0.9))]
    found = Found(rows)
    mean, margin = found.spread(MAIN, LEARNED, "A") or Spread(0, 0)
    # the standard deviation of 0.1, 0.2, 0.3 is 0.1; of -0.1, -0.1, -0.2 it is 0.1 / sqrt(3)
    assert mean == pytest.approx(0.2) and margin == pytest.approx(T2 * 0.1 / 3**0.5)
    mean, margin = found.apart(MAIN, LEARNED, "constant-4", "A") or Spread(0, 0)
    assert mean == pytest.approx(-0.4 / 3) and margin == pytest.approx(T2 * 0.1 / 3)
    assert found.apart(MAIN, LEARNED, "constant-8", "A") is None and found.spread(MAIN, LEARNED, "B") is None
    assert found.best(MAIN, ("constant-4", "constant-8"), "A") == "constant-4"
    assert Found(rows[:1]).spread(MAIN, LEARNED, "A") == (0.1, None)


def test_a_mean_over_distributions_is_of_seeds_that_have_all() -> None:
    """A seed that lacks one of the distributions does not count in their mean."""
    found = Found([row(LEARNED, s, r, d=d) for s, d, r in ((0, "A", 0.1), (0, "B", 0.3), (1, "A", 0.9))])
    assert found.rates(MAIN, LEARNED, "AB") == {0: pytest.approx(0.2)}


def test_only_the_newest_weights_count() -> None:
    """Rates of weights that were since replaced are not averaged with the new ones, nor those of other protocols."""
    old = [row(LEARNED, s, 0.9, weights="old") for s in (0, 1)]
    found = Found(
        [*old, replace(row("constant-4", 0, 0.3), protocol=PROTOCOL - 1), row(LEARNED, 0, 0.1, weights="new")]
    )
    assert found.rates(MAIN, LEARNED, "A") == {0: 0.1} and found.spread(MAIN, "constant-4", "A") is None


def test_a_difference_is_bold_only_beyond_its_interval() -> None:
    """Bold letters say that the whole interval lies below zero."""
    cells = [pacml_tables.signed(x) for x in (Spread(-0.02, 0.01), Spread(-0.02, 0.03), Spread(0.02, 0.01), None)]
    assert cells == ["**-.0200 ± .0100**", "-.0200 ± .0300", "+.0200 ± .0100", "-"]


def test_verdicts() -> None:
    """What was asked for is met or not by the mean rates, each against its own rival."""
    rates = {LEARNED: (0.18, 0.21, 0.11, 0.1), "para-max": (0.26,) * 4, "constant-4": (0.21, 0.5, 0.12, 0.09)}
    rates |= {"from-8+best": (0.19, 0.2, 0.13, 0.13), BOUND: (0.02, 0.04, 0.02, 0.02)}
    rows = [row(p, s, x, d=d) for p, of in rates.items() for d, x in zip("ABCD", of, strict=True) for s in (0, 1)]
    lines = pacml_tables.verdict(Found(rows), "as-published").splitlines()
    assert "| must be at most | .1850: yes | .2567: yes | .1100: yes | .0990: **no** |" in lines
    assert "| to reach | .1600: **no** | .2200: yes | .1000: **no** | .0850: **no** |" in lines
    assert "| below `para-max` by; C and D must be 56.2% | 30.8% | 19.2% | 57.7%: yes | 61.5%: yes |" in lines
    physical = next(cell for cell in SUITES["main"] if cell.units == "physical")
    lines = pacml_tables.verdict(Found([replace(x, units=physical.units) for x in rows]), "physical").splitlines()
    assert "| below every baseline | yes | **no** | yes | **no** |" in lines
    assert (
        "| below the best constant by; 10% on three | 14.3%: yes | 58.0%: yes | 8.3%: **no** | -11.1%: **no** |"
        in lines
    )
    assert "| of the way from the best constant to the LP bound | 16% | 63% | 10% | -14% |" in lines


def test_where_a_constant_is_better_is_told() -> None:
    """Under a table of other settings stands where the learned policy blocks a point more than the best constant."""
    cell = SUITES["loads"][0]
    rows = [
        row(p, s, x, d=d, cell=cell) for s in (0, 1) for d in "ABCD" for p, x in ((LEARNED, 0.2), ("constant-4", 0.3))
    ]
    assert pacml_tables.zero_shot(Found(rows), "loads").endswith("in 0 of 4 cases, by more than 1 point in 0.")
    rows += [row("constant-2", s, 0.15 if d == "C" else 0.195, d=d, cell=cell) for s in (0, 1) for d in "CD"]
    words = pacml_tables.zero_shot(Found(rows), "loads").splitlines()[-1]
    assert "in 2 of 4 cases, by more than 1 point in 1: " in words and "load 50%, C: +5.0 points" in words
    rows += [row(UNGUARDED, s, 0.4, d=d, cell=cell) for s in (0, 1) for d in "ABCD"]
    words = pacml_tables.zero_shot(Found(rows), "loads").splitlines()[-1]
    assert words == "Without the guard in 4 of 4 cases, by more than 1 point in 4."


def test_rows_read_back(tmp_path: Path) -> None:
    """Rows appended twice are read in their order, and half a row is an error by line."""
    path, rows = tmp_path / "rows.csv", [row(LEARNED, 0, 0.25, weights="000000000012"), row("constant-4", 1, 1 / 3)]
    for one in rows:
        pacml_rows.append([one], path)
    assert pacml_rows.read(path) == rows
    path.write_text(path.read_text().rstrip()[:-4])
    with pytest.raises(ValueError, match=r"rows.csv:3: 14 cells where 15"):
        pacml_rows.read(path)


@with_data
def test_runs_what_is_missing(tmp_path: Path) -> None:
    """Each policy, bound and search gets a row, a second time nothing is left, and no schedule passes the bound."""
    path, said = tmp_path / "rows.csv", list[str]()
    few = Cell("physical", (LEARNED, BOUND, PLAN, "constant-4", "smallest+best"), jobs=40, seeds=1)
    given = {"files": pacml.shipped(tmp_path), "folder": DATA, "say": said.append}
    tasks = pacml.missing([few], path, only=" A ", **given)
    assert said == ["learned, physical: left out, there are no weights"]
    assert [(t.policies, t.distribution, t.seed) for t in tasks] == [(few.policies[1:], "A", 0)]
    found = {x.policy: x for x in pacml.run(tasks, path, say=said.append)}
    assert pacml.missing([few], path, only=" A ", **given) == [] and len(pacml_rows.read(path)) == 4
    for x in found.values():
        assert found[BOUND].blocked <= x.blocked and found[BOUND].blocked_or_running <= x.blocked_or_running
    assert len(pacml.missing([replace(few, policies=(ROLLOUTS, SAMPLED))], path, only=" A ", **given)) == 2


@with_data
def test_hindsight_optimisation_keeps_to_free_blocks(tmp_path: Path) -> None:
    """Beam search over sampled futures accepts jobs, with a checked outcome, and the same ones again."""
    task = pacml.Task(Cell("physical", (SAMPLED,), jobs=12), "D", 0, (SAMPLED,), {}, DATA, "")
    (one,), (again,) = pacml.simulated(task), pacml.simulated(task)
    assert one.blocked < 0.5 and one.blocked == again.blocked


def test_loads_are_shares_of_capacity() -> None:
    """The published load is exactly once the published one, and full capacity a little more."""
    assert Cell("physical", ()).multiple == 1.0 and PUBLISHED == 0.936
    assert Cell("physical", (), load=1.0).multiple == pytest.approx(1 / 0.93579, rel=1e-4)


def test_curves_are_kept_by_run(tmp_path: Path) -> None:
    """Curves of a training are read from its folder, thinned by means, and replace those of the same run only."""
    folder, path = tmp_path / "run", tmp_path / "curves.csv"
    (folder / "rl").mkdir(parents=True)
    (folder / "rl" / "validation.csv").write_text("update,seconds,score,physical A\n0,1.5,0.4,0.5\n")
    lines = "".join(f"{i},{i}.0,{i % 2}\n" for i in range(240))
    (folder / "rl" / "updates.csv").write_text(f"update,seconds,reward\n{lines}")
    points = pacml_curves.collect("physical", folder)
    assert [(x.name, x.value) for x in points[:2]] == [("score", 0.4), ("physical A", 0.5)]
    assert len(points) == 2 + pacml_curves.POINTS and {x.value for x in points[2:]} == {0.5}
    for name in ("other", "physical", "physical"):
        pacml_curves.replace_run(name, [replace(x, run=name) for x in points], path)
    assert len(pacml_curves.read(path)) == 2 * len(points)
    assert pacml_curves.seconds(pacml_curves.read(path), "physical") == {"rl": 239.0}


def test_ablations_differ_in_one_thing() -> None:
    """Every variant's configuration is one that the policy takes, and what is left out of it is left out."""
    from gangplan.learned.policy.settings import build, read_config
    from gangplan.learned.ramp.settings import Settings

    made = {}
    for units, config in pacml_ablations.CONFIGS.items():
        _, table = read_config(config)
        for name, own in pacml_ablations.TRAINED.items():
            made[units, name] = build(Settings, table | dict(pacml_ablations.BUDGET) | own)
            assert made[units, name].units == (units,)
    assert made["physical", "totals"] == replace(made["physical", "both"], variant="totals")
    assert made["physical", "no choice of the block"] == replace(made["physical", "both"], blocks=False)
    assert made["physical", "RL only"].imitation_updates == 0


def test_the_page_agrees_with_the_rows(tmp_path: Path) -> None:
    """docs/pacml-results.md holds the tables of benchmarks/pacml.csv, which are of the weights that are shipped."""
    assert pacml_tables.write_page(check=True) == 0
    page = tmp_path / "page.md"
    page.write_text(pacml_tables.PAGE.read_text().replace("<!-- generated: loads -->", "<!-- generated: loads -->\nx"))
    assert pacml_tables.write_page(page=page, check=True) == 1
    assert pacml_tables.write_page(page=page) == 0 and page.read_text() == pacml_tables.PAGE.read_text()
    newest = {x.units: x.weights for x in pacml_rows.read() if x.policy == LEARNED}
    there = {u: files(p)[0] for (_, u), p in pacml.shipped(ROOT / "learned" / "weights").items() if p.exists()}
    assert newest == {units: pacml.digest(path) for units, path in there.items() if units in newest}
