"""The files of a checkout: what differs from HEAD, what is extra, which operation is in progress."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from baton_cli.errors import BatonError
from baton_cli.git.run import decode, encode, git

# Names of files and folders that never count: well-known by-products that tools look up for speed only. What can decide
# a result is not here: loose *.pyc (importable without source), .tox, .nox, .eggs, node_modules/.cache, .coverage.
KNOWN_CACHES: tuple[str, ...] = (
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    ".DS_Store",
    "Thumbs.db",
)
OPERATIONS = (  # files in the git folder, most telling first: a rebase also leaves a CHERRY_PICK_HEAD
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("MERGE_HEAD", "merge"),
    ("BISECT_LOG", "bisect"),
)
FRESH_INDEX = "baton-index"
BUILT_IN_DRIVERS = ("unspecified", "set", "unset", "text", "binary", "union")


@dataclass(frozen=True, slots=True)
class Cleanliness:
    """How a checkout differs from its HEAD commit `head`, which `branch` is at (None: none). Paths are relative to its top.

    `ignored` names ignored files, folders collapsed with a trailing "/"; `ignored_digest` (sha256 hex) covers path,
    size and modification time of every file in there. `absent` are files that a sparse checkout leaves out: not a
    change, but not there for a test either.
    """

    head: str
    branch: str | None
    changed: tuple[str, ...]
    untracked: tuple[str, ...]
    ignored: tuple[str, ...]
    ignored_digest: str
    absent: tuple[str, ...] = ()


def git_dir(cwd: Path) -> Path:
    """The git folder of the checkout that holds `cwd` (of a linked worktree: its own). Error `not_a_repository`."""
    for folder in (cwd, *cwd.absolute().parents):
        link = folder / ".git"
        if link.is_dir():
            return link
        if link.is_file():
            text = link.read_text(encoding="utf-8", errors="surrogateescape")
            return folder / text.removeprefix("gitdir:").strip()
    raise BatonError("not_a_repository", f"{cwd} is in no git repository", "run the command in the project's folder")


def dirty(cwd: Path, untracked: str = "normal") -> tuple[str, ...]:
    """Modified, staged, unmerged and untracked paths by git's ordinary rules (untracked folders collapsed), sorted."""
    how = ("--porcelain=v1", "-z", f"--untracked-files={untracked}", "--no-renames", "--ignore-submodules=dirty")
    return tuple(sorted(entry[3:] for entry in git("status", *how, cwd=cwd).names))


def unsaved(cwd: Path) -> tuple[str, ...]:
    """The same with each untracked file by itself, and without the well-known caches of tools."""
    return _without_caches(dirty(cwd, "all"))


@dataclass(frozen=True, slots=True)
class Condition:
    """Where a checkout is and what is not committed in it, by git's ordinary rules. `branch` is None when detached."""

    oid: str
    branch: str | None
    dirty: tuple[str, ...]


def condition(cwd: Path) -> Condition:
    """HEAD and `dirty` in one call. Error `no_commits` when HEAD has no commit yet."""
    oid, branch, entries = _status(cwd, None, "--untracked-files=normal", "--ignore-submodules=dirty")
    return Condition(oid, branch, tuple(sorted(path for _, path in entries)))


def against_head(cwd: Path) -> tuple[str, tuple[str, ...]]:
    """HEAD, and the tracked files that differ from it, through a fresh index as in `cleanliness`."""
    with _fresh_index(cwd) as env:
        head, _, entries = _tracked_changes(cwd, env)
    return head, tuple(sorted({path for _, path in entries} - _absent(cwd, entries)))


