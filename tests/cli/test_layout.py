"""`gangplan layout`: from a config.json to a layout, flags, pictures and documents; bad input is named."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gangplan
from gangplan.solvers.layout import explain
from gangplan.solvers.layout.explain import best_flags

SMALL = {"model_type": "llama", "num_hidden_layers": 6, "hidden_size": 1024, "num_attention_heads": 8}
SMALL |= {"num_key_value_heads": 8, "vocab_size": 32000, "intermediate_size": 4096}
HOW = ("--cluster", "2x2", "--gpu", "H100", "--batch", "8", "--sequence", "1024", "--seconds", "20")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return the file of a small model."""
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SMALL))
    return path


def test_what_is_told(config: Path, cli: Any) -> None:
    """Layout, seconds, bound, a table by stage and what others lose by, within 80 columns."""
    done = cli("layout", config, *HOW)
    assert done.code == 0, done.err
    for words in ("OPTIMAL", "tokens/s a GPU, MFU ", "gap 0%", "activations", "it loses by", "TP 2", "CP 2"):
        assert words in done.out, words
    assert max(map(len, done.out.splitlines())) <= 80


def test_as_json(config: Path, cli: Any) -> None:
    """Machines get the plan, parts by stage, and each layout with other degrees."""
    found = json.loads(cli("layout", config, *HOW, "--flags", "megatron", "--json").out)
    assert found["status"] == "OPTIMAL" and found["mfu"] > 0 and found["plan"]["kind"] == "layout_plan"
    stages = len(found["plan"]["pool"])
    assert len(found["memory"]["activations"]) == len(found["seconds"]["bubble"]) == stages
    assert all(row["objective"] >= found["objective"] and row["why"] for row in found["instead"])
    assert "--tensor-model-parallel-size" in found["flags"]["text"] and found["flags"]["objective"] > 0


def test_documents(config: Path, tmp_path: Path, cli: Any) -> None:
    """Plan and problem are written, verified, shown, solved and plotted like those of any objective."""
    plan, problem, image = tmp_path / "plan.json", tmp_path / "problem.json", tmp_path / "l.svg"
    more = ("--out", plan, "--problem", problem, "--draw", image, "--frontier", tmp_path / "f.svg")
    assert cli("layout", config, *HOW, *more).code == 0
    assert "<svg" in image.read_text() and "<svg" in (tmp_path / "f.svg").read_text()
    checked = cli("verify", problem, plan)
    assert checked.code == 0 and "feasible: objective" in checked.out and "optimizer" in checked.out
    assert json.loads(cli("verify", problem, plan, "--json").out)["memory"]["weights"]
    assert " H100" in cli("solve", problem, "--time-limit", "20").out
    for file, words in ((plan, "micro-batch"), (problem, "8 x 1024 tokens")):
        shown = cli("show", file)
        assert shown.code == 0 and words in shown.out
    assert cli("plot", problem, plan, tmp_path / "m.svg", "--panel", "memory").code == 0


def test_explain(config: Path, cli: Any) -> None:
    """One layout is priced, degrees in capitals or not, with what it loses by."""
    done = cli("layout", config, *HOW, "--explain", "tp=4, pp=1")
    assert done.code == 0 and "TP 4 across nodes costs" in done.out


def test_idle_gpus_count(config: Path, cli: Any) -> None:
    """Tokens a second are told for a GPU in use, and for a GPU of all where some are idle."""
    done = cli("layout", config, "--cluster", "1x3", "--gpu", "h100", "--batch", "8", "--sequence", "1024")
    assert done.code == 0 and "2 of 3 GPUs" in done.out
    used, every = re.findall(r"([0-9,]+) tokens/s a GPU in use, ([0-9,]+) a GPU of all", done.out)[0]
    assert int(every.replace(",", "")) == pytest.approx(int(used.replace(",", "")) * 2 / 3, abs=1)


@pytest.mark.parametrize("framework", ["megatron", "torchtitan"])
def test_flags_within_what_runs(config: Path, cli: Any, framework: str) -> None:
    """Flags are of the best layout that the framework runs, which is said with its gap to the best of all."""
    done = cli("layout", config, *HOW, "--flags", framework, "--gpu-memory", "5e9")
    assert done.code == 0 and f"Within what {framework} runs no such layout takes less" in done.out
    assert "# of degrees alone" in done.out and max(map(len, done.out.splitlines())) <= 80
    found = json.loads(cli("layout", config, *HOW, "--flags", framework, "--gpu-memory", "5e9", "--json").out)
    assert found["flags"]["proved"] and found["flags"]["objective"] >= found["objective"]


