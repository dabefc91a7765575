"""Count requests, decisions and solves, and time them, for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from .figures import Figures

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)


class Times:
    """A histogram of seconds."""

    def __init__(self) -> None:
        self.counts, self.sum = [0] * (len(_BOUNDS) + 1), 0.0

    def note(self, seconds: float) -> None:
        """Count a time."""
        self.counts[next((i for i, bound in enumerate(_BOUNDS) if seconds <= bound), len(_BOUNDS))] += 1
        self.sum += seconds

    def lines(self, name: str) -> Iterator[str]:
        """Yield it as Prometheus has it."""
        total = 0
        yield f"# TYPE {name} histogram"
        for bound, count in zip((*_BOUNDS, "+Inf"), self.counts, strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self.sum}"
        yield f"{name}_count {total}"


class Metrics:
    """Count what happens."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.seconds, self.decisions = Times(), Times()
        self.events: Counter[tuple[str, bool]] = Counter()
        self.stops: Counter[tuple[str, str]] = Counter()
        self.running = 0

    def note(self, answers: Any, session: str = "") -> None:
        """Count the events that were answered, and the stops that a session decided."""
        for answer in answers if isinstance(answers, list) else [answers]:
            self.events[answer.get("event", "") if "error" not in answer else "", "error" in answer] += 1
            if "seconds" in answer:
                self.decisions.note(answer["seconds"])
            if session and answer.get("event") in ("decide", "apply") and "error" not in answer:
                self.stops.update((session, stop["cause"]) for stop in answer["answer"]["stops"])

    def text(self, gauges: Mapping[str, float], solves: Mapping[str, int], sessions: Mapping[str, Figures]) -> str:
        """Return all as Prometheus has it, of each session what its cluster holds."""
        lines = ["# TYPE gangplan_requests_total counter"]
        for (method, route, status), count in sorted(self.requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            lines.append(f"gangplan_requests_total{{{labels}}} {count}")
        lines += self.seconds.lines("gangplan_request_seconds")
        lines.append("# TYPE gangplan_events_total counter")
        for (event, wrong), count in sorted(self.events.items()):
            lines.append(f'gangplan_events_total{{event="{event}",error="{wrong}"}} {count}'.lower())
        lines += self.decisions.lines("gangplan_decision_seconds")
        lines.append("# TYPE gangplan_solves_total counter")
        lines += [f'gangplan_solves_total{{state="{state}"}} {count}' for state, count in solves.items()]
        lines.append("# TYPE gangplan_stops_total counter")
        lines += [_line("stops_total", n, session=name, cause=cause) for (name, cause), n in sorted(self.stops.items())]
        lines += _of_sessions(sessions)
        for name, value in gauges.items():
            lines += [f"# TYPE gangplan_{name} gauge", f"gangplan_{name} {value}"]
        return "\n".join(lines) + "\n"


def _line(name: str, value: float, **labels: str) -> str:
    """Return a value with its labels, which may be any text."""
    texts = (x.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for x in labels.values())
    given = ",".join(f'{key}="{text}"' for key, text in zip(labels, texts, strict=True))
    return f"gangplan_{name}{{{given}}} {value}"


def _of_sessions(sessions: Mapping[str, Figures]) -> Iterator[str]:
    """Yield what clusters hold, by type, and what queues have."""
    yield "# TYPE gangplan_gpus gauge"
    for session, each in sessions.items():
        for kind in each["types"]:
            counts = {"held": kind["held"], "idle": kind["idle"], "down": kind["down"]}
            yield from (_line("gpus", n, session=session, type=kind["type"], state=name) for name, n in counts.items())
    yield "# TYPE gangplan_jobs gauge"
    for session, each in sessions.items():
        for queue in each["queues"]:
            counts = {"running": queue["running"], "waiting": queue["waiting"]}
            yield from (_line("jobs", n, session=session, queue=queue["queue"], state=x) for x, n in counts.items())
    yield "# TYPE gangplan_queue_share gauge"
    for session, each in sessions.items():
        for queue in each["queues"]:
            shares = {"held": queue["share"], "guaranteed": queue["guaranteed"], "most": queue["most"]}
            rows = ((name, share) for name, share in shares.items() if share is not None)
            yield from (_line("queue_share", n, session=session, queue=queue["queue"], of=name) for name, n in rows)