def cleanliness(cwd: Path) -> Cleanliness:
    """Compare the checkout at `cwd` (its top folder) with HEAD through a fresh index.

    The checkout's own index is not read, so edits under skip-worktree or assume-unchanged show. Untracked is what the
    *committed* .gitignore files do not ignore: info/exclude, the user's excludes and an untracked .gitignore that hides
    itself do not help. `KNOWN_CACHES` are left out. Every tracked file is read: the cost follows the tree.
    """
    with _fresh_index(cwd) as env:
        head, branch, status = _tracked_changes(cwd, env)
        others = ("ls-files", "-z", "--others", "--exclude-per-directory=.gitignore")
        untracked = _without_caches(git(*others, cwd=cwd, env=env).names)
        collapsed = git(*others, "--ignored", "--directory", cwd=cwd, env=env).names
    absent = _absent(cwd, status)
    ignored = _ignored_files(cwd, collapsed)
    hiders = _uncommitted_ignore_files(cwd, ignored)
    return Cleanliness(
        head=head,
        branch=branch,
        changed=tuple(sorted({path for _, path in status} - absent)),
        untracked=tuple(sorted({*untracked, *hiders})),
        ignored=tuple(sorted({_collapse(path, collapsed) for path in ignored})),
        ignored_digest=_digest(cwd, ignored),
        absent=tuple(sorted(absent)),
    )


# A split index would put its shared half into the repository.
_PLAIN = ("-c", "core.splitIndex=false", "-c", "core.untrackedCache=false")


@contextlib.contextmanager
def _fresh_index(cwd: Path) -> Iterator[Mapping[str, str]]:
    """The environment in which git uses a new index that holds exactly HEAD.

    It lies in the checkout's own git folder, always under the same name: what a killed call left of it is removed by
    the next, or goes with the worktree.
    """
    index = git_dir(cwd) / FRESH_INDEX
    _remove(index)
    try:
        env = {"GIT_INDEX_FILE": str(index.absolute())}
        git(*_PLAIN, "read-tree", "HEAD", cwd=cwd, env=env)
        yield env
    finally:
        _remove(index)


def _remove(index: Path) -> None:
    for path in (index, index.with_name(f"{index.name}.lock")):
        path.unlink(missing_ok=True)


Entries = tuple[tuple[str, str], ...]  # git's two letters for a change (index, worktree), and its path


def _tracked_changes(cwd: Path, env: Mapping[str, str]) -> tuple[str, str | None, Entries]:
    return _status(cwd, env, "--untracked-files=no", "--ignore-submodules=untracked")


def _status(cwd: Path, env: Mapping[str, str] | None, *options: str) -> tuple[str, str | None, Entries]:
    """HEAD's commit, the branch it is on, and what differs. Error `no_commits`."""
    plain = _PLAIN if env is not None else ()
    shape = ("--porcelain=v2", "--branch", "--no-ahead-behind", "-z", "--no-renames")
    facts: dict[str, str] = {}
    entries = []
    for entry in git(*plain, "status", *shape, *options, cwd=cwd, env=env).names:
        if entry.startswith("# "):
            name, _, value = entry[2:].partition(" ")
            facts[name] = value
        else:  # the path is the last field: of 9 for ordinary changes, of 11 for unmerged ones, of 2 else
            parts = entry.split(" ", {"1": 8, "u": 10}.get(entry[0], 1))
            entries.append((parts[1] if len(parts) > 2 else "??", parts[-1]))
    if facts.get("branch.oid", "(initial)") == "(initial)":
        raise BatonError("no_commits", f"{cwd} has no commit yet", "make a first commit, then call again")
    branch = facts.get("branch.head")
    return facts["branch.oid"], None if branch == "(detached)" else branch, tuple(entries)


def _absent(cwd: Path, status: Entries) -> frozenset[str]:
    return left_out(cwd, frozenset(path for letters, path in status if letters[1] == "D"))


NOTHING_IGNORED = hashlib.sha256().hexdigest()  # the `ignored_digest` of a checkout without ignored files


def _is_cache(path: str) -> bool:
    return any(fnmatch.fnmatchcase(part, cache) for part in path.split("/") for cache in KNOWN_CACHES)