def test_flags_may_be_faster(config: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A layout that the search missed and the flags have is the layout; without a bound nothing is said of one."""
    solve = gangplan.solve

    def missed(problem: Any, seconds: float) -> Any:
        found = solve(problem, seconds)
        plan = replace(found.plan, full=np.full(len(found.plan.pool), 1))
        return replace(found, plan=plan, objective=gangplan.verify(problem, plan).objective, bound=None)

    def unproved(*args: Any, **more: Any) -> Any:
        text, best = best_flags(*args, **more)
        return text, best._replace(bound=None, proved=False)

    monkeypatch.setattr("gangplan.hybrid.solve", missed)
    monkeypatch.setattr(explain, "explain", lambda *_, **__: [])
    monkeypatch.setattr(explain, "best_flags", unproved)
    done = cli("layout", config, *HOW, "--flags", "megatron")
    assert done.code == 0, done.err
    told = " ".join(done.out.split())
    assert "It takes 0% longer than the best found of all" in told and "full recomputation" not in told
    assert "gap -: none was proved in time" in told and "megatron runs no bound was proved in time" in told


def test_pools(config: Path, cli: Any) -> None:
    """GPUs of several types are taken, with or without a cluster of one."""
    done = cli("layout", config, *HOW, "--pool", "1x2:A100", "--flags", "torchtitan")
    assert done.code == 0 and "[parallelism]" in done.out
    done = cli("layout", config, "--pool", "1x2:A100", "--pool", "1x2:H100", "--batch", "8", "--sequence", "512")
    assert done.code == 0


def test_models_by_name(cli: Any) -> None:
    """Some models need no file; another name is told with those that there are."""
    done = cli("layout", "gpt-neo-2.7b", "--cluster", "1x2", "--gpu", "H200", "--batch", "2", "--sequence", "512")
    assert done.code == 0 and "gpt-neo-2.7b, 2.6" in done.out
    done = cli("layout", "llama-3.1-70b", *HOW)
    assert done.code == 2 and "model: 'llama-3.1-70b' is no file, nor one of " in done.err
    assert "did you mean llama-3-70b or llama-3.1-405b or llama-3-8b?" in done.err


def test_measured_rows(config: Path, tmp_path: Path, cli: Any) -> None:
    """The cost model is fitted to steps of one's own: those that were slow make layouts slow."""
    head = "gpu,model,gpus,precision,global_batch,micro_batch,sequence,fsdp,tp,pp,cp,vp,ep,tokens_per_s_per_gpu\n"
    rows, steps = tmp_path / "rows.csv", []
    for rate in (4000, 40000):
        rows.write_text(f"{head}H100,small,4,BF16,8,2,1024,0,1,1,1,,1,{rate}\n")
        done = cli("layout", config, *HOW, "--measured", rows, "--explain", "TP=1", "--json")
        assert done.code == 0, done.err
        steps.append(json.loads(done.out)["objective"])
    assert steps[0] > 1.5 * steps[1]
    rows.write_text(f"{head}H100,small,3,BF16,8,2,1024,0,2,1,1,,1,4000\n")
    done = cli("layout", config, *HOW, "--measured", rows)
    assert done.code == 2 and f"{rows}: line 2" in done.err


BAD = [
    (("--cluster", "2x2", "--batch", "8"), "gpu: is missing: the type of the GPUs of 2x2"),
    (("--batch", "8"), "cluster: is missing: nodes x GPUs, like 128x8"),
    (("--cluster", "2", "--gpu", "H100", "--batch", "8"), "cluster: '2' is not nodes x GPUs of each, like 128x8"),
    (("--pool", "2x2", "--batch", "8"), "pool: '2x2' is not nodes x GPUs and their type, like 16x8:A100"),
    ((*HOW[:4], "--batch", "0"), "batch: 0 is not positive"),
    ((*HOW, "--precision", "fp7"), "precision: 'fp7' is not one of"),
    ((*HOW, "--flags", "nemo"), "flags: 'nemo' is not one of megatron, torchtitan"),
    ((*HOW, "--explain", "DP=3"), "explain: DP 3: 3 replicas of micro-batches of 1 do not divide a batch of 8"),
    ((*HOW, "--explain", "TP=x"), "explain: 'TP=x' is not name=number"),
    ((*HOW, "--explain", "TQ=2"), "explain: 'TQ' is not one of TP, PP"),
    ((*HOW, "--gpu-memory", "3.3e9"), "memory: TP 4, DP 1, micro-batch 1, ZeRO 1 comes nearest and needs "),
    ((*HOW[:-1], "0"), "seconds: 0.0 is not a positive number"),
    (("--cluster", "2x2", "--gpu", "H10", "--batch", "8"), "gpu: 'H10' is not one of"),
    (("--cluster", "2x2", "--gpu", "V100", "--batch", "8", "--precision", "fp8"), "precision: 'fp8': V100 has no such"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[words for _, words in BAD])
def test_bad_input(arguments: tuple[str, ...], words: str, config: Path, cli: Any) -> None:
    """Whatever is wrong is named in a line, with exit code 2: what does not fit, by how much, or what divides what."""
    done = cli("layout", config, *arguments)
    assert (done.code, done.out) == (2, "") and words in done.err and done.err.count("\n") == 1


def test_errors_fit_a_terminal(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error is one line for programs, and lines of at most 80 columns for people."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stderr.__class__, "isatty", lambda self: True)
    done = cli("layout", "llama-3.1-70b", *HOW)
    lines = done.err.splitlines()
    assert done.code == 2 and len(lines) > 2 and max(map(len, lines)) <= 80
    assert "qwen3-30b-a3b, qwen3-235b-a22b, mixtral-8x22b" in " ".join(done.err.split())


def test_bad_config(tmp_path: Path, cli: Any) -> None:
    """An unknown architecture or a missing field of the file is named with the file."""
    cases = (
        ({"model_type": "mamba"}, "model_type: 'mamba' is not one of"),
        ({"hidden_size": None}, "hidden_size"),
        ({"num_key_value_heads": 3}, "kv_heads: 3 do not divide 8 heads"),
    )
    for change, words in cases:
        path = tmp_path / "bad.json"
        path.write_text(json.dumps(SMALL | change))
        done = cli("layout", path, *HOW)
        assert done.code == 2 and f"{path}: {words}" in done.err


def test_reader_is_public(config: Path) -> None:
    """The same in Python, by public names alone."""
    model = gangplan.read_transformer(config)
    problem = gangplan.LayoutProblem(model, (gangplan.gpu_pool("H100", 2, 2),), batch=8, sequence=1024)
    result = gangplan.solve(problem, 20)
    assert result.plan is not None and gangplan.verify(problem, result.plan).ok
