"""Commits and refs: what a repository's history says, and compare-and-set changes to refs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from baton_cli.errors import BatonError
from baton_cli.git.run import GitResult, decode, encode, git

NO_OID = ""  # as an old value: the ref must not exist yet. Zeros would depend on the hash
FALLBACK_IDENTITY = {
    "GIT_AUTHOR_NAME": "Baton",
    "GIT_AUTHOR_EMAIL": "baton@localhost",
    "GIT_COMMITTER_NAME": "Baton",
    "GIT_COMMITTER_EMAIL": "baton@localhost",
}
# What git says when it knows no identity (ident.c); the texts are stable under LC_ALL=C.
NO_IDENTITY = ("tell me who you are", "empty ident name", "auto-detection is disabled", "unable to auto-detect")
REF_TRIES, REF_PAUSE = 10, 0.1  # another git process holds a ref's lock for milliseconds


@dataclass(frozen=True, slots=True)
class Head:
    """Where a checkout stands: commit id, the branch's short name (None when detached), and the commit's tree."""

    oid: str
    branch: str | None
    tree: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, with its whole message as stored."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    message: str

    @property
    def subject(self) -> str:
        """The first paragraph, on one line."""
        return " ".join(self.message.partition("\n\n")[0].split("\n")).strip()

    @property
    def body(self) -> str:
        """Everything after the first paragraph."""
        return self.message.partition("\n\n")[2]


def head(cwd: Path) -> Head:
    """The checkout's HEAD. Error `no_commits` when its branch has none yet."""
    result = git("rev-parse", "HEAD", "HEAD^{tree}", "--symbolic-full-name", "HEAD", cwd=cwd, ok=(0, 128))
    if result.code:
        if "not a git repository" in result.err or "unknown revision" not in result.err:
            line = next(iter(result.err.splitlines()), f"exit code {result.code}")
            raise BatonError("git_failed", f"git rev-parse: {line}", f"git was called in {cwd}")
        raise BatonError("no_commits", f"{cwd} has no commit yet", "make a first commit, then run the command again")
    oid, tree, name = result.text.split("\n")
    return Head(oid, name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else None, tree)


def resolve(cwd: Path, rev: str) -> str | None:
    """The commit a revision names, None when it names no commit."""
    found = git("rev-parse", "-q", "--verify", "--end-of-options", f"{rev}^{{commit}}", cwd=cwd, ok=(0, 1)).text
    return None if "\n" in found else found or None  # a range gives two lines


def tree(cwd: Path, rev: str) -> str:
    """The tree id of a revision. Error `git_failed` when there is none."""
    return git("rev-parse", "--verify", "--end-of-options", f"{rev}^{{tree}}", cwd=cwd).text


def refs(cwd: Path, *prefixes: str) -> dict[str, str]:
    """Full ref name -> object id, of all refs equal to or below the prefixes (all refs without one); one git call."""
    lines = git("for-each-ref", "--format=%(objectname) %(refname)", "--", *prefixes, cwd=cwd).text.splitlines()
    return {name: oid for oid, _, name in (line.partition(" ") for line in lines)}


def commits(cwd: Path, *names: str) -> dict[str, tuple[str, str]]:
    """Full ref name -> commit id and tree id, of those refs that are there."""
    lines = git("for-each-ref", "--format=%(objectname) %(tree) %(refname)", "--", *names, cwd=cwd).text.splitlines()
    return {name: (oid, tree) for oid, tree, name in (line.split(" ", 2) for line in lines)}


def standing(cwd: Path, ref: str) -> tuple[str | None, Path | None]:
    """The commit that a branch (full name) is at, and the worktree that has it checked out; one git call."""
    shape = "--format=%(objectname)%00%(worktreepath)"
    oid, _, place = git("for-each-ref", shape, "--", ref, cwd=cwd).text.partition("\0")
    return oid or None, Path(place) if place else None


def update_ref(cwd: Path, name: str, new: str, old: str) -> bool:
    """Move a ref from `old` (`NO_OID`: it must not exist) to `new`; False, and nothing changed, when it was not at
    `old`. A ref that others have locked is tried for a second. Error `git_failed` for everything else."""
    return _compare_and_set(cwd, name, old, ("-m", "baton", name, new, old))


def delete_ref(cwd: Path, name: str, old: str) -> bool:
    """Delete a ref that is at `old`; False, and nothing changed, when it is not there."""
    return _compare_and_set(cwd, name, old, ("-m", "baton", "-d", name, old))


def _compare_and_set(cwd: Path, name: str, old: str, args: Sequence[str]) -> bool:
    for attempt in range(REF_TRIES):
        result = git("update-ref", "--no-deref", *args, cwd=cwd, ok=(0, 1, 128))
        if result.code == 0:
            return True
        # git says in many wordings that it lost; the ref itself says it in one
        if _current(cwd, name) != old:
            return False
        if ".lock': File exists" not in result.err or attempt == REF_TRIES - 1:
            break
        time.sleep(REF_PAUSE)
    line = next(iter(result.err.splitlines()), f"exit code {result.code}")
    raise BatonError("git_failed", f"git update-ref: {line}", f"see what is in the way of {name}")


def _current(cwd: Path, name: str) -> str:
    result = git("rev-parse", "-q", "--verify", "--end-of-options", name, cwd=cwd, ok=(0, 1, 128))
    return result.text if result.code == 0 else NO_OID


def is_ancestor(cwd: Path, ancestor: str, descendant: str) -> bool:
    """Whether `descendant` contains `ancestor` (a commit contains itself)."""
    return git("merge-base", "--is-ancestor", ancestor, descendant, cwd=cwd, ok=(0, 1)).code == 0


