"""The house keeps its order: which folder may import which, and what importing gangplan may load."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from gangplan.instances.addons import addons

from .seeds import LONGEST, RARE
from .source import PLAYED

ROOT = Path(__file__).parent.parent
ORDER = ["instances", "solvers", "simulator", "learned", "scheduler", "systems", "hybrid", "api"]
"""A folder may import itself and those to its left; api is `gangplan` itself."""

HEAVY = {
    *("fastapi", "kubernetes", "psycopg", "pydantic", "ray", "starlette", "uvicorn"),
    *("gymnasium", "highspy", "matplotlib", "networkx", "ortools", "pandas", "pettingzoo", "pulp"),
    *("pyarrow", "safetensors", "scipy", "tensordict", "torch", "torch_geometric", "torchrl"),
}
"""Packages that take long to import, and so wait until something needs them."""


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield each imported module with its dots; `from a import b` gives ``a.b``, which is a module or in one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            stem = "." * node.level + (f"{node.module}." if node.module else "")
            yield from ((node.lineno, stem + alias.name) for alias in node.names)


REFERENCE = re.compile(r"gangplan(\.\w+)+(:[\w.]+)?")


def references(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield each string that names a module or something in one, to be imported later."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and REFERENCE.fullmatch(node.value):
            yield node.lineno, node.value.replace(":", ".")


def faults(path: Path, source: str) -> list[str]:
    """Return what breaks the order in the module at `path`, relative to the root."""
    folder, tree = path.parts[0], ast.parse(source)
    found = []
    for line, name in references(tree):
        if (home := name.split(".")[1]) in ORDER and ORDER.index(home) > ORDER.index(folder):
            found.append(f"{path}:{line}: {name!r} lies to the right")
    for line, name in imports(tree):
        dots = len(name) - len(name.lstrip("."))
        parts = name[dots:].split(".")
        if dots:
            crosses = dots >= len(path.parts) or (folder == "api" and dots == len(path.parts) - 1 and parts[0] in ORDER)
            problem = "reaches another folder: import it absolutely" if crosses else None
        elif parts[0] != "gangplan":
            problem = None
        else:
            home = parts[1] if len(parts) > 1 and parts[1] in ORDER[:-1] else "api"
            if home == folder:
                problem = "is in the same folder: import it relatively"
            else:
                problem = "lies to the right" if ORDER.index(home) > ORDER.index(folder) else None
        if problem:
            found.append(f"{path}:{line}: {name} {problem}")
    return found


@pytest.mark.parametrize("folder", ORDER)
def test_imports_point_left(folder: str) -> None:
    """No module reaches to its right, in imports or strings, or across folders relatively, or its own absolutely."""
    modules = sorted((ROOT / folder).rglob("*.py"))
    assert modules
    assert [x for m in modules for x in faults(m.relative_to(ROOT), m.read_text())] == []


@pytest.mark.parametrize(
    ("path", "source", "bad"),
    [
        ("solvers/a.py", "from gangplan.instances import OpGraph", False),
        ("solvers/partition/a.py", "from ..run import Result", False),
        ("api/cli.py", "from . import solve", False),
        ("api/cli.py", "import gangplan.hybrid.solve", False),
        ("learned/a.py", "A = 'gangplan.learned.b:c', 'gangplan.solvers'", False),
        ("learned/a.py", "def f():\n    'See `gangplan.systems.b`.'", False),
        ("instances/a.py", "from gangplan.solvers import x", True),
        ("instances/readers/a.py", "def f():\n    import gangplan.api_thing", True),
        ("solvers/a.py", "from gangplan import hybrid", True),
        ("solvers/a.py", "from gangplan.solvers.run import Result", True),
        ("solvers/partition/a.py", "from ...instances import OpGraph", True),
        ("api/cli.py", "from .instances import OpGraph", True),
        ("api/cli.py", "from . import hybrid", True),
        ("api/cli.py", "from gangplan import solve", True),
        ("learned/a.py", "A = {'b': 'gangplan.systems.b.recipe'}", True),
        ("learned/a.py", "A = Later('gangplan.systems.b:c')", True),
    ],
)
def test_the_check_itself(path: str, source: str, bad: bool) -> None:
    """The check finds each kind of breach and lets each kind of good import pass."""
    assert bool(faults(Path(path), source)) is bad


def home(path: Path, name: str) -> str:
    """Return the path, below the root, of the module or folder that a module at `path` imports by `name`."""
    dots = len(name) - len(name.lstrip("."))
    package = path.parts[path.parts[0] == "api" : len(path.parts) - dots] if dots else ()
    parts = [*package, *name[dots:].split(".")][not dots :]
    found = Path() if parts and parts[0] in ORDER[:-1] else Path("api")
    for part in parts:
        if not ((ROOT / found / part).is_dir() or (ROOT / found / f"{part}.py").is_file()):
            break
        found /= part
    return f"{found}.py" if (ROOT / f"{found}.py").is_file() else str(found)


def addon_of(path: str) -> str | None:
    """Return the add-on that a path belongs to; `None` if it is of the core."""
    whole = [(name, x) for name, addon in addons().items() for x in addon["paths"]]
    return next((name for name, x in whole if path == x or path.startswith(f"{x}/")), None)


def test_paths_of_addons_are_there() -> None:
    """Every path that `instances/addons.toml` names exists, and is of one add-on."""
    paths = [x for addon in addons().values() for x in addon["paths"]]
    assert [x for x in paths if not (ROOT / x).exists()] == []
    assert [x for x in paths for y in paths if x != y and (x == y or x.startswith(f"{y}/"))] == []


def test_what_is_rarely_run_is_there() -> None:
    """Every test that is rarely run or begun first, and each path of what those are about, exists."""
    gone = [x for paths in RARE.values() for x in paths if not (ROOT / x).exists()]
    for test in (*RARE, *LONGEST):
        file, _, name = test.partition("::")
        if not (ROOT / file).exists() or (name and f"def {name.partition('[')[0]}" not in (ROOT / file).read_text()):
            gone.append(test)
    assert gone == []


def test_core_knows_no_addon() -> None:
    """No module of the core imports one of an add-on or names it in a string."""
    known, modules = [], [x.relative_to(ROOT) for folder in ORDER for x in sorted((ROOT / folder).rglob("*.py"))]
    core = [x for x in modules if addon_of(str(x)) is None]
    assert 300 < len(core) < len(modules) - 100
    for path in core:
        tree = ast.parse((ROOT / path).read_text())
        for line, name in (*imports(tree), *references(tree)):
            if name.startswith((".", "gangplan")) and (addon := addon_of(home(path, name))):
                known.append(f"{path}:{line}: {name} is of {addon}")
    assert known == []


BROUGHT = {"PIL": "matplotlib", "pydantic": "fastapi", "sklearn": "scikit-learn", "starlette": "fastapi"} | {
    "threadpoolctl": "scikit-learn", "torch_geometric": "torch-geometric", "urllib3": "kubernetes",
}  # fmt: skip
"""Packages that are not called like what brings them."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def brought(requirements: list[str]) -> set[str]:
    """Return the names of what is required, without versions."""
    return {re.split(r"[\[<>=]", x)[0] for x in requirements}


