"""Repositories of every shape: a change goes to complete in them, or they are refused with the reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from baton_cli.errors import BatonError
from tests import invariants
from tests.conftest import run_git, write_files
from tests.kit import CHECK, World, baton, hand_outs, make_world

PLAN = "## 1. Ground\n\n- [ ] 1.1 Lay the first stone\n- [ ] 1.2 Lay the second stone\n"
CHANGE = {
    "README": "ground\n", "baton.toml": CHECK, "openspec/changes/grow/tasks.md": PLAN,
    "openspec/changes/grow/proposal.md": "# Why\n",
}  # fmt: skip
Shape = Callable[[Path], World]

pytestmark = pytest.mark.usefixtures("swift_git")


def seen(root: Path) -> tuple[str, str, str]:
    """The user's checkout: HEAD, branch, and what git finds changed (but the tasks, whose boxes are ticked)."""
    changed = run_git(root, "status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none")
    return (
        run_git(root, "rev-parse", "HEAD"),
        run_git(root, "symbolic-ref", "-q", "HEAD", check=False),
        "\n".join(line for line in changed.splitlines() if "tasks.md" not in line),
    )


def completes(world: World) -> None:
    """Two tickets, one after the other on the branch, and nothing of the user's is touched."""
    before = seen(world.root)
    for _ in range(4):
        answer = world.actions()
        if answer["state"] == "complete":
            break
        for action in hand_outs(answer):
            assert world.finish(action)["state"] == "integrated"
    assert answer["state"] == "complete", answer["actions"]
    assert world.tasks.read_text().count("[x]") == 2
    assert seen(world.root) == before
    if (world.project.common_dir.name, world.project.prefix) == (".git", ""):
        invariants.check(world)


def plain(root: Path) -> World:
    return make_world(root, PLAN)


def on_branch(name: str) -> Shape:
    def make(root: Path) -> World:
        world = plain(root)
        run_git(root, "branch", "-m", name)
        return world

    return make


def with_branches(*names: str) -> Shape:
    def make(root: Path) -> World:
        world = plain(root)
        for name in names:
            run_git(root, "branch", name)
        return world

    return make


def detached(root: Path) -> World:
    world = plain(root)
    run_git(root, "checkout", "-q", "--detach")
    return world


def ahead_of_origin(root: Path) -> World:
    """The user's branch is ahead of the remote's, whose HEAD is another branch."""
    upstream = make_world(root.with_name("upstream"), PLAN).root
    run_git(upstream, "checkout", "-q", "-b", "develop")
    run_git(root.parent, "clone", "-q", str(upstream), str(root))
    run_git(root, "checkout", "-q", "-b", "mine", "origin/main")
    write_files(root, {"ahead.txt": "1\n"})
    run_git(root, "add", "-A")
    run_git(root, "commit", "-q", "-m", "ahead")
    return World(root)


def shallow(root: Path) -> World:
    source = plain(root.with_name("source")).root
    run_git(source, "commit", "-q", "--allow-empty", "-m", "more")
    run_git(root.parent, "clone", "-q", "--depth=1", source.as_uri(), str(root))
    return World(root)


def partial(root: Path) -> World:
    """What is missing comes from the remote when it is asked for, and the remote is there."""
    source = plain(root.with_name("source")).root
    run_git(source, "config", "uploadpack.allowFilter", "true")
    run_git(root.parent, "clone", "-q", "--filter=blob:none", source.as_uri(), str(root))
    return World(root)


def sparse(root: Path) -> World:
    world = make_world(root, PLAN, files={"big/a/data": "1\n", "src/b": "2\n"})
    run_git(root, "sparse-checkout", "set", "openspec", "src")
    assert not (root / "big").exists()
    return world


