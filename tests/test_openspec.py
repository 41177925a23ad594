"""Changes: which there are, which files belong to one, and where its tasks are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from baton_cli.project import Project, change, changes, find
from tests.changes import CHANGE, TASKS, refused, write

Make = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path, make_repository: Make) -> Project:
    return find(make_repository(tmp_path / "repo", CHANGE))


def test_changes_are_the_open_ones_in_order(project: Project) -> None:
    for name in ("zeta", "archive/2026-01-01-old", ".hidden", "Alpha", "with space"):
        write(project.root, f"openspec/changes/{name}/tasks.md", TASKS)
    write(project.root, "openspec/changes/a-file", "")
    assert changes(project) == ("Alpha", "add-x", "with space", "zeta")


def test_a_change_has_its_documents_in_reading_order(project: Project) -> None:
    folder = project.root / "openspec" / "changes" / "add-x"
    for name in ("design.md", "specs/b/spec.md", "specs/a/deep/spec.md", "specs/a/spec.md", "specs/a/notes.md"):
        write(folder, name, "text")
    found = change(project, "add-x")
    assert (found.name, found.path, found.tasks) == ("add-x", folder, folder / "tasks.md")
    assert [path.relative_to(folder).as_posix() for path in found.documents] == [
        "proposal.md", "design.md", "specs/a/deep/spec.md", "specs/a/spec.md", "specs/b/spec.md", "tasks.md",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["", " ", "archive", ".", "..", ".git", "a/b", "../add-x", "a\\b", "a\0b", "/etc", "\udcff"]
)
def test_names_that_are_no_change_are_refused(project: Project, name: str) -> None:
    refused("bad_change_name", change, project, name)


def test_an_unknown_change_lists_what_comes_close(project: Project) -> None:
    assert refused("no_such_change", change, project, "ad-x").hint == "did you mean 'add-x'?"
    assert refused("no_such_change", change, project, "zzz").hint == "there are: add-x"


def test_a_name_with_control_characters_is_refused_and_shown_escaped(project: Project) -> None:
    assert "\\n" in refused("bad_change_name", change, project, "a\nb").message


@pytest.mark.parametrize("folder", ["2026-01-01-old", "old"])
def test_an_archived_change_is_recognised(project: Project, folder: str) -> None:
    write(project.root, f"openspec/changes/archive/{folder}/tasks.md", TASKS)
    assert f"openspec/changes/archive/{folder}" in refused("no_such_change", change, project, "old").message


def test_a_change_without_tasks_says_where_they_belong(project: Project) -> None:
    (project.root / "openspec" / "changes" / "empty").mkdir()
    assert "openspec/changes/empty/tasks.md" in refused("no_tasks", change, project, "empty").hint


def test_links_out_of_the_project_are_refused_or_left_out(project: Project, tmp_path: Path) -> None:
    base = project.root / "openspec" / "changes"
    write(tmp_path, "out/tasks.md", TASKS)
    (base / "linked").symlink_to(tmp_path / "out")
    refused("bad_change_name", change, project, "linked")
    (base / "add-x" / "design.md").symlink_to(tmp_path / "out" / "tasks.md")
    assert all(path.name != "design.md" for path in change(project, "add-x").documents)
    (base / "add-x" / "tasks.md").unlink()
    (base / "add-x" / "tasks.md").symlink_to(tmp_path / "out" / "tasks.md")
    refused("unsupported_tracks", change, project, "add-x")


def schema(project: Project, tracks: str | None, *, generates: str = "tasks.md", named_in: str = "config.yaml") -> None:
    write(project.root, f"openspec/{named_in}", "# ours\nschema: 'mine'  # yes\n")
    apply = "" if tracks is None else f"apply:\n  requires: [tasks]\n  tracks: {tracks}\n"
    artifacts = f"artifacts:\n  - id: tasks\n    generates: {generates}\n"
    write(project.root, "openspec/schemas/mine/schema.yaml", f"name: mine\nversion: 1\n{artifacts}{apply}")


@pytest.mark.parametrize("named_in", ["config.yaml", "config.yml", "changes/add-x/.openspec.yaml"])
@pytest.mark.parametrize("tracks", ["todo/list.md", '"todo/list.md"', "todo\\list.md"])
def test_another_single_tasks_file_is_followed(project: Project, named_in: str, tracks: str) -> None:
    write(project.root, "openspec/changes/add-x/todo/list.md", TASKS)
    schema(project, tracks, named_in=named_in)
    found = change(project, "add-x")
    assert found.tasks == found.documents[-1] == found.path / "todo" / "list.md"


def test_without_tracks_the_artifact_called_tasks_says_it(project: Project) -> None:
    write(project.root, "openspec/changes/add-x/todo.md", TASKS)
    schema(project, None, generates="todo.md")
    assert change(project, "add-x").tasks.name == "todo.md"
    schema(project, "null", generates="todo.md")
    assert change(project, "add-x").tasks.name == "todo.md"


def test_the_changes_own_schema_goes_before_the_projects(project: Project) -> None:
    schema(project, "missing.md")
    write(project.root, "openspec/changes/add-x/.openspec.yaml", "schema: spec-driven\ncreated: 2026-01-01\n")
    assert change(project, "add-x").tasks.name == "tasks.md"


@pytest.mark.parametrize(
    "tracks",
    [
        "'**/tasks.md'",
        "tasks/*.md",
        "'{a,b}.md'",
        "'t[12].md'",
        "[a.md, b.md]",
        "../../other.md",
        "/etc/passwd",
        "'C:\\x'",
        "3",
    ],
)
def test_what_is_not_one_file_in_the_change_is_refused(project: Project, tracks: str) -> None:
    schema(project, tracks)
    assert "'mine'" in refused("unsupported_tracks", change, project, "add-x").message


def test_a_tracked_file_that_is_missing_is_named(project: Project) -> None:
    schema(project, "todo.md")
    assert "todo.md" in refused("no_tasks", change, project, "add-x").message


@pytest.mark.parametrize(
    "text",
    [
        "schema: [",
        "schema: ../../x",
        "schema: 3",
        "- schema",
        "{schema: gone}",
        "schema: &a [*a]",
        "x: schema\n",
        "\xff schema:",
        "",
    ],
)
def test_a_schema_that_cannot_be_found_leaves_tasks_md(project: Project, text: str) -> None:
    write(project.root, "openspec/config.yaml", text)
    assert change(project, "add-x").tasks.name == "tasks.md"


@pytest.mark.parametrize(
    "text", ["tracks: [", "- tracks", "apply: tracks", "apply: {tracks: }", "artifacts: tasks", "artifacts: [tasks]"]
)
def test_a_schema_that_says_nothing_usable_leaves_tasks_md(project: Project, text: str) -> None:
    schema(project, None)
    write(project.root, "openspec/schemas/mine/schema.yaml", text)
    assert change(project, "add-x").tasks.name == "tasks.md"


def test_a_project_that_only_points_to_a_store_is_refused(tmp_path: Path, make_repository: Make) -> None:
    root = make_repository(tmp_path / "r", {"openspec/config.yaml": b"store: team-plans\n"})
    assert "'team-plans'" in refused("store_pointer", change, find(root), "add-x").message
    write(root, "openspec/changes/add-x/tasks.md", TASKS)  # a real root: OpenSpec ignores the pointer, and so do we
    assert change(find(root), "add-x").name == "add-x"