CORE = brought(PROJECT["dependencies"])
EXTRAS = {name: brought(x) for name, x in PROJECT["optional-dependencies"].items()}


def packages(modules: list[str]) -> set[str]:
    """Return what brings the packages that modules import, those aside that come with Python or with the compiler."""
    names = {x.split(".")[0] for m in modules for _, x in imports(ast.parse((ROOT / m).read_text())) if x[0] != "."}
    return {BROUGHT.get(x, x) for x in names - {"gangplan", "typing_extensions", "cython"} - sys.stdlib_module_names}


def modules_of(addon: str | None) -> list[str]:
    """Return the modules of an add-on, or of the core."""
    modules = (x.relative_to(ROOT).as_posix() for folder in ORDER for x in sorted((ROOT / folder).rglob("*.py")))
    return [x for x in modules if addon_of(x) == addon]


def test_dependencies_of_the_core_are_its_own() -> None:
    """The core imports each of its dependencies, and else what an extra brings."""
    used = packages(modules_of(None))
    assert used >= CORE and used <= CORE.union(*EXTRAS.values())


@pytest.mark.parametrize("addon", addons())
def test_extras_of_addons_are_theirs(addon: str) -> None:
    """The extras of an add-on bring what it imports besides the core's dependencies."""
    extras = addons()[addon].get("extras", [])
    assert packages(modules_of(addon)) <= CORE.union(*(EXTRAS[x] for x in extras))


def module(path: str) -> str:
    """Return the name of the module or package at a path."""
    parts = ["gangplan", *Path(path).with_suffix("").parts[path.startswith("api") :]]
    return ".".join(parts).removesuffix(".__init__")


