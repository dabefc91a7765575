"""Change the core in many small ways and count which its tests see: `python -m tests.mutations --count 60 --seed 57`.

Each change is played alone, in a copy that the work leaves as it was, against the tests nearest to its module: those
that stand beside it, import it, or import what imports it. They run as CI would run them at this commit. `LOG` keeps
what is done, and a second call goes on after it. What no test sees is read by a person: some changes say the same.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import os
import random
import resource
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .conftest import NAMED

ROOT = Path(__file__).parents[1]
FOLDERS = ("instances", "solvers", "simulator", "learned", "scheduler", "hybrid", "api")
KINDS = ("comparison", "arithmetic", "constant", "not", "arguments", "statement", "extreme")
_COMPARE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "is": "is not", "is not": "is",
            "in": "not in", "not in": "in"}  # fmt: skip
_SIGN = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
         ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.Add: "+", ast.Sub: "-", ast.Mult: "*",
         ast.Div: "/", ast.FloorDiv: "//"}  # fmt: skip
_OTHER = {"comparison": _COMPARE, "arithmetic": {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*"}}
_EXTREME = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}


@dataclass(frozen=True)
class Change:
    """A part of a file, from one byte to another, and what stands there instead."""

    kind: str
    path: str
    line: int
    start: int
    end: int
    new: str

    def apply(self, source: bytes) -> bytes:
        """Return the changed source."""
        return source[: self.start] + self.new.encode() + source[self.end :]


def core() -> Iterator[Path]:
    """Yield the Python files of the core."""
    addons = tomllib.loads((ROOT / "instances" / "addons.toml").read_text())
    apart = [ROOT / path for addon in addons.values() for path in addon["paths"]]
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(path.is_relative_to(x) for x in apart):
                yield path


class Source:
    """A file of the core, and the changes of what stands in its functions."""

    def __init__(self, path: Path) -> None:
        self.path, self.text = str(path.relative_to(ROOT)), path.read_bytes()
        self.starts = [0, *itertools.accumulate(map(len, self.text.splitlines(keepends=True)))]

    def begin(self, node: ast.expr | ast.stmt) -> int:
        """Return the byte at which some code begins."""
        return self.starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Return the byte after the last of some code."""
        return self.starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def between(self, a: ast.expr, b: ast.expr) -> str:
        """Return what stands between two expressions."""
        return self.text[self.end(a) : self.begin(b)].decode()

    def code(self, node: ast.expr) -> str:
        """Return the code of an expression."""
        return self.text[self.begin(node) : self.end(node)].decode()

    def instead(self, kind: str, node: ast.expr | ast.stmt, new: str, last: ast.expr | None = None) -> Change:
        """Return a change of an expression or statement, or of what ends with `last`."""
        return Change(kind, self.path, node.lineno, self.begin(node), self.end(last or node), new)

    def operator(self, kind: str, a: ast.expr, op: ast.AST, b: ast.expr) -> Iterator[Change]:
        """Yield another operator between two expressions."""
        old, middle = _SIGN.get(type(op), ""), self.between(a, b)
        if old in _OTHER[kind] and middle.count(old) == 1:
            new = middle.replace(old, _OTHER[kind][old])
            yield Change(kind, self.path, b.lineno, self.end(a), self.begin(b), new)

    def numbers(self, nodes: Iterable[ast.expr]) -> Iterator[Change]:
        """Yield a number one greater for each integer."""
        for node in nodes:
            if isinstance(node, ast.Constant) and type(node.value) is int:
                yield self.instead("constant", node, str(node.value + 1))

    def call(self, function: ast.expr, args: list[ast.expr]) -> Iterator[Change]:
        """Yield the other extreme, or the first two arguments the other way round."""
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if name in _EXTREME:
            stop = self.end(function)
            yield Change("extreme", self.path, function.lineno, stop - len(name), stop, _EXTREME[name])
        elif len(args) > 1 and not any(isinstance(x, ast.Starred) for x in args[:2]):
            a, b = args[:2]
            if self.code(a) != self.code(b) and name not in ("isinstance", "getattr", "cast", "declare"):
                yield self.instead("arguments", a, f"{self.code(b)}{self.between(a, b)}{self.code(a)}", b)

    def changes(self) -> Iterator[Change]:
        """Yield all changes that this module knows."""
        for node in inside(ast.parse(self.text)):
            match node:
                case ast.Compare(left=left, ops=ops, comparators=others):
                    for (a, b), op in zip(itertools.pairwise([left, *others]), ops, strict=True):
                        yield from self.operator("comparison", a, op, b)
                    yield from self.numbers((left, *others))
                case ast.BinOp(left=a, right=b, op=op) if not joins(a) and not joins(b):
                    yield from self.operator("arithmetic", a, op, b)
                    yield from self.numbers((a, b))
                case ast.UnaryOp(op=ast.Not(), operand=x):
                    yield self.instead("not", node, f"({self.code(x)})")
                case ast.Call(func=function, args=args):
                    yield from self.call(function, args)
                    yield from self.numbers(args)
                case (
                    ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break()
                    | ast.Assign(targets=[ast.Attribute() | ast.Subscript()])
                ):  # fmt: skip
                    yield self.instead("statement", node, "pass")


