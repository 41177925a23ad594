"""`python -m bench [ROW ...] [--quick] [--json FILE] [--peers DIR]`: a table, and JSON for those who compare runs."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import scene
from bench.measure import Row
from bench.scene import Settings

Measured = Callable[[Settings], Iterator[Row]]


def rows() -> dict[str, Measured]:
    """Every row, by its name, in the order of the table."""
    from bench import locking, pages, peers, plans, protocol, serving, starting

    return {
        "start": starting.start,
        "modules": starting.modules,
        "growth": starting.growth,
        "actions": protocol.actions,
        "integrate": protocol.integrate,
        "claims": locking.claims,
        "plan": plans.plan,
        "parse": plans.parse,
        "board": pages.board,
        "mcp": serving.mcp,
        "locks": locking.locks,
        "peers": peers.peers,
    }


def machine() -> dict[str, object]:
    """What the figures were taken on. Not its name."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "git": scene.git(Path("."), "version").removeprefix("git version "),
        "load at start": load,
    }


def line(row: Row) -> str:
    """A row in words."""
    verdict = {None: "", True: "met", False: "MISSED"}[row.met]
    value = f"{row.value:.4g} {row.unit}"
    cpu = "" if row.cpu is None else f"cpu {row.cpu:.3g}"
    return f"{row.name:<10} {row.what:<58} {value:>13} {cpu:>9} {row.goal:>9} {verdict:<6}  {row.note}".rstrip()


def options() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Baton's speed beside its floors.")
    parser.add_argument("row", nargs="*", choices=[[], *rows()], help=f"only these: {', '.join(rows())}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and no 50,000 files")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures there too")
    parser.add_argument(
        "--peers", metavar="DIR", type=Path, help="where the peers are; installed there when DIR is new"
    )
    parser.add_argument("--tmp", metavar="DIR", type=Path, help="where to make the repositories (several GB in full)")
    return parser.parse_args()


def main() -> int:
    """Measure, print, and end with 0 however the goals fared: a busy machine is no bug."""
    asked = options()
    peers = asked.peers.resolve() if asked.peers else None
    target = asked.json.resolve() if asked.json else None
    folder = Path(tempfile.mkdtemp(prefix="baton-bench-", dir=asked.tmp)).resolve()
    told: dict[str, object] = machine()
    sys.stdout.write(", ".join(f"{name} {value}" for name, value in told.items()) + "\n")
    found: list[Row] = []
    try:
        scene.prepare(folder)
        settings = Settings(folder, asked.quick, peers)
        for name, measured in rows().items():
            if asked.row and name not in asked.row:
                continue
            begun = time.monotonic()
            for row in measured(settings):
                found.append(row)
                sys.stdout.write(line(row) + "\n")
                sys.stdout.flush()
            sys.stderr.write(f"bench: {name} took {time.monotonic() - begun:.0f} s\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if target:
        value = {"schema": "baton.bench/1", "machine": told, "quick": asked.quick, "rows": [r._asdict() for r in found]}
        target.write_text(json.dumps(value, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
