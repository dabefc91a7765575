"""One word for one thing: what the glossary names is there, and words that it rules out are not used."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import typer

import gangplan
from gangplan.cli.app import app
from gangplan.instances import OpGraph
from gangplan.instances.kinds import PROBLEMS
from gangplan.instances.partition import VARIANTS
from gangplan.instances.placement.problem import GOALS
from gangplan.instances.schedule import GOALS as SCHEDULE_GOALS
from gangplan.instances.verify import Verdict
from gangplan.simulator.engine.policy import DISCIPLINES
from gangplan.solvers.result import Result, relative_gap

from .test_layout import ORDER

ROOT = Path(__file__).parent.parent
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
VALUES = {"method=", 'method="auto"', *PROBLEMS, *VARIANTS, *GOALS, *SCHEDULE_GOALS, *DISCIPLINES}
"""What the glossary names that is a word of an option and no code."""
HOMES: dict[str, Any] = {"gangplan": gangplan, "result": Result, "verdict": Verdict, "OpGraph": OpGraph}
"""What the first part of a dotted name stands for."""

SAYS = {
    "instance": r"instances? of \[?GapBench",
    "server": r"block of servers|parameter[- ]servers?|servers? of (a )?RAMP|RAMP(?:'s)? servers?",
}
"""Phrases in which a word that is ruled out keeps its name."""
KEEPS = {
    "server": {
        "glossary.md": "says what is ruled out",
        "pacml*.md": "a RAMP cluster's",
        "interference.md": "Harmony's and MARL's, by their papers",
        "marl.md": "MARL's, by its paper",
        "harmony.md": "Harmony's, by its paper",
        "hybrid.md": "the process that forks others",
        "decisions/workers.md": "the process that forks others",
    },
    "instance": {
        "glossary.md": "says what is ruled out",
        "gapbench*.md": "GapBench's",
        "decisions/gapbench.md": "GapBench's",
    },
    "scenario": {"glossary.md": "says what is ruled out"},
}
"""Pages on which a word that is ruled out keeps its name, with the reason."""
KEEPS_HELP = {
    "server": {"pacml": "a RAMP cluster's", "moldable": "a RAMP cluster's"},
    "instance": {"bench": "GapBench's"},
}
"""Commands in whose help it does."""


def rows(title: str) -> list[list[str]]:
    """Return the cells of the table under a heading, without its head."""
    part = GLOSSARY.split(f"# {title}\n", 1)[1].split("\n## ", 1)[0]
    cells = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in cells[2:]]


def prose(text: str) -> str:
    """Return a page without code, comments, addresses of links and what is generated."""
    for pattern in (
        r"<!-- generated.*?<!-- end.*?-->",
        r"<!--.*?-->",
        r"^```.*?^```",
        r"^:::.*?$",
        r"`[^`\n]*`",
        r"\]\([^)]*\)",
    ):
        text = re.sub(pattern, " ", text, flags=re.DOTALL | re.MULTILINE)
    return text


def uses(text: str, word: str) -> list[str]:
    """Return where a word stands, or its plural, outside of the phrases that keep it."""
    text = re.sub(SAYS.get(word, r"(?!)"), " ", " ".join(text.split()), flags=re.IGNORECASE)
    return [text[max(m.start() - 40, 0) : m.end() + 20] for m in re.finditer(rf"\b{word}s?\b", text, re.IGNORECASE)]


def commands(command: Any, context: Any = None, name: str = "gangplan") -> Iterator[tuple[str, str]]:
    """Yield the names of all commands, joined by blanks, and the help of each."""
    own = command.context_settings  # without it the command would remember that its help has one name only
    here = typer.Context(command, parent=context, info_name=name.rpartition(" ")[2], **own)
    yield name, command.get_help(here)
    for part in command.list_commands(here) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(here, part), here, f"{name} {part}")


def there(name: str) -> bool:
    """Return whether what a page calls `name` exists: a file, a word of an option, or something of the package."""
    if name in VALUES:
        return True
    if "/" in name:
        return (ROOT / name).exists()
    first, *parts = name.split(".")
    value = HOMES.get(first, getattr(gangplan, first, None))
    for part in parts:
        if part in getattr(value, "__dataclass_fields__", {}):
            return True
        value = getattr(value, part, None)
    return value is not None


def test_what_it_names_is_there() -> None:
    """Every name of code in the glossary exists, and every term stands there once."""
    named = [name for row in rows("Glossary") for cell in row for name in re.findall(r"`([^`]+)`", cell)]
    assert len(named) > 30
    assert [name for name in named if not there(name)] == []
    assert not there("gangplan.Nowhere") and not there("solvers/nowhere.py") and not there("result.nowhere")
    terms = [term.strip() for row in rows("Glossary") for term in row[0].split(",")]
    assert len(set(terms)) == len(terms)


def test_the_gap_is_that_of_the_code() -> None:
    """The glossary's formula of the gap is that of `Result`."""
    (meaning,) = (row[1] for row in rows("Glossary") if row[0] == "gap")
    formula = "(objective - bound) / (objective - zero)"
    assert meaning.startswith(formula) and formula in str(relative_gap.__doc__)
    assert relative_gap(12.0, 10.0, 4.0) == pytest.approx((12 - 10) / (12 - 4))


