"""Grading: points by the gap, and submissions that crash, hang, flood, flee or lie, each to its own cost only."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gangplan
from gangplan.hybrid.bench.leftovers import descendants
from gangplan.instances import InstanceError
from gangplan.instances.verify import clock_cost
from gangplan.teach import confined, grading, isolation
from gangplan.teach.feedback import page, points_csv, write_feedback
from gangplan.teach.suite import Homework, SuiteProblem, drawn, read_suite, write_starter

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")

PROBLEM = gangplan.ScheduleProblem(
    (gangplan.MoldableJob("a", (1, 2), (6.0, 4.0)), gangplan.MoldableJob("b", (1,), (4.0,))), gangplan.Pool(2)
)
BEST = 10.0
"""On a GPU each, both from 0: completed at 6 and 4. One after the other, a on both GPUs: 12."""
GOOD = gangplan.SchedulePlan(("a", "b"), [0, 0], [0.0, 0.0])
FAIR = gangplan.SchedulePlan(("a", "b"), [1, 0], [4.0, 0.0])
PLAN = "import gangplan\nPLAN = gangplan.SchedulePlan(('a', 'b'), [0, 0], [0.0, 0.0])\n"


def suite(proof: bool = False, **more: Any) -> Homework:
    """Return a suite of the one small problem."""
    fields = {"title": "Small", "seconds": 20.0, "memory": 8e8, "gaps": (0.0, 0.2, 0.5), "points": (10.0, 7.0, 3.0)}
    return Homework(assignments=(SuiteProblem("two", PROBLEM, BEST, True, 0.0, proof),), **(fields | more))


def document(value: Any) -> Any:
    """Return a plan as JSON has it."""
    return json.loads(gangplan.dump(value))


def hand_in(folder: Path, code: str = "", **files: Any) -> Path:
    """Write a submission: a program, if there is one, and files of JSON."""
    own = folder / "ann"
    own.mkdir()
    for name, value in files.items():
        (own / f"{name.replace('_', '.')}.json").write_text(value if isinstance(value, str) else json.dumps(value))
    if code:
        (own / "solve.py").write_text(code)
    return own


def mark(folder: Path, code: str = "", *, asked: Homework | None = None, **files: Any) -> grading.Mark:
    """Grade a submission and return the mark of its plan."""
    return grading.grade(hand_in(folder, code, **files), asked or suite()).marks[0]


@pytest.mark.parametrize(("given", "points"), [(GOOD, 10), (FAIR, 7)])
def test_points_by_the_gap(given: Any, points: float, tmp_path: Path) -> None:
    """A plan on file gets its points: the optimum all, one of gap 2 of 12 those of up to a fifth."""
    found = mark(tmp_path, two=document(given))
    assert (found.points, found.note) == (points, "") and found.picture.startswith("<svg")
    assert found.gap == pytest.approx(0 if points == 10 else 1 / 6)


def test_worth() -> None:
    """Each threshold counts to its end, and nothing is worth nothing."""
    gaps = (-0.1, 0.0, 1e-7, 0.01, 0.2, 0.21, 0.5, 0.51, None)
    assert [suite().worth(x) for x in gaps] == [10, 10, 10, 7, 7, 3, 3, 0, 0]
    assert suite().most == 10 and suite(proof=True).most == 20


def test_bound_of_ones_own(tmp_path: Path) -> None:
    """A certificate gets points by what the checker says it proves, from a file or from `prove`; a wrong one none."""
    proof = {"argument": "starts", "threshold": "1999999/250000", "times": [], "prices": [], "steps": 0}
    own = hand_in(tmp_path, two=document(GOOD), two_bound=proof)
    plan, bound = grading.grade(own, suite(proof=True)).marks
    assert plan.points == 10 and bound.kind == "bound"
    assert bound.value == pytest.approx(8, rel=1e-5) and bound.points == 7
    (own / "two.bound.json").write_text(json.dumps({"argument": "starts"}))
    wrong = grading.grade(own, suite(proof=True)).marks[1]
    assert wrong.points == 0 and wrong.value is None and wrong.note
    (own / "two.bound.json").unlink()
    (own / "solve.py").write_text(f"def prove(problem):\n    return {proof!r}\n")
    assert grading.grade(own, suite(proof=True)).marks[1].value == bound.value


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("{", "JSON"),
        ("[1]", "is not a JSON object"),
        ({"kind": "nothing"}, "schema_version"),
        (document(GOOD) | {"start": [0.0, "NaN"]}, "start"),
        ("[NaN]", "NaN"),
        (document(GOOD) | {"start": [0.0, -1.0]}, "start"),
        (document(gangplan.SchedulePlan(("a", "c"), [0, 0], [0.0, 0.0])), "job 1 of the plan is c"),
        (document(gangplan.SchedulePlan(("a", "b"), [1, 0], [0.0, 0.0])), "GPUs"),
        (document(gangplan.PartitionPlan(("a",), [0], [0])), "schedule"),
        (document(PROBLEM), "schedule"),
        ("[" * 5000, "JSON"),
    ],
)
def test_wrong_plans(given: Any, says: str, tmp_path: Path) -> None:
    """A plan that is broken, infeasible or of another problem gets nothing, and is told why."""
    found = mark(tmp_path, two=given)
    assert found.points == 0 and says in found.note


FLOOD = "import sys\nfor _ in range(1 << 20):\n    sys.stdout.write('\\x1b[31m' + 'x' * 1000)\n"
FORGE = """
import json, os
row = {"objective": 0.0, "violations": [], "document": {"a": 1}, "seconds": 1e308}
for fd in range(3, 30):
    try:
        os.write(fd, json.dumps(row).encode() + b"\\n")
    except OSError:
        pass
