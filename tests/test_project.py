"""Finding the project from anywhere, its private folder, and the changes in it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from baton_cli import project as projects
from baton_cli.project import find, from_assignment, prepare_state, user_pointer
from tests.changes import CHANGE, TASKS, refused, write

Git = Callable[..., str]
Make = Callable[..., Path]


@pytest.fixture
def repo(tmp_path: Path, make_repository: Make) -> Path:
    return make_repository(tmp_path / "repo", {**CHANGE, "src/a.py": b""})


# Where the project is


def test_the_root_and_every_folder_below_it_are_one_project(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = find(repo)
    assert project == find(repo / "src") == find(repo / "openspec" / "changes" / "add-x")
    assert (project.root, project.repository, project.prefix) == (repo, repo, "")
    assert project.common_dir == repo / ".git"
    monkeypatch.chdir(repo / "src")
    assert find(None) == project


def test_the_state_paths_are_below_the_root(repo: Path) -> None:
    project = find(repo)
    assert project.state == repo / ".dsh" / "baton"
    names = [project.queue_db, project.packets, project.receipts, project.logs, project.worktrees]
    assert [path.name for path in names] == ["queue.db", "packets", "receipts", "logs", "worktrees"]
    assert {path.parent for path in names} == {project.state}


def test_a_project_in_a_sub_folder_has_a_prefix_and_a_digest_of_its_own(repo: Path) -> None:
    write(repo, "packages/app/openspec/changes/y/tasks.md", TASKS)
    inner = find(repo / "packages" / "app")
    assert (inner.root, inner.repository, inner.prefix) == (repo / "packages" / "app", repo, "packages/app")
    assert inner.digest != find(repo / "packages").digest == find(repo).digest
    assert len(inner.digest) == 8


def test_an_openspec_folder_with_nothing_of_openspec_in_it_is_passed_over(repo: Path) -> None:
    (repo / "src" / "openspec").mkdir()
    assert find(repo / "src" / "openspec").root == repo
    write(repo, "src/openspec/config.yaml", "schema: spec-driven\n")
    assert find(repo / "src").root == repo / "src"


@pytest.mark.parametrize("place", ["", "src"])
def test_a_linked_worktree_of_the_user_is_the_same_project(repo: Path, tmp_path: Path, git: Git, place: str) -> None:
    git(repo, "worktree", "add", "-q", tmp_path / "other")
    assert find(tmp_path / "other" / place) == find(repo)


def test_a_worktree_of_ours_leads_to_the_outer_project(repo: Path, git: Git) -> None:
    inside = repo / ".dsh" / "baton" / "worktrees" / "add-x" / "1"
    git(repo, "worktree", "add", "-q", inside)
    assert find(inside / "src") == find(repo)
    (inside / ".git").unlink()  # a husk: its openspec/ folder still lies below the outer repository
    assert find(inside) == find(inside.parent) == find(repo)


def test_a_worktree_without_openspec_finds_the_one_that_git_ignores_in_the_main_worktree(
    tmp_path: Path, make_repository: Make, git: Git
) -> None:
    main = make_repository(tmp_path / "m", {"app/a.py": b"", ".gitignore": b"openspec/\n"})
    write(main, "app/openspec/changes/x/tasks.md", TASKS)
    git(main, "worktree", "add", "-q", tmp_path / "w")
    project = find(tmp_path / "w" / "app")
    assert project == find(main / "app")
    assert (project.root, project.prefix) == (main / "app", "app")


def test_the_place_that_was_used_first_stays_the_home(tmp_path: Path, make_repository: Make, git: Git) -> None:
    main = make_repository(tmp_path / "m")
    git(main, "worktree", "add", "-q", "-b", "work", tmp_path / "w")
    write(tmp_path / "w", "openspec/changes/x/tasks.md", TASKS)
    refused("no_openspec", find, main)
    project = find(tmp_path / "w")
    prepare_state(project)
    assert project.root == tmp_path / "w"
    write(main, "openspec/changes/x/tasks.md", TASKS)
    assert find(main) == find(tmp_path / "w") == project
    git(main, "worktree", "remove", "--force", tmp_path / "w")
    assert find(main).root == main


def test_a_recorded_home_in_another_repository_is_not_believed(
    repo: Path, tmp_path: Path, make_repository: Make
) -> None:
    other = make_repository(tmp_path / "other", CHANGE)
    project = find(repo)
    pointer = repo / ".git" / "baton" / "projects" / project.digest
    for content in (os.fsencode(other) + b"\n", b"relative\n", b"", b"\0", os.fsencode(repo / "src")):
        write(repo, str(pointer.relative_to(repo)), content)
        assert find(repo) == project


def test_bare_repositories_with_worktrees_work_from_the_worktrees(repo: Path, tmp_path: Path, git: Git) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", repo, bare)
    git(bare, "worktree", "add", "-q", tmp_path / "one", "main")
    git(bare, "worktree", "add", "-q", "-b", "two", tmp_path / "two")
    assert "bare" in refused("not_a_repository", find, bare).message
    first = find(tmp_path / "one")
    assert (first.root, first.common_dir) == (tmp_path / "one", bare)
    prepare_state(first)
    assert find(tmp_path / "two") == first


def test_a_bare_dot_git_with_worktrees_beside_it(repo: Path, tmp_path: Path, git: Git) -> None:
    top = tmp_path / "top"
    git(tmp_path, "clone", "-q", "--bare", repo, top / ".git")
    git(top, "worktree", "add", "-q", top / "main", "main")
    assert "bare" in refused("not_a_repository", find, top).message
    assert find(top / "main").root == top / "main"


def test_a_project_that_is_a_submodule(repo: Path, tmp_path: Path, make_repository: Make, git: Git) -> None:
    outer = make_repository(tmp_path / "outer", CHANGE)
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", repo, "libs/sub")
    project = find(outer / "libs" / "sub" / "src")
    assert project.root == project.repository == outer / "libs" / "sub"
    assert project.common_dir == outer / ".git" / "modules" / "libs" / "sub"
    git(outer / "libs" / "sub", "worktree", "add", "-q", tmp_path / "linked")
    assert find(tmp_path / "linked") == project
    assert find(outer).root == outer


def test_a_git_folder_kept_elsewhere(tmp_path: Path, git: Git) -> None:
    git(tmp_path, "init", "-q", "--separate-git-dir", tmp_path / "store", tmp_path / "tree")
    write(tmp_path / "tree", "openspec/changes/x/tasks.md", TASKS)
    project = find(tmp_path / "tree")
    assert (project.root, project.common_dir) == (tmp_path / "tree", tmp_path / "store")


def test_a_repository_of_its_own_inside_a_worktree_of_ours_is_itself(repo: Path, make_repository: Make) -> None:
    nested = make_repository(repo / ".dsh" / "baton" / "worktrees" / "add-x" / "1" / "demo", CHANGE)
    assert find(nested).root == nested


def test_a_symlink_to_the_project_is_the_project(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repo / "src")
    assert find(tmp_path / "link") == find(repo)


def test_outside_any_repository(tmp_path: Path) -> None:
    write(tmp_path, "openspec/changes/x/tasks.md", TASKS)
    assert repr(str(tmp_path)) in refused("not_a_repository", find, tmp_path).message


@pytest.mark.parametrize("content", [b"gitdir: gone\n", b"nonsense", b"", b"gitdir:\n", b"gitdir: a\0b"])
def test_a_git_file_that_leads_nowhere_is_named(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, "p/.git", content)
    assert ".git" in refused("not_a_repository", find, tmp_path / "p").message


def test_without_openspec_the_hint_says_what_to_run(repository: Path) -> None:
    error = refused("no_openspec", find, repository)
    assert repr(str(repository)) in error.message
    assert "openspec init" in error.hint


@pytest.mark.parametrize("name", ["missing", "file", "a\0b", "new\nline"])
def test_a_start_that_is_no_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    refused("no_such_folder", find, tmp_path / name)


def test_finding_starts_no_program_and_imports_nothing_heavy(repo: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path; from baton_cli import project, config\n"
        "sys.addaudithook(lambda name, args: sys.exit(name) if name.startswith(('subprocess', 'os.exec', 'os.fork')) else None)\n"
        "found = project.find(Path(sys.argv[2])); project.prepare_state(found); project.change(found, 'add-x')\n"
        "print(sorted({'sh', 'subprocess', 'yaml', 'sqlite3', 'rich'} & set(sys.modules)))"
    )
    root = Path(projects.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code, str(root), str(repo)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


# The private folder and the pointers


def test_the_state_folder_is_private_and_invisible_to_git(repo: Path, git: Git) -> None:
    project = find(repo)
    prepare_state(project)
    assert project.state.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in project.state.iterdir()} == {
        "packets",
        "receipts",
        "logs",
        "worktrees",
        "locks",
        "tmp",
        ".gitignore",
    }
    (project.state / ".gitignore").unlink()
    (project.state / "queue.db").touch()
    assert git(repo, "status", "--porcelain") == ""


def test_a_second_call_rewrites_nothing(repo: Path) -> None:
    project = find(repo)
    prepare_state(project)
    files = [
        project.state / ".gitignore",
        repo / ".git" / "info" / "exclude",
        repo / ".git" / "baton" / "projects" / project.digest,
        user_pointer(project.digest),
    ]
    before = [(path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns) for path in files]
    prepare_state(project)
    assert [(path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns) for path in files] == before
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in (files[0], *files[2:]))
    assert [path.name for path in files[3].parent.iterdir()] == [project.digest]


@pytest.mark.parametrize("before", [b"", b"*.log\n", b"*.log", b"# mine\r\n*.log\r\n", b"\xff\n\n\n", None])
def test_the_users_exclude_lines_stay_as_they_are(repo: Path, before: bytes | None) -> None:
    exclude = repo / ".git" / "info" / "exclude"
    if before is None:
        exclude.unlink()
        exclude.parent.rmdir()
    else:
        exclude.write_bytes(before)
        exclude.chmod(0o640)
    for _ in range(2):
        prepare_state(find(repo))
    gap = b"\n" if before and not before.endswith(b"\n") else b""
    assert exclude.read_bytes() == (before or b"") + gap + b"/.dsh/baton/\n"
    if before is not None:
        assert exclude.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("prefix", ["app", "a b/[x]*", "back\\slash", "#hash", "!bang", "ünï"])
def test_the_exclude_line_fits_projects_in_sub_folders_whatever_they_are_called(
    repo: Path, git: Git, prefix: str
) -> None:
    write(repo / prefix, "openspec/changes/x/tasks.md", TASKS)
    git(repo, "add", "-A")
    project = find(repo / prefix)
    prepare_state(project)
    (project.state / ".gitignore").unlink()
    (project.state / "queue.db").touch()
    assert ".dsh" not in git(repo, "status", "--porcelain", "-z", "-uall")
    assert git(repo, "check-ignore", project.state / "queue.db")


def test_a_home_that_cannot_be_written_is_no_error(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(write(repo, "a-file", "")))
    prepare_state(find(repo))
    assert find(repo).state.is_dir()


def test_only_an_absolute_state_home_counts(hermetic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert user_pointer("0" * 8) == hermetic / ".local" / "state" / "baton" / "projects" / ("0" * 8)


def test_a_state_folder_that_others_may_read_is_closed(repo: Path) -> None:
    project = find(repo)
    project.state.mkdir(parents=True)
    project.state.chmod(0o755)
    prepare_state(project)
    assert project.state.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", [".dsh", ".dsh/baton", ".dsh/baton/worktrees"])
@pytest.mark.parametrize("kind", ["file", "link", "dangling"])
def test_a_state_folder_that_is_a_file_or_leads_out_is_refused(
    repo: Path, tmp_path: Path, name: str, kind: str
) -> None:
    path = repo / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        path.touch()
    else:
        outside = tmp_path / "outside"
        if kind == "link":
            outside.mkdir()
        path.symlink_to(outside)
    assert repr(str(path)) in refused("state_unusable", prepare_state, find(repo)).message
    assert not (tmp_path / "outside" / "baton").exists()


def test_a_link_inside_the_project_is_followed(repo: Path) -> None:
    (repo / "elsewhere").mkdir()
    (repo / ".dsh").symlink_to("elsewhere")
    prepare_state(find(repo))
    assert (repo / "elsewhere" / "baton" / "logs").is_dir()


def test_an_assignment_id_leads_to_its_project(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = find(repo)
    prepare_state(project)
    monkeypatch.chdir(tmp_path)
    assert from_assignment(f"a-{project.digest}-17") == from_assignment(f"{project.digest}.deadbeef") == project
    assert "'a-00000000-1'" in refused("unknown_assignment", from_assignment, "a-00000000-1").message
    refused("unknown_assignment", from_assignment, "../../etc/passwd\n")
    repo.rename(tmp_path / "moved")
    assert repr(str(repo)) in refused("unknown_assignment", from_assignment, f"a-{project.digest}-17").message
