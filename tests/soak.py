"""``python -m tests.soak --minutes M``: mixed HTTP load on `gangplan serve`, killed and started again at random.

Every request that was accepted is answered, or reported failed; memory does not grow; the 99th percentile holds.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from gangplan.instances import dump
from gangplan.instances.generators import generate

EASY = json.loads(dump(generate("layered", ops=20, layers=4, devices=2, seed=1)))
PERIOD = 0.1
"""Seconds between two decisions of a session that are asked for, if the first is answered by then."""
LIVES = 20.0, 150.0
"""Least and most seconds between two kills."""
DOWN = (httpx.TransportError,)


class Soak:
    """Hold the service, what was asked of it, and what went wrong."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed, self.over = folder, seed, False
        self.counts, self.faults = Counter[str](), list[str]()
        self.times, self.memory = list[tuple[float, float]](), list[tuple[int, float, float]]()
        self.life, self.port = 0, _free_port()
        self.began = time.monotonic()
        self.start()

    def start(self) -> None:
        """Start the service, and wait until it listens."""
        command = [sys.executable, "-P", "-m", "gangplan", "serve", "--port", str(self.port), "--state",
                   str(self.folder), "--grace", "2"]  # fmt: skip
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        if not re.match("gangplan serves", self.process.stdout.readline()):
            self.fault("does not start")
        self.life, self.up = self.life + 1, time.monotonic()

    def end(self, number: int) -> None:
        """Send a signal, and wait; what is on stderr is a fault."""
        self.process.send_signal(number)
        self.process.communicate(timeout=180)
        self.errors.seek(0)
        errors = self.errors.read()
        self.counts["kill -9" if number == signal.SIGKILL else "SIGTERM"] += 1
        lines = [x for x in errors.splitlines() if "Traceback" in x or " failed: " in x]
        if lines or (number == signal.SIGTERM and self.process.returncode):
            self.fault(f"stderr, code {self.process.returncode}: {errors[-1000:]}")

    def fault(self, words: str) -> None:
        """Note what is wrong."""
        self.faults.append(f"{time.monotonic() - self.began:.0f} s, life {self.life}: {words}")
        print(self.faults[-1], flush=True)

    def until_up(self, ask: Callable[[], httpx.Response]) -> httpx.Response | None:
        """Ask until there is an answer, or the soak is over; only for what may be asked twice."""
        while not self.over:
            try:
                found = ask()
                if found.status_code not in (429, 503):
                    return found
            except DOWN:
                pass
            time.sleep(0.2)
        return None

    def client(self) -> httpx.Client:
        """Return a client of the service."""
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=90.0)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def decides(soak: Soak, name: str) -> None:
    """Play a session; after a crash it is as it was told, and knows each decision that was answered."""
    draw, jobs, now, last, count = random.Random(f"{soak.seed} {name}"), dict[str, float | None](), 0.0, 0, 0
    with soak.client() as http:
        events = f"/v1/sessions/{name}/events"
        soak.until_up(lambda: http.put(f"/v1/sessions/{name}", json={"cluster": "16x8", "price": 60}))
        while not soak.over:
            now += draw.expovariate(1 / 30.0)
            ends = [job for job, end in jobs.items() if end is not None and end <= now]
            if ends:
                asked = {"event": "finish", "now": now, "job": ends[0]}
            else:
                count += 1
                asked = {"event": "submit", "now": now, "job": f"{name}-{count}", "gpus": draw.choice((1, 2, 4, 8)),
                         "seconds": draw.expovariate(1 / 900.0), "user": draw.choice("abc")}  # fmt: skip
            began = time.monotonic()
            try:
                answer = http.post(events, json=[asked, {"event": "decide"}])
                if answer.status_code == 503:
                    raise httpx.ReadError("it ends")
                told, decided = answer.json()
            except DOWN:
                # who got no answer asks what the service knows
                soak.counts["decisions without an answer"] += 1
                found = soak.until_up(lambda after=last: http.post(events, json=[{"event": "decisions", "after": after},
                                                                      {"event": "state"}]))  # fmt: skip
                if found is None:
                    return
                missed, state = (x["answer"] for x in found.json())
                runs = {x["job"] for x in state["running"]}
                known = runs | {x if isinstance(x, str) else x["job"] for x in state["waiting"]}
                lost = set(jobs) - known - {asked["job"]}
                if (
                    lost
                    or state["decisions"] < last
                    or [x["number"] for x in missed] != list(range(last + 1, state["decisions"] + 1))
                ):
                    soak.fault(f"{name} lost {sorted(lost)[:5]}; {state['decisions']} decisions, {last} were answered")
                now, last = max(now, state["now"]), state["decisions"]
                jobs = {job: now + draw.expovariate(1 / 900.0) if job in runs else None for job in known}
                continue
            soak.times.append((began - soak.began, time.monotonic() - began))
            soak.counts["decisions"] += 1
            if "error" in told or "error" in decided:
                soak.fault(f"{asked}: {told} {decided}"[:600])
                return
            last = decided["answer"]["number"]
            jobs[asked["job"]] = None
            if asked["event"] == "finish":
                del jobs[asked["job"]]
            for stop in decided["answer"]["stops"]:
                jobs[stop["job"]] = None
            jobs |= {x["job"]: now + draw.expovariate(1 / 900.0) for x in decided["answer"]["starts"]}
            if len(jobs) > 400:  # too much was asked for
                now += 3600.0
            time.sleep(max(0.0, PERIOD - (time.monotonic() - began)))


