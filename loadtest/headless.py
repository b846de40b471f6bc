"""`make loadtest`: locust without its page, on a cluster of its own; leaves a report."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from mobula.cluster import LocalCluster

LOCUSTFILE = Path(__file__).parent / "locustfile.py"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make loadtest", description=__doc__)
    parser.add_argument("--users", type=int, default=8, help="half produce, half consume")
    parser.add_argument("--time", default="30s", help="how long, as locust writes it: 30s, 5m")
    parser.add_argument("--out", type=Path, default=LOCUSTFILE.parent / "out")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with LocalCluster() as cluster:
        done = subprocess.run(
            [
                sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless",
                "--host", cluster.bootstrap, "--users", str(options.users), "--spawn-rate", "4",
                "--run-time", options.time, "--html", str(options.out / "report.html"),
                "--csv", str(options.out / "load"), "--only-summary",
            ],
            check=False,
        )  # fmt: skip
    print(f"report: {options.out / 'report.html'}")  # noqa: T201
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