os._exit(0)
"""
ATTACKS = {
    "forge": (FORGE, ""),  # refused by the verifier, or without an answer: whichever descriptor it meets first
    "exit": ("import sys\nsys.exit(3)", "sys.exit(3)"),
    "end": ("import os\nos._exit(0)", "without an answer"),
    "watcher": ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nos._exit(1)", "without an answer"),
    "raise": ("raise ValueError('\\x1b[31m<script>')", "ValueError: \\x1b[31m<script>"),
    "evil": ("class E(Exception):\n    def __str__(self):\n        raise MemoryError\nraise E", "no message"),
    "syntax": ("def solve(", "SyntaxError"),
    "memory": ("x = [bytearray(10**8) for _ in range(1000)]", "bytes of memory"),
    "flood": (FLOOD, "File too large"),
    "fill": ("open('big', 'wb').write(bytes(10**8))", "File too large"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks(name: str, tmp_path: Path) -> None:
    """Whatever a program does, there is a mark of 0 points that says what, in printable text."""
    code, says = ATTACKS[name]
    found = mark(tmp_path, f"{code}\n")
    assert found.points == 0 and found.note and says in found.note and found.seconds <= 20
    assert len(found.printed) < 20_000 and (found.note + found.printed).replace("\n", "").isprintable()


@pytest.mark.parametrize("end", ["pass", "raise ValueError", "import os\nos.abort()"])
def test_what_was_printed(end: str, tmp_path: Path) -> None:
    """A few words are on the page, however the program ends."""
    assert mark(tmp_path, f"print('so far')\n{end}\n").printed.startswith("so far\n")


RETURNS = ["None", "[1, 2]", "{'kind': float('nan')}", "{1: print}"]


def test_wrong_types(tmp_path: Path) -> None:
    """What `solve` returns that is no plan gets nothing."""
    own = hand_in(tmp_path)
    for value in RETURNS:
        (own / "solve.py").write_text(f"{PLAN}\ndef solve(problem):\n    return {value}\n")
        found = grading.grade(own, suite()).marks[0]
        assert found.points == 0 and found.note, value


CUT = """
import os, time
for fd in range(3, 20):
    try:
        os.ftruncate(fd, 0)
    except OSError:
        pass
