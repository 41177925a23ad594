"""Changes as OpenSpec lays them out: which there are, which files belong to one, and which file holds its tasks.

Follows OpenSpec 1.13.2: the schema of a change is named in its `.openspec.yaml`, else in `openspec/config.yaml` (or
`.yml`); a schema in `openspec/schemas/<name>/schema.yaml` says in `apply.tracks` which file holds the tasks, else the
artifact called `tasks` says it in `generates`. Whatever cannot be read or found leaves `tasks.md`, as OpenSpec does.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from baton_cli.core.patterns import late
from baton_cli.errors import BatonError

TASKS = "tasks.md"
_MAX_YAML = 1_000_000  # bytes; more is no configuration
# A key at the start of a line with a plain or simply quoted value: what nearly every file holds, and read without the
# YAML package, whose import would be the slowest part of a call.
_PLAIN = r"^{key}[ \t]*:[ \t]+([\"']?)([A-Za-z0-9][A-Za-z0-9._-]*)\1[ \t]*(?:#.*)?\r?$"
_DATED = late(r"^\d{4}-\d{2}-\d{2}-(?=.)")
_GLOB = late(r"[*?\[]|[!+@]\([^(]*\)|\{[^{}]*(?:,|\.\.)[^{}]*\}")


class ChangeFolder(NamedTuple):
    """One change: its folder, its tasks file, and the documents a worker may need (existing ones, tasks last)."""

    name: str
    path: Path
    tasks: Path
    documents: tuple[Path, ...]


def change_names(root: Path) -> tuple[str, ...]:
    """The open changes of the project at `root`, sorted; none where there is no such folder."""
    folder = root / "openspec" / "changes"
    try:
        names = os.listdir(folder)
    except OSError:
        return ()
    return tuple(sorted(name for name in names if _problem(name) is None and (folder / name).is_dir()))


def archived_changes(root: Path) -> tuple[ChangeFolder, ...]:
    """The finished changes in `openspec/changes/archive/`, sorted; each has the name it was run under, without its date.

    What has no file with tasks is left out: there is nothing of it to show.
    """
    archive = root / "openspec" / "changes" / "archive"
    try:
        names = sorted(os.listdir(archive))
    except OSError:
        return ()
    found = []
    for entry in names:
        name = _DATED.sub("", entry)
        path = archive / entry
        if _problem(name) is None and path.is_dir() and _inside(path, root):
            with contextlib.suppress(BatonError):
                found.append(ChangeFolder(name, path, _tasks(root, path), ()))
    return tuple(found)


def change_folder(root: Path, name: str) -> ChangeFolder:
    """Errors: bad_change_name, no_such_change, store_pointer, unsupported_tracks, no_tasks."""
    problem = _problem(name)
    if problem is not None:
        message = f"{_shown(name)} is no change: {problem}"
        raise BatonError("bad_change_name", message, "use the name of a folder in openspec/changes/")
    _refuse_store(root)
    path = root / "openspec" / "changes" / name
    # The listing, not the file system, says whether it is there: it may not tell cases apart.
    if not (path.is_dir() and name in os.listdir(path.parent)):
        raise _no_such_change(root, name, change_names(root))
    if not _inside(path, root):
        message = f"change {_shown(name)} is a symlink out of the project, to {os.path.realpath(path)!r}"
        raise BatonError("bad_change_name", message, "keep the change's folder in the project")
    tasks = _tasks(root, path)
    return ChangeFolder(name, path, tasks, _documents(root, path, tasks))


def _problem(name: str) -> str | None:
    """Why this cannot be the name of a change."""
    if not name.strip():
        return "the name is empty"
    if any(char in name for char in "/\\\0") or os.sep in name:
        return "a name holds no separator and no NUL"
    if not name.isprintable():
        return "a name holds no control characters"
    if name.startswith("."):
        return "a name does not begin with a dot"
    if name == "archive":
        return "openspec/changes/archive/ holds the changes that are finished"
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return "the name is not UTF-8"
    return None


def _no_such_change(root: Path, name: str, names: tuple[str, ...]) -> BatonError:
    import difflib

    try:
        old = sorted(os.listdir(root / "openspec" / "changes" / "archive"))
    except OSError:
        old = []
    dated = re.compile(r"\d{4}-\d{2}-\d{2}-" + re.escape(name))
    archived = next((entry for entry in old if entry == name or dated.fullmatch(entry)), None)
    if archived is not None:
        message = f"change {_shown(name)} is archived, as {_shown(f'openspec/changes/archive/{archived}')}"
        name = _DATED.sub("", archived)
        hint = (
            f"`baton audit {name}` shows its evidence; if its work has not landed, move the folder back to"
            f" openspec/changes/{name}, run `baton land {name}`, and archive it after that"
        )
        return BatonError("no_such_change", message, hint)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        hint = "did you mean " + " or ".join(_shown(match) for match in close) + "?"
    elif names:
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        hint = "there are: " + ", ".join(_shown(known)[1:-1] for known in names[:10]) + more
    else:
        hint = "there is no open change; write one with OpenSpec first"
    folder = root / "openspec" / "changes"
    return BatonError("no_such_change", f"no change {_shown(name)} in {_shown(str(folder))}", hint)


def _refuse_store(root: Path) -> None:
    """A project with neither specs nor changes of its own may name a store in another repository. Not for us."""
    folder = root / "openspec"
    if (folder / "changes").is_dir() or (folder / "specs").is_dir():
        return  # OpenSpec ignores the pointer then
    store = _key(_config(root), "store")
    if store is not None:
        raise BatonError(
            "store_pointer",
            f"{_shown(str(folder))} only points to the store {_shown(str(store))}, in another repository",
            "run Baton where the change's code is, with the change in that project's openspec/changes/",
        )


def _tasks(root: Path, change: Path) -> Path:
    schema, tracked = _tracked(root, change)
    where = f"schema {_shown(schema)}"
    if not isinstance(tracked, str):
        raise _unsupported(f"{where} tracks a list of files")
    tracked = tracked.replace("\\", "/")
    if _GLOB.search(tracked):
        raise _unsupported(f"{where} tracks the pattern {_shown(tracked)}, which may be several files")
    if tracked.startswith("/") or ".." in tracked.split("/") or re.match("[A-Za-z]:", tracked) or "\0" in tracked:
        raise _unsupported(f"{where} tracks {_shown(tracked)}, which leads out of the change")
    tasks = change / tracked
    if not tasks.is_file():
        name, file = _shown(change.name)[1:-1], _shown(tracked)[1:-1]
        hint = f"write each task as `- [ ] 1.1 Description` in openspec/changes/{name}/{file}"
        raise BatonError("no_tasks", f"change '{name}' has no {file}", hint)
    if not _inside(tasks, root):
        raise _unsupported(f"{_shown(tracked)} of change {_shown(change.name)} is a symlink out of the project")
    return tasks


def _unsupported(problem: str) -> BatonError:
    return BatonError("unsupported_tracks", problem, "Baton follows one file with tasks, inside the change's folder")


def _tracked(root: Path, change: Path) -> tuple[str, object]:
    """The change's schema, and what that says the tasks file is."""
    schema = _key(_text(change / ".openspec.yaml"), "schema") or _key(_config(root), "schema") or "spec-driven"
    name = re.sub(r"\.ya?ml$", "", str(schema))
    if not isinstance(schema, str) or _problem(name) is not None:
        return str(schema), TASKS
    folder = root / "openspec" / "schemas" / name
    text = _text(folder / "schema.yaml")
    if not any(word in text for word in ("tracks", "tasks")) or not _inside(folder / "schema.yaml", root):
        return name, TASKS
    content = _yaml(text)
    apply = content.get("apply")
    tracks = apply.get("tracks") if isinstance(apply, dict) else None
    if tracks is None:
        artifacts = content.get("artifacts")
        entries = artifacts if isinstance(artifacts, list) else []
        found = (entry.get("generates") for entry in entries if isinstance(entry, dict) and entry.get("id") == "tasks")
        tracks = next(found, None)
    return name, tracks or TASKS


