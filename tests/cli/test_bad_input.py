"""Bad input: exit code 2, one line on stderr that names file, field and value, nothing on stdout."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Edit = Callable[[dict[str, Any]], None]


def set_at(*path: Any) -> Edit:
    """Return an edit that puts the last of `path` where the others lead."""
    *where, last, value = path

    def edit(data: dict[str, Any]) -> None:
        for key in where:
            data = data[key]
        data[last] = value

    return edit


def cycle(data: dict[str, Any]) -> None:
    """Add the first edge the other way round."""
    graph = data["graph"]
    graph["source"].append(graph["target"][0])
    graph["target"].append(graph["source"][0])
    graph["edge_bytes"].append(1.0)


RAW: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "blank": (b" \n\t\n", "empty"),
    "binary": (b"\x89PNG\r\n\x1a\n\x00\xff", "0x89"),
    "null byte": (b'{"a": \x00}', ""),
    "words": (b"once upon a time", "once upon a time"),
    "a list": (b"[1, 2]", ""),
    "a number": (b"17", "17"),
    "no known fields": (b'{"once": 1}', "once"),
    "nan": (b'{"schema_version": NaN}', "NaN"),
    "deep": (b"[" * 100_000, ""),
    "repeated key": (b'{"kind": 1, "kind": 2}', "kind"),
}
EDITS: dict[str, tuple[Edit, str]] = {
    "negative time": (set_at("graph", "time", 0, 3, -1.0), "graph.time[0][3]: -1.0"),
    "text for a number": (set_at("graph", "memory", 2, "lots"), "graph.memory[2]: 'lots'"),
    "wrong type": (set_at("graph", "names", 5), "graph.names: 5"),
    "duplicate id": (set_at("graph", "names", 1, "op0"), "graph.names[1]: 'op0'"),
    "dangling edge": (set_at("graph", "target", 0, 99), "graph.target[0]: 99"),
    "cycle": (cycle, "graph.edges: there is a cycle"),
    "unknown field": (set_at("colour", "red"), "colour: "),
    "other version": (set_at("schema_version", 7), "schema_version: 7"),
    "unknown kind": (set_at("kind", "soup"), "kind: 'soup'"),
    "unknown variant": (set_at("variant", "bent"), "variant: 'bent'"),
    "no devices": (set_at("cluster", "type_of", []), "cluster.type_of: "),
    "altered": (set_at("graph", "memory", 0, 1.5), "content_hash: "),
}


def refused(outcome: Any, *words: str) -> None:
    """Check that the input was refused, with one line that has all `words`."""
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("error: ") and outcome.err.endswith("\n") and outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err


def calls(bad: Path, good_plan: Path) -> list[list[str | Path]]:
    """Return one call of each command that reads a problem."""
    return [["solve", bad, "--json"], ["solve", bad], ["show", bad], ["verify", bad, good_plan]]


@pytest.mark.parametrize("name", RAW)
def test_raw_content(name: str, tmp_path: Path, plan: Path, cli: Any) -> None:
    """A file that is no document at all is refused by every command, as problem and as plan."""
    content, word = RAW[name]
    bad = tmp_path / "bad.json"
    bad.write_bytes(content)
    for call in calls(bad, plan):
        refused(cli(*call), str(bad), word)
    refused(cli("verify", tmp_path / "problem.json", bad), str(bad))


@pytest.mark.parametrize("name", EDITS)
def test_problem(name: str, tmp_path: Path, problem: Path, plan: Path, cli: Any) -> None:
    """A problem with one wrong field is refused by every command, which names the field and the value."""
    edit, word = EDITS[name]
    data = json.loads(problem.read_text())
    if name != "altered":
        del data["content_hash"]
    edit(data)
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(data))
    for call in calls(bad, plan):
        refused(cli(*call), f"{bad}: {word}")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_truncated(share: float, tmp_path: Path, problem: Path, plan: Path, cli: Any) -> None:
    """A document that was cut off is refused, as problem and as plan."""
    for good in (problem, plan):
        text = good.read_text().strip()
        bad = tmp_path / "bad.json"
        bad.write_text(text[: int(len(text) * share)])
        refused(cli("show", bad), str(bad), "JSON")
        refused(cli("verify", bad, plan) if good is problem else cli("verify", problem, bad), str(bad), "JSON")


PLAN_EDITS: dict[str, tuple[Edit, str]] = {
    "negative device": (set_at("device", 0, -1), "device[0]: -1"),
    "fractional device": (set_at("device", 0, 0.5), "device[0]: 0.5"),
    "text for a stage": (set_at("stage", 1, "x"), "stage[1]: 'x'"),
    "too short": (set_at("stage", [0]), "stage: "),
    "names": (set_at("ops", 7), "ops: 7"),
    "a problem": (set_at("kind", "partition"), ""),
}


@pytest.mark.parametrize("name", PLAN_EDITS)
def test_plan(name: str, tmp_path: Path, problem: Path, plan: Path, cli: Any) -> None:
    """A malformed plan is refused wherever a plan is read."""
    edit, word = PLAN_EDITS[name]
    data = json.loads(plan.read_text())
    del data["content_hash"]
    edit(data)
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(data))
    for call in (["verify", problem, bad], ["show", bad], ["solve", problem, "--initial", bad, "--json"]):
        refused(cli(*call), f"{bad}: {word}")


def test_places(tmp_path: Path, problem: Path, plan: Path, cli: Any) -> None:
    """A missing file and a folder are refused, with the name as it was given."""
    for bad, word in ((tmp_path / "nowhere.json", "no such file"), (tmp_path, "is a directory")):
        for call in [*calls(bad, plan), ["verify", problem, bad]]:
            refused(cli(*call), f"{bad}: file: {word}")


OPTIONS = {
    "--devices abc": "--devices: 'abc'",
    "--devices -1": "devices: -1",
    "--devices 1.5": "--devices: '1.5'",
    "--devices 99999999999": "devices: 99999999999",
    "--memory nan": "memory: nan",
    "--memory 3GB": "--memory: '3GB'",
    "--bandwidth 0": "bandwidth: 0",
    "--variant bent": "variant: 'bent'",
    "--device-type A100": "device_type: 'A100' does not apply",
    "--time-limit 0": "time_limit: 0",
    "--time-limit nan": "time_limit: nan",
    "--time-limit inf": "time_limit: inf",
    "--method magic": "method: 'magic'",
    "--method pipeline --variant free": "method: 'pipeline'",
    "--objective beauty": "objective: 'beauty'",
    "--seed -1": "seed: -1",
    "--workers 0": "workers: 0",
    "--gap 1": "gap: 1",
    "--gap -0.1": "gap: -0.1",
    "--plot plan.gif": "plan.gif: plot: '.gif'",
    "--out nowhere/plan.json": "nowhere/plan.json: file: the folder 'nowhere' does not exist",
    "--plot nowhere/plan.png": "nowhere/plan.png: file: ",
    "--out .": ".: file: is a directory",
    "--colour": "--colour",
}


@pytest.mark.parametrize("given", OPTIONS)
def test_options_of_solve(given: str, problem: Path, cli: Any) -> None:
    """A bad option is refused before anything is solved, with the value found."""
    refused(cli("solve", problem, *given.split()), OPTIONS[given])
    refused(cli("solve", problem, "--json", *given.split()), OPTIONS[given])


def test_outputs_do_not_overwrite_inputs(problem: Path, plan: Path, cli: Any) -> None:
    """The plan is not written over the problem, over the first plan, or over its own picture."""
    before = problem.read_bytes(), plan.read_bytes()
    refused(cli("solve", problem, "--out", problem), "overwritten")
    refused(cli("solve", problem, "--initial", plan, "--out", plan), "overwritten")
    picture = str(problem.with_name("x.png"))
    refused(cli("solve", problem, "--out", picture, "--plot", picture), picture)
    assert (problem.read_bytes(), plan.read_bytes()) == before


def test_infeasible_initial_plan(tmp_path: Path, problem: Path, plan: Path, cli: Any) -> None:
    """A first plan that breaks a constraint is refused, and the constraint is named."""
    data = json.loads(plan.read_text())
    del data["content_hash"]
    data["stage"] = [s + 5 * (i == 0) for i, s in enumerate(data["stage"])]
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(data))
    refused(cli("solve", problem, "--initial", bad), f"{bad}: initial: is not feasible", "stages")


@pytest.mark.parametrize(
    ("call", "word"),
    [
        ("frobnicate", "frobnicate"),
        ("solve", "FILE"),
        ("verify a.json", "PLAN"),
        ("schema soup", "kind: 'soup'"),
        ("generate soup", "soup"),
        ("generate gpt --layers 0", "layers: 0"),
        ("generate gpt --layers two", "--layers: 'two'"),
        ("generate gpt --device-type Abacus", "device_type: 'Abacus'"),
        ("generate gpt --efficiency 2", "efficiency: 2"),
        ("generate resnet --depth 51", "depth: 51"),
        ("generate layered --seed -1", "seed: -1"),
        ("generate gpt --out nowhere/x.json", "nowhere/x.json: file: "),
    ],
)
def test_other_commands(call: str, word: str, cli: Any) -> None:
    """Unknown commands, missing arguments and bad options of the other commands are refused alike."""
    refused(cli(*call.split()), word)
