"""How the demo looks at the project: plain git in a process of its own, and the files. Nothing of Baton is asked.

Rule: whatever is concluded from here must be what a stranger with git and a text editor would see.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baton_cli.demo.agent import named
from baton_cli.errors import BatonError

BOX = re.compile(rb"^\s*[-*] \[([ xX])\] (?:(\d+\.\d+) )?(.*)", re.M)


def environment() -> dict[str, str]:
    """For git of the demo and of its agents: nobody's settings but the throwaway repository's own."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("GIT_")}
    fixed = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    return {**kept, **fixed, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def git(place: Path, *words: str, codes: tuple[int, ...] = (0,), **more: str) -> str:
    """stdout of one git call, without white space around it. Errors: `git_missing`, `git_failed`."""
    command, variables = ["git", "-C", str(place), *words], {**environment(), **more}
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=variables, check=False)
    except OSError as error:
        raise BatonError("git_missing", f"git does not start: {error.strerror}", "install git 2.38 or newer") from error
    if done.returncode not in codes:
        raise BatonError("git_failed", f"git {words[0]}: {done.stderr.decode('utf-8', 'replace').strip()}")
    return done.stdout.decode("utf-8", "surrogateescape").strip()


@dataclass(frozen=True, slots=True)
class Checkout:
    """What nobody may change in the user's checkout; tasks.md is looked at on its own."""

    head: str
    config: bytes
    index: bytes
    files: Mapping[str, bytes]

    def differs(self, now: Checkout) -> str | None:
        """The first thing that is not as it was."""
        for name in ("head", "config", "index"):
            if getattr(self, name) != getattr(now, name):
                return f".git/{name} changed" if name != "head" else f"HEAD was {self.head}, is {now.head}"
        changed = sorted(name for name in {*self.files, *now.files} if self.files.get(name) != now.files.get(name))
        return f"{changed[0]} changed" if changed else None


def checkout(root: Path, tasks: Path) -> Checkout:
    """The checkout as it is now; only files are read."""
    files = {}
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in (".git", ".dsh"))
        for path in (Path(folder, name) for name in names):
            if path != tasks:
                mode = f"{path.lstat().st_mode:o} "
                files[path.relative_to(root).as_posix()] = mode.encode() + hashlib.sha256(path.read_bytes()).digest()
    inside = root / ".git"
    head = (inside / "HEAD").read_text().strip()
    if head.startswith("ref: "):
        head += " at " + (inside / head.removeprefix("ref: ")).read_text().strip()
    return Checkout(head, (inside / "config").read_bytes(), (inside / "index").read_bytes(), files)


def numbers(data: bytes) -> dict[str, str]:
    """The number that each ticket of tasks.md has; a ticket is told by its text, as a reader would."""
    found = ((named(box[3].decode()), box[2].decode()) for box in BOX.finditer(data) if box[2])
    return {ticket: number for ticket, number in found if ticket is not None}


def ticked(data: bytes) -> set[str]:
    """The tickets whose box is ticked."""
    texts = (box[3].decode() for box in BOX.finditer(data) if box[2] and box[1] != b" ")
    return {named(text) or text for text in texts}


def boxes(data: bytes) -> list[bytes]:
    """What is between the brackets of every box, in order."""
    return [found[1] for found in BOX.finditer(data)]


@dataclass(frozen=True, slots=True)
class Merge:
    """One first-parent commit of the integration branch after its base."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    ticket: str | None  # by its title
    number: str | None
    fault: str | None  # why its message is no evidence


def merges(place: Path, base: str, head: str) -> list[Merge]:
    """The branch, oldest first; nothing while there is no such branch."""
    words = ("log", "--first-parent", "--reverse", "-z", "--format=%H%x01%T%x01%P%x01%B", f"{base}..{head}", "--")
    log = git(place, *words, codes=(0, 128))
    return [_merge(*entry.strip("\n").split("\x01")) for entry in log.split("\0") if entry]


def _merge(oid: str, tree: str, parents: str, body: str) -> Merge:
    found = re.search(r"^Baton-Ticket: \S*#(\d+\.\d+) \S+$", body, re.M)
    wanted = re.search(r"^Baton-Receipt: ([0-9a-f]{64})$", body, re.M)
    receipts = [line for line in body.split("\n") if line.startswith("{") and '"schema":"baton.receipt/1"' in line]
    fault: str | None
    if found is None or wanted is None or len(receipts) != 1 or len(parents.split()) != 2:
        fault = "it is no merge with a receipt"
    else:
        fault = _receipt_fault(receipts[0], wanted[1], parents.split()[1])
    title = body.partition("\n")[0]
    return Merge(oid, tree, tuple(parents.split()), named(title), found[1] if found else None, fault)


def _receipt_fault(line: str, digest: str, merged: str) -> str | None:
    try:
        receipt: dict[str, Any] = json.loads(line)
        said, head, codes = receipt.pop("digest"), receipt["head"], [item["exit_code"] for item in receipt["checks"]]
    except (ValueError, KeyError, TypeError):
        return "its receipt cannot be read"
    text = json.dumps(receipt, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    if not said == digest == hashlib.sha256(text.encode("utf-8")).hexdigest():
        return "its receipt does not have the digest it names"
    if head != merged:
        return "its receipt is for another commit"
    return None if codes and set(codes) == {0} else f"its checks exited with {codes}"