def not_merged(cwd: Path, names: Sequence[str], into: str) -> frozenset[str]:
    """Those of the refs (full names) that are there and that `into` does not contain; one git call."""
    shape = "--format=%(refname)"
    return frozenset(git("for-each-ref", shape, f"--no-merged={into}", "--", *names, cwd=cwd).text.splitlines())


def conflict_markers(cwd: Path, commit: str) -> frozenset[str]:
    """The files of a commit that hold both ends of a conflict, as git marks them."""
    ends = ("-e", "^<<<<<<< ", "-e", "^>>>>>>> ")
    found = git("grep", "-z", "-l", "--all-match", *ends, commit, "--", cwd=cwd, ok=(0, 1)).names
    return frozenset(name.removeprefix(f"{commit}:") for name in found)


def held_by(cwd: Path, oid: str) -> tuple[str, ...]:
    """The local branches (full names) that contain a commit, sorted."""
    return tuple(
        git("for-each-ref", "--format=%(refname)", f"--contains={oid}", "refs/heads/", cwd=cwd).text.splitlines()
    )


def merge_base(cwd: Path, a: str, b: str) -> str | None:
    """The best common ancestor, None for unrelated histories."""
    return git("merge-base", a, b, cwd=cwd, ok=(0, 1)).text or None


def changed_paths(cwd: Path, old: str, new: str) -> tuple[str, ...]:
    """Paths that differ between two commits or trees; a rename is both its names."""
    return git("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new, "--", cwd=cwd).names


def first_parent(cwd: Path, old: str | None, new: str) -> tuple[Commit, ...]:
    """The commits from `old` (without it; None: from the beginning) to `new`, following first parents, oldest first."""
    revisions = (new,) if old is None else (new, f"^{old}")
    shape = "--format=%H%x00%T%x00%P%x00%B"
    out = git("log", "--first-parent", "--reverse", "-z", "--no-patch", shape, *revisions, "--", cwd=cwd).out
    fields = [decode(field) for field in out.split(b"\0")]
    return tuple(_commit(*fields[start : start + 4]) for start in range(0, len(fields) - 1, 4))


def _commit(oid: str, tree: str, parents: str, message: str) -> Commit:
    return Commit(oid, tree, tuple(parents.split()), message)


def patch(cwd: Path, old: str, new: str | None) -> str:
    """The difference between two commits, or (`new` None) between a commit and the files at `cwd`, as text."""
    ends = (old,) if new is None else (old, new)
    return git("diff", "--no-ext-diff", "--no-textconv", "--no-color", *ends, "--", cwd=cwd).text


def log_subjects(cwd: Path, old: str, new: str) -> tuple[str, ...]:
    """Subjects of all commits in `new` that are not in `old`, oldest first."""
    out = git("log", "--reverse", "-z", "--no-patch", "--format=%s", new, f"^{old}", "--", cwd=cwd).out
    return tuple(decode(subject) for subject in out.split(b"\0")[:-1])


def commit_tree(cwd: Path, tree: str, parents: Sequence[str], message: str) -> str:
    """Write a commit object (no hook, no signature, no ref moved) and return its id. The author is the user as git
    knows them, or `FALLBACK_IDENTITY` when it knows nobody."""
    ancestry = [part for parent in parents for part in ("-p", parent)]
    args = ("commit-tree", "--no-gpg-sign", *ancestry, "-F", "-", tree)
    return with_identity(lambda env, ok: git(*args, cwd=cwd, input=encode(message), env=env, ok=ok)).text


def user_name(cwd: Path) -> str:
    """What git calls the user; empty when nobody told it."""
    return git("config", "user.name", cwd=cwd, ok=(0, 1)).text.strip()


def with_identity(call: Callable[[Mapping[str, str], Sequence[int]], GitResult], ok: Sequence[int] = (0,)) -> GitResult:
    """Make a call that writes a commit as the user; when git knows no user, once more as `FALLBACK_IDENTITY`.

    Variables such as GIT_AUTHOR_NAME are the user's identity too (the usual way on a build machine), so these four pass
    the filter of `run`; dates do not.
    """
    own = {name: value for name in FALLBACK_IDENTITY if (value := os.environ.get(name, "").strip())}
    result = call(own, (*ok, 1, 128))
    if result.code and any(symptom in result.err for symptom in NO_IDENTITY):
        return call({**FALLBACK_IDENTITY, **own}, ok)
    if result.code not in ok:
        line = next(iter(result.err.splitlines()), f"exit code {result.code}")
        raise BatonError("git_failed", f"git could not commit: {line}", "see what git says about the repository")
    return result


def checked_out(cwd: Path) -> dict[str, Path]:
    """Branch short name -> the worktree it is checked out in."""
    return {branch: path for path, branch in worktrees(cwd).items() if branch is not None}


def worktrees(cwd: Path) -> dict[Path, str | None]:
    """Every registered worktree (the main one too) -> its branch's short name, None when detached or bare."""
    found: dict[Path, str | None] = {}
    path = Path()
    for line in git("worktree", "list", "--porcelain", "-z", cwd=cwd).names:
        key, _, value = line.partition(" ")
        if key == "worktree":
            path = Path(value)
            found[path] = None
        elif key == "branch":
            found[path] = value.removeprefix("refs/heads/")
    return found


def committed_at(cwd: Path) -> float:
    """When the commit at HEAD was made, in seconds since the epoch."""
    return float(git("log", "-1", "--format=%ct", cwd=cwd).text or 0)


def stash(cwd: Path) -> str | None:
    """The commit that refs/stash is at; it is shared by all worktrees."""
    return resolve(cwd, "refs/stash")
