"""The documentation tells the truth: its code runs, its commands work, its schemas are the code's."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module, util
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import gangplan
from gangplan.cli import main
from gangplan.instances import (
    Cluster,
    DeviceType,
    LatencyPlan,
    LatencyProblem,
    OpGraph,
    PartitionPlan,
    PartitionProblem,
    StagesPlan,
    StagesProblem,
    StepPlan,
    StepProblem,
    dump,
    json_schema,
)
from gangplan.instances.kinds import DOCUMENTS
from gangplan.instances.layout import LayoutPlan, LayoutProblem, Transformer, gpu_pool
from gangplan.instances.pipeline import PipelinePlan, PipelineProblem
from gangplan.instances.placement import Fleet, GangJob, PlacementPlan, PlacementProblem, SpeedModel
from gangplan.instances.schedule import MoldableJob, NodePool, SchedulePlan, ScheduleProblem

from .test_layout import handed_out

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def snippets(text: str) -> list[tuple[str, str]]:
    """Return the (language, code) of the blocks that can run: python, and the gangplan lines of console and bash."""
    found = []
    for block in BLOCK.finditer(text):
        language, code = block.groups()
        if language == "python":
            # blank lines above it, so that a traceback gives the line of the page
            found.append((language, "\n" * text.count("\n", 0, block.start(2)) + code))
        elif language == "console":
            found += [("console", line[2:]) for line in code.splitlines() if line.startswith("$ gangplan ")]
        elif language == "bash":
            found += [("console", line) for line in code.splitlines() if line.startswith("gangplan ")]
    return found


def names(page: Path) -> str:
    """Return the page's path as the test's id."""
    return page.relative_to(ROOT).as_posix()


LIMIT = re.compile(r"(?<=time.limit[= ])\d+")


@pytest.mark.parametrize("page", [p for p in PAGES if snippets(p.read_text())], ids=names)
def test_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's Python and its gangplan commands, in order and in one empty folder, do not fail; no search is long."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    space: dict[str, Any] = {"__name__": "snippet"}
    for language, code in snippets(LIMIT.sub("2", page.read_text())):
        if language == "python":
            exec(compile(code, page, "exec", dont_inherit=True), space)  # as in a file of its own
        elif not set("<>|&;$") & set(code):  # no work for a shell
            limited = "--time-limit" in code or not code.startswith("gangplan solve ")
            assert main(shlex.split(code)[1:] + ([] if limited else ["--time-limit", "2"])) == 0, code
        else:
            done = subprocess.run(code, shell=True, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"$ {code}\n{done.stdout}{done.stderr}"


def test_snippets_are_found() -> None:
    """The README shows both code and commands, and a command's output is not taken for one."""
    assert {language for language, _ in snippets((ROOT / "README.md").read_text())} == {"python", "console"}
    text = "```console\n$ gangplan versions\ngangplan 1\n$ ls\n```\n```text\n$ gangplan x\n```\n"
    text += "```bash\ngangplan methods\nls\n```\n```sh\ngangplan x\n```\n"
    assert snippets(text) == [("console", "gangplan versions"), ("console", "gangplan methods")]


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_links_between_files(page: Path) -> None:
    """Every relative link and image of the page leads to a file, and to a heading of it if it names one."""
    bad = []
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", BLOCK.sub("", page.read_text())):
        file = (page.parent / target) if target else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            bad.append(f"{target}#{anchor}")
    assert bad == []


def anchors(page: Path) -> set[str]:
    """Return what the headings of a page can be linked by."""
    heads = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", re.sub(r"\]\([^)]*\)", "", head)).strip().lower() for head in heads)
    return {re.sub(r"[-\s]+", "-", head) for head in plain}


