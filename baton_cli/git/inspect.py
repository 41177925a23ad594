"""What a repository is set up to do, as `doctor` asks: settings that are not ours, filters, hooks, refs that lead nowhere."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Collection
from pathlib import Path

from baton_cli.git.run import decode, encode, git

_FILTER = re.compile(r"(?:^|\s)filter=([^\s]+)", re.M)
_BROKEN = re.compile(r"ignoring (?:broken|dangling) (?:ref|symref) (\S+)")


def setting(cwd: Path, name: str) -> str | None:
    """The value of a setting as the user made it; what our own calls set does not count."""
    lines = git("config", "--show-scope", "--get-all", name, cwd=cwd, ok=(0, 1)).text.splitlines()
    values = [value for scope, _, value in (line.partition("\t") for line in lines) if scope != "command"]
    return values[-1] if values else None


def merge_drivers(cwd: Path) -> tuple[str, ...]:
    """The merge drivers that git's configuration names, sorted."""
    names = git("config", "-z", "--name-only", "--get-regexp", r"^merge\..*\.driver$", cwd=cwd, ok=(0, 1)).names
    return tuple(sorted({name[len("merge.") : -len(".driver")] for name in names}))


def filters(cwd: Path) -> dict[str, str | None]:
    """Each filter that a tracked .gitattributes asks for -> what is missing of it, None when it can run."""
    listed = git("ls-files", "-z", "--", ":(top,glob)**/.gitattributes", cwd=cwd).names
    found: set[str] = set()
    for path in listed:
        try:
            found.update(_FILTER.findall((cwd / path).read_text(encoding="utf-8", errors="replace")))
        except OSError:
            continue
    return {name: _missing(cwd, name) for name in sorted(found)}


def _missing(cwd: Path, name: str) -> str | None:
    commands = [setting(cwd, f"filter.{name}.{part}") for part in ("process", "clean", "smudge")]
    given = [command for command in commands if command]
    if not given:
        return "git has no such filter here"
    try:
        program = shlex.split(given[0])[0]
    except (ValueError, IndexError):
        return None
    return None if shutil.which(program) else f"the program {program} is not on the PATH"


def hooks(cwd: Path, common_dir: Path) -> tuple[str, ...]:
    """The hooks that the user's own git runs, sorted."""
    named = setting(cwd, "core.hooksPath")
    folder = cwd / Path(named).expanduser() if named else common_dir / "hooks"
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return ()
    return tuple(entry.name for entry in entries if entry.suffix != ".sample" and os.access(entry, os.X_OK))


def broken_refs(cwd: Path) -> tuple[str, ...]:
    """Refs that name no object of this repository, sorted."""
    result = git("for-each-ref", "--format=%(objectname) %(refname)", cwd=cwd, ok=(0, 1, 128))
    refs = dict(line.split(" ", 1) for line in result.text.splitlines())
    gone = missing_objects(cwd, refs)
    return tuple(sorted({*_BROKEN.findall(result.err), *(name for oid, name in refs.items() if oid in gone)}))


def missing_objects(cwd: Path, oids: Collection[str]) -> frozenset[str]:
    """Which of these objects are not in the repository."""
    if not oids:
        return frozenset()
    asked = encode("".join(f"{oid}\n" for oid in oids))
    out = git("cat-file", "--batch-check=%(objectname)", cwd=cwd, input=asked).out
    return frozenset(line.split(" ")[0] for line in decode(out).splitlines() if line.endswith(" missing"))


def repair_worktree(cwd: Path, path: Path) -> bool:
    """Let git mend the two links between a repository and a worktree that were moved together; whether they hold now."""
    for _ in range(2):  # the one link is found by way of the other
        git("worktree", "repair", "--", os.path.abspath(path), cwd=cwd, ok=(0, 1, 128))
    return git("rev-parse", "--verify", "-q", "HEAD", cwd=path, ok=(0, 1, 128)).code == 0


def unlist(cwd: Path, path: Path) -> bool:
    """Take a worktree whose folder is gone off git's list, it alone; False when git refuses (it is locked)."""
    return git("worktree", "remove", "--", os.path.abspath(path), cwd=cwd, ok=(0, 1, 128, 255)).code == 0


def belongs(path: Path, common_dir: Path) -> bool:
    """Whether the worktree at `path` is linked to this repository; in a copy of a project it is the original's."""
    named = admin_name(path)
    return named is not None and named[1].resolve().is_relative_to(common_dir.resolve())


def admin_name(path: Path) -> tuple[str, Path] | None:
    """What a worktree's `.git` file says: the name of its admin folder, and that folder; None when it says nothing."""
    try:
        text = (path / ".git").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    admin = path / text.removeprefix("gitdir:").strip()
    return (admin.name, admin) if text.startswith("gitdir:") else None
