"""`gangplan bench`: from the suite to a submission."""

from __future__ import annotations

import csv
import json
import re
from hashlib import sha256
from pathlib import Path

import jsonschema
import pytest

from gangplan.hybrid.bench.suite import make, suite
from gangplan.instances import content_hash, dump, load, verify

from .conftest import Cli

PAGE = Path(__file__).parents[2] / "docs" / "gapbench.md"


def test_list_fits_and_agrees(cli: Cli) -> None:
    """The table has 80 columns and the count of the JSON."""
    shown, data = cli("bench", "list"), json.loads(cli("bench", "list", "--json").out)
    assert max(map(len, shown.out.splitlines())) <= 80 and f"{len(data)} instances" in shown.out
    few = cli("bench", "list", "--suite", "schedule", "--size", "toy", "--each", "--folder", "nowhere")
    assert few.out.count("schedule-") == 12 and max(map(len, few.out.splitlines())) <= 80
    assert cli("bench", "list", "--suite", "tiny").code == 2
    assert "--time-limit" in cli("bench", "run", "--time-limit", "x").err


def test_generate(cli: Cli, tmp_path: Path) -> None:
    """What is written is the problem of the manifest; an id that there is not is refused."""
    assert cli("bench", "generate", "step-random-toy-00", "--folder", tmp_path).code == 0
    made = load(tmp_path / "instances" / "step-random-toy-00.json")
    assert content_hash(made) == next(x.hash for x in suite("toy") if x.id == "step-random-toy-00")
    assert "there is no 'x'" in cli("bench", "generate", "x", "--folder", tmp_path).err


def test_the_solver_of_the_page(cli: Cli, tmp_path: Path) -> None:
    """The third party's solver of the page has less than 30 lines, runs, and is compared."""
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    assert len(code.splitlines()) < 30
    (tmp_path / "one_by_one.py").write_text(code)
    chosen = ("--objective", "schedule", "--family", "philly", "--methods", "lists", "--folder", tmp_path)
    done = cli("bench", "run", *chosen, "--plugin", f"{tmp_path / 'one_by_one.py'}:one_by_one")
    assert done.code == 0 and "6 rows of 3" in " ".join(done.out.split())
    text = (tmp_path / "report.md").read_text()
    assert "| schedule, lists | 0.5 | 3 | " in text and "| schedule, one_by_one | 0.5 | 3 | " in text
    assert "## Failures\n\nNone." in text


def test_a_held_out_set(cli: Cli, tmp_path: Path) -> None:
    """It is the same for a seed, runs as a suite, and the report says which set it is of; a seed alone is refused."""
    chosen = ("--suite", "toy", "--objective", "stages", "--family", "random", "--sample", "2")
    drawn = ("bench", "generate", "--held-out", "--seed", "7", *chosen, "--folder")
    assert "2 problems, held out, seed 7" in " ".join(cli(*drawn, tmp_path / "set").out.split())
    cli(*drawn, tmp_path / "again")
    assert (tmp_path / "again/instances.jsonl").read_text() == (tmp_path / "set/instances.jsonl").read_text()
    run = ("bench", "run", "--suite", tmp_path / "set", "--methods", "chain,ideals", "--folder", tmp_path / "rows")
    assert "4 rows of 2 instances" in " ".join(cli(*run).out.split())
    text = (tmp_path / "rows" / "report.md").read_text()
    assert "2 instances (2 of the held-out set of seed 7)" in text and "| stages-random-toy-00-s7 | " in text
    for wrong in (("--seed", "7"), ("--held-out",)):
        done = cli("bench", "generate", *wrong, "--folder", tmp_path)
        assert done.code == 2 and "seed: " in done.err and len(done.err.strip().splitlines()) == 1


def test_the_tables_of_a_paper(cli: Cli, tmp_path: Path) -> None:
    """Each table is CSV and LaTeX too, cell by cell, and each picture a page of PDF."""
    (tmp_path / "a_b.py").write_text("def a_b(run):\n    raise NotImplementedError\n")
    chosen = ("--objective", "stages", "--family", "ramp", "--methods", "chain,ideals", "--folder", tmp_path)
    assert cli("bench", "run", *chosen, "--plugin", f"{tmp_path / 'a_b.py'}:a_b").code == 0
    page = (tmp_path / "report.md").read_text()
    for table in sorted((tmp_path / "tables").glob("*.csv")):
        head, *lines = csv.reader(table.read_text().splitlines())
        assert all(f"| {' | '.join(cells)} |" in page for cells in (head, *lines))
        tex = table.with_suffix(".tex").read_text()
        columns = r"lp{0.6\linewidth}" if table.stem == "environment" else f"l{'r' * (len(head) - 1)}"
        small = r"{\scriptsize\setlength{\tabcolsep}{2pt}" * (len(head) > 8)
        assert tex.startswith(rf"{small}\begin{{tabular}}{{{columns}}}") and r"\midrule" in tex
        assert tex.count(r" \\") == len(lines) + 1 and not re.search(r"(?<!\\)[%_#]", tex)
    gaps = (tmp_path / "tables" / "gaps.tex").read_text()
    assert r"stages, a\_b & 0.5 & 2 & 100.00" in gaps and r"{over best\\known, \%}" in gaps
    assert {x.name for x in tmp_path.glob("*.svg")} == {"profiles.svg", "anytime.svg"}
    assert all((tmp_path / f"{x}.pdf").read_bytes().startswith(b"%PDF-") for x in ("profiles", "anytime"))