time.sleep(1000)
"""


def test_hanging(tmp_path: Path) -> None:
    """A program that sleeps is ended, even if it cuts off whatever it could forge its clock by."""
    found = mark(tmp_path, CUT, asked=suite(seconds=0.5))
    assert found.points == 0 and found.note == "took longer than 0.5 s"


FORK = """
import os, time
for _ in range({count}):
    if not os.fork():
        if {flee}:
            os.setsid()
            if os.fork():
                os._exit(0)
        time.sleep(1000)
"""


@pytest.fixture(params=["namespaces", "sweep"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Grade in namespaces, if there are some, and as on a system without."""
    if request.param == "sweep":
        monkeypatch.setattr(confined, "namespaces", lambda: False)
    elif not isolation.namespaces():
        pytest.skip("this system gives no namespaces")
    return str(request.param)


ORPHAN = """
import os, signal, time
def solve(problem):
    watcher = os.getppid()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            if watcher:
                os.kill(watcher, signal.SIGKILL)
            time.sleep(1000)
        os._exit(0)
    time.sleep(2)
"""


@pytest.mark.usefixtures("kind")
def test_orphans_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that flees into a session of its own and kills its watcher ends with the call all the same."""
    if not Path("/proc/self").exists():
        pytest.skip("needs /proc")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}")
    assert mark(tmp_path, ORPHAN, asked=suite(memory=1e11)).points == 0
    assert _sleepers(tmp_path) == 0


def test_namespaces_hide(tmp_path: Path) -> None:
    """In namespaces a program sees its own processes, no network, and neither others' work nor gangplan's methods."""
    if not isolation.namespaces():
        pytest.skip("this system gives no namespaces")
    look = "\n".join(
        [
            "import ctypes, os, socket",
            f"print(sorted(x for x in os.listdir('/proc') if x.isdigit()), os.listdir({str(tmp_path)!r}))",
            f"ctypes.CDLL(None).umount2({str(tmp_path).encode()!r}, 2)",
            f"print(os.listdir({str(tmp_path)!r}), os.getuid() == {os.getuid()})",
            "try:\n    socket.create_connection(('127.0.0.1', 9), 1)",
            "except OSError as error:\n    print(error.strerror)",
        ]
    )
    printed = mark(tmp_path, look + "\n").printed
    assert printed.splitlines() == ["['1'] []", "[] True", "Network is unreachable"]


def test_processes_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children that fled into sessions of their own end with the work, which gets its points; too many end it."""
    if not Path("/proc/self").exists():
        pytest.skip("needs /proc")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}")  # by which they are known: other tests have some too
    code = FORK.format(count=3, flee=True) + PLAN + "def solve(problem):\n    open('pids', 'w')\n    return PLAN\n"
    own = hand_in(tmp_path, code)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert _sleepers(tmp_path) == 1
        process.communicate(b"\n")
    assert grading.grade(own, suite(memory=1e11)).marks[0].points == 10
    assert _sleepers(tmp_path) == 0
    (own / "solve.py").write_text(FORK.format(count=40, flee=False) + "time.sleep(1000)")
    found = grading.grade(own, suite(memory=1e10)).marks[0]
    assert found.points == 0 and "processes" in found.note
    assert _sleepers(tmp_path) == 0 and not (own / "pids").exists()