def solves(soak: Soak) -> None:
    """Have problems solved; each that was accepted is done, failed or cancelled, whatever happens to the service."""
    draw = random.Random(f"{soak.seed} solves")
    with soak.client() as http:
        while not soak.over:
            given = {"problem": EASY, "time_limit": draw.choice((1, 5)), "wait": 0, "certify": draw.random() < 0.2}
            try:
                found = http.post("/v1/solve", json=given)
            except DOWN:
                time.sleep(0.5)
                continue
            if found.status_code != 202:
                if found.status_code not in (429, 503):
                    soak.fault(f"solve: {found.status_code} {found.text[:300]}")
                time.sleep(1.0)
                continue
            soak.counts["solves accepted"] += 1
            where, until, life = found.headers["location"], time.monotonic() + 90.0, soak.life
            if draw.random() < 0.1:
                soak.until_up(lambda: http.delete(where))  # noqa: B023
            while not soak.over or soak.life == life:
                found = soak.until_up(lambda: http.get(where))  # noqa: B023
                if found is None:
                    soak.counts["solves accepted"] -= 1  # the soak ended first
                    return
                data = found.json()
                if data.get("state") in ("done", "failed", "cancelled"):
                    soak.counts[f"solves {data['state']}"] += 1
                    if data["state"] == "failed" and data["error"]["field"] != "service":
                        soak.fault(f"solve: {found.text[:300]}")
                    break
                if found.status_code not in (200, 202) or time.monotonic() > until:
                    soak.fault(f"solve is not answered: {found.status_code} {found.text[:300]}")
                    break
                time.sleep(0.3)