def test_words_that_are_ruled_out() -> None:
    """No page and no help uses a word that the glossary rules out, but for what it excepts."""
    words = [row[0] for row in rows("Words that are not used")]
    assert words == list(KEEPS)
    helps = list(commands(app))
    assert len(helps) > 25
    for word in words:
        found = []
        for page in PAGES:
            name = page.relative_to(ROOT).as_posix().removeprefix("docs/")
            if not any(fnmatch(name, pattern) for pattern in KEEPS[word]):
                found += [f"{name}: {x}" for x in uses(prose(page.read_text()), word)]
        for name, text in helps:
            if not any(part in KEEPS_HELP.get(word, ()) for part in name.split()):
                found += [f"{name}: {x}" for x in uses(text, word)]
        assert found == [], f"{word!r} is ruled out, see docs/glossary.md:\n" + "\n".join(found)


def test_every_exception_is_used() -> None:
    """A page or a command that may use a word does."""
    helps = list(commands(app))
    idle = []
    for word, pages in KEEPS.items():
        for pattern in pages:
            texts = [
                p.read_text() for p in PAGES if fnmatch(p.relative_to(ROOT).as_posix().removeprefix("docs/"), pattern)
            ]
            idle += [] if any(uses(prose(text), word) for text in texts) else [f"{word}: {pattern}"]
    for word, names in KEEPS_HELP.items():
        for part in names:
            texts = [text for name, text in helps if part in name.split()]
            idle += [] if any(uses(text, word) for text in texts) else [f"{word}: {part}"]
    assert idle == []


def classes(sources: dict[str, str]) -> dict[str, list[str]]:
    """Return the paths of each class at the top of a module, by its name without the underscore of a private one."""
    found = defaultdict[str, list[str]](list)
    for path, source in sources.items():
        for part in ast.parse(source).body:
            if isinstance(part, ast.ClassDef):
                found[part.name.lstrip("_")].append(path)
    return found


def test_no_class_name_means_two_things() -> None:
    """No two classes of the product have one name."""
    found = classes(
        {str(x.relative_to(ROOT)): x.read_text() for folder in ORDER for x in (ROOT / folder).rglob("*.py")}
    )
    assert len(found) > 500
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}
    twice = classes({"a.py": "class Step: ...", "b.py": "class _Step: ...\nclass Other: ..."})
    assert twice == {"Step": ["a.py", "b.py"], "Other": ["b.py"]}


def test_the_check_itself() -> None:
    """A word is found in prose, not in code, a comment or a phrase that keeps it; a plural is the same word."""
    assert uses(prose("two servers\n"), "server") and uses("a server, a parameter server", "server")
    assert not uses(prose("`server` parameter\nservers ```\n[x](server.md) <!-- server -->"), "server")
    assert not uses(prose("```sh\nserver\n```\nThe servers of RAMP"), "server")