def _sleepers(folder: Path) -> int:
    """Return how many processes have a folder in their PATH."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            count += str(path.parent) != "/proc/self" and f":{folder}\0".encode() in path.read_bytes()
        except OSError:
            continue
    return count


def test_a_program_works_in_a_copy(tmp_path: Path) -> None:
    """What it writes beside itself, and its variables of the environment, are not the grader's."""
    code = PLAN + "import os\ndef solve(problem):\n    open('left', 'w')\n    open(f'{os.environ[\"HOME\"]}/x', 'w')\n"
    own = hand_in(tmp_path, code + "    assert 'SECRET' not in os.environ\n    return PLAN\n")
    os.environ["SECRET"] = "x"
    try:
        assert grading.grade(own, suite()).marks[0].points == 10
    finally:
        del os.environ["SECRET"]
    assert [x.name for x in own.iterdir()] == ["solve.py"]


def test_links_and_pipes_stay_behind(tmp_path: Path) -> None:
    """A link to another's plan is no plan, and a pipe blocks nobody."""
    other = tmp_path / "other.json"
    other.write_text(json.dumps(document(GOOD)))
    own = hand_in(tmp_path)
    (own / "two.json").symlink_to(other)
    os.mkfifo(own / "solve.py")
    (own / "up").symlink_to("/")
    found = grading.grade(own, suite()).marks[0]
    assert found.points == 0 and found.note == "there is neither two.json nor solve.py"


GANGS = gangplan.generate("gangs", jobs=8, racks=1, nodes=6, gpus=4, collective="ring")
HOLDS = {"argument": "covers", "threshold": "15", "prices": ["1"] * 8, "steps": 10**6}
"""Prices that prove 8, and a threshold that takes a search of seconds; there is a plan of 15.74."""


def test_a_slow_proof_costs_itself_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate whose check takes too long counts what its prices prove; others have their own time."""
    monkeypatch.setattr(grading, "_JUDGE", 4.0)
    gangs = gangplan.generate("gangs", jobs=12, racks=1, nodes=9, gpus=4, collective="ring")
    holds = HOLDS | {"threshold": "26", "prices": ["1"] * 12}  # half a minute
    slow = SuiteProblem("gangs", gangs, 12.0, True, clock_cost(gangs), True)
    asked = Homework("", (slow, replace(slow, name="again"), *suite(True).assignments), 20.0, 8e8, (0.0,), (10.0,))
    proof = {"argument": "starts", "threshold": "10", "times": [], "prices": [], "steps": 10**5}
    own = hand_in(tmp_path, two=document(GOOD), gangs_bound=holds, again_bound=holds, two_bound=proof)
    marks = {(x.problem, x.kind): x for x in grading.grade(own, asked).marks}
    for name in ("gangs", "again"):
        late = marks[name, "bound"]
        assert late.value == pytest.approx(12) and late.points == 10
        assert late.note == "its prices count, and no more: cannot be checked: took longer than 4 s"
    assert marks["two", "plan"].points == 10 and marks["two", "bound"].points == 10


@pytest.mark.parametrize("change", [{"steps": 40}, {"threshold": "16", "steps": 10**4}])
def test_prices_count(change: dict[str, Any], tmp_path: Path) -> None:
    """Too few steps, or a threshold that some plan is below, cost the search of a certificate and not its prices."""
    asked = Homework(
        "", (SuiteProblem("gangs", GANGS, 8.0, True, clock_cost(GANGS), True),), 20.0, 8e8, (0.0,), (10.0,)
    )
    bound = grading.grade(hand_in(tmp_path, gangs_bound=HOLDS | change), asked).marks[1]
    assert bound.value == pytest.approx(8) and bound.points == 10 and "its prices count, and no more" in bound.note


def test_pages(tmp_path: Path) -> None:
    """A page holds what there is to say as text: no markup of a student's becomes the page's, and none is fetched."""
    name = "<b>ann"
    marks = (grading.Mark("two", "plan", 7, 10, 12.0, 10.0, 1 / 6, "<i>", 1.0, "<script>x</script>", "<svg></svg>"),)
    text = page(grading.Grade(name, marks, ("<u>",)), suite()).decode()
    assert "<b>ann" not in text and "<script" not in text and "<i>" not in text and "<u>" not in text
    assert "16.7%" in text and "default-src 'none'" in text and "<svg></svg>" in text
    paths = write_feedback([grading.Grade("a/b", marks), grading.Grade("a_b", marks)], suite(), tmp_path / "out")
    assert [x.name for x in paths] == ["a_b.html", "a_b-1.html"] and all(x.exists() for x in paths)
    rows = (tmp_path / "out" / "points.csv").read_text().splitlines()
    assert rows == ["submission,points,two plan", "a/b,7,7", "a_b,7,7"]
    assert points_csv([grading.Grade("=1+1", marks)]).decode().splitlines()[1] == "'=1+1,7,7"
    assert isolation.words() in text and "may import the standard library, gangplan&#x27;s problems" in text


def test_submissions(tmp_path: Path) -> None:
    """Folders and Python files are submissions; hidden ones, links and others are not; of none there is an error."""
    with pytest.raises(InstanceError, match="there is none"):
        grading.submissions(tmp_path)
    with pytest.raises(InstanceError, match="no such file"):
        grading.submissions(tmp_path / "x")
    (tmp_path / "bob").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "ann.py").write_text(f"{PLAN}\ndef solve(problem):\n    return PLAN\n")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "bob")
    assert [x.name for x in grading.submissions(tmp_path)] == ["ann.py", "bob"]
    ann = grading.grade(tmp_path / "ann.py", suite())
    assert ann.student == "ann" and ann.points == 10 and ann.as_dict()["marks"][0]["problem"] == "two"
    (tmp_path / "bob" / "tow.json").write_text("{}")
    assert grading.grade(tmp_path / "bob", suite()).notes == ("'tow.json' is of no problem of the suite",)


def test_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A submission of too many bytes or files is not read."""
    own = hand_in(tmp_path, two=document(GOOD))
    monkeypatch.setattr(grading, "_FILES", 0)
    assert "more than 0" in grading.grade(own, suite()).notes[0]
    monkeypatch.setenv("GANGPLAN_MAX_SUBMISSION_BYTES", "10")
    assert "more than 10 bytes" in grading.grade(own, suite()).notes[0]
    assert grading.grade(own, suite()).points == 0


