"""What is fuzzed: how an input of each target is drawn, and what reads it."""

# ruff: noqa: E501  # documents and commands as they are

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gangplan.instances import InstanceError

from . import mutate, seeds


class Target(NamedTuple):
    """Draw an input of bytes, and give it to what reads it, in an empty folder.

    `read` raises `InstanceError`, or nothing; `weight` is its part of all inputs.
    """

    draw: Callable[[random.Random], bytes]
    read: Callable[[bytes], Any]
    weight: int


def _lines(rows: list[Any], draw: random.Random) -> bytes:
    """Return lines of JSON of which one or a few are changed."""
    rows = list(rows)
    if draw.random() < 0.2:
        draw.shuffle(rows[1:])
    for _ in range(draw.choice((1, 1, 2, 3))):
        at = draw.randrange(len(rows))
        rows[at] = mutate.tree(rows[at], draw, rows)
    content = "".join(f"{json.dumps(row)}\n" for row in rows)
    return (mutate.text(content, draw, []) if draw.random() < 0.1 else content).encode(errors="replace")


def _text(content: bytes) -> str:
    from gangplan.instances.intake import decoded

    return decoded(content)


# problems, plans, certificates


def _draw_problem(draw: random.Random) -> bytes:
    kind = draw.random()
    if kind < 0.25:
        return mutate.text(draw.choice(seeds.TEXTS), draw, seeds.TEXTS).encode(errors="replace")
    if kind < 0.45:
        return mutate.document(draw.choice(seeds.FOREIGN), draw, seeds.FOREIGN)
    return mutate.document(draw.choice(seeds.problems()), draw, seeds.problems())


def _read_problem(content: bytes) -> None:
    from gangplan.instances import dump, load
    from gangplan.instances.readers import parse

    problem = parse(_text(content))
    assert repr(problem) and load(dump(problem)) is not None


def _draw_pair(draw: random.Random) -> bytes:
    problem, plan, _ = draw.choice(seeds.triples())
    if draw.random() < 0.2:
        problem = mutate.tree(problem, draw, seeds.problems())
    return json.dumps(
        {"problem": problem, "plan": mutate.tree(plan, draw, [p for _, p, _ in seeds.triples()])}
    ).encode()


def _draw_certificate(draw: random.Random) -> bytes:
    problem, plan, some = draw.choice([x for x in seeds.triples() if x[2]])
    others = [c for _, _, more in seeds.triples() for c in more]
    found = draw.choice(others) if draw.random() < 0.2 else mutate.tree(draw.choice(some), draw, others)
    return json.dumps({"problem": problem, "plan": plan, "certificate": found}).encode()


def _verify(content: bytes) -> None:
    from gangplan.doors.child import _verify as verify
    from gangplan.instances.intake import parse_json

    json.dumps(verify(parse_json(_text(content)), io.BytesIO()), allow_nan=False)


def _draw_solve(draw: random.Random) -> bytes:
    problem = mutate.tree(draw.choice(seeds.problems()), draw, seeds.problems())
    body = {
        "problem": problem,
        "time_limit": 0.05,
        "workers": 1,
        "seed": 1,
        "gap": 0.0,
        "method": "auto",
        "initial": None,
    }
    body |= {"objective": None, "certify": False}
    changed = mutate.tree(body, draw, []) if draw.random() < 0.5 else body
    if isinstance(changed, dict):
        if isinstance(limit := changed.get("time_limit"), int | float) and limit > 0.2:
            changed["time_limit"] = 0.05
        if isinstance(workers := changed.get("workers"), int | float) and workers > 2:  # the service has a limit
            changed["workers"] = 2
    return json.dumps(changed).encode()


def _solve(content: bytes) -> None:
    from gangplan.doors.child import _solve as solve
    from gangplan.instances.intake import parse_json

    json.dumps(solve(parse_json(_text(content)), io.BytesIO()), allow_nan=False)


# layouts


def _draw_model(draw: random.Random) -> bytes:
    return mutate.document(draw.choice(seeds.CONFIGS), draw, seeds.CONFIGS)


