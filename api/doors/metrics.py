"""Count requests, decisions and solves, and time them, for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

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
        self.running = 0

    def note(self, answers: Any) -> None:
        """Count the events that were answered."""
        for answer in answers if isinstance(answers, list) else [answers]:
            self.events[answer.get("event", "") if "error" not in answer else "", "error" in answer] += 1
            if "seconds" in answer:
                self.decisions.note(answer["seconds"])

    def text(self, gauges: Mapping[str, float], solves: Mapping[str, int]) -> str:
        """Return all as Prometheus has it."""
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
        for name, value in gauges.items():
            lines += [f"# TYPE gangplan_{name} gauge", f"gangplan_{name} {value}"]
        return "\n".join(lines) + "\n"