def test_descendants() -> None:
    """The processes below this one are not this one."""
    assert os.getpid() not in descendants(os.getpid())


HOMEWORK = read_suite("homework")


def test_homework() -> None:
    """The suite that comes with the package has four objectives, two bounds, and draws all its problems."""
    assert {x.problem.objective for x in HOMEWORK.assignments} == {"schedule", "step", "throughput", "placement"}
    assert all(x.recipe for x in HOMEWORK.assignments) and HOMEWORK.most == 100
    assert HOMEWORK.imports == ("numpy", "networkx", "ortools", "pulp", "highspy")


def test_drawn() -> None:
    """Key and name decide a student's problems; the best known value is what a solve finds."""
    kept = replace(HOMEWORK, assignments=(HOMEWORK.assignments[1],), best_seconds=5.0)
    seen = [drawn(kept, *who, solved=False).assignments[0] for who in (("k", "a"), ("k", "a"), ("k", "b"), ("x", "a"))]
    hashes = [gangplan.content_hash(x.problem) for x in seen]
    assert hashes[0] == hashes[1] and len(set(hashes)) == 3
    assert seen[0].best != seen[0].best  # nobody has solved it
    found = drawn(kept, "k", "a").assignments[0]
    assert found.best > 0 and gangplan.content_hash(found.problem) == hashes[0]
    none = replace(kept.assignments[0], recipe={"kind": "layered", "ops": 4, "layers": 2, "memory": 1.0})
    with pytest.raises(InstanceError, match="best_seconds: no plan"):
        drawn(replace(kept, assignments=(none,)), "k", "a")


