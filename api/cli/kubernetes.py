"""`gangplan kubernetes`: a scheduler of pods."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path
from typing import Annotated

from gangplan.hybrid.online import Scheduler
from gangplan.instances import InstanceError
from gangplan.instances.errors import extra
from gangplan.instances.placement import Fleet

from ..doors.clusters import has_begun, reopened
from ..doors.kubernetes.extender import Offers, serve
from ..doors.kubernetes.objects import USUAL, Rules
from ..doors.kubernetes.reconciler import Reconciler
from .output import emit
from .whatif import Set, with_settings

_KUBECONFIG = "of kubectl; by default KUBECONFIG, ~/.kube/config or, in a pod, its service account"
_RACK = "label of nodes that says their rack (repeatable); by default those of Kueue"
_EXTENDER = "answer kube-scheduler here instead of binding pods; needs --name default-scheduler"
_LOG = "append each event and decision to this file, and go on with it if it is there"


def kubernetes(
    kubeconfig: Annotated[str | None, _KUBECONFIG, "FILE"] = None,
    context: Annotated[str | None, "of that file", "NAME"] = None,
    name: Annotated[str, "schedulerName of the pods that are scheduled", "NAME"] = USUAL.name,
    gpu: Annotated[str, "resource that counts as GPUs", "NAME"] = USUAL.gpu,
    rack: Annotated[list[str] | None, _RACK, "LABEL"] = None,
    settings: Set = None,
    extender: Annotated[str | None, _EXTENDER, "HOST:PORT"] = None,
    log: Annotated[str | None, _LOG, "FILE"] = None,
) -> int:
    """Schedule the pods that name gangplan as their scheduler, gang by gang, until SIGTERM.

    A gang is the pods with the same label gangplan/gang; it starts once there are gangplan/size of them.
    """
    try:
        from kubernetes import client, config
        from kubernetes.config.config_exception import ConfigException
    except ModuleNotFoundError:
        raise InstanceError("kubernetes", f"needs the client of Kubernetes: {extra('kubernetes')}") from None
    from ..doors.kubernetes.following import Loop, Server

    given, rules = with_settings({}, settings or []), Rules(name, gpu, tuple(rack or USUAL.rack), extender is not None)
    configuration = client.Configuration()
    try:
        config.load_config(config_file=kubeconfig, context=context, client_configuration=configuration)
    except Exception as error:  # the client checks nothing of what it reads
        words = str(error) if isinstance(error, ConfigException | OSError) else "is no configuration of kubectl"
        raise InstanceError("kubeconfig", words, kubeconfig or os.environ.get("KUBECONFIG", "")) from None
    logging.getLogger("gangplan.kubernetes").setLevel(logging.INFO)

    def make(fleet: Fleet) -> Scheduler:
        if log is not None and has_begun(Path(log)):
            return reopened(Path(log), lambda known: with_settings(known, settings or []))
        return Scheduler(fleet, **given, log=log)

    offers = _answering(extender) if extender is not None else None
    loop = Loop(Server(client.ApiClient(configuration)), Reconciler(make), rules, offers)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, loop.end)
    emit(f"gangplan schedules pods at {configuration.host}")
    loop.run()
    return 0


def _answering(address: str) -> Offers:
    """Return what an extender at an address answers with."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise InstanceError("extender", f"{address!r} is no HOST:PORT")
    offers = Offers()
    serve(offers, host, int(port))
    return offers