def resolves(name: str) -> bool:
    """Return whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError as error:
            if error.name and not name.startswith(error.name):
                raise
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_names_of_modules() -> None:
    """Every dotted name of the package that a page mentions is there to be imported."""
    named = {(names(page), x) for page in PAGES for x in re.findall(r"\bgangplan(?:\.[a-z_]\w*)+", page.read_text())}
    assert len(named) > 30
    assert sorted(x for x in named if not resolves(x[1])) == []
    assert not resolves("gangplan.systems.pacml.learned.nowhere")


def test_the_change_that_a_page_follows() -> None:
    """Every file that `follow.md` names is there and speaks of the field; all that read it of a job are named."""
    files = re.findall(r"`([\w/]+\.(?:py|json|md))`", (ROOT / "docs" / "follow.md").read_text())
    assert len(files) > 12
    assert [file for file in files if "deadline" not in (ROOT / file).read_text()] == []
    modules = [x for folder in ("instances", "solvers", "hybrid", "api") for x in (ROOT / folder).rglob("*.py")]
    readers = {str(x.relative_to(ROOT)) for x in modules if "job.deadline" in x.read_text()}
    assert len(readers) > 8 and readers <= set(files)


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_published_schema(kind: str) -> None:
    """The schema in docs/schema is the one the code writes; `./run schemas` renews it."""
    published = json.loads((ROOT / "docs" / "schema" / f"{kind}.json").read_text())
    assert published == json_schema(kind)
    jsonschema.Draft202012Validator.check_schema(published)


def test_schema_accepts_documents() -> None:
    """What `dump` writes is valid by the published schema, and a document without a field is not."""
    zero, none = np.zeros(2), np.full(2, -1)
    times = [[1.0, 2.0], [3.0, np.inf]]
    graph = OpGraph(("a", "b"), ("gpu", "cpu"), times, zero, zero, zero, [0], [1], [8.0], none, none, [False, False])
    cluster = Cluster.flat((DeviceType("gpu"), 1), (DeviceType("cpu", host=True), 1), bandwidth=1e9)
    fleet = Fleet.regular(racks=1, nodes=2)
    speeds = SpeedModel(("m",), ("A100",), [[1.0]], [1e9], [0.5], [[0.1]], [[0.5]])
    values = {
        "partition": PartitionProblem(graph, cluster),
        "partition_plan": PartitionPlan(("a", "b"), [0, 0], [0, 0]),
        "latency": LatencyProblem(graph, cluster),
        "latency_plan": LatencyPlan(("a", "b"), [0, 0]),
        "step": StepProblem(graph, cluster, contention=True),
        "step_plan": StepPlan(("a", "b"), [0, 0], [0.0, 1.0]),
        "stages": StagesProblem(graph, Cluster.flat((DeviceType("gpu"), 2), bandwidth=1e9)),
        "stages_plan": StagesPlan(("a", "b"), [0, 0], [0, -1], [1]),
        "placement": PlacementProblem(fleet, (GangJob("x", "m", (1, 2), value=1.0),), speeds),
        "placement_plan": PlacementPlan(("x",), [0], [0], [1], [0], [0], [3]),
        "schedule": ScheduleProblem((MoldableJob("x", (1, 2), (3.0, 2.0), deadline=9.0),), NodePool(1)),
        "schedule_plan": SchedulePlan(("x",), [1], [0.5], [0], [0], [2]),
        "layout": LayoutProblem(Transformer("m", 2, 64, 4, 4, 16, 100, 128), (gpu_pool("H100", 1, 2),), 2, 64),
        "layout_plan": LayoutPlan([0], [1], [4], [0], [0], 2),  # type: ignore[arg-type]
        "pipeline": PipelineProblem([0], [1.0], [1.0], [1.0], 1),
        "pipeline_plan": PipelinePlan([0, 1, 2], [0, 0, 0], [0, 0, 0]),
    }
    assert set(values) == set(DOCUMENTS)
    for kind, value in values.items():
        check = jsonschema.Draft202012Validator(json.loads((ROOT / "docs" / "schema" / f"{kind}.json").read_text()))
        document = json.loads(dump(value))
        check.validate(document)
        for field in check.schema["required"]:
            assert not check.is_valid({k: v for k, v in document.items() if k != field}), field


def test_the_page_on_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every gangplan command of the page succeeds, in a folder that has the documentation, and then its Python."""
    pytest.importorskip("torch")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    space: dict[str, Any] = {"__name__": "snippet"}
    commands = 0
    for language, code in re.findall(r"^```(sh|py)\n(.*?)^```$", (ROOT / "docs" / "torch.md").read_text(), re.M | re.S):
        if language == "py":
            exec(compile(code, "docs/torch.md", "exec"), space)
            continue
        for line in code.splitlines():
            if line.startswith("gangplan "):
                commands += 1
                assert main(line.split()[1:]) == 0, f"{line}\n{capsys.readouterr()}"
    assert commands == 4 and "stages" in capsys.readouterr().out