def _read_model(content: bytes) -> None:
    from gangplan.instances import verify
    from gangplan.instances.intake import parse_json
    from gangplan.instances.layout import LayoutPlan, LayoutProblem, gpu_pool
    from gangplan.instances.layout.flags import flags
    from gangplan.instances.readers.hugging_face import from_config

    model = from_config(parse_json(_text(content)))
    problem = LayoutProblem(model, (gpu_pool("H100", 1, 2),), 4, 64)
    plan = LayoutPlan([0, 0], [1, 1], [1, model.layers + 1], [0, 0], [0, 0])  # type: ignore[arg-type]
    if verify(problem, plan).ok:
        assert flags(problem, plan, "megatron").text and flags(problem, plan, "torchtitan").text


# tables of jobs, speeds, nodes


def _draw_trace(draw: random.Random) -> bytes:
    return mutate.table(draw.choice(seeds.TRACES), draw, seeds.TRACES).encode(errors="replace")


def _read_trace(content: bytes) -> None:
    from gangplan.instances.readers.starts import read_waits
    from gangplan.instances.readers.traces import as_csv, read_trace

    path = Path("trace.csv")
    path.write_bytes(content)
    try:
        found = read_trace(path, skip_bad=len(content) % 2 == 0, seconds={"bert": 60.0, "ncf": 5})
        path.write_text(as_csv(found.workload))
        again = read_trace(path).workload
        assert again.names == found.workload.names and (again.gpus == found.workload.gpus).all()
    finally:
        path.write_bytes(content)
        read_waits(path)


def _draw_table(draw: random.Random) -> bytes:
    kinds = [("measured", x) for x in seeds.MEASURED] + [
        ("gavel", seeds.GAVEL),
        ("nodes", seeds.NODES),
        ("pods", seeds.PODS),
        ("layouts", seeds.LAYOUTS),
    ]
    kind, content = draw.choice(kinds)
    if content.startswith("{"):
        changed = mutate.document(json.loads(content), draw, []).decode(errors="replace")
    else:
        changed = mutate.table(content, draw, seeds.MEASURED)
    return f"{kind}\n{changed}".encode(errors="replace")


def _read_table(content: bytes) -> None:
    from gangplan.instances.readers import gavel, layouts, measured, openb

    kind, _, rest = content.partition(b"\n")
    path = Path("table.json" if rest.startswith(b"{") else "table-placements.csv")
    path.write_bytes(rest)
    reads = {"measured": measured.read_measured, "gavel": gavel.read_gavel_trace, "nodes": openb.read_nodes,
             "pods": openb.read_pods, "layouts": layouts.read_measured_layouts}  # fmt: skip
    reads[kind.decode()](path)


# logs, events, snapshots


def _draw_log(draw: random.Random) -> bytes:
    rows = draw.choice(seeds.logs())
    return _lines(rows, draw) if draw.random() < 0.9 else mutate.raw(_lines(rows, draw), draw)


def _read_log(content: bytes) -> None:
    from gangplan.scheduler import Scheduler
    from gangplan.scheduler.journal.history import history_of
    from gangplan.scheduler.journal.read import read_log

    head, newline, rest = content.partition(b"\n")
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):  # the hash of what was changed
        from gangplan.scheduler.journal.write import content_hash

        data = json.loads(head)
        data["hash"] = content_hash(json.dumps(data["arguments"]["cluster"], separators=(",", ":")))
        content = json.dumps(data, separators=(",", ":")).encode() + newline + rest
    path = Path("log.jsonl")
    path.write_bytes(content)
    before = set(sys.modules)
    try:
        scheduler = Scheduler.open(path)
        scheduler.snapshot()
        scheduler.decide(0.05)
    finally:
        strange = {x for x in set(sys.modules) - before if x.startswith("gangplan.") and ".online" not in x}
        assert not strange & {"gangplan.learned", "gangplan.cli", "gangplan.systems"}, strange
        path.write_bytes(content)
        history_of(read_log(path))


def _draw_events(draw: random.Random) -> bytes:
    return _lines(seeds.EVENTS, draw)


