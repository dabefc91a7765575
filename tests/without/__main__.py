"""Play the quick tests of what is left where an add-on is hidden: `python -m tests.without systems`, or `all` in turn.

Left out are tests that stand beside modules of the add-on, import or name one of them, or call a command of its. What
needs the add-on goes with it. Arguments after its name go to pytest.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ADDONS: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "instances" / "addons.toml").read_text())


def needing(addon: str) -> set[str]:
    """Return an add-on and all that need it."""
    more = (needing(name) for name, other in ADDONS.items() if addon in other.get("needs", ()))
    return {addon}.union(*more)


def names(tree: ast.AST) -> Iterator[str]:
    """Yield the modules, with what is imported of them, and the words that some code names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (x.name for x in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{x.name}" for x in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def whole(tree: ast.AST, file: Path) -> list[ast.AST]:
    """Return some code of a file and that of the modules of tests and benchmarks it imports, each `conftest.py` too."""
    found, seen = [(tree, file)], {file}
    for code, at in found:
        helpers = [at.with_name("conftest.py")]
        for node in ast.walk(code):
            if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("benchmarks")):
                stem = (at.parents[node.level - 1] if node.level else ROOT).joinpath(*(node.module or "").split("."))
                helpers += [stem.with_suffix(".py"), *(stem / f"{x.name}.py" for x in node.names)]
        new = [x for x in dict.fromkeys(helpers) if x not in seen and x.exists()]
        seen.update(new)
        found += [(ast.parse(x.read_text()), x) for x in new]
    return [code for code, _ in found]


def play(addon: str, *more: str) -> int:
    """Run the quick tests without an add-on, and return pytest's exit code."""
    gone = [ADDONS[name] for name in needing(addon)]
    paths = [path for x in gone for path in x["paths"]]
    hidden = [f"gangplan.{x.removesuffix('.py').removeprefix('api/').replace('/', '.')}" for x in paths]
    commands = {x for other in gone for x in other.get("commands", ())}
    beside = [ROOT / "tests" / path.removeprefix("api/").removesuffix(".py") for path in paths]

    def is_left(tree: ast.AST, file: Path) -> bool:
        said = (x for code in whole(tree, file) for x in names(code))
        return not any(x in commands or any(f"{x}.".startswith(f"{y}.") for y in hidden) for x in said)

    chosen, left_out = [], []
    for line in (ROOT / "tests" / "quick.txt").read_text().split():
        file = ROOT / line.partition("::")[0]
        tree = ast.parse(file.read_text())
        tests = [x for x in tree.body if isinstance(x, ast.FunctionDef) and x.name.startswith("test_")]
        shared = ast.Module([x for x in tree.body if x not in tests], [])
        is_beside = any(x in file.parents or x == file.with_name(file.stem.removeprefix("test_")) for x in beside)
        if is_beside or not is_left(shared, file):
            continue
        chosen.append(line)
        left_out += [f"--deselect={file.relative_to(ROOT)}::{x.name}" for x in tests if not is_left(x, file)]
    surroundings = os.environ | {"PYTHONPATH": str(Path(__file__).parent), "GANGPLAN_WITHOUT": " ".join(hidden)}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *chosen, *left_out, *more], check=False, cwd=ROOT, env=surroundings
    )
    print(f"without {addon}: {len(chosen)} lines of quick.txt in {time.perf_counter() - began:.0f} s", flush=True)
    return done.returncode


if __name__ == "__main__":
    asked = ADDONS if sys.argv[1:2] == ["all"] else {x: ADDONS[x] for x in sys.argv[1:2] if x in ADDONS}
    if not asked:
        sys.exit(f"say which add-on: all, or one of {', '.join(ADDONS)}")
    sys.exit(max(play(addon, *sys.argv[2:]) for addon in asked))
