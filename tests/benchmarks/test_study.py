"""A study runs what has no row yet; its pages say what its rows hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import STUDIES, act, main, study
from benchmarks.found import Found, percent
from benchmarks.rows import COLUMNS, ROOT, Row, Task, read
from benchmarks.study import Options, Study, renew
from gangplan.instances import InstanceError


def tasks(options: Options) -> Iterator[Task]:
    """Yield two seeds of two policies."""
    yield from (Task("case", policy, seed) for policy in ("a", "gone") for seed in (0, 1))


def measure(task: Task, options: Options) -> Mapping[str, float | None]:
    """Know one policy, and one of its figures."""
    if task.policy == "gone":
        raise InstanceError("policy", "is not there")
    return {"mean_jct": 10.0 + task.seed, "bound": None}


def total(found: Found) -> str:
    """Return a mean."""
    return f"{found.mean('case', 'a')}"


TOY = Study("toy", ("mean_jct", "bound"), tasks, measure, {"page.md": {"total": total}})


@pytest.mark.parametrize("name", STUDIES)
def test_pages_agree_with_rows(name: str) -> None:
    """Nobody changed a figure by hand, or rows without their pages; rows have the figures of their study."""
    found = study(name)
    assert found.name == name and found.write(check=True) == 0
    if found.pages:
        assert read(found.path)
        assert found.path.open().readline().strip().split(",") == [*COLUMNS, *found.figures]


def test_sections_have_studies() -> None:
    """Every generated section of a page is made by some study."""
    made = {f"<!-- generated: {x} -->" for name in STUDIES for t in study(name).pages.values() for x in t}
    for page in (ROOT / "docs").glob("*.md"):
        there = [line for line in page.read_text().splitlines() if line.startswith("<!-- generated:")]
        assert set(there) <= made, page


@pytest.mark.parametrize("processes", [1, 2])
def test_runs_what_is_missing(tmp_path: Path, processes: int) -> None:
    """A second run makes no row again; what cannot be run is left out, in words, once."""
    said, options = list[str](), Options(rows=tmp_path / "rows.csv", processes=processes)
    rows = TOY.run(options, said.append)
    assert sorted(x.task for x in rows) == [Task("case", "a", 0), Task("case", "a", 1)]
    assert read(tmp_path / "rows.csv") == rows and all(x.date and x.commit for x in rows)
    assert said.count("case gone: left out, policy: is not there") == 1 and len(said) == 3
    assert TOY.run(options, said.append) == []
    assert TOY.run(replace(options, rows=tmp_path / "one.csv", only="a 1"), said.append)[0].task.seed == 1


def test_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table stands between its markers, prose stays; a check writes nothing, and a section must be there."""
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- generated: total -->\n\nold\n\n<!-- end of total -->\nafter\n")
    old = page.read_text()
    TOY.run(Options(rows=tmp_path / "rows.csv"), lambda words: None)
    assert TOY.write(tmp_path / "rows.csv", check=True, folder=tmp_path) == 1 and page.read_text() == old
    assert TOY.write(tmp_path / "rows.csv", folder=tmp_path) == 0
    assert page.read_text() == old.replace("old", "10.5")
    assert TOY.write(tmp_path / "rows.csv", check=True, folder=tmp_path) == 0
    assert "python -m benchmarks toy page" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"page\.md has no section other"):
        renew(page, {"other": ""}, "toy")


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """A check runs nothing; a command that a study does not have is told which it has."""
    ran: list[Options] = []
    toy = replace(TOY, pages={}, more={"figure": ran.append}, measure=lambda task, options: pytest.fail("ran"))
    assert act(toy, "run", Options(), check=True) == 0 and act(toy, "figure", Options()) == 0 and len(ran) == 1
    assert main(["market", "dance"]) == 2 and "run, page" in capsys.readouterr().out


def rows(policy: str, *means: float, weights: str = "") -> list[Row]:
    """Return a row of each of the seeds from 0 on."""
    return [Row(Task("case", policy, seed, weights), {"mean_jct": x}) for seed, x in enumerate(means)]


def test_differences_are_of_equal_seeds_and_newest_weights() -> None:
    """Shares of the rival's mean, bold beyond the interval; rows of replaced weights do not count."""
    old = rows("learned", 99, 99, 99, weights="old")
    found = Found([*old, *rows("learned", 8, 9, 10, 77, weights="new"), *rows("fifo", 10, 11, 12)], TOY.alike)
    assert found.of("case", "learned") == {0: 8, 1: 9, 2: 10, 3: 77}
    assert percent(found.apart("case", "learned", "fifo")) == "**-18.2% ± 0.0**"
    assert found.apart("case", "learned", "srtf") is None and found.best("case", ["fifo", "srtf"]) == "fifo"


def test_the_room_lies_between_the_best_rule_and_the_oracle() -> None:
    """A mean of 7 takes three quarters of the way from 10 to 6, on seeds that all have."""
    some = [*rows("sjf", 9, 11), *rows("fifo", 12, 13), *rows("linear", 7, 7), *rows("oracle", 6, 6, 1)]
    found = Found(some, TOY.alike)
    assert found.room("case", "linear", ("sjf", "fifo"), "oracle") == "75%"
    assert found.room("case", "oracle", ("sjf", "fifo"), "oracle") == "100%"
    assert Found(some[:2], TOY.alike).room("case", "sjf", ("sjf",), "oracle") == ""
