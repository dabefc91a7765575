"""Report the ratios that the comparisons measured, after the table of pytest-benchmark."""

from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print a line for each comparison."""
    found = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == "ratio"
    ]
    if found:
        terminalreporter.section("ratios of seconds to the proof")
        for line in found:
            terminalreporter.write_line(line)
