"""The door: whatever bytes a file has, text and values come in within limits, or an error that names the place."""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gangplan.instances import Cluster, DeviceType, InstanceError, OpGraph, RampTopology, TreeTopology
from gangplan.instances.cluster import Level
from gangplan.instances.errors import BYTES, DEPTH, DEVICES, ENTRIES, JSON_BYTES, LEVELS, ROWS
from gangplan.instances.intake import cluster_sizes, csv_rows, parse_json, parse_toml, read_text
from gangplan.instances.placement import Fleet
from gangplan.instances.ramp import blocks, is_block
from gangplan.instances.readers import read
from gangplan.instances.readers.gavel import read_gavel_trace, read_throughputs
from gangplan.instances.readers.layouts import read_measured_layouts
from gangplan.instances.readers.measured import read_measured
from gangplan.instances.readers.openb import read_nodes, read_pods
from gangplan.instances.readers.traces import read_trace
from gangplan.instances.schedule import MoldableJob, NodePool, Pool, ScheduleProblem, holds, ramp_blocks

READERS: dict[str, Callable[[Path], Any]] = {
    "read": read,
    "trace": read_trace,
    "gavel": read_gavel_trace,
    "layouts": read_measured_layouts,
    "measured": read_measured,
    "throughputs": read_throughputs,
    "nodes": read_nodes,
    "pods": read_pods,
}
SEEDS: dict[str, bytes] = {
    "read": b"n1 -- a -- forward_compute_time=1.0, backward_compute_time=1, activation_size=1, parameter_size=1\n",
    "trace": b"job_id,num_gpu,submit_time,duration\na,1,0,5\nb,2,1.5,3\n",
    "gavel": b"m\tc\td\ts\t0\t100\t1\t1.0\t-1\t0.5\n",
    "layouts": b"gpu,model,gpus,precision,global_batch,micro_batch,sequence,fsdp,tp,pp,cp,vp,ep,tokens_per_s_per_gpu\n"
    b"H100,LLAMA3_8B,8,FP8-CS,16,1,8192,0,2,2,1,,1,9000\n",
    "measured": b",a,b\na,1,0.5\nb,0.5,1\n",
    "throughputs": b"""{"v100": {"('a', 1)": {"null": 2.0, "('a', 1)": [1.0, 1.0]}}}""",
    "nodes": b"sn,cpu_milli,memory_mib,gpu,model\nn1,1000,10,2,A\n",
    "pods": b"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np1,1000,10,1,500,A|B\n",
}
MORE = {
    "sacct": (b"JobID|Submit|Elapsed|ReqTRES\n1|2020-01-01T00:00:00|01:02:03|mem=1.2.3G,gpu=2\n", "trace"),
    "pai": (b"j,t,1,Terminated,1,5,600,29.3,1e-322,MISC\n", "trace"),
    "pollux": (b"placement,local_bsz,step_time\n1\xc2\xb2,4,0.5\n", "measured"),
    "servers": (b"model,apart,mixed,together,compute,gradient,batch\nm,5e-324,1,1,1,1,1e308\n", "measured"),
    "pairs": (b"""{"v100": {"('a', 1)": {"null": 5e-324, "('a', 1)": [1e308, "x"]}}}""", "measured"),
    "rows": (b"""{"v100": {"('a', 1)": [1]}}""", "measured"),
}  # fmt: skip
PATCHES = [
    *(b"\r", b"\x00", b"\xff", b"\xef\xbb\xbf", b'"', b"1e308", b"5e-324", b"9" * 400, b"[" * 900, b"NaN", b"Infinity"),
    *(b"\n\n", b"-1", b"null", b"{}", b",", b"\t", b"x" * 140_000, "²".encode(), b"1e999", b'"a":1,"a":2,'),
]