def _answer(content: bytes) -> None:
    from gangplan.doors.core import Core, Most, answer_lines
    from gangplan.scheduler import Scheduler
    from gangplan.scheduler.described import scheduler_of

    how, log = seeds.ARGUMENTS[len(content) % len(seeds.ARGUMENTS)], Path("events.jsonl")
    log.unlink(missing_ok=True)
    core, out = Core(scheduler_of(how, log), log, Most(seconds=1.0)), io.BytesIO()
    answer_lines(core, io.BytesIO(content), out.write)
    answers = [json.loads(line) for line in out.getvalue().splitlines()]
    wrong = [
        x
        for x in answers
        if ("error" in x) == ("answer" in x) or "cannot be done" in x.get("error", {"problem": ""})["problem"]
    ]
    assert not wrong, wrong[0]
    copy = Path("copy.jsonl")
    copy.write_bytes(log.read_bytes())
    assert Scheduler.open(copy).snapshot() == core.scheduler.snapshot()
    if any("error" in x for x in answers):
        raise InstanceError("event", "was refused")


def _draw_snapshot(draw: random.Random) -> bytes:
    return json.dumps(mutate.tree(draw.choice(seeds.snapshots()), draw, seeds.snapshots())).encode()


def _restore(content: bytes) -> None:
    from gangplan.doors.limits import Limits
    from gangplan.doors.sessions import stateless
    from gangplan.instances.intake import parse_json

    events = [
        {"event": "decide"},
        {"event": "state"},
        {"event": "submit", "job": "~probe~", "gpus": 2},
        {"event": "decide"},
    ]
    found = stateless({"cluster": "2x8", "snapshot": parse_json(_text(content)), "events": events}, Limits())
    wrong = [x for x in found["answers"] if "error" in x]
    assert not wrong, wrong


def _draw_observed(draw: random.Random) -> bytes:
    return _lines(seeds.OBSERVED, draw)


def _observe(content: bytes) -> None:
    from gangplan.instances.placement import Fleet
    from gangplan.scheduler import Scheduler
    from gangplan.scheduler.journal.observed import parsed_events, past_of
    from gangplan.scheduler.journal.play import play

    past, _ = past_of(parsed_events(content), Fleet.regular(1, 2, 8))
    play(past, Scheduler(Fleet.regular(1, 2, 8)))


# HTTP


def _draw_request(draw: random.Random) -> bytes:
    one = mutate.tree(draw.choice(seeds.EVENTS), draw, seeds.EVENTS)
    some = [mutate.tree(x, draw, seeds.EVENTS) if draw.random() < 0.5 else x for x in draw.sample(seeds.EVENTS, 4)]
    given = draw.choice(seeds.ARGUMENTS)
    made = mutate.tree(given, draw, seeds.ARGUMENTS)
    stateless = mutate.tree({**given, "events": some, "snapshot": None}, draw, seeds.snapshots())
    solve = {"problem": 1, "time_limit": draw.choice(mutate.JUNK), "wait": draw.choice(mutate.JUNK)}
    body = draw.choice([one, some, made, stateless, solve if not isinstance(solve["wait"], int | float) else one])
    path = draw.choice(["/v1/decide", "/v1/sessions/b/events", "/v1/sessions/a", "/v1/sessions/a/events", "/v1/sessions/a/log",
                        "/v1/sessions", "/v1/solve", "/v1/solves/x", "/v1/solves/x/progress", "/health", "/metrics",
                        "/v1/openapi.json"])  # fmt: skip
    if draw.random() < 0.15:
        path = mutate.text(path, draw, []).encode("ascii", "ignore").decode().replace("\n", "").replace("\r", "") or "/"
    method = draw.choice(["POST", "POST", "POST", "PUT", "GET", "DELETE", "PATCH", "HEAD", "OPTIONS"])
    heads = [
        ("content-type", "application/json"),
        ("last-event-id", "9"),
        ("host", "localhost"),
        ("authorization", "Bearer x"),
    ]
    head = [draw.choice(heads), heads[0]] + (
        [(mutate.text("content-type", draw, []), "x")] if draw.random() < 0.1 else []
    )
    return json.dumps(
        [method, path, head, body if draw.random() < 0.9 else mutate.text(json.dumps(body), draw, [])]
    ).encode()


@cache
def _http() -> Any:
    import tempfile
    from dataclasses import replace

    from starlette.testclient import TestClient

    from gangplan.doors.app import build
    from gangplan.doors.limits import Limits
    from gangplan.doors.store import Store

    app, _ = build(Store(Path(tempfile.mkdtemp(dir=".."))), replace(Limits(), deadline=1.0, events=50))
    client = TestClient(app, base_url="http://localhost")
    client.__enter__()
    client.put("/v1/sessions/b", json={"cluster": "2x8"})
    return client