def test_run_lists_gpt2() -> None:
    """`./run gpt2` is there, and `./run` says what it does."""
    said = subprocess.run(["sh", ROOT / "run"], capture_output=True, text=True, check=True).stdout
    assert "./run gpt2" in said and "GPT-2" in said


GUIDE = {
    *("index", "getting-started", "torch", "scheduler", "doors", "simulate", "layout", "pipeline"),
    *("partition", "latency", "step", "stages", "placement", "schedule", "pacml", "topdrl", "harmony", "marl"),
}
"""Pages that begin with a picture and a snippet."""
GENERATED = {"docs/gapbench-report.md"}
"""Pages that a command writes as a whole."""


def opening(page: Path) -> tuple[list[str], list[str]]:
    """Return the sentences of the first paragraph below the title, and how the next three blocks begin."""
    blocks = BLOCK.sub("```", page.read_text()).split("\n\n")[1:]
    first, *rest = [x.strip() for x in blocks if x.strip()] or [""]
    plain = " ".join(first.split()).replace("et al. ", "et al ")
    return re.split(r"(?<=[.?!]) (?=[A-Z`\[(*])", plain), [block[:3] for block in rest[:3]]


@pytest.mark.parametrize("page", [p for p in PAGES[2:] if names(p) not in GENERATED], ids=names)
def test_a_page_begins_with_two_sentences(page: Path) -> None:
    """The first paragraph is two sentences, each short; a decision's begins with them."""
    sentences, _ = opening(page)
    assert len(sentences) == 2 or (page.parent.name == "decisions" and len(sentences) > 2)
    assert all(sentence[0] not in "|-!<:$#" and sentence[-1] in ".?" for sentence in sentences)
    assert max(len(sentence.split()) for sentence in sentences[:2]) <= 32


@pytest.mark.parametrize("name", sorted(GUIDE))
def test_a_guide_shows_at_once(name: str) -> None:
    """A guide's picture and its first snippet are among the three blocks after its two sentences."""
    _, blocks = opening(ROOT / "docs" / f"{name}.md")
    assert {"![", "``"} <= {block[:2] for block in blocks}


SYSTEMS = ["harmony", "marl", "pacml", "topdrl"]


@pytest.mark.parametrize("name", sorted(GUIDE - {*SYSTEMS}))
def test_results_are_apart(name: str) -> None:
    """No guide but that of a published system has a table of results in it."""
    assert "<!-- generated" not in (ROOT / "docs" / f"{name}.md").read_text()


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_published_system_is_told_alike(name: str) -> None:
    """What was claimed, how it is rebuilt, what was found."""
    heads = re.findall(r"^## (.*)$", (ROOT / "docs" / f"{name}.md").read_text(), re.MULTILINE)
    assert heads == ["Claimed", "Rebuilt", "Found"]


def test_the_menu_is_short() -> None:
    """The menu has seven groups at most."""
    menu = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    assert 3 < len(re.findall(r"^  - \w", menu.split("\nmarkdown_extensions")[0], re.MULTILINE)) <= 7


def entries(*pages: str) -> list[str]:
    """Return what these pages of the reference have an entry of, sorted by name."""
    text = "\n".join((ROOT / "docs" / f"{page}.md").read_text() for page in pages)
    return sorted(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE), key=lambda entry: entry.rpartition(".")[2])


def test_every_public_name_has_an_entry() -> None:
    """The reference has each name of `gangplan` once, from where it is defined."""
    found = entries("api", "api-problems", "api-online")
    assert [entry.rpartition(".")[2] for entry in found] == gangplan.__all__
    for home, _, name in (entry.rpartition(".") for entry in found):
        assert getattr(gangplan, name) is getattr(import_module(home), name), name