def run_without(gone: list[str], program: str, folder: Path, *given: str) -> str:
    """Return what a program prints where modules are hidden."""
    surroundings = os.environ | {"PYTHONPATH": str(ROOT / "tests" / "without"), "GANGPLAN_WITHOUT": " ".join(gone)}
    call = [sys.executable, "-c", program, *given]
    done = subprocess.run(call, check=False, cwd=folder, env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


WITHOUT = """
import io, sys
from contextlib import redirect_stdout
from importlib import import_module

for name in sys.argv[1:]:
    import_module(name)
import gangplan
from gangplan.cli import main
from gangplan.cli.app import COMMANDS
from gangplan.solvers.method import OBJECTIVES, suite

for objective in OBJECTIVES:
    problem = suite(objective).random_problem(0, suite(objective).variants[0])
    result = gangplan.solve(problem, 30, workers=1)
    assert result.status in ("OPTIMAL", "INFEASIBLE"), (objective, result)
for command in COMMANDS:
    with redirect_stdout(io.StringIO()):
        assert main([command, "--help"]) == 0
print(*COMMANDS)
"""


def needed(addon: str) -> set[str]:
    """Return an add-on and all that it needs."""
    return {addon}.union(*map(needed, addons()[addon].get("needs", ())))


@pytest.mark.parametrize("addon", addons())
def test_the_core_runs_without(addon: str, tmp_path: Path) -> None:
    """With no module of an add-on to be had, all of the core are, it solves each objective, and each command helps."""
    core = [module(x) for x in modules_of(None) if not x.endswith("__main__.py")]
    commands = run_without([*map(module, addons()[addon]["paths"])], WITHOUT, tmp_path, *core).split()
    for name, other in addons().items():
        assert all((x in commands) is (addon not in needed(name)) for x in other.get("commands", ()))


ALONE = """
import io
from contextlib import redirect_stdout
import gangplan
from gangplan.cli import main
from gangplan.instances.addons import plugged

assert not plugged("commands") and not plugged("certify")
problem = gangplan.generate("gpt", devices=2)
result = gangplan.solve(problem, time_limit=30)
assert gangplan.verify(problem, result.plan).ok and result.status == "OPTIMAL", result
try:
    gangplan.solve(problem, time_limit=1, certify=True)
except gangplan.InstanceError as error:
    assert "certify" in str(error)
scheduler = gangplan.Scheduler(gangplan.Fleet.regular(1, 2, 8), "gnn", price=60.0)
scheduler.submit(gangplan.GangJob("a", "m", (8,)), 100.0, now=0.0)
assert [x.job for x in scheduler.decide(60.0).starts] == ["a"]
with redirect_stdout(io.StringIO()) as out:
    assert main(["--help"]) == 0
print("serve" in out.getvalue(), "simulate" in out.getvalue())
"""


def test_the_core_runs_alone(tmp_path: Path) -> None:
    """With no add-on and no extra to be had, it solves, decides by the network, and lists the commands left."""
    names = {value: key for key, value in BROUGHT.items()}
    extra = [names.get(x, x) for x in set[str]().union(*EXTRAS.values()) - CORE]
    gone = [module(path) for addon in addons().values() for path in addon["paths"]]
    assert run_without([*gone, *extra], ALONE, tmp_path) == "False True\n"


DOORS = {"instances/intake.py"}
"""Where inputs are opened and parsed."""
OWN_FILES = {
    "solvers/compiled/store.py",
    *("api/__init__.py", "api/cli/__init__.py", "instances/addons.py", "instances/lazy.py"),
}
"""Who reads what comes with the package or the system, or what it has written itself for its next start."""
OPENS = {
    *("read_text", "read_bytes", "DictReader", "decompress"),
    *("csv.reader", "json.loads", "json.load", "tomllib.loads", "tomllib.load", "np.load", "gzip.open"),
}


@pytest.mark.parametrize("folder", ORDER)
def test_inputs_come_through_one_door(folder: str) -> None:
    """Nobody opens, decompresses or parses an input but the door, which does so within limits and with one error."""
    found = []
    for module in sorted((ROOT / folder).rglob("*.py")):
        path = module.relative_to(ROOT).as_posix()
        if path in DOORS | OWN_FILES:
            continue
        for node in ast.walk(ast.parse(module.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            called, given = ast.unparse(node.func), ast.unparse(node.args[0]) if node.args else ""
            own = called == "json.loads" and any(word in given for word in ("dump", "custom_metadata_map"))
            if (called in OPENS or node.func.attr in OPENS) and not own:
                found.append(f"{path}:{node.lineno}: {called}")
    assert found == []


TOPICS = {"bad_input", "constraints", "conversations", "exactness", "faults", "limits", "notebooks", "properties"}
TOPICS |= {"published"}
"""What a test file may be about besides a module: what holds of all that its folder stands for."""
WHOLE = {"docs", "front", "glossary", "layout", "upgrade"}
"""What tests of the whole repository are about."""


def homes(folder: Path) -> Iterator[Path]:
    """Yield the folders whose modules the tests in `folder` may be of; `api/` is the package itself."""
    yield ROOT / folder
    yield ROOT / "api" / folder


def test_tests_stand_where_their_modules_stand() -> None:
    """A test file is called like a module of its folder, or by a topic, and then perhaps one thing more."""
    astray = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        folder, name = file.parent.relative_to(ROOT / "tests"), file.stem.removeprefix("test_")
        names = WHOLE if folder == Path() else TOPICS | {folder.name}
        names = names | {x.stem for home in homes(folder) for x in home.glob("*") if x.suffix in ("", ".py")}
        if not any(name == known or name.startswith(f"{known}_") for known in names):
            astray.append(file.relative_to(ROOT).as_posix())
    assert astray == []


def test_each_kernel_is_played() -> None:
    """Each compiled module is listed with a test that plays it, most of them from its source as well."""
    sources = (path for folder in ORDER for path in sorted((ROOT / folder).rglob("*.py")))
    kernels = [x.relative_to(ROOT).as_posix() for x in sources if "\nimport cython\n" in x.read_text()]
    assert sorted(kernel for played in PLAYED.values() for kernel in played) == sorted(kernels)
    assert [test for test in PLAYED if not (ROOT / test).is_file()] == []


def test_quick_tests_touch_every_folder() -> None:
    """What `./run test --quick` runs is there, and has a file of every folder of tests."""
    lines = (ROOT / "tests" / "quick.txt").read_text().split()
    assert len(set(lines)) == len(lines)
    quick = [line.partition("::")[::2] for line in lines]
    assert [(name, test) for name, test in quick if test and f"def {test}(" not in (ROOT / name).read_text()] == []
    folders = {file.parent.relative_to(ROOT).as_posix() for file in (ROOT / "tests").rglob("test_*.py")}
    assert folders - {name.rpartition("/")[0] for name, _ in quick} == set()


def handed_out(file: Path, *, checking: bool = True) -> set[tuple[str, str]]:
    """Return names with their modules that a package or a stub has by ``import A as A``, to type checkers too."""
    tree = ast.parse(file.read_text())
    found = (x for x in (ast.walk(tree) if checking else tree.body) if isinstance(x, ast.ImportFrom))
    return {(a.name, "." * x.level + (x.module or "")) for x in found for a in x.names if a.asname == a.name}


def test_no_module_hides_a_name() -> None:
    """No module has the name of what its package hands out when it is asked for: it would be there instead."""
    hidden = []
    for file in (x for folder in ORDER for x in (ROOT / folder).rglob("__init__.py*")):
        names = {name for name, _ in handed_out(file)}
        modules = {x.stem for x in file.parent.iterdir()} - {"plot", "verify"}  # which can be called
        hidden += [f"{file.parent.relative_to(ROOT)}: {name}" for name in names & modules]
    assert hidden == []


def test_type_checkers_see_what_is_handed_out() -> None:
    """What a package has when asked for is what its stub, or its imports for type checkers, say, and from where."""
    compared = found = 0
    for file in (x for folder in ORDER for x in (ROOT / folder).rglob("__init__.py")):
        tree = ast.parse(file.read_text())
        calls = [x for x in ast.walk(tree) if isinstance(x, ast.Call) and ast.unparse(x.func) == "exported"]
        for table in (x.args[1] for x in calls if len(x.args) > 1):
            given = {(y, home) for home, names in ast.literal_eval(table).items() for y in names.split()}
            assert given == handed_out(file) - handed_out(file, checking=False), file
            compared += len(given)
        stub = file.with_suffix(".pyi")
        for name, home in handed_out(stub) if stub.is_file() else ():
            package = import_module(module(f"{file.relative_to(ROOT)}"))
            assert getattr(package, name) == getattr(import_module(home, package.__name__), name), (file, name)
            found += 1
    assert compared > 15 and found > 120


def test_import_is_light(tmp_path: Path) -> None:
    """Importing gangplan loads no heavy package."""
    program = "import sys, json, gangplan; print(json.dumps([gangplan.__name__, *sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in json.loads(done.stdout)}
    assert "gangplan" in loaded
    assert loaded & HEAVY == set()


FIRST = """
import json, sys, gangplan
made = [len([name for name in sys.modules if name.startswith("gangplan")])]
problem = gangplan.generate("gpt", devices=4)
made.append(len([name for name in sys.modules if name.startswith("gangplan")]))
assert gangplan.solve(problem, time_limit=60).status == "OPTIMAL"
print(json.dumps([*made, len([name for name in sys.modules if name.startswith("gangplan")])]))
"""


def test_a_first_solve_touches_few_files(tmp_path: Path) -> None:
    """The package is one file, a problem and its solve with proof are seventy and three that are compiled."""
    done = subprocess.run([sys.executable, "-c", FIRST], cwd=tmp_path, capture_output=True, text=True, check=True)
    package, generated, solved = json.loads(done.stdout)
    assert package == 1 and generated <= 18 and solved <= 73


def hasty(folder: Path) -> dict[str, str]:
    """Return an environment whose C compiler, if there is one, optimises nothing: what it makes is hardly run."""
    command = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    if shutil.which(command.split()[0]) is None:
        return dict(os.environ)
    (folder / "cc").write_text(f'#!/bin/sh\nexec {command} "$@" -O0\n')  # the last of several holds
    (folder / "cc").chmod(0o755)
    return os.environ | {"CC": str(folder / "cc")}


def test_wheel_is_whole(tmp_path: Path) -> None:
    """A wheel built from the source distribution holds every module and runs where there is nothing else."""
    tree, dist, installed, empty = (tmp_path / name for name in ("tree", "dist", "installed", "empty"))
    for name in ORDER:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, tree]
    subprocess.run(build, env=hasty(tmp_path), check=True, capture_output=True)
    assert len(list(dist.glob("*.tar.gz"))) == 1
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    endings = (".py", ".pyi", ".pxd")
    modules = {m.relative_to(ROOT) for f in ORDER for m in (ROOT / f).rglob("*.p*") if m.suffix in endings}
    native = [m for m in modules if "\nimport cython\n" in (ROOT / m).read_text()]
    modules |= {Path("solvers/shared.abi3.so"), *(m.with_suffix(".abi3.so") for m in native)}
    shipped = {x.relative_to(ROOT) for f in ("configs", "weights") for x in (ROOT / "learned" / f).iterdir()}
    shipped |= {Path("instances/addons.toml")}
    shipped |= {Path("hybrid/bench", name) for name in ("suite.toml", "manifest.jsonl")}
    shipped |= {x.relative_to(ROOT) for x in (ROOT / "hybrid" / "bench" / "library").iterdir()}
    shipped |= {x.relative_to(ROOT / "api") for x in (ROOT / "api" / "doors" / "static").iterdir()}
    shipped |= {x.relative_to(ROOT / "api") for x in (ROOT / "api" / "teach" / "suites").iterdir()}
    wanted = {Path(*m.parts[m.parts[0] == "api" :]) for m in modules} | {Path("py.typed")} | shipped
    assert wanted == {f.relative_to(installed / "gangplan") for f in (installed / "gangplan").rglob("*") if f.is_file()}
    empty.mkdir()
    program = "import gangplan, gangplan.cli; print(gangplan.__file__)"
    zipped = "import gangplan; print([getattr(gangplan, name) for name in gangplan.__all__], gangplan.__file__)"
    path = os.environ | {"PYTHONPATH": str(wheel)}
    done = subprocess.run(
        [sys.executable, "-c", zipped], cwd=empty, env=path, capture_output=True, text=True, check=True
    )
    assert f"{wheel}/gangplan/__init__.py" in done.stdout
    surroundings = os.environ | {"PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    commands = ([sys.executable, "-c", program], [sys.executable, "-m", "gangplan", "versions"])
    place, versions = (
        subprocess.run(c, cwd=empty, env=surroundings, capture_output=True, text=True, check=True).stdout
        for c in commands
    )
    assert Path(place.strip()).is_relative_to(installed)
    assert "gangplan" in versions