def inside(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes of functions' bodies, but for annotations, decorators and the text of errors."""
    bodies: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name not in ("__repr__", "__dir__"):
            bodies += node.body
    seen: set[int] = set()
    while bodies:
        node = bodies.pop(0)
        if id(node) in seen or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.JoinedStr)):
            continue
        seen.add(id(node))
        yield node
        for name, value in ast.iter_fields(node):
            if name != "annotation" and not (isinstance(node, ast.Raise) and name == "exc"):
                bodies += [x for x in (value if isinstance(value, list) else [value]) if isinstance(x, ast.AST)]


def joins(node: ast.AST) -> bool:
    """Return whether an expression is plainly text or a list, which `+` joins."""
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text or isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple))


def draw(count: int, seed: int) -> list[Change]:
    """Return as many changes of each kind, drawn from all of the core's."""
    rng = random.Random(seed)
    found: dict[str, list[Change]] = {kind: [] for kind in KINDS}
    for path in core():
        for change in Source(path).changes():
            found[change.kind].append(change)
    order = {kind: rng.sample(xs, min(count, len(xs))) for kind, xs in found.items()}
    return [order[KINDS[i % len(KINDS)]][i // len(KINDS)] for i in range(count)]


def module(path: Path) -> str:
    """Return the module's name of a file of the product."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "api" else parts
    return ".".join(["gangplan", *(parts[:-1] if parts[-1] == "__init__" else parts)])


@cache
def imported(path: Path) -> frozenset[str]:
    """Return what a file imports, and from where: modules, and names in them."""
    own = path.relative_to(ROOT).with_suffix("").parts
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {x.name for x in node.names}
        elif isinstance(node, ast.ImportFrom):
            stem = node.module or ""
            if node.level:
                base = own[: len(own) - node.level]
                base = base[1:] if base[:1] == ("api",) else base
                stem = ".".join([*(() if own[0] == "tests" else ("gangplan",)), *base, *([stem] if stem else [])])
            names |= {stem, *(f"{stem}.{x.name}" for x in node.names)}
    return frozenset(names)


def nearest(path: Path) -> list[Path]:
    """Return the test files that may reach a module, those nearest to it first."""
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    product = [x for folder in (*FOLDERS, "systems") for x in sorted((ROOT / folder).rglob("*.py"))]

    def folder(x: Path) -> Path:
        return ROOT / "tests" / Path(*x.parent.relative_to(ROOT).parts[x.relative_to(ROOT).parts[0] == "api" :])

    home = folder(path)
    order = [home / f"test_{path.stem.lstrip('_')}.py", *(x for x in tests if module(path) in imported(x))]
    order += [x for x in tests if x.parent == home]
    ring, seen = {path}, {path}
    for _ in range(3):
        ring = {x for x in product if x not in seen and any(module(y) in imported(x) for y in ring)}
        seen |= ring
        order += [folder(x) / f"test_{x.stem.lstrip('_')}.py" for x in sorted(ring)]
        order += [x for x in tests if any(module(y) in imported(x) for y in ring)]
    order += [x for x in tests if x.is_relative_to(home)]
    return [x for x in dict.fromkeys(order) if x in set(tests)]


def play(tests: list[Path], limit: int) -> tuple[str, float]:
    """Run tests to the first that fails, the nearest alone; return how it ended and the processor time in seconds."""
    call = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
    seconds, start = 0.0, 0
    while start < len(tests) and seconds < limit - 1:
        files = [str(x.relative_to(ROOT)) for x in tests[start : 4 * start + 1]]
        start += len(files)
        before, rest = resource.getrusage(resource.RUSAGE_CHILDREN), int(limit - seconds)
        done = subprocess.run(
            [*call, *files], cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, NAMED: "False"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (rest, rest + 5)),  # noqa: B023, it is called now
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if done.returncode not in (0, 5):  # 5: none of these tests is due
            words = (done.stdout + done.stderr).strip().splitlines()
            failed = [x for x in done.stdout.splitlines() if x.startswith(("FAILED", "ERROR"))]
            how = "killed" if done.returncode in (1, 2) else "out of time"
            return f"{how}: {(failed or words[-1:] or ['in silence'])[0]}", seconds
    return f"survived {start} of {len(tests)} files", seconds


def main() -> None:
    """Play the changes that the log does not have, and print each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=57)
    parser.add_argument("--limit", type=int, default=180, help="processor seconds of a change")
    parser.add_argument("--log", type=Path, default=ROOT / "build" / "mutations.jsonl")
    parser.add_argument("--list", action="store_true", help="print the changes alone")
    args = parser.parse_args()
    done = {json.loads(x)["number"] for x in args.log.read_text().splitlines()} if args.log.exists() else set()
    for number, change in enumerate(draw(args.count, args.seed)):
        path = ROOT / change.path
        source = path.read_bytes()
        old = source[change.start : change.end].decode()
        print(f"{number} {change.kind} {change.path}:{change.line}: {old!r} -> {change.new!r}", flush=True)
        if args.list or number in done:
            continue
        start = time.monotonic()
        try:
            path.write_bytes(change.apply(source))
            end, seconds = play(nearest(path), args.limit)
        finally:
            path.write_bytes(source)
        seconds, wall = round(seconds, 1), round(time.monotonic() - start, 1)
        row = {"number": number, "kind": change.kind, "path": change.path, "line": change.line, "old": old,
               "new": change.new, "end": end, "cpu": seconds, "wall": wall}  # fmt: skip
        with args.log.open("a") as log:
            print(json.dumps(row), file=log)
        print(f"   {end} ({seconds:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