def test_every_name_of_teach_has_an_entry() -> None:
    """The reference has each name of `gangplan.teach` once, from where its package has it."""
    lines = handed_out(ROOT / "api" / "teach" / "__init__.pyi")
    assert len(lines) > 20
    assert sorted(entries("api-teach")) == sorted(f"gangplan.teach{home}.{name}" for name, home in lines)


LETTERED = {
    "formulation": "partition/throughput",
    **{name: f"partition/{name}" for name in ("latency", "step", "stages")},
    **{name: name for name in ("placement", "schedule", "pipeline")},
}
"""The folder of the code of each page with a model."""


@pytest.mark.parametrize("name", LETTERED)
def test_constraints_have_the_letters_of_the_code(name: str) -> None:
    """Each letter that names a constraint in the code stands on the page of the problem."""
    folder = ROOT / "solvers" / LETTERED[name]
    code = "\n".join(file.read_text() for file in sorted(folder.glob("*.py")))
    plain = import_module(f"gangplan.solvers.{LETTERED[name].replace('/', '.')}.plain")
    letters = {f"({letter})" for letter, _, _ in plain.FORMULATION.constraints}
    letters |= set(re.findall(r"(?:\"\"\"|# |; |Add |\n +)(\([A-Z]\))(?= |:)", code))
    page = set(re.findall(r"(?<!\w)\([A-Z]\)", (ROOT / "docs" / f"{name}.md").read_text().replace("text{(", " (")))
    assert letters <= page and len(page) > 3


def load_hook(name: str) -> Any:
    """Return a file of docs, which is in no package."""
    spec = util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_broken_links_are_found(tmp_path: Path) -> None:
    """Of a built site each kind of bad link is told, and no good one."""
    good = '<a href="b.html#x"></a><a href="#top" id="top"></a><a href="https://example.org/a"></a><img src="i.png">'
    bad = {
        '<a href="c.html"></a>': "no such file",
        '<a href="b.html#y"></a>': "no such anchor",
        '<a href="http://nowhere"></a>': "no address",
        '<a href="../../etc"></a>': "no such file",
        '<a href="javascript:x"></a>': "no address",
        '<script src="https://example.org/x.js"></script>': "fetched from elsewhere",
    }
    (tmp_path / "i.png").touch()
    (tmp_path / "b.html").write_text('<p id="x"></p>')
    links = load_hook("links")
    for text, problem in bad.items():
        (tmp_path / "a.html").write_text(good + text)
        assert [x.rpartition(": ")[2] for x in links.broken(tmp_path.resolve())] == [problem], text
    (tmp_path / "a.html").write_text(good)
    assert links.broken(tmp_path.resolve()) == []


def test_code_breaks_after_dots() -> None:
    """Inline code may break after a dot, a slash, an underscore; numbers of a block and text stay as they are."""
    text = "<p>a.b <code>gangplan.teach.list_cost(a/b)</code> <code>.mps ...</code></p><pre><code>a.b</code></pre>"
    right = (
        "<p>a.b <code>gangplan.<wbr>teach.<wbr>list_<wbr>cost(a/<wbr>b)</code> <code>.mps ...</code></p>"
        "<pre><code>a.b</code></pre>"
    )
    assert load_hook("narrow").on_page_content(text) == right


def test_formulas_scroll_by_themselves() -> None:
    """A formula of its own line is in a box that scrolls where a phone is narrower; one in a line is not."""
    pytest.importorskip("latex2mathml")
    on_page_content = load_hook("maths").on_page_content
    block = on_page_content(r'<div class="arithmatex">\[x\]</div>')
    assert block.startswith('<div class="formula"><math') and block.endswith("</math></div>")
    assert on_page_content(r'<span class="arithmatex">\(x\)</span>').startswith("<math")
    assert ".formula" in (ROOT / "docs" / "stylesheets" / "site.css").read_text()


def test_no_double_bar_is_doubled() -> None:
    """`\\|` is a double bar in a formula: two of them are four bars, in a table too."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert [page.name for page in pages if r"\|\|" in page.read_text()] == []
