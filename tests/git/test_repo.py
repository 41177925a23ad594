"""History, refs and the files of a checkout, against real git."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from baton_cli.errors import BatonError
from baton_cli.git import repo

Git = Callable[..., str]
Make = Callable[..., Path]


def write_files(folder: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def commit(git: Git, cwd: Path, message: str = "next", **files: str) -> str:
    write_files(cwd, files)
    git(cwd, "add", "-A")
    git(cwd, "commit", "-q", "--allow-empty", "-m", message)
    return git(cwd, "rev-parse", "HEAD")


# --- history and refs ---------------------------------------------------------------------------------------


def test_head_names_commit_and_branch(repository: Path, git: Git) -> None:
    oid = git(repository, "rev-parse", "HEAD")
    assert repo.head(repository) == repo.Head(oid, "main")
    git(repository, "checkout", "-q", "-b", "release/1.x")
    assert repo.head(repository).branch == "release/1.x"
    git(repository, "checkout", "-q", "--detach")
    assert repo.head(repository) == repo.Head(oid, None)


def test_head_without_commits_is_refused_with_the_reason(tmp_path: Path, git: Git) -> None:
    git(tmp_path, "init", "-q")
    with pytest.raises(BatonError) as caught:
        repo.head(tmp_path)
    assert caught.value.code == "no_commits"


def test_head_outside_a_repository_is_another_error(tmp_path: Path) -> None:
    with pytest.raises(BatonError, match="not a git repository") as caught:
        repo.head(tmp_path)
    assert caught.value.code == "git_failed"


@pytest.mark.parametrize("rev", ["nope", "-x", "", "a b", "HEAD^{tree}", "HEAD..HEAD", "--all", "@{-1}"])
def test_resolve_gives_none_for_what_is_no_commit(repository: Path, rev: str) -> None:
    assert repo.resolve(repository, rev) is None


def test_resolve_and_tree(repository: Path, git: Git) -> None:
    git(repository, "tag", "-a", "v1", "-m", "tag")
    assert repo.resolve(repository, "v1") == git(repository, "rev-parse", "HEAD")
    assert repo.tree(repository, "HEAD") == git(repository, "rev-parse", "HEAD^{tree}")
    with pytest.raises(BatonError):
        repo.tree(repository, "nope")


def test_refs_lists_what_is_below_the_prefixes(repository: Path, git: Git) -> None:
    oid = git(repository, "rev-parse", "HEAD")
    for name in ("refs/heads/baton/a/1", "refs/baton/sealed/x", "refs/heads/batonic"):
        git(repository, "update-ref", name, oid)
    assert set(repo.refs(repository, "refs/heads/baton/", "refs/baton/")) == {
        "refs/heads/baton/a/1",
        "refs/baton/sealed/x",
    }
    assert repo.refs(repository)["refs/heads/main"] == oid
    assert repo.refs(repository, "refs/none/") == {}


def test_update_ref_is_compare_and_set(repository: Path, git: Git) -> None:
    first = git(repository, "rev-parse", "HEAD")
    second = commit(git, repository)
    name = "refs/baton/x"
    assert repo.update_ref(repository, name, first, repo.NO_OID)
    assert not repo.update_ref(repository, name, second, repo.NO_OID)
    assert not repo.update_ref(repository, name, first, second)
    assert repo.update_ref(repository, name, second, first)
    assert repo.refs(repository, name) == {name: second}
    assert not repo.update_ref(repository, "refs/baton/none", second, first)


def test_delete_ref_is_compare_and_set(repository: Path, git: Git) -> None:
    first = git(repository, "rev-parse", "HEAD")
    second = commit(git, repository)
    git(repository, "update-ref", "refs/baton/x", first)
    assert not repo.delete_ref(repository, "refs/baton/x", second)
    assert repo.delete_ref(repository, "refs/baton/x", first)
    assert not repo.delete_ref(repository, "refs/baton/x", first)


def test_a_ref_in_the_way_is_an_error_not_a_lost_race(repository: Path, git: Git) -> None:
    oid = git(repository, "rev-parse", "HEAD")
    git(repository, "branch", "feat")
    with pytest.raises(BatonError, match="feat") as caught:
        repo.update_ref(repository, "refs/heads/feat/x", oid, repo.NO_OID)
    assert caught.value.code == "git_failed"


def test_a_ref_locked_for_a_moment_is_waited_for(repository: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    oid = git(repository, "rev-parse", "HEAD")
    lock = repository / ".git" / "refs" / "heads" / "x.lock"
    lock.touch()
    monkeypatch.setattr("baton_cli.git.refs.time.sleep", lambda _: lock.unlink(missing_ok=True))
    assert repo.update_ref(repository, "refs/heads/x", oid, repo.NO_OID)


def test_a_ref_locked_for_good_is_an_error(repository: Path, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    oid = git(repository, "rev-parse", "HEAD")
    (repository / ".git" / "refs" / "heads" / "x.lock").touch()
    monkeypatch.setattr("baton_cli.git.refs.time.sleep", lambda _: None)
    with pytest.raises(BatonError, match=r"x\.lock"):
        repo.update_ref(repository, "refs/heads/x", oid, repo.NO_OID)


def test_of_many_racers_one_moves_the_ref(repository: Path, git: Git) -> None:
    old = git(repository, "rev-parse", "HEAD")
    news = [git(repository, "commit-tree", "HEAD^{tree}", "-p", old, "-m", str(number)) for number in range(6)]
    git(repository, "update-ref", "refs/baton/x", old)
    won: list[str] = []

    def race(new: str) -> None:
        if repo.update_ref(repository, "refs/baton/x", new, old):
            won.append(new)

    threads = [threading.Thread(target=race, args=(new,)) for new in news]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [git(repository, "rev-parse", "refs/baton/x")]


def test_ancestry(repository: Path, git: Git) -> None:
    first = git(repository, "rev-parse", "HEAD")
    second = commit(git, repository)
    stranger = git(repository, "commit-tree", "HEAD^{tree}", "-m", "root")
    assert repo.is_ancestor(repository, first, second)
    assert repo.is_ancestor(repository, first, first)
    assert not repo.is_ancestor(repository, second, first)
    assert repo.merge_base(repository, first, second) == first
    assert repo.merge_base(repository, first, stranger) is None
    with pytest.raises(BatonError):
        repo.is_ancestor(repository, "nope", first)


def test_changed_paths_names_both_ends_of_a_rename(repository: Path, git: Git) -> None:
    git(repository, "config", "diff.renames", "copies")
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "mv", "README", "READ ME\nnow")
    second = commit(git, repository, **{"dir/ünï": "x"})
    assert set(repo.changed_paths(repository, first, second)) == {"README", "READ ME\nnow", "dir/ünï"}
    assert repo.changed_paths(repository, first, first) == ()


def test_first_parent_lists_commits_oldest_first_with_exact_messages(repository: Path, git: Git) -> None:
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "-b", "side")
    side = commit(git, repository, "side work", side="x")
    git(repository, "checkout", "-q", "main")
    body = '{\n  "a": 1\n}\n\nBaton-Ticket: x#1 abc\nBaton-Change: x\n'
    message = f"A subject\nin two lines\n\n{body}"
    merged = repo.commit_tree(repository, repo.tree(repository, side), (first, side), message)
    last = repo.commit_tree(repository, repo.tree(repository, side), (merged,), "only a subject")
    commits = repo.first_parent(repository, first, last)
    assert [entry.oid for entry in commits] == [merged, last]
    assert commits[0].parents == (first, side)
    assert (commits[0].subject, commits[0].body) == ("A subject in two lines", body)
    assert (commits[1].subject, commits[1].body) == ("only a subject", "")
    assert commits[1].tree == repo.tree(repository, side)
    assert [entry.oid for entry in repo.first_parent(repository, None, last)] == [first, merged, last]
    assert repo.first_parent(repository, last, last) == ()


def test_first_parent_reads_messages_in_other_encodings(repository: Path, git: Git) -> None:
    git(repository, "-c", "i18n.commitEncoding=latin1", "commit", "-q", "--allow-empty", "-m", os.fsdecode(b"caf\xe9"))
    assert repo.first_parent(repository, "HEAD~1", "HEAD")[0].subject == "café"


def test_log_subjects(repository: Path, git: Git) -> None:
    first = git(repository, "rev-parse", "HEAD")
    commit(git, repository, "one")
    last = commit(git, repository, "two")
    assert repo.log_subjects(repository, first, last) == ("one", "two")
    assert repo.log_subjects(repository, last, first) == ()


def test_commit_tree_is_the_users_and_runs_and_signs_nothing(repository: Path, git: Git) -> None:
    git(repository, "config", "commit.gpgSign", "true")
    git(repository, "config", "gpg.program", "false")
    oid = repo.commit_tree(repository, repo.tree(repository, "HEAD"), (), "ünï\n")
    assert (
        git(repository, "log", "-1", "--format=%an <%ae> %cn %s", oid)
        == "Test User <test@example.invalid> Test User ünï"
    )


def test_commit_tree_without_identity_falls_back(repository: Path, git: Git, without_identity: Path) -> None:
    oid = repo.commit_tree(repository, repo.tree(repository, "HEAD"), (), "x")
    assert git(repository, "log", "-1", "--format=%an <%ae>|%cn <%ce>", oid) == "|".join(
        ["Baton <baton@localhost>"] * 2
    )


def test_identity_from_the_environment_is_the_users(
    repository: Path, git: Git, without_identity: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Build Machine")
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00Z")
    oid = repo.commit_tree(repository, repo.tree(repository, "HEAD"), (), "x")
    assert git(repository, "log", "-1", "--format=%an|%cn", oid) == "Build Machine|Baton"
    assert not git(repository, "log", "-1", "--format=%as", oid).startswith("2001")


def test_refs_move_without_identity(repository: Path, git: Git, without_identity: Path) -> None:
    assert repo.update_ref(repository, "refs/heads/new", git(repository, "rev-parse", "HEAD"), repo.NO_OID)


def test_commit_tree_reports_other_failures(repository: Path) -> None:
    with pytest.raises(BatonError) as caught:
        repo.commit_tree(repository, "0" * 40, (), "x")
    assert caught.value.code == "git_failed"


def test_checked_out_knows_every_worktree(repository: Path, tmp_path: Path, git: Git) -> None:
    odd = tmp_path / "with space\nand line"
    git(repository, "worktree", "add", "-q", "-b", "side", odd)
    git(repository, "worktree", "add", "-q", "--detach", tmp_path / "loose")
    assert repo.checked_out(repository) == {"main": repository, "side": odd}
    assert repo.checked_out(odd) == repo.checked_out(repository)


def test_stash_is_seen(repository: Path, git: Git) -> None:
    assert repo.stash(repository) is None
    (repository / "README").write_text("edit")
    git(repository, "stash")
    assert repo.stash(repository) == git(repository, "rev-parse", "refs/stash")


# --- the files of a checkout --------------------------------------------------------------------------------


def test_dirty_names_staged_modified_untracked_and_unmerged(repository: Path, git: Git) -> None:
    commit(git, repository, a="1", b="2", **{"sp ace ünï": "3"})
    assert repo.dirty(repository) == ()
    git(repository, "mv", "a", "moved")
    (repository / "b").write_text("edit")
    (repository / "sp ace ünï").write_text("edit")
    write_files(repository, {"new/one": "x", "new/two": "x"})
    assert repo.dirty(repository) == ("a", "b", "moved", "new/", "sp ace ünï")


def test_dirty_does_not_depend_on_the_users_settings(repository: Path, git: Git) -> None:
    git(repository, "config", "status.showUntrackedFiles", "no")
    git(repository, "config", "status.relativePaths", "true")
    write_files(repository, {"sub/x": "1"})
    assert repo.dirty(repository / "sub") == ("sub/",)


def test_a_clean_checkout_is_clean(repository: Path) -> None:
    found = repo.cleanliness(repository)
    assert (found.changed, found.untracked, found.ignored, found.absent) == ((), (), (), ())


def test_changes_deletions_and_modes_are_seen(repository: Path, git: Git) -> None:
    commit(git, repository, a="1", b="2", c="3")
    (repository / "a").write_text("one")
    (repository / "b").unlink()
    (repository / "c").chmod(0o755)
    assert repo.cleanliness(repository).changed == ("a", "b", "c")


def test_staged_but_uncommitted_work_is_seen(repository: Path, git: Git) -> None:
    write_files(repository, {"README": "edit", "new": "x"})
    git(repository, "add", "-A")
    found = repo.cleanliness(repository)
    assert (found.changed, found.untracked) == (("README",), ("new",))


@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
def test_index_flags_hide_nothing(repository: Path, git: Git, flag: str) -> None:
    git(repository, "update-index", flag, "README")
    (repository / "README").write_text("edit")
    assert repo.dirty(repository) == ()
    assert repo.cleanliness(repository).changed == ("README",)
    (repository / "README").unlink()
    assert repo.cleanliness(repository).changed == ("README",)


def test_stat_tricks_hide_nothing(repository: Path, git: Git) -> None:
    path = repository / "README"
    before = path.stat()
    git(repository, "config", "core.trustctime", "false")
    git(repository, "config", "core.ignoreStat", "true")
    path.write_text("jello\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert repo.cleanliness(repository).changed == ("README",)


def test_the_own_index_is_neither_read_nor_written(repository: Path, git: Git) -> None:
    git(repository, "config", "core.splitIndex", "true")
    index = repository / ".git" / "index"
    index.write_bytes(b"garbage")
    assert repo.cleanliness(repository).changed == ()
    assert index.read_bytes() == b"garbage"
    assert not list((repository / ".git").glob("sharedindex*"))


def test_only_committed_ignore_rules_count(repository: Path, git: Git, hermetic: Path) -> None:
    commit(git, repository, **{".gitignore": "*.log\n", "sub/.gitignore": "out/\n"})
    (repository / ".git" / "info" / "exclude").write_text("secret\n")
    write_files(hermetic, {"config/git/ignore": "global\n"})
    write_files(repository, {"secret": "", "global": "", "x.log": "", "sub/out/deep/y": "", "sub/z": ""})
    found = repo.cleanliness(repository)
    assert found.untracked == ("global", "secret", "sub/z")
    assert found.ignored == ("sub/out/", "x.log")


def test_an_uncommitted_edit_of_gitignore_is_a_change(repository: Path, git: Git) -> None:
    commit(git, repository, **{".gitignore": "*.log\n"})
    write_files(repository, {".gitignore": "*\n", "hidden": ""})
    assert repo.cleanliness(repository).changed == (".gitignore",)


@pytest.mark.parametrize("folder", ["", "tests/", "deep/er/"])
def test_an_untracked_gitignore_that_hides_itself_is_named(repository: Path, folder: str) -> None:
    write_files(repository, {f"{folder}.gitignore": "*\n", f"{folder}conftest.py": "x"})
    assert repo.cleanliness(repository).untracked == (f"{folder}.gitignore",)


def test_gitignore_files_below_an_ignored_folder_do_not_matter(repository: Path, git: Git) -> None:
    commit(git, repository, **{".gitignore": "node_modules/\n.venv\n"})
    write_files(repository, {"node_modules/a/.gitignore": "*\n", ".venv/.gitignore": "*\n", ".venv/bin/x": ""})
    found = repo.cleanliness(repository)
    assert (found.untracked, found.ignored) == ((), (".venv/", "node_modules/"))


def test_known_caches_never_count(repository: Path, git: Git) -> None:
    commit(git, repository, **{".gitignore": "ignored/\n"})
    for cache in repo.KNOWN_CACHES:
        write_files(repository, {f"pkg/{cache}/x": "1", f"ignored/{cache}/x": "1"})
    write_files(repository, {".pytest_cache/.gitignore": "*\n"})
    found = repo.cleanliness(repository)
    assert (found.untracked, found.ignored) == ((), ())


def test_python_files_that_can_be_imported_do_count(repository: Path) -> None:
    write_files(repository, {"pkg/legacy.pyc": "1"})
    assert repo.cleanliness(repository).untracked == ("pkg/legacy.pyc",)


def test_ignored_digest_follows_content_names_and_times(repository: Path, git: Git) -> None:
    commit(git, repository, **{".gitignore": "build/\n"})
    empty = repo.cleanliness(repository).ignored_digest
    write_files(repository, {"build/a/x": "1", "build/a/__pycache__/m.pyc": "1"})
    one = repo.cleanliness(repository).ignored_digest
    write_files(repository, {"build/a/__pycache__/m.pyc": "22"})
    assert repo.cleanliness(repository).ignored_digest == one != empty
    os.utime(repository / "build/a/x", ns=(5, 5))
    touched = repo.cleanliness(repository).ignored_digest
    os.symlink("/nowhere", repository / "build/link")
    linked = repo.cleanliness(repository).ignored_digest
    assert len({empty, one, touched, linked}) == 4


def test_links_in_ignored_folders_are_not_followed(repository: Path, git: Git, tmp_path: Path) -> None:
    commit(git, repository, **{".gitignore": "build/\n"})
    write_files(tmp_path, {"outside/x": "1"})
    (repository / "build").mkdir()
    os.symlink(tmp_path / "outside", repository / "build" / "out")
    os.symlink(repository, repository / "build" / "loop")
    before = repo.cleanliness(repository).ignored_digest
    write_files(tmp_path, {"outside/x": "changed"})
    assert repo.cleanliness(repository).ignored_digest == before


def test_names_that_are_not_utf8_are_named(repository: Path) -> None:
    name = os.fsdecode(b'caf\xe9\n"x"')
    (repository / name).write_text("")
    assert repo.cleanliness(repository).untracked == (name,)
    assert repo.dirty(repository) == (name,)


@pytest.mark.parametrize("cone", ["--cone", "--no-cone"])
def test_files_left_out_by_a_sparse_checkout_are_absent_not_changed(repository: Path, git: Git, cone: str) -> None:
    commit(git, repository, **{"in/x": "1", "out/y": "1", "out/z": "1"})
    git(repository, "sparse-checkout", "set", cone, "in" if cone == "--cone" else "/in/")
    found = repo.cleanliness(repository)
    assert found.changed == ()
    assert {"out/y", "out/z"} <= set(found.absent)
    (repository / "in" / "x").unlink()
    write_files(repository, {"out/y": "edited behind the cone"})
    found = repo.cleanliness(repository)
    assert found.changed == ("in/x", "out/y")
    assert "out/z" in found.absent


def test_skip_worktree_without_sparse_checkout_excuses_no_deletion(repository: Path, git: Git) -> None:
    git(repository, "update-index", "--skip-worktree", "README")
    (repository / "README").unlink()
    found = repo.cleanliness(repository)
    assert (found.changed, found.absent) == (("README",), ())


def test_filters_count_by_what_git_would_commit(repository: Path, git: Git) -> None:
    git(repository, "config", "filter.rot.clean", "tr a-z b-za")
    git(repository, "config", "filter.rot.smudge", "tr b-za a-z")
    commit(git, repository, **{".gitattributes": "*.rot filter=rot\n*.txt eol=crlf\n", "x.rot": "abc", "y.txt": "a\n"})
    (repository / "y.txt").write_bytes(b"a\r\n")
    assert repo.cleanliness(repository).changed == ()


def test_submodules_moved_commit_and_edits_are_seen_unpopulated_is_clean(
    tmp_path: Path, make_repository: Make, git: Git
) -> None:
    inner = make_repository(tmp_path / "inner", {"f": "1"})
    outer = make_repository(tmp_path / "outer", {"g": "1"})
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", inner, "mod")
    git(outer, "commit", "-q", "-m", "module")
    assert repo.cleanliness(outer).changed == ()
    write_files(outer, {"mod/f": "2"})
    assert repo.cleanliness(outer).changed == ("mod",)
    git(outer / "mod", "commit", "-q", "-am", "moved")
    assert repo.cleanliness(outer).changed == ("mod",)
    git(outer, "worktree", "add", "-q", "--detach", tmp_path / "tree")
    assert repo.cleanliness(tmp_path / "tree").changed == ()


def test_operation_names_what_is_in_progress(repository: Path, git: Git) -> None:
    base = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "-b", "side")
    side = commit(git, repository, "theirs", README="theirs")
    git(repository, "checkout", "-q", "main")
    commit(git, repository, "ours", README="ours")
    (repository / "sub").mkdir()
    seen = {}
    for name, args, end in (
        ("merge", ("merge", "side"), ("merge", "--abort")),
        ("cherry-pick", ("cherry-pick", side), ("cherry-pick", "--abort")),
        ("revert", ("revert", "--no-edit", base), ("revert", "--abort")),
        ("rebase", ("rebase", "side"), ("rebase", "--abort")),
        ("bisect", ("bisect", "start"), ("bisect", "reset")),
    ):
        git(repository, *args, check=False)
        seen[name] = repo.operation(repository / "sub")
        git(repository, *end)
    patch = git(repository, "format-patch", "--stdout", "main..side")
    git(repository, "am", input=patch + "\n", check=False)
    seen["am"] = repo.operation(repository)
    git(repository, "am", "--abort")
    assert seen == {name: name for name in seen}
    assert repo.operation(repository) is None


def test_operation_of_a_linked_worktree_is_its_own(repository: Path, tmp_path: Path, git: Git) -> None:
    git(repository, "worktree", "add", "-q", "--detach", tmp_path / "tree")
    git(tmp_path / "tree", "bisect", "start")
    assert repo.operation(tmp_path / "tree") == "bisect"
    assert repo.operation(repository) is None
    with pytest.raises(BatonError) as caught:
        repo.operation(tmp_path)
    assert caught.value.code == "not_a_repository"


def test_unmerged_names_conflicted_files(repository: Path, git: Git) -> None:
    git(repository, "checkout", "-q", "-b", "side")
    commit(git, repository, "theirs", **{"README": "theirs", "ü x": "theirs"})
    git(repository, "checkout", "-q", "main")
    commit(git, repository, "ours", **{"README": "ours", "ü x": "ours"})
    assert repo.unmerged(repository) == ()
    git(repository, "merge", "-q", "side", check=False)
    assert repo.unmerged(repository) == ("README", "ü x")
    assert repo.dirty(repository) == ("README", "ü x")


def test_custom_merge_drivers_are_named(repository: Path, git: Git) -> None:
    attributes = "*.lock merge=npm\n*.md merge=union\n*.bin -merge\n*.txt merge\n*.x merge=unset-up\n"
    commit(git, repository, **{".gitattributes": attributes})
    paths = ("a.lock", "b.md", "c.bin", "d.txt", "e.x", "plain", "ü\n.lock")
    assert repo.custom_merge_drivers(repository, paths) == ()
    git(repository, "config", "merge.npm.driver", "true %A")
    git(repository, "config", "merge.other.driver", "true %A")
    assert repo.custom_merge_drivers(repository, paths) == ("npm",)
    assert repo.custom_merge_drivers(repository, ("b.md", "plain")) == ()
    assert repo.custom_merge_drivers(repository, ()) == ()
    git(repository, "config", "merge.default", "other")
    assert repo.custom_merge_drivers(repository, ("b.md", "plain")) == ("other",)
