"""Slurm's own daemons on loopback, in a folder of their own, for tests and the study: they end with this process."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scontrol", "unshare", "setpriv")
_ALONE = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Words before a command that have all that it starts end with it, and it with whoever started it."""
_CONFIG = """\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=10
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/spool/%n.pid
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,bf_resolution=1,bf_max_job_test=1000
PriorityType=priority/basic
TopologyPlugin=topology/tree
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout={timeout}
KillWait=1
MinJobAge=7200
GresTypes=gpu
"""


def missing() -> str:
    """Return what of Slurm's daemons is not here, or why they cannot run; nothing if they can."""
    if os.geteuid() != 0:
        return "not root"
    if lack := [name for name in NEEDED if shutil.which(name) is None]:
        return f"no {', '.join(lack)}"
    tried = subprocess.run([*_ALONE, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "no namespaces of processes"


class Daemons:
    """Run munged, slurmctld and a slurmd for each node, until the context ends.

    Args:
        folder: empty, where all of it is.
        racks: the number of racks, and of nodes in each.
        gpus: of each node; it has two CPUs for each, and at least eight.
        timeout: seconds after which a node that does not answer is down.
    """

    def __init__(self, folder: Path, racks: tuple[int, int] = (2, 4), gpus: int = 4, timeout: int = 300) -> None:
        self.folder, self.gpus, self.timeout = folder, gpus, timeout
        self.racks = [[f"n{rack * racks[1] + i}" for i in range(racks[1])] for rack in range(racks[0])]
        self.nodes = [node for rack in self.racks for node in rack]
        self.environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
        self._processes = dict[str, subprocess.Popen[bytes]]()

    def __enter__(self) -> Self:
        try:
            self._begin()
        except TimeoutError:  # perhaps somebody took a port
            self.renew()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def renew(self) -> None:
        """End all of it, and begin anew, with no jobs."""
        self.end()
        shutil.rmtree(self.folder)
        self._begin()

    def rest(self, seconds: float = 20.0) -> bool:
        """End all jobs, and wait until all nodes are idle; return whether they became so, else all began anew.

        Raises:
            RuntimeError: if that failed before.
        """
        if not self._processes:
            raise RuntimeError("Slurm did not begin anew")
        try:
            self.ask("scancel", "--user=root")
            self.wait(lambda: self.states().count("idle") == len(self.nodes), "idle nodes", seconds)
        except (RuntimeError, TimeoutError) as error:
            warnings.warn(f"Slurm begins anew: {error}", stacklevel=2)
            self.renew()
            return False
        return True

    def _begin(self) -> None:
        self._write()
        with ExitStack() as stack:
            stack.callback(self.end)
            key = f"--key-file={self.folder}/munge.key"
            files = [f"--{x}={self.folder}/munge.{x.partition('-')[0]}" for x in ("pid-file", "log-file", "seed-file")]
            self.start("munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket", key, *files)
            self.wait((self.folder / "munge.socket").exists, "munged")
            self.start("slurmctld", "-D")
            for node in self.nodes:
                self.start_node(node)
            self.wait(lambda: self.states().count("idle") == len(self.nodes), "the nodes")
            stack.pop_all()

    def _write(self) -> None:
        """Write the configuration, and make nodes of devices that nobody opens."""
        folder = self.folder
        for name in ("state", "log", *(f"spool/{node}" for node in self.nodes)):
            (folder / name).mkdir(parents=True)
        (folder / "munge.key").write_bytes(os.urandom(1024))
        (folder / "munge.key").chmod(0o400)
        for i in range(self.gpus):
            os.mknod(folder / f"gpu{i}", 0o666 | stat.S_IFCHR, os.makedev(195, i))
        ports = _ports(1 + len(self.nodes))
        text = _CONFIG.format(folder=folder, ports=ports, timeout=self.timeout)
        has = f"CPUs={max(8, 2 * self.gpus)} RealMemory=8000 Gres=gpu:{self.gpus} State=UNKNOWN"
        for node, port in zip(self.nodes, ports[1:], strict=True):
            text += f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} {has}\n"
        text += "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n"
        text += "PartitionName=urgent Nodes=ALL PriorityTier=2 MaxTime=INFINITE State=UP\n"
        (folder / "slurm.conf").write_text(text)
        switches = [f"SwitchName=r{i} Nodes={','.join(rack)}\n" for i, rack in enumerate(self.racks)]
        switches.append(f"SwitchName=top Switches={','.join(f'r{i}' for i in range(len(self.racks)))}\n")
        (folder / "topology.conf").write_text("".join(switches))
        (folder / "gres.conf").write_text(
            f"NodeName=n[0-{len(self.nodes) - 1}] Name=gpu File={folder}/gpu[0-{self.gpus - 1}]\n"
        )
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    def start(self, name: str, *words: str, as_: str = "") -> None:
        """Start a daemon, by the name of its program or another."""
        with (self.folder / "log" / f"{as_ or name}.out").open("ab") as out:
            command = [*_ALONE, "sh", "-c", '"$@"; exit $?', "sh", name, *words]
            options: dict[str, Any] = {"stdout": out, "stderr": out, "stdin": subprocess.DEVNULL}
            self._processes[as_ or name] = subprocess.Popen(command, env=self.environment, **options)

    def start_node(self, node: str) -> None:
        """Start a node's daemon."""
        self.start("slurmd", "-D", "-N", node, as_=node)

    def kill(self, name: str) -> None:
        """Kill a daemon, and all that it started, as kill -9 does."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def end(self) -> None:
        """Kill all of them."""
        for name in list(self._processes):
            self.kill(name)

    def ask(self, *words: str) -> str:
        """Return what a command of Slurm prints."""
        options: dict[str, Any] = {"capture_output": True, "text": True, "cwd": self.folder}
        done = subprocess.run(("timeout", "30", *words), env=self.environment, check=False, **options)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
        return done.stdout

    def submit(self, until: float | Path, *options: str) -> str:
        """Submit a job that sleeps so many seconds, or until there is a file; return its number."""
        does = f"exec sleep {until}" if isinstance(until, float | int) else f"until test -e {until}; do sleep 0.2; done"
        return self.ask("sbatch", "--parsable", "--output=/dev/null", *options, f"--wrap={does}").strip()

    def states(self) -> list[str]:
        """Return the states of nodes that answer."""
        try:
            return self.ask("sinfo", "--noheader", "--Node", "--partition=all", "--format=%T").split()
        except RuntimeError:
            return []

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Return what `squeue --json` says of each job, tasks of arrays by ``17_3``."""
        rows = json.loads(self.ask("squeue", "--json"))["jobs"]
        of = (f"{x['array_job_id']}_{x['array_task_id']}" if x["array_job_id"] else f"{x['job_id']}" for x in rows)
        return dict(zip(of, rows, strict=True))

    def wait(self, until: Callable[[], object], what: str, seconds: float = 60.0, every: float = 0.2) -> None:
        """Wait for something, generously, looking so often.

        Raises:
            TimeoutError: with what Slurm says of nodes and jobs, and the controller wrote last.
        """
        end = time.monotonic() + seconds
        while not until():
            if time.monotonic() > end:
                raise TimeoutError(f"no {what}: {self._told()}")
            time.sleep(every)

    def _told(self) -> str:
        log = self.folder / "log" / "slurmctld"
        wrote = log.read_text()[-2000:] if log.exists() else ""
        try:
            nodes = self.ask("sinfo", "--noheader", "--Node", "--partition=all", "--format=%N is %T: %E")
            return f"{nodes}{self.ask('squeue')}{wrote}"
        except RuntimeError as error:
            return f"{error}\n{wrote}"

    def crossing(self, nodes: Sequence[str]) -> int:
        """Return the number of pairs of nodes that are in different racks."""
        inside = sum(n * (n - 1) // 2 for n in (len({*rack} & {*nodes}) for rack in self.racks))
        return len(nodes) * (len(nodes) - 1) // 2 - inside


def _ports(count: int) -> list[int]:
    """Return ports that nobody listens at now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
