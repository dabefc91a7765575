"""Valid documents of each kind."""

# ruff: noqa: E501  # documents and commands as they are

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from gangplan.instances import dump
from gangplan.instances.generators import generate
from gangplan.instances.layout import LayoutPlan, LayoutProblem, Transformer, gpu_pool
from gangplan.instances.placement import Fleet
from gangplan.scheduler import Scheduler

from ..adversary.attack import certificates
from ..adversary.brute import optimum
from ..adversary.draw import CASES, problem


def plain(value: Any) -> Any:
    """Return a document without its hash, which would have every change refused alike."""
    data = json.loads(dump(value))
    data.pop("content_hash")
    return data


@cache
def triples() -> list[tuple[Any, Any, list[Any]]]:
    """Return problems of all objectives with a plan and certificates."""
    found = []
    for case in CASES:
        for seed in range(40):
            drawn = problem(*case, seed)
            best, plan = optimum(drawn)
            if best is not None:
                found.append((plain(drawn), plain(plan), list(certificates(drawn, plan, 0.5))))
                break
    pools = gpu_pool("H100", 2, 2), gpu_pool("A100", 1, 2)
    experts = Transformer("m", 3, 64, 4, 4, 16, 100, experts=4, active=2, expert_feedforward=32)
    two = LayoutProblem(experts, pools, 4, 64)
    return [*found, (plain(two), plain(LayoutPlan([0, 1], [2, 1], [2, 3], [0, 1], [1, 0], 2)), [])]


@cache
def problems() -> list[Any]:
    """Return documents of problems, tiny and small."""
    more = [
        generate("layered", ops=12, layers=4, devices=3, seed=1),
        generate("gangs", jobs=6, racks=2, nodes=2, seed=1),
        generate("micro_batches", devices=2, micro_batches=3, memory=2, chunks=2, transfer=0.5),
    ]
    return [x for x, _, _ in triples()] + [plain(x) for x in more]


