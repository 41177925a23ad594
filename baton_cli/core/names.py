"""Names that git and file systems accept, made from names that people wrote."""

from __future__ import annotations

import re

from baton_cli.core import canonical

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_DRIVEN = re.compile(r"drive-[0-9]+-[0-9]+")


def slug(name: str) -> str:
    """A single path or ref component that stands for `name`: itself where it is plain, else a readable part and a digest.

    Ref rules that matter: no `..`, no trailing dot or `.lock`, nothing but ASCII that every file system keeps apart. The
    `@` before the digest is in no plain name, so that no name is the slug of another one.
    """
    if _SAFE.fullmatch(name) and ".." not in name and not name.endswith((".", ".lock")) and len(name) <= 60:
        return name
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:40].strip("-")
    mark = canonical.digest(name.encode("utf-8", "surrogateescape"))[:6]
    return f"{plain}@{mark}"


def integration_branch(prefix: str, change: str) -> str:
    """The branch on which the finished tickets of a change meet."""
    return f"{prefix}/{slug(change)}/{INTEGRATION}"


def ticket_branch(prefix: str, change: str, ticket: str, mark: str) -> str:
    """The branch of one assignment; `mark` keeps it apart from every other."""
    return f"{prefix}/{slug(change)}/{slug(ticket)}-{mark}"


# Worktrees that are no assignment's: the one where Baton merges a change, and the one in which checks are tried.
INTEGRATION, BASELINE = "integration", "baseline"
SEALED, REPLACED = "refs/baton/sealed/", "refs/baton/replaced/"


def sealed_ref(assignment_id: str) -> str:
    """The ref that keeps a sealed head reachable whatever happens to its branch."""
    return f"{SEALED}{assignment_id}"


def replaced_ref(assignment_id: str, oid: str) -> str:
    """The ref that keeps a head which was sealed once and does not lie below the one that was sealed later."""
    return f"{REPLACED}{assignment_id}-{oid[:12]}"


def assignment_of_ref(ref: str) -> str | None:
    """The assignment whose sealed or replaced head a ref keeps; None for any other ref."""
    if ref.startswith(SEALED):
        return ref.removeprefix(SEALED)
    return ref.removeprefix(REPLACED).rpartition("-")[0] if ref.startswith(REPLACED) else None


def driven_agent(pid: int, number: int) -> str:
    """The agent id of the n-th run that a `drive` starts; `pid` is that of the drive."""
    return f"drive-{pid}-{number}"


def is_driven(agent: str) -> bool:
    """Whether an agent id is one that a `drive` gave."""
    return _DRIVEN.fullmatch(agent) is not None
