"""`gangplan kubernetes`: a scheduler of pods."""

from __future__ import annotations

import logging
import os
import signal
from dataclasses import replace
from typing import Annotated

from gangplan.instances.errors import InstanceError, extra

from ..doors.kubernetes.extender import Offers, serve
from ..doors.kubernetes.objects import Rules
from ..doors.kubernetes.reconciler import Reconciler
from .output import emit
from .whatif import LOG, Set, scheduler_with, with_settings

_KUBECONFIG = "of kubectl; by default KUBECONFIG, ~/.kube/config or, in a pod, its service account"
_RACK = "label of nodes that says their rack (repeatable); by default those of Kueue"
_EXTENDER = "answer kube-scheduler here instead of binding pods; needs --name default-scheduler"


def kubernetes(
    *,
    kubeconfig: Annotated[str | None, _KUBECONFIG, "FILE"] = None,
    context: Annotated[str | None, "of that file", "NAME"] = None,
    rules: Rules,
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
    from ..doors.kubernetes.following import Loop, Server

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
    loop = Loop(
        Server(client.ApiClient(configuration)),
        Reconciler(lambda fleet: scheduler_with(settings or [], fleet, log)),
        rules,
        offers,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, loop.end)
    emit(f"gangplan schedules pods at {configuration.host}")
    loop.run()
    return 0