@pytest.mark.parametrize("kind", READERS)
def test_any_edit(kind: str, tmp_path: Path) -> None:
    """Files that were good, cut and patched anywhere with what readers stumble over, are read or refused by name."""
    rng, path, good = random.Random(7), tmp_path / "f", SEEDS[kind]
    path.write_bytes(good)
    READERS[kind](path)
    for _ in range(300):
        bad = good
        for _ in range(rng.choice([1, 1, 2])):
            at = rng.randrange(len(bad) + 1)
            bad = bad[:at] + rng.choice(PATCHES) + bad[at + rng.choice([0, 0, 1, 3, 10]) :]
        packed = rng.random() < 0.1
        path.write_bytes(gzip.compress(bad)[: rng.choice([None, -3, 15])] if packed else bad)
        try:
            READERS[kind](path)
        except InstanceError as error:
            assert error.source == str(path) and str(error).isprintable()


@pytest.mark.parametrize("name", MORE)
def test_rows_that_broke_readers(name: str, tmp_path: Path) -> None:
    """Numbers that are too large, too small or no numbers in other alphabets are refused where they stand."""
    content, kind = MORE[name]
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(InstanceError):
        READERS[kind](tmp_path / "f")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("kind", READERS)
def test_ends_of_lines(kind: str, end: str, tmp_path: Path) -> None:
    """Lines may end as on any system, with a byte order mark before them."""
    path = tmp_path / "f"
    path.write_bytes(b"\xef\xbb\xbf" + SEEDS[kind].replace(b"\n", end.encode()))
    READERS[kind](path)


def test_gzip_stays_within_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of kilobytes that unpacks to more than the limit is left as soon as it does; members make one text."""
    path = tmp_path / "f"
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n") + b"\0" * 8)
    assert read_text(path, gzip=True) == "a\nb\n"
    path.write_bytes(gzip.compress(b"x" * 20_000_000))
    monkeypatch.setenv(BYTES.variable, "3000000")
    with pytest.raises(InstanceError, match=r"f: content: \d{7} is more than 3000000 bytes \(GANGPLAN_MAX_BYTES sets"):
        read_text(path, gzip=True)


def test_limits_are_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that is none is refused by the name of its variable."""
    for limit in (BYTES, JSON_BYTES, DEPTH, ROWS, DEVICES, ENTRIES, LEVELS):
        for wrong in ("x", "0", "-1", "1.5", "²"):
            monkeypatch.setenv(limit.variable, wrong)
            with pytest.raises(InstanceError, match=limit.variable):
                _ = limit.value
        monkeypatch.setenv(limit.variable, "7")
        assert limit.value == 7


def test_depth() -> None:
    """Nesting beyond the limit is refused, in JSON and in TOML, and to the limit it is not."""
    assert parse_json("[" * 64 + "]" * 64)
    for parse, text in (
        (parse_json, "[" * 65 + "]" * 65),
        (parse_json, '{"a":' * 900 + "1" + "}" * 900),
        (parse_toml, f"a = {'[' * 65}{']' * 65}"),
    ):
        with pytest.raises(InstanceError, match="nested too deeply"):
            parse(text)
    with pytest.raises(InstanceError, match="TOML: nan is not a number"):
        parse_toml("a = nan")