def test_export(cli: Cli, tmp_path: Path) -> None:
    """The archive has problems, plans that the verifier scores as it says, and checksums of all, without gangplan."""
    cli("bench", "export", tmp_path / "a", "--suite", "toy", "--objective", "stages", "--sample", "2")
    known = {x["name"]: x for x in json.loads((tmp_path / "a" / "best_known.json").read_text())}
    problems = sorted((tmp_path / "a" / "problems").iterdir())
    assert [x.stem for x in problems] == sorted(known) and len(known) == 2
    assert all(tmp_path / "a" / x["path"] in problems and "arguments" in x for x in known.values())
    for path in problems:
        plan = load(tmp_path / "a" / "plans" / path.name)
        assert verify(load(path), plan).objective == pytest.approx(known[path.stem]["bounds"]["upper"])
        jsonschema.validate(json.loads(path.read_text()), json.loads((tmp_path / "a/schema/stages.json").read_text()))
    sums = dict(reversed(x.split("  ")) for x in (tmp_path / "a" / "SHA256SUMS").read_text().splitlines())
    files = {x.relative_to(tmp_path / "a").as_posix(): x for x in (tmp_path / "a").rglob("*") if x.is_file()}
    assert {name: sha256(x.read_bytes()).hexdigest() for name, x in files.items() if name != "SHA256SUMS"} == sums
    assert (
        "Apache License" in files["LICENSE"].read_text()
        and "author = {The gangplan" in files["CITATION.bib"].read_text()
    )
    assert "an archive of 2 problems" in files["README"].read_text()
    done = cli("bench", "run", "--suite", "toy", "--sample", "1", "--folder", files["README"])
    assert done.code == 2 and "file exists" in done.err.lower() and "Traceback" not in done.err
    for given, words in (("/dev/null", "not a directory"), (tmp_path / "b --suite online", "suite: 'online' has no")):
        done = cli("bench", "export", *str(given).split())
        assert done.code == 2 and words in done.err.lower() and len(done.err.strip().splitlines()) == 1


def test_a_file_of_ones_own(cli: Cli, problem: Path, tmp_path: Path) -> None:
    """A problem in a file is run, noted in the ledger and in the report under the name of its file."""
    given = ("--file", problem, "--objective", "step", "--methods", "heft", "--folder", tmp_path / "rows")
    assert "1 rows of 1 instances" in cli("bench", "run", *given).out.replace("\n  ", " ")
    assert "1 instances, 1 of them from before" in " ".join(cli("bench", "run", *given).out.split())
    assert "| file, step, file | 1 | heft | 0.00% |" in (tmp_path / "rows" / "report.md").read_text()
    listed = cli("bench", "list", "--family", "file", "--each", "--folder", tmp_path / "rows").out
    assert "step-problem" in listed and "heft" in listed


def test_submit(cli: Cli, tmp_path: Path) -> None:
    """A better plan goes into the ledger with its value; one no better, infeasible, or of another kind does not."""
    chosen = next(x for x in suite("toy") if x.id == "schedule-philly-toy-00")
    problem, plan, ledger = tmp_path / "p.json", tmp_path / "plan.json", tmp_path / "own.jsonl"
    problem.write_text(dump(make(chosen)))
    assert cli("solve", problem, "--time-limit", "2", "--out", plan).code == 0
    given = ("bench", "submit", plan, "--ledger", ledger, "--instance")
    found = cli(*given, chosen.id, "--by", "me")
    assert found.code == 0 and ("better: noted" in found.out) is (chosen.value is None or ledger.exists())
    assert "not better: nothing" in cli(*given, chosen.id).out
    wrong = cli(*given, "step-random-toy-00")
    assert wrong.code == 2 and "is of the objective schedule, step-random-toy-00 of step" in wrong.err
    other = cli(*given, "schedule-philly-toy-01")
    assert other.code == 2 and "was made for another instance" in other.err
    data = json.loads(plan.read_text())
    del data["content_hash"]
    plan.write_text(json.dumps(data | {"start": [0.0] * len(data["start"])}))
    broken = cli(*given, chosen.id)
    assert broken.code == 2 and "is not feasible" in broken.err
