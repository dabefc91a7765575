"""A scheduler and a solve over HTTP: the service is started on a free port, asked, and ended."""

import subprocess
import sys
import tempfile

import gangplan
from gangplan.doors.client import Client


def ask(url: str) -> list[str]:
    """Return who started, and print what a solve came to."""
    client = Client(url)  # the standard library alone: copy it to wherever your jobs are submitted
    session = client.session("dev", "2x8", price=60)
    started = []
    for i in range(4):
        session.submit(f"job{i}", gpus=6, seconds=600 - 100 * i, now=60 * i)
        started += [start.job for start in session.decide().starts]
    print("job3 waits:", session.ask("explain", what="job3")["why"])
    problem = gangplan.generate("bert", layers=1, devices=2)
    solved = client.solve(problem, 10, progress=lambda row: print("  found", row.get("objective")))
    print(f"{solved.state}: {solved.objective:.4g} s, feasible: {client.verify(problem, solved.plan)['feasible']}")
    return started


def main() -> list[str]:
    """Start the service, which keeps its sessions in a folder, and ask it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gangplan", "serve", "--port", "0", "--state", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
            try:
                return ask(service.stdout.readline().split()[-1])  # "gangplan serves http://127.0.0.1:..."
            finally:
                service.terminate()


if __name__ == "__main__":
    print(main())