def test_each_student_is_graded_on_what_is_drawn(tmp_path: Path) -> None:
    """A plan of one student's problem is worth nothing to another."""
    kept = replace(HOMEWORK, assignments=HOMEWORK.assignments[1:2], best_seconds=5.0)
    mine = drawn(kept, "k", "ann", solved=False).assignments[0]
    own = hand_in(tmp_path, **{mine.name: document(gangplan.solve(mine.problem, time_limit=5).plan)})
    other = tmp_path / "bob"
    other.mkdir()
    (other / f"{mine.name}.json").write_text((own / f"{mine.name}.json").read_text())
    ann, bob = grading.grades([own, other], kept, "k")
    assert ann.points == 10 and bob.points < 10


def test_starter(tmp_path: Path) -> None:
    """The starter submission gets some of the points and not all, without a fault; it does not write over anything."""
    files = write_starter(drawn(HOMEWORK, "", "", solved=False), tmp_path / "ann")
    assert [x.name for x in files[:2]] == ["solve.py", "README.md"]
    with pytest.raises(InstanceError, match="is not empty"):
        write_starter(HOMEWORK, tmp_path / "ann")
    names = ("makespan-moldable", "step", "throughput-two", "gangs")
    kept = tuple(x for x in HOMEWORK.assignments if x.name in names)
    marks = grading.grade(tmp_path / "ann", replace(HOMEWORK, assignments=kept, best_seconds=1.0)).marks
    assert [x.note for x in marks] == [""] * 4 + ["", "prove returned None"] and all(x.value for x in marks[:5])
    assert 0 < sum(x.points for x in marks) < 30
    jobs = replace(HOMEWORK, assignments=(replace(kept[0], proof=True),), best_seconds=1.0)
    assert [x.note for x in grading.grade(tmp_path / "ann", jobs).marks] == ["", "prove returned None"]
    late = SuiteProblem("late", gangplan.generate("gpt", devices=2, objective="latency"), 1.0, True, 0.0, True)
    marks = grading.grade(tmp_path / "ann", replace(HOMEWORK, assignments=(late,))).marks
    assert [x.note for x in marks] == ["solve returned None", "prove returned None"]


LISTED = "import numpy, networkx, ortools.sat.python.cp_model, pulp, highspy, helper, gangplan, gangplan.instances\n"
AROUND = """
import sys
sys.meta_path[:] = [x for x in sys.meta_path if type(x).__module__ != "gangplan.teach.imports"]
import gangplan.hybrid
"""
READS = """
import os, gangplan
from pathlib import Path
home = Path(os.path.realpath(gangplan.instances.__file__)).parents[1]
print(*home.glob("hybrid/bench/*"), (home / "hybrid/bench/manifest.jsonl").read_text())
"""
CHEATS = {
    "two lines": ("import gangplan\ngangplan.solve\n", "gangplan.hybrid is not allowed: a submission may import"),
    "solvers": ("import gangplan.solvers.run\n", "gangplan.solvers is not allowed"),
    "loaded": ("import gangplan\ngangplan.solvers\n", "has no attribute 'solvers'"),
    "by name": ("import importlib\nimportlib.import_module('gangplan.teach')\n", "gangplan.teach is not allowed"),
    "others": ("import scipy.optimize\n", "scipy is not allowed"),
    "others by an empty folder": ("import os\nos.mkdir('scipy')\nimport scipy.optimize\n", "scipy is not allowed"),
    "others by name": ("__import__('torch')\n", "torch is not allowed"),
    "around": (AROUND, "gangplan.hybrid|__init__.py is of gangplan's methods"),
    "reads": (READS, "FileNotFoundError|manifest.jsonl is of gangplan's methods"),
}


@pytest.mark.parametrize("name", CHEATS)
@pytest.mark.usefixtures("kind")
def test_imports(name: str, tmp_path: Path) -> None:
    """What a suite does not name is not imported, gangplan's methods by no way that Python has, and it is said."""
    code, says = CHEATS[name]
    found = mark(tmp_path, code)
    assert found.points == 0 and re.search(says, found.note) and "line" in found.note