def hooks(kind: str) -> Shape:
    """Hooks that refuse what is done, where the repository, or husky, says they are. (An agent's own commits run others.)"""

    def make(root: Path) -> World:
        world = plain(root)
        place = {"absolute": root.with_name("hooks"), "relative": root / "tools", "husky": root / ".husky" / "_"}[kind]
        for name in ("post-checkout", "pre-merge-commit", "post-merge", "post-rewrite", "pre-push", "pre-auto-gc"):
            write_files(place, {name: "#!/bin/sh\necho hook >> ../hook-ran\nexit 1\n"})
            (place / name).chmod(0o755)
        if kind != "absolute":
            run_git(root, "add", "-A")
            run_git(root, "commit", "-q", "-m", "hooks")
        run_git(root, "config", "core.hooksPath", str(place) if kind == "absolute" else str(place.relative_to(root)))
        return world

    return make


def bare_and_worktrees(root: Path) -> World:
    source = plain(root.with_name("source")).root
    run_git(root.parent, "clone", "-q", "--bare", str(source), str(root.with_name("bare.git")))
    run_git(root.with_name("bare.git"), "worktree", "add", "-q", str(root), "main")
    return World(root)


def git_folder_elsewhere(root: Path) -> World:
    run_git(root.parent, "init", "-q", "-b", "main", f"--separate-git-dir={root.with_name('elsewhere')}", str(root))
    write_files(root, CHANGE)
    run_git(root, "add", "-A")
    run_git(root, "commit", "-q", "-m", "begin")
    return World(root)


def a_submodule(root: Path) -> World:
    """The project is a submodule of another repository."""
    source = plain(root.with_name("source")).root
    outer = root.with_name("outer")
    run_git(root.parent, "init", "-q", "-b", "main", str(outer))
    run_git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(source), "inner")
    run_git(outer, "commit", "-q", "-m", "outer")
    return World(outer / "inner")


def with_submodule(root: Path) -> World:
    """A submodule that can't be fetched any more, from a place that would ask for a password."""
    library = root.with_name("library")
    run_git(root.parent, "init", "-q", "-b", "main", str(library))
    run_git(library, "commit", "-q", "--allow-empty", "-m", "library")
    world = plain(root)
    run_git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    run_git(root, "config", "-f", ".gitmodules", "submodule.lib.url", "https://user@example.invalid/lib.git")
    run_git(root, "commit", "-q", "-a", "-m", "with a library")
    return world


def missing_filter(root: Path) -> World:
    """LFS is asked for and not installed, and not required: what git does by itself."""
    world = make_world(root, PLAN, files={".gitattributes": "*.bin filter=lfs -text\n", "a.bin": "pointer\n"})
    run_git(root, "config", "filter.lfs.clean", "no-such-program clean %f")
    run_git(root, "config", "filter.lfs.smudge", "no-such-program smudge %f")
    return world


def sub_folder(root: Path) -> World:
    run_git(root.parent, "init", "-q", "-b", "main", str(root))
    write_files(root / "packages" / "one", CHANGE)
    run_git(root, "add", "-A")
    run_git(root, "commit", "-q", "-m", "begin")
    return World(root / "packages" / "one")


def named(name: str) -> Shape:
    return lambda root: plain(root / name)


SHAPES: dict[str, Shape] = {
    "with-submodule": with_submodule,
    "hooks-absolute": hooks("absolute"),
    "sparse": sparse,
    "bare-and-worktrees": bare_and_worktrees,
    "sub-folder": sub_folder,
    "detached": detached,
    "odd-path": named("a b'c\"d\\e $(x) é测"),
    "branch-release": on_branch("release/1.x"),
}
MORE: dict[str, Shape] = {
    "hooks-relative": hooks("relative"),
    "husky": hooks("husky"),
    "shallow": shallow,
    "partial": partial,
    "git-file": git_folder_elsewhere,
    "a-submodule": a_submodule,
    "missing-filter": missing_filter,
    "ahead-of-origin": ahead_of_origin,
    "branch-trunk": on_branch("trunk"),
    "feat-and-feat-x": with_branches("feat/x", "grow", "Baton/Grow/Integration", "GROW"),
    "long-path": named("/".join(["a-rather-long-folder-name"] * 4)),
}


