"""An agent for `baton drive` whose conduct is a pure function of seed, ticket and attempt. Now and then it plays the person.

python bad_company.py SEED
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path


def git(*words: str, cwd: str | Path = ".", check: bool = True) -> str:
    return subprocess.run(["git", "-C", str(cwd), *words], check=check, capture_output=True, text=True).stdout.strip()


def commit(text: str) -> None:
    git("add", "-A")
    git("commit", "-q", "--allow-empty", "-m", text, check=False)


def put_right(branch: str, base: str) -> None:
    """Back to the branch, without what the checks or the seal would refuse."""
    if git("symbolic-ref", "-q", "--short", "HEAD", check=False) != branch:
        commit("left behind")
        git("switch", "-q", branch)
    if not git("ls-files", "--unmerged"):
        git("checkout", "-q", base, "--", "openspec")
    git("rm", "-q", "-f", "--ignore-unmatch", "red", "left", "right")
    for name in ("red", "left", "right"):
        Path(name).unlink(missing_ok=True)


def person(project: Path, dice: random.Random, name: str) -> None:
    """Someone at the keyboard of the checkout, one at a time."""
    with open(project / ".git" / "person", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if dice.random() < 0.5:
            (project / f"user-{name}.txt").write_text("mine\n")
            git("add", f"user-{name}.txt", cwd=project)
            git("commit", "-q", "-m", "the user's own", "--", f"user-{name}.txt", cwd=project)
        else:
            with open(next((project / "openspec" / "changes").glob("*/tasks.md")), "a") as tasks:
                tasks.write(f"- [ ] One more, thought of during {name}\n")


def main() -> int:
    ticket, attempt = os.environ["BATON_TICKET"].rpartition("#")[2], os.environ["BATON_ATTEMPT"]
    dice = random.Random(f"{sys.argv[1]} {ticket} {attempt}")
    packet = json.loads(Path(os.environ["BATON_PACKET"]).with_suffix(".json").read_text())
    first = attempt == "1"
    conduct = dice.choice(
        ["lie", "crash", "crash loudly", "dirty", "tick", "elsewhere", "left", "right", "shared", "shared"]
        + ["good"] * 8
    )
    if not first:
        put_right(packet["branch"], packet["base"])
        conduct = "good"
    if first and dice.random() < 0.12:
        person(Path(os.environ["BATON_PROJECT"]), dice, ticket)
    if conduct == "lie":
        return 0
    for conflict in git("diff", "--name-only", "--diff-filter=U").split():
        Path(conflict).write_text(f"{ticket} {attempt}\n")
    Path(f"{ticket}-{attempt}.txt").write_text("done\n")
    if conduct == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if conduct == "crash loudly":
        return 3
    if conduct in ("left", "right", "shared"):
        Path(conduct).write_text(f"{ticket}\n")
    if conduct == "tick":
        tasks = next(Path("openspec", "changes").glob("*/tasks.md"))
        tasks.write_bytes(tasks.read_bytes().replace(b"[ ]", b"[x]", 1))
    if conduct == "elsewhere":
        git("switch", "-q", "-C", f"elsewhere-{ticket}")
    commit(f"{ticket} {attempt}")
    if conduct == "dirty":
        Path("left-over.txt").write_text("not committed\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
