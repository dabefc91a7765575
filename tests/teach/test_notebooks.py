"""Each notebook of the course runs: an empty exercise fails its check, the solution passes, nothing else needs it."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tarfile
import warnings
from collections import Counter
from collections.abc import Iterable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from ..seeds import some
from .tries import Try, strange, written

pytest.importorskip("jupytext")

COURSE = Path(__file__).parents[2] / "docs" / "course"


def _tool() -> Any:
    spec = spec_from_file_location("course_notebooks", COURSE / "notebooks.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


tool = _tool()
PAGES = tool.sources()


def execute(cell: Any, path: Path, space: dict[str, Any]) -> None:
    """Run a cell in a namespace; a traceback gives its line in the source."""
    exec(compile("\n" * (cell.line - 1) + cell.source, path, "exec"), space)


def judge(cell: Any, path: Path, space: dict[str, Any], answer: str) -> str | None:
    """Return what a check says of an answer, None if it takes it; the check leaves the notebook's names alone."""
    space = dict(space)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(answer, space)
        before = dict(space)
        try:
            execute(cell, path, space)
        except AssertionError as error:
            assert str(error).strip(), f"{cell.number}: the check does not say what is wrong"
            return str(error)
        finally:
            mine = {name: value for name, value in space.items() if name != "_" and not name.startswith("__")}
            changed = [name for name, value in mine.items() if before.get(name, before) is not value]
            assert not changed, f"{cell.number}: the check changes {changed}"
    return None


def run(path: Path, tries: Iterable[Try] = (), rows: list[str] | None = None) -> list[str]:
    """Run a source once from top to bottom and return the numbers of its exercises.

    A check sees the stub first and must refuse it, then the solution, in a copy of the namespace: what comes after
    goes on with the stub. Then it sees the tries, and answers of no use; `rows` gets a line for each exercise.
    """
    space: dict[str, Any] = {"__name__": "__main__"}
    answers, numbers, cells = tool.solutions(path), list[str](), list(tool.cells(path))
    mistaken = []
    for cell, after in zip(cells, [*cells[1:], None], strict=True):
        if cell.kind == "markdown":
            continue
        if cell.kind != "check":
            execute(cell, path, space)
        if cell.kind == "exercise":
            assert after and (after.kind, after.number) == ("check", cell.number), f"{cell.number}: no check after it"
            assert cell.number not in numbers, f"{cell.number}: twice"
            numbers.append(cell.number)
            assert judge(after, path, space, "") is not None, f"{cell.number}: the stub is taken"
            said = judge(after, path, space, answers[cell.number].source)
            assert said is None, f"{cell.number}: the solution is refused: {said}"
            if rows is None:
                continue
            count = Counter[str]()
            for one in [*(x for x in tries if x.number == cell.number), *some([*strange(cell.number, cell.source)], 3)]:
                said = judge(after, path, space, one.source)
                count[one.kind] += 1
                count["taken"] += said is None
                if (said is None) != (one.kind == "right"):
                    mistaken.append(f"{cell.number}, {one.kind}, {said or 'taken'}:\n{one.source}")
            rows.append(f"{cell.number} {dict(count)}")
    assert {cell.number for cell in cells if cell.kind == "check"} == set(numbers) == set(answers)
    assert not mistaken, "\n".join(mistaken)
    return numbers


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Work in an empty folder, draw into nothing, reach no other machine, and draw the same instances each time."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> None:
        if self.family != getattr(socket, "AF_UNIX", None):
            raise OSError(f"a notebook wants {address}")
        connect(self, address)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("GANGPLAN_CHECK_SEED", os.environ.get("GANGPLAN_CHECK_SEED", "60"))
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
@pytest.mark.usefixtures("offline")
def test_exercises(path: Path, request: pytest.FixtureRequest) -> None:
    """Its cells run, its checks refuse stubs and wrong answers, take right ones, and it has four exercises or more."""
    tries, rows, right = [], list[str](), Counter[str]()
    for one in written(path):
        right[one.number] += one.kind == "right"
        if one.kind != "right" or right[one.number] <= 2 or request.config.getoption("--all"):
            tries.append(one)
    try:
        numbers = run(path, tries, rows)
    except SystemExit as ended:  # how a notebook says what it needs and does not find
        pytest.skip(str(ended))
    print(*rows, sep="\n")
    assert len(numbers) >= 4
    assert {x.number for x in tries} == set(numbers)


