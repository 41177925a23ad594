"""The one git call site: exact output, a closed environment, time limits, clear errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from baton_cli.errors import BatonError
from baton_cli.git import run
from baton_cli.git.run import git

Git = Callable[..., str]


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_output_is_text_without_one_trailing_newline(repository: Path) -> None:
    result = git("rev-parse", "--is-inside-work-tree", cwd=repository)
    assert (result.code, result.out, result.text, result.err) == (0, b"true\n", "true", "")


def test_large_output_arrives_complete(repository: Path) -> None:
    content = os.urandom(6_000_000) + b"\n\n"
    oid = git("hash-object", "-w", "--stdin", cwd=repository, input=content).text
    assert git("cat-file", "blob", oid, cwd=repository).out == content


def test_input_reaches_git_and_without_input_stdin_is_empty(repository: Path) -> None:
    empty = git("hash-object", "--stdin", cwd=repository).text
    assert empty == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert git("hash-object", "--stdin", cwd=repository, input=b"").text == empty
    assert git("hash-object", "--stdin", cwd=repository, input=b"x").text != empty


def test_failure_names_the_verb_and_the_reason(repository: Path) -> None:
    with pytest.raises(BatonError) as caught:
        git("cat-file", "blob", "0" * 40, cwd=repository)
    assert caught.value.code == "git_failed"
    assert caught.value.message.startswith("git cat-file: fatal: ")
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_expected_exit_codes_are_no_error(repository: Path) -> None:
    assert git("config", "--get", "no.such.key", cwd=repository, ok=(0, 1)).code == 1


def test_missing_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BatonError, match="cannot change to") as caught:
        git("status", cwd=tmp_path / "gone")
    assert caught.value.code == "git_failed"


def test_missing_git_is_named(repository: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BatonError) as caught:
        git("status", cwd=repository)
    assert caught.value.code == "git_missing"
    assert "PATH" in caught.value.hint


@pytest.mark.parametrize("argument", ["a\0b", Path("a\0b")])
def test_nul_is_refused_before_anything_runs(repository: Path, argument: str | Path) -> None:
    with pytest.raises(BatonError) as caught:
        git("rev-parse", argument, cwd=repository)
    assert caught.value.code == "bad_git_argument"
    with pytest.raises(BatonError):
        git("version", cwd=Path("x\0"))
    with pytest.raises(BatonError):
        git("version", cwd=repository, env={"A": "\0"})


def test_too_many_arguments_is_an_error_not_a_traceback(repository: Path) -> None:
    with pytest.raises(BatonError) as caught:
        git("rev-parse", *["x" * 100_000] * 60, cwd=repository)
    assert caught.value.code == "git_failed"


def test_names_that_are_not_utf8_survive_both_ways(repository: Path) -> None:
    name = os.fsdecode(b"caf\xe9 \xe2\x82\xac\n$(id)")
    (repository / name).write_text("x")
    git("add", "--", name, cwd=repository)
    assert name in git("ls-files", "-z", cwd=repository).names


def test_arguments_are_never_seen_by_a_shell(repository: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    text = git("rev-parse", "--sq-quote", f"; touch {victim} $(touch {victim})", cwd=repository).text
    assert "touch" in text
    assert not victim.exists()


def test_inherited_git_variables_change_nothing(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "GIT_DIR": str(tmp_path),
        "GIT_WORK_TREE": str(tmp_path),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "Intruder",
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_TRACE": "1",
    }.items():
        monkeypatch.setenv(name, value)
    assert git("rev-parse", "--show-toplevel", cwd=repository).text == str(repository)
    assert git("config", "user.name", cwd=repository).text == "Test User"
    assert git("status", cwd=repository).err == ""


def test_given_variables_are_added(repository: Path, tmp_path: Path) -> None:
    index = tmp_path / "other-index"
    git("read-tree", "HEAD", cwd=repository, env={"GIT_INDEX_FILE": str(index)})
    assert index.exists()


def test_hooks_pager_fsmonitor_editor_and_aliases_do_not_run(repository: Path, tmp_path: Path, git: Git) -> None:
    trap = program(tmp_path / "bin", "trap", f"#!/bin/sh\ntouch {tmp_path}/sprung\nexit 1\n")
    hooks = ("pre-commit", "post-commit", "reference-transaction", "post-checkout", "post-index-change", "commit-msg")
    for hook in hooks:
        program(repository / ".git" / "hooks", hook, trap.read_text())
    keys = ("core.pager", "core.fsmonitor", "core.editor", "pager.log", "pager.status", "gpg.program", "core.askPass")
    for key in keys:
        git(repository, "config", key, trap)
    for key, value in {"commit.gpgSign": "true", "log.showSignature": "true", "alias.log": f"!{trap}"}.items():
        git(repository, "config", key, value)
    (repository / "new").write_text("x")
    for args in (("add", "-A"), ("commit", "-m", "second"), ("log",), ("status",), ("checkout", "-q", "-b", "other")):
        run.git(*args, cwd=repository)
    assert not (tmp_path / "sprung").exists()


def test_clean_and_smudge_filters_are_honoured(repository: Path, git: Git) -> None:
    git(repository, "config", "filter.upper.clean", "tr a-z A-Z")
    (repository / ".gitattributes").write_text("*.up filter=upper\n")
    (repository / "file.up").write_text("loud")
    run.git("add", "file.up", cwd=repository)
    assert git(repository, "cat-file", "blob", ":file.up") == "LOUD"


def test_replaced_commits_are_not_shown(repository: Path, git: Git) -> None:
    real = git(repository, "rev-parse", "HEAD")
    fake = git(repository, "commit-tree", "HEAD^{tree}", "-m", "forged")
    git(repository, "replace", real, fake)
    assert run.git("log", "-1", "--format=%s", cwd=repository).text == "first"


def test_status_leaves_the_index_alone(repository: Path) -> None:
    index = repository / ".git" / "index"
    os.utime(repository / "README", (1, 1))  # stat data is stale, so a plain status would refresh the index
    before = (index.read_bytes(), index.stat().st_mtime_ns, index.stat().st_ino)
    git("status", cwd=repository)
    assert (index.read_bytes(), index.stat().st_mtime_ns, index.stat().st_ino) == before


def test_time_limit_ends_git_and_everything_it_started(
    repository: Path, fifo: Callable[[str], Path], git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive, gate = fifo("alive"), fifo("gate")
    git(repository, "config", "filter.slow.clean", f"exec 3>{alive}; echo >&3; cat {gate}")
    (repository / ".gitattributes").write_text("*.slow filter=slow\n")
    (repository / "a.slow").write_text("x")
    opened, ended = threading.Event(), threading.Event()

    def watch() -> None:
        with alive.open() as pipe:
            opened.set()
            pipe.read()  # ends only when nobody has the pipe open any more
        ended.set()

    class Clock(threading.Thread):
        """A timer whose time is over as soon as the filter runs."""

        def __init__(self, _seconds: float, expire: Callable[[], None]) -> None:
            super().__init__(target=self._expire)
            self.expire = expire

        def _expire(self) -> None:
            opened.wait(30)
            self.expire()

        def cancel(self) -> None: ...

    monkeypatch.setattr(run, "Timer", Clock)
    threading.Thread(target=watch, daemon=True).start()
    with pytest.raises(BatonError) as caught:
        run.git("add", "a.slow", cwd=repository, timeout=5)
    assert caught.value.code == "git_timeout"
    assert ended.wait(30), "the filter still runs"


def test_a_helper_left_running_holds_nothing_up(repository: Path, fifo: Callable[[str], Path], git: Git) -> None:
    gate = fifo("gate")
    (repository / ".gitattributes").write_text("*.left filter=left\n")
    (repository / "a.left").write_text("x")
    # git itself waits for a filter's stdout, so let the helper keep only the stderr that it shares with git
    git(repository, "config", "filter.left.clean", f"(cat {gate} >/dev/null) >/dev/null & cat")
    run.git("add", "a.left", cwd=repository, timeout=60)
    with gate.open("w") as pipe:  # blocks until the helper reads: it is alive although the call has returned
        pipe.write("go")


def test_interrupt_ends_git(repository: Path, fifo: Callable[[str], Path], git: Git) -> None:
    started, gate = fifo("started"), fifo("gate")
    git(repository, "config", "filter.slow.clean", f"exec 3>{started}; echo >&3; cat {gate}")
    (repository / ".gitattributes").write_text("*.slow filter=slow\n")
    (repository / "a.slow").write_text("x")
    code = (
        "from baton_cli.git.run import git; import os, pathlib, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs in the background\n"
        "try: git('add', 'a.slow', cwd=pathlib.Path(os.environ['REPO']))\n"
        "except KeyboardInterrupt: print('interrupted')"
    )
    environment = {**os.environ, "REPO": str(repository)}
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
    with started.open() as pipe:
        pipe.readline()
        child.send_signal(signal.SIGINT)
        assert child.communicate(timeout=30)[0] == b"interrupted\n"
        assert pipe.read() == ""  # the end of the pipe: the filter is gone, too


@pytest.mark.parametrize("moment", ["_start", "_wait"])
def test_an_interrupt_at_the_worst_moment_leaves_no_git_running(
    repository: Path, git: Git, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    really = getattr(run, moment)
    pids: list[int] = []

    def interrupted(*args: object) -> object:
        if moment == "_start":
            process = really(*args)
            pids.append(process.pid)
            signal.raise_signal(signal.SIGINT)  # git runs, and our caller does not know it yet
            return process
        pids.append(args[0].pid)  # type: ignore[attr-defined]
        signal.raise_signal(signal.SIGINT)
        return really(*args)

    monkeypatch.setattr(run, moment, interrupted)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run.git("status", cwd=repository)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, previous)
    with pytest.raises(ProcessLookupError):
        os.killpg(pids[0], 0)


def test_calls_from_many_threads_do_not_mix(repository: Path) -> None:
    answers: dict[int, str] = {}

    def ask(number: int) -> None:
        answers[number] = git("rev-parse", "--sq-quote", str(number), cwd=repository).text.strip()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {number: f"'{number}'" for number in range(24)}


def test_no_descriptor_and_no_thread_is_left(repository: Path) -> None:
    def count() -> tuple[int, int]:
        for thread in threading.enumerate():
            if isinstance(thread, threading.Timer):  # cancelled, and about to end
                thread.join(30)
        return len(os.listdir("/dev/fd")), threading.active_count()

    git("version", cwd=repository)
    before = count()
    for _ in range(5):
        git("version", cwd=repository)
    assert count() == before


def test_version_is_checked_against_the_minimum(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert run.version() >= run.MINIMUM_GIT
    program(tmp_path, "git", "#!/bin/sh\necho git version 2.37.1.windows.1\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(BatonError) as caught:
        run.version()
    assert caught.value.code == "git_too_old"
    program(tmp_path, "git", "#!/bin/sh\necho 'git version 2.50.1 (Apple Git-155)'\n")
    assert run.version() == (2, 50)


def test_sh_is_not_imported_before_the_first_call() -> None:
    code = "import sys, baton_cli.git.run; print('sh' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