def _ask(content: bytes) -> None:
    method, path, head, body = json.loads(content)
    text = body if isinstance(body, str) else json.dumps(body)
    try:
        found = _http().request(
            method,
            path,
            content=text.encode(errors="replace"),
            headers=[(k.encode("ascii", "ignore"), v) for k, v in head],
        )
    except Exception as error:
        if type(error).__module__.startswith("httpx"):  # no client sends such a thing
            raise InstanceError("request", str(error)) from None
        raise
    assert found.status_code < 500, found.text
    if found.status_code >= 400:
        if method != "HEAD":
            assert found.json().keys() == {"error"} or "event" in found.json(), found.text
        raise InstanceError("status", str(found.status_code))


# configurations, clusters, weights, commands


def _draw_config(draw: random.Random) -> bytes:
    some = sorted((Path(__file__).parents[2] / "learned" / "configs").glob("*.toml"))
    return mutate.table(draw.choice(some).read_text(), draw, []).encode(errors="replace")


def _read_config(content: bytes) -> None:

    from pkgutil import resolve_name

    from gangplan.instances.typed import SETTINGS
    from gangplan.learned.policy.settings import read_config
    from gangplan.learned.training.recipe import RECIPES

    Path("config.toml").write_bytes(content)
    policy, table = read_config("config.toml")
    if policy in RECIPES:
        SETTINGS.read(resolve_name(RECIPES[policy]).config, table)


COMMANDS = [
    "layout config.json --cluster 1x2 --gpu H100 --batch 4 --sequence 64 --seconds 0.3 --flags megatron",
    "layout config.json --pool 1x2:A100 --batch 4 --sequence 64 --seconds 0.3 --explain TP=2,PP=1 --json",
    "generate {kind} --ops 5 --layers 2 --devices 2 --seed 1 --out out.json", "generate gangs --jobs 3 --racks 1 --nodes 2",
    "generate jobs --jobs 5 --seed 1 --out out.csv", "generate gpt --layers 1 --devices 2", "generate --list --json",
    "show problem.json --json", "show plan.json", "solve problem.json --time-limit 0.1 --method auto --seed 1 --gap 0.1 --json",
    "solve problem.json --time-limit 0.1 --initial plan.json --out out.json --variant free --devices 2 --memory 1e9",
    "verify problem.json plan.json --json", "verify problem.json plan.json --bound bound.json",
    "compare plan.json plan.json --problem problem.json", "simulate trace.csv --cluster 2x8 --policy fifo --discipline easy --json",
    "simulate trace.csv --cluster 2x8 --policy srtf,tiresias --skip-bad --seeds 2 --like", "log log.jsonl --json --check",
    "simulate trace.csv --cluster 2x8,3x8 --price 60 --by user,queue,size --priorities --estimates limits", "log log.jsonl --job a",
    "whatif log.jsonl --set price=600 --json", "shadow observed.jsonl --cluster 2x8 --set price=60 --known --json",
    "shadow trace.csv --cluster 2x8", "shadow observed.jsonl --cluster fleet.json", "replay nodes.csv pods.csv --policy fgd --seeds 1 --json",
    "fit table.csv --json", "decide --cluster 2x8 --set price=60", "methods --json", "schema partition", "versions",
    "bench list --suite toy --objective step", "bench submit plan.json --instance step-random-toy-00 --by me --folder bench",
    "bench submit --bound bound.json --instance step-random-toy-00 --folder bench", "learn list --json",
    "learn train config.toml --out learned --minutes 0", "learn train nothing --out learned", "bench report --folder bench",
    "system topdrl --policy nothing --jobs 3", "system harmony --policy x", "split nothing.py:x problem.json plan.json",
    "serve --host 1.2.3.4 --port 1", "serve --token-file trace.csv --host 0.0.0.0.0", "profile nothing:x", "--version", "",
]  # fmt: skip
"""Commands whose words and files are changed."""


