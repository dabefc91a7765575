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

from benchmarks import pacml, pacml_ablations, pacml_figures, pacml_suites, pacml_tables  # noqa: E402
from benchmarks.pacml_suites import (  # noqa: E402
    BOUND,
    DEGREES,
    LEARNED,
    PAST,
    PLAN,
    PLANS,
    PROTOCOL,
    PUBLISHED,
    ROLLOUTS,
    SUITES,
    UNGUARDED,
    Cell,
    PacmlRow,
)
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
    """The learned policy stands beside the best rival of each distribution, named, and its difference to that one."""
    rates = {LEARNED: (0.18, 0.21, 0.11, 0.1), "constant-8": (0.26,) * 4, "constant-4": (0.21, 0.5, 0.12, 0.09)}
    rates |= {"from-8+best": (0.19, 0.2, 0.13, 0.13), BOUND: (0.02, 0.04, 0.02, 0.02)}
    rows = [row(p, s, x, d=d) for p, of in rates.items() for d, x in zip("ABCD", of, strict=True) for s in (0, 1)]
    lines = pacml_tables.verdict(Found(rows), "as-published").splitlines()
    cells = [
        "`constant-4` .2100: **-.0300 ± .0000**", "`constant-8` .2600: **-.0500 ± .0000**",
        "`constant-4` .1200: **-.0100 ± .0000**", "`constant-4` .0900: +.0100 ± .0000",
    ]  # fmt: skip
    assert lines[3] == f"| best constant | {' | '.join(cells)} |"
    assert "| the LP bound | .0200 | .0400 | .0200 | .0200 |" in lines
    assert pacml_tables.verdict(Found(rows), "physical") == pacml_tables.NOT_RUN


def test_where_the_gain_comes_from() -> None:
    """Of the way from the published rate to the learned one, the share of the best constant in the best block."""
    rates = {LEARNED: (0.1038, 0.1567, 0.0166, 0.0492), "constant-8+best": (0.1538, 0.2067, 0.0666, 0.0742)}
    rates |= {pacml_ablations.DEGREE: (0.18, 0.24, 0.11, 0.09)}
    rows = [row(p, s, x, d=d) for p, of in rates.items() for d, x in zip("ABCD", of, strict=True) for s in (0, 1)]
    lines = pacml_tables.sources(Found(rows)).splitlines()
    assert any(line.endswith("by the best constant degree, best block | 50% | 50% | 50% | 50% |") for line in lines)
    trained = "| **degree only, trained for that** | .1800 ± .0000 | .2400 ± .0000 | .1100 ± .0000 | .0900 ± .0000 |"
    assert trained in lines


def test_where_a_constant_is_better_is_told() -> None:
    """Under a table of other settings stands where the learned policy blocks a point more than the best constant."""
    cell, loads = SUITES["loads"][0], ("loads",)
    rows = [
        row(p, s, x, d=d, cell=cell) for s in (0, 1) for d in "ABCD" for p, x in ((LEARNED, 0.2), ("constant-4", 0.3))
    ]
    assert pacml_tables.zero_shot(Found(rows), loads).endswith("in 0 of 4 cases, by more than 1 point in 0.")
    rows += [row("constant-2", s, 0.15 if d == "C" else 0.195, d=d, cell=cell) for s in (0, 1) for d in "CD"]
    words = pacml_tables.zero_shot(Found(rows), loads).splitlines()[-1]
    assert "in 2 of 4 cases, by more than 1 point in 1: " in words and "50%, C: +5.0 points" in words
    rows += [row(UNGUARDED, s, 0.4, d=d, cell=cell) for s in (0, 1) for d in "ABCD"]
    words = pacml_tables.zero_shot(Found(rows), loads).splitlines()[-1]
    assert words == "Without the guard in 4 of 4 cases, by more than 1 point in 4."


def test_rows_read_back(tmp_path: Path) -> None:
    """Rows appended twice are read in their order, and half a row is an error by line."""
    path, rows = tmp_path / "rows.csv", [row(LEARNED, 0, 0.25, weights="000000000012"), row("constant-4", 1, 1 / 3)]
    for one in rows:
        pacml_suites.append([one], path)
    assert pacml_suites.read(path) == rows
    path.write_text(path.read_text().rstrip()[:-4])
    with pytest.raises(ValueError, match=r"rows.csv:3: 14 cells where 15"):
        pacml_suites.read(path)


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
    assert pacml.missing([few], path, only=" A ", **given) == [] and len(pacml_suites.read(path)) == 4
    for x in found.values():
        assert found[BOUND].blocked <= x.blocked and found[BOUND].blocked_or_running <= x.blocked_or_running
    assert len(pacml.missing([replace(few, policies=(ROLLOUTS, PLANS))], path, only=" A ", **given)) == 2


@with_data
@pytest.mark.parametrize("name", [ROLLOUTS, DEGREES, PLANS, PAST])
def test_searches_keep_to_free_blocks(name: str) -> None:
    """Each search accepts jobs, with a checked outcome, and the same ones again."""
    (one,) = pacml.simulated(pacml.Task(Cell("physical", (name,), jobs=12), "D", 0, (name,), {}, DATA, ""))
    assert one.blocked < 0.5


def test_loads_are_shares_of_capacity() -> None:
    """The published load is exactly once the published one, and full capacity a little more."""
    assert Cell("physical", ()).multiple == 1.0 and PUBLISHED == 0.936
    assert Cell("physical", (), load=1.0).multiple == pytest.approx(1 / 0.93579, rel=1e-4)


def test_ablations_differ_in_one_thing() -> None:
    """Every variant's configuration is one that the policy takes, and what is left out of it is left out."""
    from gangplan.learned.policy.settings import build, read_config
    from gangplan.learned.ramp.settings import Settings

    for units, config in pacml.SHIPPED.items():
        _, table = read_config(config)
        made = {name: build(Settings, table | own) for name, own in pacml_ablations.TRAINED.items()}
        whole = made[pacml_ablations.WHOLE]
        assert whole.units == (units,)
        assert made["totals"] == replace(whole, variant="totals")
        assert made["no op graph"] == replace(whole, variant="no-graph")
        assert not made[pacml_ablations.DEGREE].blocks and made[pacml_ablations.DEGREE].searched > 0


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    """The picture of the blocking is drawn from the rows."""
    pytest.importorskip("matplotlib")
    pacml_figures.draw_blocking(picture=tmp_path / "blocking.png")
    assert (tmp_path / "blocking.png").stat().st_size > 10_000


def test_the_page_agrees_with_the_rows(tmp_path: Path) -> None:
    """docs/pacml-results.md holds the tables of benchmarks/pacml.csv, which are of the weights that are shipped."""
    assert pacml_tables.write_page(check=True) == 0
    page = tmp_path / "page.md"
    page.write_text(
        pacml_tables.PAGE.read_text().replace("<!-- generated: search -->", "<!-- generated: search -->\nx")
    )
    assert pacml_tables.write_page(page=page, check=True) == 1
    assert pacml_tables.write_page(page=page) == 0 and page.read_text() == pacml_tables.PAGE.read_text()
    newest = {x.units: x.weights for x in pacml_suites.read() if x.policy == LEARNED}
    there = {u: files(p)[0] for (_, u), p in pacml.shipped(ROOT / "learned" / "weights").items() if p.exists()}
    assert newest == {units: pacml.digest(path) for units, path in there.items() if units in newest}