SMALL = """# %% [markdown]
# # One and one

# %%
one = 1

# %% exercise="1.1"
answer = None

# %% check="1.1"
assert answer == one + one, "one and one is not that"

# %%
{then}
"""


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({}, None),
        ({"answer = None": "answer = 2"}, "the stub is taken"),
        ({"answer = None": "pass"}, "name 'answer' is not defined"),
        ({', "one and one is not that"': ""}, "does not say"),
        ({'check="1.1"': 'check="1.2"'}, "no check after it"),
        ({"{then}": "assert answer == 2, 'needs the answer'"}, "needs the answer"),
        ({"answer = 2\n": "answer = 3\n"}, "one and one is not that"),
        ({'solution="1.1"': 'exercise="1.2"'}, "1.1"),
    ],
)
@pytest.mark.usefixtures("offline")
def test_the_runner(change: dict[str, str], wrong: str | None, tmp_path: Path) -> None:
    """The runner tells a good notebook from each kind of bad one."""
    texts = [SMALL, '# %% solution="1.1"\nanswer = 2\n']
    for old, new in change.items():
        texts = [text.replace(old, new) for text in texts]
    path = tmp_path / "1_one.py"
    path.write_text(texts[0].replace("{then}", "one"))
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / path.name).write_text(texts[1].replace("solution=", "exercise="))
    if wrong is None:
        assert run(path) == ["1.1"]
        assert [cell.line for cell in tool.cells(path)][1:] == [5, 8, 11, 14]
    else:
        with pytest.raises(BaseException, match=wrong):
            run(path)


def test_written_notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every source becomes a notebook with empty exercises; what a student wrote is kept; solved ones lie apart."""
    for call in ([str(tmp_path)], [str(tmp_path)], [str(tmp_path), "--solutions"]):
        monkeypatch.setattr(sys, "argv", ["notebooks.py", *call])
        assert tool.main() == 0
        if call == [str(tmp_path)]:
            for path in PAGES:
                (tmp_path / f"{path.stem}.ipynb").write_text("mine")
    assert capsys.readouterr().out.count("was kept") == len(PAGES)
    assert all((tmp_path / f"{path.stem}.ipynb").read_text() == "mine" for path in PAGES)
    for path in PAGES:
        solved = (tmp_path / "solutions" / f"{path.stem}.ipynb").read_text()
        assert '"python3"' in solved and '"exercise": "' in solved
        assert len(tool.notebook(path).cells) == len(tool.notebook(path, solved=True).cells)


def test_nbgrader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For nbgrader each exercise has its solution below its stub, and each check a point and a hidden part."""
    monkeypatch.setattr(sys, "argv", ["notebooks.py", str(tmp_path), "--nbgrader"])
    assert tool.main() == 0 and "code_stub" in (tmp_path / "nbgrader" / "nbgrader_config.py").read_text()
    fields = {"grade_id", "grade", "solution", "locked", "task", "schema_version", "cell_type"}
    for path in PAGES:
        made = json.loads((tmp_path / "nbgrader" / "source" / path.stem / f"{path.stem}.ipynb").read_text())
        cells = [
            ("".join(x["source"]), x["metadata"]["nbgrader"]) for x in made["cells"] if "nbgrader" in x["metadata"]
        ]
        names = [tags["grade_id"] for _, tags in cells]
        assert len(set(names)) == len(names) == 2 * len(tool.solutions(path))
        assert all(re.fullmatch("[a-zA-Z0-9_-]+", name) for name in names)
        for (stub, exercise), (check, point) in zip(cells[::2], cells[1::2], strict=True):
            assert exercise["solution"] and not exercise["locked"] and point["locked"] and not point["solution"]
            assert set(exercise) == fields and set(point) == fields | {"points"} and point["points"] == 1
            answer = stub.partition("### BEGIN SOLUTION\n")[2].partition("\n### END SOLUTION")[0]
            assert answer in {x.source for x in tool.solutions(path).values()}
            seen, _, hidden = check.partition("\n\n### BEGIN HIDDEN TESTS\n")
            assert hidden == f"{seen}\n### END HIDDEN TESTS"


def test_students_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What students get makes the notebooks by itself, and has neither solutions nor plans nor tests."""
    monkeypatch.setattr(sys, "argv", ["notebooks.py", str(tmp_path)])
    assert tool.main() == 0
    with tarfile.open(tmp_path / "students.tar.gz") as file:
        names = file.getnames()
        file.extractall(tmp_path, filter="data")
    own = tmp_path / "gangplan-course"
    assert {f"gangplan-course/{x}" for x in ("run", "setup.py", "constraints.txt", "hybrid/bench/library.py")} < set(
        names
    )
    assert not [x for x in names if re.search("/solutions|bench/library/|/tests|__pycache__", x)]
    made = subprocess.run(
        [sys.executable, "docs/course/notebooks.py", "build"], cwd=own, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0 and made.stdout.count(".ipynb") == len(PAGES) and "students" not in made.stdout


def test_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook with its solutions in place runs in a real Jupyter kernel."""
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    if not PAGES:
        pytest.skip("there is no notebook yet")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    client = nbclient.NotebookClient(
        tool.notebook(PAGES[0], solved=True), timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    )
    done = client.execute()
    shown = [out for cell in done.cells if cell.cell_type == "code" for out in cell.outputs]
    assert any("text/html" in out.get("data", {}) for out in shown), "nothing was drawn"
    assert not any(out.output_type == "error" for out in shown)