def others(soak: Soak) -> None:
    """Ask what keeps nothing, rightly and wrongly; sessions that come and go; connections that are left half-way."""
    draw = random.Random(f"{soak.seed} others")
    plan = {"schema_version": 1, "kind": "partition_plan", "ops": ["a"], "device": [0], "stage": [0]}
    asks: list[tuple[str, str, Any, tuple[int, ...]]] = [
        ("POST", "/v1/decide", {"cluster": "4x8", "events": [{"event": "decide"}]}, (200,)),
        ("POST", "/v1/verify", {"problem": EASY, "plan": plan}, (200, 422)),
        ("PUT", "/v1/sessions/brief", {"cluster": "4x8"}, (200, 201)),
        ("POST", "/v1/sessions/brief/events", [{"event": "decide"}] * 5, (200, 404)),
        ("DELETE", "/v1/sessions/brief", None, (200, 404)),
        ("GET", "/metrics", None, (200,)),
        ("GET", "/v1/sessions/s0/log", None, (200, 404)),
        ("POST", "/v1/decide", "{", (400,)),
        ("POST", "/v1/decide", {"cluster": "4x8", "events": "no"}, (422,)),
        ("POST", "/v1/solve", {"problem": 1, "time_limit": -1}, (422,)),
    ]
    with soak.client() as http:
        while not soak.over:
            method, path, body, right = draw.choice(asks)
            content = body if isinstance(body, str) else None if body is None else json.dumps(body)
            try:
                if draw.random() < 0.05:
                    with socket.create_connection(("127.0.0.1", soak.port), 5) as half:
                        half.sendall(b"POST /v1/decide HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{")
                    soak.counts["connections left"] += 1
                head = {"content-type": "application/json"} if content else {}
                found = http.request(method, path, content=content, headers=head)
                soak.counts["other requests"] += 1
                if found.status_code not in (*right, 429, 503):
                    soak.fault(f"{method} {path}: {found.status_code} {found.text[:300]}")
            except (*DOWN, OSError):
                soak.counts["other requests without an answer"] += 1
                time.sleep(0.5)
            time.sleep(0.1)


def watch(soak: Soak) -> None:
    """Note what memory the service has, twice a second."""
    while not soak.over:
        try:
            pages = Path(f"/proc/{soak.process.pid}/statm").read_text().split()[1]
            soak.memory.append((soak.life, time.monotonic() - soak.up, int(pages) * 4096 / 1e6))
        except (OSError, IndexError):
            pass
        time.sleep(0.5)


def table(soak: Soak, minutes: float) -> str:
    """Return what was seen."""
    rows = [f"{count:>9,} {name}" for name, count in sorted(soak.counts.items())]
    times = np.array(soak.times)
    for i in range(3):
        third = times[(times[:, 0] // (minutes * 20)).clip(0, 2) == i][:, 1] * 1000
        if len(third):
            p50, p99, most = *np.percentile(third, (50, 99)), third.max()
            words = f"decisions of third {i + 1}: median {p50:.1f}, p99 {p99:.1f}, longest {most:.0f} ms"
            rows.append(f"{len(third):>9,} {words}")
    lives = [[(age, x) for life, age, x in soak.memory if life == n and age > 30] for n in range(1, soak.life + 1)]
    grown = [(some[-1][1] - some[0][1]) / (some[-1][0] - some[0][0]) * 60 for some in lives if len(some) > 60]
    if grown:
        words = f"MB a minute grows memory from 30 s on, median of {len(grown)} lives; at most {max(grown):.1f}"
        rows.append(f"{np.median(grown):>9.1f} {words}")
        rows.append(f"{max(x for _, _, x in soak.memory):>9.0f} MB at most")
    return "\n".join([*rows, f"{len(soak.faults):>9} faults"])


def main() -> int:
    """Return 1 if something was lost."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sessions", type=int, default=2, help="that decide all the time")
    args = parser.parse_args()
    draw = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder) / "state", args.seed)
        work: list[tuple[Any, ...]] = [(decides, soak, f"s{i}") for i in range(args.sessions)]
        work += [(solves, soak), (others, soak), (watch, soak)]
        threads = [threading.Thread(target=act, args=given, daemon=True) for act, *given in work]
        for thread in threads:
            thread.start()
        end = soak.began + 60 * args.minutes
        while time.monotonic() < end:
            time.sleep(min(draw.uniform(*LIVES), max(0.0, end - time.monotonic())))
            if dead := [x.name for x in threads if not x.is_alive()]:
                soak.fault(f"{dead} ended")
                break
            soak.end(signal.SIGKILL if draw.random() < 0.8 else signal.SIGTERM)
            time.sleep(draw.uniform(0.0, 1.0))
            soak.start()
        soak.over = True
        for thread in threads:
            thread.join(100.0)
        soak.end(signal.SIGTERM)
    print(table(soak, args.minutes))
    return 1 if soak.faults else 0


if __name__ == "__main__":
    sys.exit(main())