CONFIGS = [
    {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
     "num_key_value_heads": 2, "intermediate_size": 128, "tie_word_embeddings": True},
    {"model_type": "deepseek_v3", "num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
     "intermediate_size": 128, "q_lora_rank": 32, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
     "v_head_dim": 16, "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_shared_experts": 1,
     "first_k_dense_replace": 1, "moe_layer_freq": 1},
    {"model_type": "gpt_oss", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100,
     "intermediate_size": 64, "head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8,
     "layer_types": ["sliding_attention", "full_attention"]},
]  # fmt: skip
"""Configurations of models."""
FOREIGN = [
    {"maxSizePerFPGA": 100.0, "maxFPGAs": 2, "maxCPUs": 1,
     "nodes": [{"id": i, "supportedOnFpga": 1, "cpuLatency": 10, "fpgaLatency": 1.0, "isBackwardNode": 0, "colorClass": i,
                "size": 1} for i in range(3)],
     "edges": [{"sourceId": 0, "destId": i, "cost": 0.5} for i in (1, 2)]},
    {"directed": True, "multigraph": False, "graph": {},
     "nodes": [{"id": "a", "time": 1.0, "memory": 5}, {"id": "b", "time": {"A100": 1.0, "V100": 2}}, {"id": 3, "time": 1}],
     "edges": [{"source": "a", "target": "b", "bytes": 7}, {"source": "b", "target": 3}]},
]  # fmt: skip
"""Problems in other formats of JSON."""
TEXTS = [
    "node1 -- Input -- forward_compute_time=9.0, backward_compute_time=0.0, activation_size=0.0, parameter_size=0.0\n"
    "node2 -- ReLU() -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=[10.0; 6.0], "
    "parameter_size=0\nnode3 -- Linear(4, 2) -- forward_compute_time=3.0, backward_compute_time=5.0, "
    "activation_size=8.0, parameter_size=40.0\n\tnode1 -- node2\n\tnode2 -- node3\n",
    'strict digraph "g" { node [shape=box]; a [time=1 memory="2e3", label="x -> \\"op\\""];\n'
    'subgraph cluster_0 { b [time=0.5]; "c c" [time=".25"] }\n a -> b -> "c c" [bytes=7]; a:out:se -> "c c":in }\n',
    '<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="t" for="node" attr.name="time" '
    'attr.type="double"/><graph edgedefault="directed"><node id="a"><data key="t">1.0</data></node><node id="b">'
    '<data key="t">2</data></node><edge source="a" target="b"/></graph></graphml>',
]
"""Problems in formats of text."""
TRACES = [
    "job_id,num_gpu,submit_time,duration,queue,model_name,share,cpu,memory,user,title,priority,limit\n"
    "0,1,0,5,q,gpt,1,4,1e9,ann,t,0,60\n1,2,3.5,60,q,bert,0.5,8,2e9,bob,t,1,\n2,8,9,100,r,gpt,1,8,1e9,ann,u,-1,500\n",
    "job_id|num_gpu|submit_time|duration\n0|1|2026-01-01 00:00:00|5\n1|2|2026-01-01 00:10:00|60\n",
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "7,u1,vcA,8,32,1,COMPLETED,2020-03-29 01:59:59,2020-03-29 02:30:00,2020-03-29 03:30:00,3600,1801\n"
    "8,u1,vcB,0,4,1,COMPLETED,2020-03-29 01:00:00,2020-03-29 01:00:00,2020-03-29 02:00:00,3600,0\n",
    "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
    "a1,worker,2.0,Terminated,100.0,160.0,600.0,29.5,50.0,T4\na1,ps,1.0,Terminated,90.0,150.0,200.0,10,,MISC\n",
    "a1,worker,2.0,Terminated,100.0,160.0,600.0,29.5,50.0,T4\n",
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p0,8000,1024,1,250,,LS,Running,10,110,30\np1,8000,1024,2,1000,V100,LS,Running,0,9,0\n",
    "JobID|JobName|User|Account|Partition|Priority|Timelimit|Submit|Start|End|ElapsedRaw|State|AllocTRES|ReqTRES\n"
    "1|a|ann|x|gpu|5|1-00:00:00|2026-01-01T00:00:00|2026-01-01T00:00:30|2026-01-01T01:00:30|3600|COMPLETED|"
    "billing=8,cpu=8,gres/gpu=1,mem=4G|gres/gpu=1\n1.batch||||||||||3600|COMPLETED|cpu=1|\n"
    "2+0|b|bob|x|gpu|5|UNLIMITED|2026-01-01T00:00:00|2026-01-01T00:02:00|2026-01-01T00:03:00|60|TIMEOUT|gres/gpu=2|\n",
    "; UnixStartTime: 1000000000\n; MaxProcs: 8\n1 0 5 60 4 -1 -1 4 100 -1 1 3 1 -1 1 1 -1 -1\n"
    "2 10 0 30 1 -1 -1 1 50 -1 5 3 1 -1 1 1 -1 -1\n",
    "name,time,application,num_replicas,batch_size\nj0,0,bert,2,32\nj1,60,ncf,1,16\n",
    "timestamp,duration,num_gpus,cluster\n2017-10-01 00:00:00,500,2,a\n2017-10-01 01:00:00,5,1,b\n",
    json.dumps([{"jobid": "a", "vc": "v", "user": "u", "submitted_time": "2017-10-01 00:00:00", "attempts": [
        {"start_time": "2017-10-01 00:01:00", "end_time": "2017-10-01 00:02:00",
         "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}]}]),
]  # fmt: skip
MEASURED = [
    json.dumps({k: {"('ResNet-18 (batch size 16)', 2)": {"null": 10.0, "('A', 1)": [5.0, 4.0]}, "('A', 1)": {"null": 9.0}}
                for k in ("v100", "v100_unconsolidated")}),
    "placement,local_bsz,step_time,sync_time\n1,16,0.5,0.1\n11,16,0.7,0.2\n2,32,0.6,0.1\n4,32,0.9,0.1\n",
    "model,apart,mixed,together,compute,gradient,batch\nvgg,10,12,15,0.5,5e8,32\nres,20,25,30,0.3,1e8,32\n",
    "jobs,a,b\na+b,0.5,0.6\na,1,\nb,,1\n",
]  # fmt: skip
GAVEL = "ResNet-18 (batch size 16)\tpython\tdir\t-n\t1\t1000\t2\t1.0\t-1.0\t5.5\n" * 2
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,96000,393216,8,G2\nn2,32000,131072,0,\n"
LAYOUTS = (
    "gpu,model,gpus,precision,global_batch,micro_batch,sequence,fsdp,tp,pp,cp,vp,ep,tokens_per_s_per_gpu\n"
    "H100,LLAMA3_8B,8,FP8-CS,16,1,8192,0,2,2,1,,1,9000\nGB300,GPT_OSS_120B,64,BF16,128,2,4096,1,1,4,1,3,8,8000\n"
)
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos\np0,6500,12288,1,460,,LS\np1,8000,1000,2,1000,G2|P100,BE\n"
OBSERVED = [
    {"event": "submit", "now": 0, "job": "a", "gpus": 8, "user": "me", "seconds": 60},
    {"event": "start", "now": 1, "job": "a"}, {"event": "submit", "now": 2, "job": "b", "gpus": 2},
    {"event": "start", "now": 3, "job": "b"}, {"event": "stop", "now": 9, "job": "b"}, {"event": "end", "now": 60, "job": "a"},
    {"event": "fail_node", "now": 61, "node": 0}, {"event": "repair_node", "now": 62, "node": 0},
    {"event": "start", "now": 63, "job": "b"}, {"event": "end", "now": 70, "job": "b"},
    {"event": "submit", "now": 71, "job": "c", "gpus": 1}, {"event": "withdraw", "now": 72, "job": "c"},
]  # fmt: skip
EVENTS: list[dict[str, Any]] = [
    {"event": "submit", "now": 0, "job": "a", "gpus": 8, "seconds": 3600, "user": "ann", "queue": "q"},
    {"event": "submit", "job": {"name": "b", "workers": [2, 4], "worker": {"gpu": 1, "cpu": 2}}, "seconds": {"2": 600},
     "priority": 2, "begin": 1, "limit": 9000},
    {"event": "decide", "deadline": 0.2},
    {"event": "submit_array", "now": 10, "job": "c", "gpus": 4, "count": 3, "seconds": 60, "most": 2},
    {"event": "drain", "node": "node1", "until": 500}, {"event": "decide"},
    {"event": "change", "job": "c[0]", "priority": 5, "seconds": 5}, {"event": "report", "job": "a", "speed": 1.5},
    {"event": "fail_node", "now": 20, "node": 0, "replace": True}, {"event": "decide"}, {"event": "repair_node", "node": 0},
    {"event": "whatif", "job": "z", "gpus": 8, "seconds": 60}, {"event": "explain", "what": "a"},
    {"event": "explain", "what": 1}, {"event": "withdraw", "job": "c[2]"}, {"event": "undrain", "node": "node1"},
    {"event": "reserve", "nodes": ["node1"], "begin": 1000, "end": 2000, "users": ["ann"], "name": "w"},
    {"event": "cancel", "window": "w"}, {"event": "decide", "now": 40}, {"event": "finish", "now": 90, "job": "b"},
    {"event": "defragment", "domain": "node1", "seconds": 0.2}, {"event": "resize", "fleet": "3x8"}, {"event": "state"},
    {"event": "decide", "now": 100}, {"event": "decisions", "after": 1}, {"event": "snapshot"},
]  # fmt: skip
"""What happens on a cluster of two nodes of eight GPUs."""
ARGUMENTS = [
    {"cluster": "2x8"}, {"cluster": "1x2x8", "price": 60.0, "policy": "hybrid"},
    {"cluster": {"racks": 1, "nodes": 2, "gpus": 8}, "durations": "history", "forget": 0.9, "patience": 100},
    {"cluster": "2x8", "sharing": {"queues": {"q": 0.5, "r": 0.5}, "limits": {"*": {"gpus": 8}}, "halflife": 100}},
    {"cluster": {"racks": 1, "nodes": 2, "gpus": 8}, "policy": "heuristic", "order": 0.5, "reserve": False},
    {"cluster": "2x8", "policy": "patient", "together": False, "order": 1.0},
]  # fmt: skip


@cache
def logs() -> list[list[Any]]:
    """Return the lines of logs."""
    from gangplan.doors.core import Core
    from gangplan.scheduler.described import scheduler_of

    found = []
    with tempfile.TemporaryDirectory() as folder:
        for i, given in enumerate(ARGUMENTS):
            log = Path(folder) / f"{i}.jsonl"
            core = Core(scheduler_of(given, log), log)
            for event in EVENTS:
                core.reply(event)
            if i % 2:
                core.scheduler.checkpoint()
                core.reply({"event": "decide", "now": 200})
            found.append([json.loads(line) for line in log.read_text().splitlines()])
    return found


@cache
def snapshots() -> list[Any]:
    """Return snapshots of a scheduler of two nodes."""
    from gangplan.doors.core import Core

    core, found = Core(Scheduler(Fleet.regular(1, 2, 8))), []
    for event in EVENTS:
        if event["event"] != "resize":
            core.reply(event)
        found.append(json.loads(json.dumps(core.scheduler.snapshot())))
    return found[::4]
