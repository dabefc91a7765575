"""`gangplan decide`, `slurm` and `kubernetes`: a `Scheduler` behind JSON lines, and for clusters that others run."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
import warnings
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Annotated

from gangplan.instances.errors import InstanceError, extra

from ..doors.core import Core, answer_lines, encoded
from ..doors.kubernetes.extender import Offers, serve
from ..doors.kubernetes.objects import ReadingRules
from ..doors.kubernetes.reconciler import Reconciler
from ..doors.slurm.client import AwayError, run
from ..doors.slurm.reasons import reasons
from ..doors.slurm.rounds import SlurmRounds
from ..doors.slurm.view import SlurmView, tracks_memory
from .options import require_positive
from .output import closed, emit
from .settings import CLUSTER, LOG, Set, fleet_of, scheduler_with, with_settings


def decide(
    cluster: Annotated[str | None, CLUSTER, "NxM|FILE"] = None,
    settings: Set = None,
    log: Annotated[str | None, LOG, "FILE"] = None,
    sync: Annotated[bool, "have each line of the log on disk before it is answered"] = False,
) -> int:
    """Answer events on stdin, a line of JSON each, by decisions on stdout, a line each.

    Lines are such as {"event": "submit", "now": 0, "job": "a", "gpus": 8, "seconds": 600}, then {"event": "decide"};
    each method of Scheduler is an event. A line that is wrong is answered by an error, and changes nothing.
    """
    fleet = None if cluster is None else fleet_of(cluster)
    scheduler = scheduler_with(settings or [], fleet, log, sync=sync)
    if fleet is not None and encoded(fleet) != encoded(scheduler._state.fleet):
        raise InstanceError("cluster", f"{cluster!r} is not that of the log: resize is an event", log)
    core = Core(scheduler, None if log is None else Path(log))
    if closed():
        raise InstanceError("stdout", "is closed")
    warnings.simplefilter("always", RuntimeWarning)  # each line that the log lacks
    signal.signal(signal.SIGTERM, end)

    def write(line: bytes) -> None:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()

    answer_lines(core, sys.stdin.buffer, write)
    return 0


def end(*_: object) -> None:
    """End quietly, at a signal."""
    raise SystemExit(0)


_DRY_RUN = "show what it would decide on all jobs that wait, beside Slurm's estimate; change nothing"


def slurm(
    log: Annotated[str, LOG, "FILE"] = "gangplan-slurm.jsonl",
    interval: Annotated[float, "between rounds", "SECONDS"] = 2.0,
    once: Annotated[bool, "do one round and end"] = False,
    dry_run: Annotated[bool, _DRY_RUN] = False,
    spread: Annotated[bool, "let jobs that a rack could hold have nodes of several, rather than wait for one"] = False,
    mark: Annotated[str, "place jobs with this word in their comment, and no others", "WORD"] = "gangplan",
    settings: Set = None,
) -> int:
    """Place the jobs of Slurm that are submitted by sbatch --hold --comment=gangplan, and release them there.

    It needs the rights of an operator of Slurm, and goes on after kill -9 of itself or of slurmctld.
    """
    require_positive(interval=interval)
    if len(mark.split()) != 1:
        raise InstanceError("mark", f"{mark!r} is not one word")
    with_settings({}, settings or [])  # before Slurm is asked
    signal.signal(signal.SIGTERM, end)
    view, path = SlurmView.read(), None if dry_run else log
    core = Core(scheduler_with(settings or [], view.fleet, path), None if path is None else Path(path))
    rounds = SlurmRounds(core, None if dry_run else mark, _warn, memory=tracks_memory(), spread=spread)
    if dry_run:
        rounds.round(view)
        _compare(rounds, view)
        return 0
    if not once:
        _warn(f"{view.fleet.n_nodes} nodes, {len(view.jobs)} jobs; Ctrl-C ends")
    away = ""
    while True:
        try:
            view = SlurmView.read(view)
            for line in rounds.round(view):
                emit(line)
            if once:
                return 0
            away = ""
        except AwayError as error:
            if once:
                raise
            if away != str(error):
                _warn(f"{error}; trying again")
            away = str(error)
        time.sleep(interval)


def _compare(rounds: SlurmRounds, view: SlurmView) -> None:
    """Print each job that waits: when and where it starts by gangplan, or why not, and by Slurm."""
    scheduler, why = rounds.core.scheduler, reasons(rounds.core.scheduler, view)
    lines = run("squeue", "--start", "--noheader", "--array", "--format=%i|%S|%Y").splitlines()
    theirs = dict(line.split("|", 1) for line in lines if "|" in line)
    emit(f"{'job':12} {'user':12} {'gangplan':34} Slurm")
    for name, job in view.jobs.items():
        if job.waits:
            ours = why.get(name) or rounds.said(job)
            if name in scheduler.running:
                ours = f"now on {','.join(rounds.places(name))}"
            if name in scheduler.waiting:
                start = scheduler.explain(name).earliest  # type: ignore[union-attr]
                when = "" if start is None else datetime.fromtimestamp(start).isoformat("T", "seconds")
                ours = ", ".join(filter(None, (when, why[name])))
            start, _, nodes = theirs.get(name, "N/A").partition("|")
            slurm = "not known" if start == "N/A" else f"{start} on {nodes}"
            emit(f"{name:12} {job.user:12} {ours:34} {slurm}")


def _warn(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


_KUBECONFIG = "of kubectl; by default KUBECONFIG, ~/.kube/config or, in a pod, its service account"
_RACK = "label of nodes that says their rack (repeatable); by default those of Kueue"
_EXTENDER = "answer kube-scheduler here instead of binding pods; needs --name default-scheduler"


def kubernetes(
    *,
    kubeconfig: Annotated[str | None, _KUBECONFIG, "FILE"] = None,
    context: Annotated[str | None, "of that file", "NAME"] = None,
    rules: ReadingRules,
    rack: Annotated[list[str] | None, _RACK, "LABEL"] = None,
    settings: Set = None,
    extender: Annotated[str | None, _EXTENDER, "HOST:PORT"] = None,
    log: Annotated[str | None, LOG, "FILE"] = None,
) -> int:
    """Schedule the pods that name gangplan as their scheduler, gang by gang, until SIGTERM.

    A gang is the pods with the same label gangplan/gang; it starts once there are gangplan/size of them.
    """
    try:
        from kubernetes import client, config
        from kubernetes.config.config_exception import ConfigException
    except ModuleNotFoundError:
        raise InstanceError("kubernetes", f"needs the client of Kubernetes: {extra('kubernetes')}") from None
    from ..doors.kubernetes.following import FollowLoop, Server

    with_settings({}, settings or [])  # before Kubernetes is asked
    rules = replace(rules, rack=tuple(rack or rules.rack), beside=extender is not None)
    configuration = client.Configuration()
    try:
        config.load_config(config_file=kubeconfig, context=context, client_configuration=configuration)
    except Exception as error:  # the client checks nothing of what it reads
        words = str(error) if isinstance(error, ConfigException | OSError) else "is no configuration of kubectl"
        raise InstanceError("kubeconfig", words, kubeconfig or os.environ.get("KUBECONFIG", "")) from None
    logging.getLogger("gangplan.kubernetes").setLevel(logging.INFO)

    offers = None
    if extender is not None:
        host, _, port = extender.rpartition(":")
        if not host or not port.isdecimal():
            raise InstanceError("extender", f"{extender!r} is no HOST:PORT")
        serve(offers := Offers(), host, int(port))
    reconciler = Reconciler(lambda fleet: scheduler_with(settings or [], fleet, log))
    loop = FollowLoop(Server(client.ApiClient(configuration)), reconciler, rules, offers)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, loop.end)
    emit(f"gangplan schedules pods at {configuration.host}")
    loop.run()
    return 0