def _draw_command(draw: random.Random) -> bytes:
    words = (
        draw.choice(COMMANDS).format(kind=draw.choice(("layered", "fork_join", "series_parallel", "pipeline"))).split()
    )
    problem, plan, some = draw.choice([x for x in seeds.triples() if x[2]])
    files = {
        "problem.json": json.dumps(problem), "plan.json": json.dumps(plan), "bound.json": json.dumps(draw.choice(some)),
        "trace.csv": draw.choice(seeds.TRACES), "table.csv": draw.choice(seeds.MEASURED), "nodes.csv": seeds.NODES,
        "config.json": json.dumps(draw.choice(seeds.CONFIGS)), "pods.csv": seeds.PODS, "log.jsonl": "".join(f"{json.dumps(x, separators=(',', ':'))}\n" for x in draw.choice(seeds.logs())),
        "observed.jsonl": "".join(f"{json.dumps(x)}\n" for x in seeds.OBSERVED), "fleet.json": '{"racks": 1, "nodes": 2}',
        "config.toml": 'policy = "gnn"\nupdates = 0\n', "-": "".join(f"{json.dumps(x)}\n" for x in seeds.EVENTS[:6]),
    }  # fmt: skip
    named = [x for x in files if x in words] or ["-"]
    if draw.random() < 0.6:
        name = draw.choice(named)
        try:
            files[name] = mutate.document(json.loads(files[name]), draw, []).decode(errors="replace")
        except ValueError:
            files[name] = mutate.table(files[name], draw, [])
    if draw.random() < 0.6 and words:
        at = draw.randrange(1, len(words) + 1)
        if at < len(words) and words[at - 1] != "--out":
            old = words[at]
            changed = [
                mutate.text(old, draw, []),
                draw.choice(mutate.CELLS),
                draw.choice(["-1", "0", "1e9", "nan", "99999999999", "--", "--help"]),
            ]
            words[at] = draw.choice(changed)
        else:
            words.insert(at, draw.choice(["--seed", "--json", "-h", "--nothing", "x", "--plot", "--html", ""]))
    words = [x.replace("\0", "") for x in words]
    limited = [x for i, x in enumerate(words) if i and words[i - 1] == "--time-limit"]
    if any(x not in ("0.1", "-1", "0", "nan", "") for x in limited):  # what is asked for is no hang
        words[words.index("--time-limit") + 1] = "0.1"
    return json.dumps([words, {name: files[name] for name in named}]).encode()


def _command(content: bytes) -> None:
    from gangplan.cli import main

    words, files = json.loads(content)
    for name, text in files.items():
        Path(name).write_bytes(text.encode(errors="replace"))
    given, out, errors = (
        io.TextIOWrapper(io.BytesIO(files.get("-", "").encode(errors="replace"))),
        io.TextIOWrapper(io.BytesIO()),
        io.StringIO(),
    )
    before = sys.stdin
    sys.stdin = given
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            try:
                code = main(words)
            except SystemExit as end:
                code = end.code
    finally:
        sys.stdin = before
    said = errors.getvalue()
    assert code in (0, 1, 2) and "Traceback" not in said, (code, said[-500:])
    if code == 2:
        out.flush()
        assert not words or (said.startswith("error: ") and said.count("\n") == 1), said[-500:]
        raise InstanceError("command", said.strip()[:200])


TARGETS = {
    "problems": Target(_draw_problem, _read_problem, 24),
    "models": Target(_draw_model, _read_model, 24),
    "plans": Target(_draw_pair, _verify, 12),
    "certificates": Target(_draw_certificate, _verify, 12),
    "traces": Target(_draw_trace, _read_trace, 24),
    "tables": Target(_draw_table, _read_table, 10),
    "logs": Target(_draw_log, _read_log, 4),
    "observed": Target(_draw_observed, _observe, 3),
    "decide lines": Target(_draw_events, _answer, 3),
    "snapshots": Target(_draw_snapshot, _restore, 3),
    "requests": Target(_draw_request, _ask, 8),
    "configurations": Target(_draw_config, _read_config, 8),
    "commands": Target(_draw_command, _command, 2),
    "solves": Target(_draw_solve, _solve, 1),
}


def run(name: str, content: bytes) -> str:
    """Return how an input ended: ``taken`` or ``refused``; another error is a fault."""
    try:
        TARGETS[name].read(content)
    except InstanceError:
        return "refused"
    return "taken"


def drawn(name: str, seed: int, number: int) -> bytes:
    """Return an input, the same for the same numbers."""
    return TARGETS[name].draw(random.Random(f"{name} {seed} {number}"))


os.environ.setdefault("COLUMNS", "80")
