"""Merging in memory and in a worktree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from baton_cli.errors import BatonError
from baton_cli.git import merge, repo, worktree

Git = Callable[..., str]
PLAIN = ("-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false")


@pytest.fixture
def branch(repository: Path, git: Git) -> Callable[..., str]:
    """`branch(name, base, file=text or None) -> commit`: a branch with one commit; None deletes the file."""

    def make(name: str, base: str = "main", **files: str | None) -> str:
        git(repository, "checkout", "-q", "-b", name, base)
        for file, text in files.items():
            path = repository / file.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                path.unlink()
            else:
                path.write_text(text)
        git(repository, "add", "-A")
        git(repository, *PLAIN, "commit", "-q", "--allow-empty", "-m", name)
        git(repository, "checkout", "-q", "main")
        return git(repository, "rev-parse", name)

    return make


def test_a_clean_merge_gives_the_tree_and_moves_nothing(repository: Path, git: Git, branch: Callable[..., str]) -> None:
    ours, theirs = branch("ours", a="1"), branch("theirs", b="2")
    before = git(repository, "for-each-ref")
    result = merge.merge_tree(repository, ours, theirs)
    assert result.clean
    assert git(repository, "ls-tree", "--name-only", result.tree).split() == ["README", "a", "b"]
    assert git(repository, "for-each-ref") == before
    assert git(repository, "status", "--porcelain") == ""


def test_a_conflict_names_its_files(repository: Path, branch: Callable[..., str], git: Git) -> None:
    base = branch("base", README="base", ü="base", same="x")
    ours = branch("ours", base, README="ours", ü="ours", same="y")
    theirs = branch("theirs", base, README="theirs", ü=None, same="y")
    result = merge.merge_tree(repository, ours, theirs)
    assert not result.clean
    assert result.conflicts == ("README", "ü")
    assert "<<<<<<<" in git(repository, "show", f"{result.tree}:README")


def test_what_cannot_be_merged_is_no_conflict(repository: Path, git: Git, branch: Callable[..., str]) -> None:
    ours = branch("ours", a="1")
    stranger = git(repository, "commit-tree", "HEAD^{tree}", "-m", "root")
    for theirs in (stranger, "nope", "1" * 40):
        with pytest.raises(BatonError) as caught:
            merge.merge_tree(repository, ours, theirs)
        assert caught.value.code == "git_failed"
        assert caught.value.message.startswith("git merge-tree: ")


def test_merge_in_a_worktree_without_files(repository: Path, tmp_path: Path, branch: Callable[..., str]) -> None:
    ours, theirs = branch("ours", a="1"), branch("theirs", b="2")
    worktree.add_detached(repository, tmp_path / "tree", ours, checkout=False)
    assert merge.merge_tree(tmp_path / "tree", ours, theirs).clean


@pytest.fixture
def hostile(repository: Path, git: Git, tmp_path: Path) -> None:
    """Every setting and hook of a user that could change or stop a merge."""
    settings = {
        "merge.ff": "only",
        "pull.ff": "only",
        "pull.rebase": "true",
        "merge.conflictStyle": "diff3",
        "merge.verifySignatures": "true",
        "merge.autoStash": "true",
        "merge.log": "true",
        "merge.stat": "true",
        "merge.renames": "false",
        "rerere.enabled": "true",
        "rerere.autoUpdate": "true",
        "pull.twohead": "ours",
        "commit.gpgSign": "true",
        "commit.verbose": "true",
        "commit.cleanup": "scissors",
        "core.editor": "false",
        "gpg.program": "false",
        "branch.ours.mergeOptions": "--squash --ff-only",
    }
    for key, value in settings.items():
        git(repository, "config", key, value)
    for hook in ("pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-merge", "post-commit"):
        path = repository / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {tmp_path}/hook-ran\nexit 1\n")
        path.chmod(0o755)


def test_edits_in_the_way_are_the_reason_given_not_a_conflict(repository: Path, branch: Callable[..., str]) -> None:
    theirs = branch("theirs", README="theirs")
    (repository / "README").write_text("my edit")
    with pytest.raises(BatonError, match="README") as caught:
        merge.start_committed(repository, theirs, "x")
    assert caught.value.code == "git_failed"
    assert repo.operation(repository) is None
    assert (repository / "README").read_text() == "my edit"


def test_a_second_merge_is_refused_while_one_is_in_progress(repository: Path, branch: Callable[..., str]) -> None:
    ours, theirs = branch("ours", README="ours"), branch("theirs", README="theirs")
    worktree.checkout_detached(repository, ours)
    assert not merge.start_committed(repository, theirs, "x")
    with pytest.raises(BatonError) as caught:
        merge.start_committed(repository, theirs, "x")
    assert caught.value.code == "operation_in_progress"
    assert repo.operation(repository) == "merge"


@pytest.mark.usefixtures("hostile")
def test_start_committed_commits_with_two_parents_and_the_message(
    repository: Path, tmp_path: Path, git: Git, branch: Callable[..., str]
) -> None:
    ours, theirs = branch("ours", a="1"), branch("theirs", b="2")
    tree = tmp_path / "tree"
    worktree.add_existing(repository, tree, "ours")
    assert merge.start_committed(tree, theirs, "Merge it\n\nBecause.")
    last = repo.first_parent(tree, ours, "HEAD")[-1]
    assert last.parents == (ours, theirs)
    assert (last.subject, last.body.strip()) == ("Merge it", "Because.")
    assert not (tmp_path / "hook-ran").exists()
    assert repo.cleanliness(tree).changed == ()
    assert merge.start_committed(tree, theirs, "again")
    assert repo.head(tree).oid == last.oid


def test_start_committed_never_fast_forwards(repository: Path, branch: Callable[..., str], git: Git) -> None:
    theirs = branch("theirs", b="2")
    first = git(repository, "rev-parse", "HEAD")
    assert merge.start_committed(repository, theirs, "x")
    assert repo.first_parent(repository, first, "HEAD")[0].parents == (first, theirs)


@pytest.mark.usefixtures("hostile")
def test_start_committed_leaves_a_conflict_in_progress(
    repository: Path, tmp_path: Path, branch: Callable[..., str]
) -> None:
    ours, theirs = branch("ours", README="ours"), branch("theirs", README="theirs", b="2")
    tree = tmp_path / "tree"
    worktree.add_existing(repository, tree, "ours")
    assert not merge.start_committed(tree, theirs, "Merge it")
    assert repo.operation(tree) == "merge"
    assert repo.unmerged(tree) == ("README",)
    text = (tree / "README").read_text()
    assert "<<<<<<<" in text
    assert "|||||||" not in text
    assert repo.head(tree) == repo.Head(ours, "ours")
    assert not (tmp_path / "hook-ran").exists()
    assert repo.stash(repository) is None


def test_merging_needs_no_identity(
    repository: Path, git: Git, branch: Callable[..., str], without_identity: Path
) -> None:
    (without_identity / ".gitconfig").write_text("[user]\n\tname = x\n\temail = x@y\n")
    theirs = branch("theirs", b="2")
    (without_identity / ".gitconfig").write_text("[user]\n\tuseConfigOnly = true\n")
    assert merge.start_committed(repository, theirs, "x")
    assert git(repository, "log", "-1", "--format=%an|%ce") == "Baton|baton@localhost"