def _without_caches(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(path for path in paths if not _is_cache(path))


def left_out(cwd: Path, gone: frozenset[str]) -> frozenset[str]:
    """Which of the missing files a sparse checkout left out: asked only when files are missing."""
    if not gone:
        return frozenset()
    if git("config", "--type=bool", "core.sparseCheckout", cwd=cwd, ok=(0, 1)).text != "true":
        return frozenset()
    return gone & {entry[2:] for entry in git("ls-files", "-z", "-t", cwd=cwd).names if entry.startswith("S ")}


def _ignored_files(cwd: Path, collapsed: Sequence[str]) -> tuple[str, ...]:
    """Every ignored file that is no cache, sorted; symbolic links are files."""
    found: set[str] = set()
    for entry in collapsed:
        if _is_cache(entry):
            continue
        if entry.endswith("/"):
            found.update(_walk(os.path.join(encode(str(cwd)), encode(entry)), entry))
        else:
            found.add(entry)
    return tuple(sorted(found))


def _walk(folder: bytes, prefix: str) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))
    except OSError:  # gone meanwhile, or not ours to read: nothing a check of ours could have read
        return
    for entry in entries:
        name = decode(entry.name)
        if _is_cache(name):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, f"{prefix}{name}/")
        else:
            yield prefix + name


def _collapse(path: str, collapsed: Sequence[str]) -> str:
    return min((entry for entry in collapsed if entry.endswith("/") and path.startswith(entry)), key=len, default=path)


def _digest(cwd: Path, paths: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        try:
            facts = os.lstat(os.path.join(encode(str(cwd)), encode(path)))
        except OSError:
            continue
        digest.update(b"%s\0%d\0%d\0" % (encode(path), facts.st_size, facts.st_mtime_ns))
    return digest.hexdigest()


def _uncommitted_ignore_files(cwd: Path, ignored: Sequence[str]) -> tuple[str, ...]:
    """Ignored files named .gitignore whose folder no committed rule ignores: they hide themselves and their neighbours.
    Naming the file is enough: the checkout is not clean until it goes or is committed."""
    hiders = [path for path in ignored if path.rpartition("/")[2] == ".gitignore"]
    folders = [path.rpartition("/")[0] for path in hiders]
    if "" in folders:  # at the top there is no folder to ignore
        return (".gitignore",)
    if not folders:
        return ()
    out = git("check-ignore", "-z", "-v", "--stdin", cwd=cwd, input=encode("\0".join(folders)), ok=(0, 1)).out
    fields = [decode(field) for field in out.split(b"\0")]
    sources = {fields[i + 3]: fields[i] for i in range(0, len(fields) - 1, 4) if not fields[i + 2].startswith("!")}
    own = set(hiders)
    committed = {
        folder for folder, source in sources.items() if source.rpartition("/")[2] == ".gitignore" and source not in own
    }
    return tuple(hider for hider, folder in zip(hiders, folders, strict=True) if folder not in committed)


def operation(cwd: Path) -> str | None:
    """The operation in progress: merge, rebase, cherry-pick, revert, am or bisect; None when there is none."""
    folder = git_dir(cwd)
    for name, kind in OPERATIONS:
        if (folder / name).exists():
            return kind
    todo = folder / "sequencer" / "todo"  # between two commits of a series nothing else tells
    if todo.is_file():
        return "revert" if todo.read_bytes().lstrip().startswith(b"revert") else "cherry-pick"
    return None


def unmerged(cwd: Path) -> tuple[str, ...]:
    """Paths with an unresolved conflict in the index, sorted."""
    entries = git("ls-files", "-z", "--unmerged", cwd=cwd).names
    return tuple(sorted({entry.partition("\t")[2] for entry in entries}))


def custom_merge_drivers(cwd: Path, paths: Sequence[str]) -> tuple[str, ...]:
    """Names of the merge drivers (programs named in git's configuration) a merge of these paths could run, sorted."""
    if not paths:
        return ()
    lines = git("config", "-z", "--get-regexp", r"^merge\.(default|.*\.driver)$", cwd=cwd, ok=(0, 1)).names
    settings = dict(line.partition("\n")[::2] for line in lines)
    drivers = {key[len("merge.") : -len(".driver")] for key in settings if key.endswith(".driver")}
    if not drivers:
        return ()
    stdin = b"".join(encode(path) + b"\0" for path in paths)
    out = git("check-attr", "-z", "--stdin", "merge", cwd=cwd, input=stdin).out
    values = {decode(value) for value in out.split(b"\0")[2::3]}
    if "unspecified" in values:
        values.add(settings.get("merge.default", ""))
    return tuple(sorted(values & drivers - set(BUILT_IN_DRIVERS)))