def test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than the limit are refused at the line where it is passed, as is a field that is too long."""
    monkeypatch.setenv("GANGPLAN_MAX_ROWS", "2")
    with pytest.raises(InstanceError, match="line 4: 3 is more than 2 rows"):
        list(csv_rows("a\n\nb\nc\n"))
    with pytest.raises(InstanceError, match="line 1: field larger"):
        list(csv_rows("x" * 140_000))


def test_small_words_for_large_things(tmp_path: Path) -> None:
    """What a few bytes ask for is refused before it is made."""
    asks: list[Callable[[], Any]] = [
        lambda: TreeTopology.regular((Level("a", 1.0), Level("b", 1.0)), (10**6, 10**6)),
        lambda: RampTopology(10**6, 10**6, 10**6),
        lambda: Pool(10**9),
        lambda: NodePool(10**6, 10**6),
        lambda: Fleet.regular(10**6, 10**6),
        lambda: Fleet.regular(1, 2, 10**8),
        lambda: ramp_blocks(RampTopology(200, 200, 200), 1000),
        lambda: TreeTopology(tuple(Level("a", 1.0) for _ in range(900)), np.zeros((900, 2), dtype=np.int32)),
    ]
    for ask in asks:
        with pytest.raises(InstanceError, match="GANGPLAN_MAX_"):
            ask()
    path = tmp_path / "f"
    names = [f"a{i}" for i in range(20_000)]
    path.write_text("," + ",".join(names) + "\n" + "".join(f"{name}\n" for name in names))
    with pytest.raises(InstanceError, match="line 2: 'a0' does not fit"):
        read_measured(path)
    path.write_text(json.dumps({"k80": {f"('{name}', 1)": {"null": 1.0} for name in names}}))
    with pytest.raises(InstanceError, match="GANGPLAN_MAX_ENTRIES"):
        read_measured(path)
    problem = ScheduleProblem((MoldableJob("a", (2**20,), (1.0,)),), RampTopology(200, 200, 200))
    assert not holds(problem.capacity, 7_000_003)


def test_repeated_names_are_found_in_linear_time() -> None:
    """A hundred thousand names of which the last is there twice are refused, not in the minutes of a quadratic time."""
    names = [f"n{i}" for i in range(100_000)]
    names.append(names[-1])
    count = len(names)
    zero, floats = np.zeros(count, dtype=np.int32), np.zeros(count)
    tree = TreeTopology((Level("a", 1.0),), zero[None])
    asks: list[Callable[[], Any]] = [
        lambda: Cluster(tuple(map(DeviceType, names)), zero, TreeTopology((Level("a", 1.0),), zero[None])),
        lambda: OpGraph(("a",), tuple(names), np.ones((count, 1)), *([np.zeros(1)] * 3), zero[:0], zero[:0], floats[:0],
                        zero[:1] - 1, zero[:1] - 1, np.zeros(1, dtype=bool)),
        lambda: Fleet(tuple(names), ("x",), zero, zero, floats, floats, floats + 1, tree),
        lambda: parse_json("{" + ",".join(f'"{name}":1' for name in names) + "}"),
    ]  # fmt: skip
    for ask in asks:
        began = time.process_time()
        with pytest.raises(InstanceError, match=r"duplicate|given twice"):
            ask()
        assert time.process_time() - began < 60


@pytest.mark.parametrize("shape", [(4, 4, 2), (5, 3, 2), (3, 5, 4), (6, 1, 1)])
def test_blocks_are_recognised(shape: tuple[int, int, int]) -> None:
    """A set of servers is a block if, and only if, it is among those that are listed."""
    topology, rng = RampTopology(*shape), random.Random(0)
    for size in (1, 2, 3, 4, 6):
        known = {tuple(sorted(block.tolist())) for block in blocks(topology, size)}
        for block in known:
            assert is_block(topology, np.array(block[::-1], dtype=np.int32))
        for _ in range(300):
            some = tuple(sorted(rng.sample(range(topology.n_devices), size))) if size <= topology.n_devices else ()
            if some:
                assert is_block(topology, np.array(some, dtype=np.int32)) == (some in known)


def test_cluster_sizes() -> None:
    """A cluster is as many numbers as its example has, each within limits."""
    assert cluster_sizes("2X4x1000", "", "4x4x2") == (2, 4, 1000)
    for text in ("", "2x4", "2x4x4x4", "0x4x4", "-1x4x4", "2x4x", "2x4x\u0664"):
        with pytest.raises(InstanceError, match="like 4x4x2"):
            cluster_sizes(text, "", "4x4x2")
    for text in ("2x4x1001", "1" * 5000 + "x4x4"):
        with pytest.raises(InstanceError, match="is too large: a number is more than 1000"):
            cluster_sizes(text, "", "4x4x2")