def test_imports_that_are_allowed(tmp_path: Path) -> None:
    """A submission may import the list, modules of its own, and gangplan's methods where its suite says so."""
    own = hand_in(tmp_path, LISTED + PLAN + "def solve(problem):\n    return PLAN\n")
    (own / "helper.py").write_text("import json\n")
    assert grading.grade(own, suite()).marks[0].points == 10
    (own / "solve.py").write_text(
        "import gangplan\ndef solve(problem):\n    return gangplan.solve(problem, time_limit=2)\n"
    )
    found = grading.grade(own, suite(imports=("gangplan",), memory=4e9)).marks[0]
    assert (found.points, found.note) == (10, "")
    (own / "solve.py").write_text(READS)
    assert grading.grade(own, suite(imports=("gangplan",))).marks[0].note


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("x = 1", "x"),
        ("[[problem]]\nname = 'a/b'", "problem\\[0\\].name"),
        ("[[problem]]\nname = 'nowhere'", "none of GapBench"),
        ("[[problem]]\nname = 'a'\ngenerate = {kind = 'gpt'}", "problem\\[0\\].best: is missing"),
        ("[[problem]]\nname = 'a'\ngenerate = 3", "generate"),
        ("points = [3, 7]\n[[problem]]\nname = 'step-random-toy-00'", "points"),
        ("gaps = [0.2, 0.1, 0.0]\n[[problem]]\nname = 'step-random-toy-00'", "do not rise"),
        ("seconds = 0\n[[problem]]\nname = 'step-random-toy-00'", "seconds"),
        ("[[problem]]\nname = 'step-random-toy-00'\nproof = 1", "proof"),
        ("[[problem]]\nname = 'step-random-toy-00'\n" * 2, "duplicate"),
        ("[[problem]]\nname = 'step-random-toy-00'\ndraw = true", "draw: goes with generate"),
        ("[[problem]]\nname = 'a'\ngenerate = {kind = 'gpt'}\ndraw = true\nbest = 1", "draw: goes with generate"),
        ("imports = ['a b']\n[[problem]]\nname = 'step-random-toy-00'", "imports: "),
    ],
)
def test_bad_suites(text: str, says: str, tmp_path: Path) -> None:
    """What is wrong in a suite is named by its field."""
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(InstanceError, match=says):
        read_suite(str(path))


def test_suite_of_ones_own(tmp_path: Path) -> None:
    """A suite may have problems of files and generated ones, and be JSON."""
    gangplan.save(PROBLEM, tmp_path / "two.json")
    rows = [{"name": "two", "file": "two.json", "best": 10},
            {"name": "gpt", "generate": {"kind": "gpt", "layers": 1, "devices": 2}, "best": 1.5}]  # fmt: skip
    (tmp_path / "own.json").write_text(json.dumps({"problem": rows}))
    found = read_suite(str(tmp_path / "own.json"))
    assert [x.problem.objective for x in found.assignments] == ["schedule", "throughput"]
    with pytest.raises(InstanceError, match="did you mean homework"):
        read_suite("homewrok")


@pytest.mark.usefixtures("kind")
def test_nobody_writes_into_a_later_submission(tmp_path: Path) -> None:
    """The folder of submissions is closed to each of them: a plan that one puts into another's is not seen."""
    folder = tmp_path / "all"
    (folder / "a").mkdir(parents=True)
    (folder / "b").mkdir()
    there = str(folder / "b" / "two.json")
    (folder / "a" / "solve.py").write_text(f"open({there!r}, 'w').write('{{}}')\ndef solve(problem):\n    pass\n")
    first, second = grading.grades(grading.submissions(folder), suite())
    assert not Path(there).exists()
    assert first.marks[0].by == "program" and first.points == 0
    assert second.marks[0].note == "there is neither two.json nor solve.py"