@pytest.mark.parametrize("name", [*SHAPES, *(pytest.param(name, marks=pytest.mark.full) for name in MORE)])
def test_a_change_goes_to_complete(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = tmp_path / "asked"
    write_files(tmp_path, {"ask": f"#!/bin/sh\necho asked >> '{asked}'\necho secret\n"})
    (tmp_path / "ask").chmod(0o755)
    monkeypatch.setenv("GIT_ASKPASS", str(tmp_path / "ask"))
    monkeypatch.setenv("SSH_ASKPASS", str(tmp_path / "ask"))
    world = {**SHAPES, **MORE}[name](tmp_path / "project")
    remotes = [tmp_path / place for place in ("upstream", "source", "library") if (tmp_path / place).exists()]
    before = [run_git(place, "for-each-ref") for place in remotes]
    completes(world)
    assert [run_git(place, "for-each-ref") for place in remotes] == before, "something was pushed"
    assert not asked.exists(), "somebody was asked for a password"
    assert not list(tmp_path.rglob("hook-ran")), "a hook of the repository ran"
    if name == "ahead-of-origin":
        assert run_git(world.root, "merge-base", "--is-ancestor", "mine", world.integration) == ""
        assert run_git(world.root, "for-each-ref", "refs/remotes", "--format=%(refname)").count("baton") == 0


def test_a_users_branch_called_baton_is_named_with_the_way_out(tmp_path: Path) -> None:
    world = with_branches("baton")(tmp_path / "project")
    with pytest.raises(BatonError) as caught:
        world.actions()
    assert caught.value.code == "branch_name_taken"
    assert "[branches] prefix" in caught.value.hint
    (world.root / "baton.toml").write_text(CHECK + '[branches]\nprefix = "machine"\n')
    action = hand_outs(world.actions())[0]
    assert action["branch"].startswith("machine/grow/")


@pytest.mark.parametrize("verb", [("actions", "grow", "--session", "s9"), ("status",), ("plan", "grow"), ("log",)])
def test_called_from_inside_a_worktree_of_ours_it_means_the_project(tmp_path: Path, verb: tuple[str, ...]) -> None:
    world = plain(tmp_path / "project")
    action = hand_outs(world.actions())[0]
    inside, outside = (baton(world.root, *verb, "--json", cwd=place) for place in (Path(action["cwd"]), world.root))
    assert inside.returncode == outside.returncode == 0, inside.stdout
    shown = [text.stdout.replace(world.root.name, "") for text in (inside, outside)]
    assert len(shown[0]) > 20
    if verb[0] != "actions":
        assert shown[0] == shown[1]
    assert not (Path(action["cwd"]) / ".dsh").exists()


def test_a_required_filter_that_is_missing_is_said_and_nothing_is_lost(tmp_path: Path) -> None:
    world = make_world(tmp_path / "p", PLAN, files={".gitattributes": "*.bin filter=lfs -text\n", "a.bin": "pointer\n"})
    for name, value in (("smudge", "no-such-program"), ("clean", "no-such-program"), ("required", "true")):
        run_git(world.root, "config", f"filter.lfs.{name}", value)
    with pytest.raises(BatonError) as caught:
        world.actions()
    assert caught.value.code == "git_failed"
    assert "no-such-program" in caught.value.message
    run_git(world.root, "config", "--remove-section", "filter.lfs")
    completes(world)


def test_a_partial_clone_whose_remote_is_gone_is_said(tmp_path: Path) -> None:
    world = partial(tmp_path / "project")
    source = tmp_path / "source"
    write_files(source, {"later.txt": "later\n"})
    run_git(source, "add", "-A")
    run_git(source, "commit", "-q", "-m", "later")
    run_git(world.root, "fetch", "-q")
    run_git(world.root, "update-ref", "refs/heads/main", "origin/main")
    source.rename(tmp_path / "gone")
    with pytest.raises(BatonError) as caught:
        world.actions()
    assert caught.value.code == "git_failed"
    (tmp_path / "gone").rename(source)
    assert hand_outs(world.actions())