def _documents(root: Path, change: Path, tasks: Path) -> tuple[Path, ...]:
    """proposal.md, design.md, the spec deltas in order, the tasks; no link out of the project, since workers see it."""
    specs = []
    for folder, folders, files in os.walk(change / "specs"):
        folders.sort()
        specs += [Path(folder) / name for name in files if name == "spec.md"]
    found = (change / "proposal.md", change / "design.md", *sorted(specs), tasks)
    return tuple(path for path in found if path.is_file() and _inside(path, root))


def _config(root: Path) -> str:
    yaml = root / "openspec" / "config.yaml"
    return _text(yaml if yaml.exists() else yaml.with_suffix(".yml"))


def _text(path: Path) -> str:
    """The file's text; empty where there is none or it is no configuration anyway."""
    try:
        data = path.read_bytes() if path.is_file() and path.stat().st_size <= _MAX_YAML else b""
    except OSError:
        return ""
    return data.decode("utf-8-sig", "replace")


def _key(text: str, key: str) -> object:
    """The value of a top-level key; None where it is missing or the text is no YAML mapping."""
    if key not in text:
        return None
    plain = re.findall(_PLAIN.format(key=key), text, re.M)
    if len(plain) == 1 and plain[0][1].lower() not in ("null", "true", "false", "yes", "no"):
        return plain[0][1]
    return _yaml(text).get(key)


def _yaml(text: str) -> Mapping[str, object]:
    import yaml

    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _inside(path: Path, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _shown(text: str) -> str:
    return repr(text)
