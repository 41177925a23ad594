"""The boundary: exit codes, the two lines of an error, JSON errors, and that nothing else ever reaches the screen."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from baton_cli import __version__, commands, main, output
from baton_cli.errors import BatonError, of_system

ROOT = Path(__file__).resolve().parent.parent
Play = Callable[..., None]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """Put a function in the place of the module behind `baton status`."""

    def put(function: Callable[..., Any], **more: Any) -> None:
        module = types.ModuleType("baton_cli.commands.status")
        module.__dict__.update({"status": function, **more})
        monkeypatch.setitem(sys.modules, module.__name__, module)

    return put


def raising(error: BaseException) -> Callable[[], None]:
    def status(json_: bool = typer.Option(False, "--json")) -> None:
        raise error

    return status


def child(code: str, *, stdout: Any = subprocess.PIPE, **env: str) -> subprocess.CompletedProcess[bytes]:
    """Run code in a process of its own, with `run_with(function)` to call `baton status` on a function."""
    head = f"""
import sys, types; sys.path.insert(0, {str(ROOT)!r})
from baton_cli import main, output
def run_with(function, *words):
    module = types.ModuleType("baton_cli.commands.status"); module.status = function
    sys.modules[module.__name__] = module
    sys.exit(main.run(["status", *words]))
"""
    return subprocess.run(
        [sys.executable, "-I", "-c", head + code], stdout=stdout, stderr=subprocess.PIPE, env={**os.environ, **env}
    )


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_shows_every_verb_once_and_ends_well(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([word]) == 0
    text = capsys.readouterr().out
    for verb in commands.VERBS:
        assert len(re.findall(rf"^  {verb} ", text, re.MULTILINE)) == 1
    assert "Example: baton plan" in text


def test_without_arguments_it_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([]) == 0
    assert "Usage: baton" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"baton {__version__}\n"


def test_a_verb_has_both_help_options_and_leaves_rich_alone(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    def status(change: str = typer.Argument("")) -> None:
        """Say how it goes."""

    play(status)
    for word in ("-h", "--help"):
        assert main.run(["status", word]) == 0
        shown = capsys.readouterr().out
        assert re.match(r"Usage: baton status \[OPTIONS\] \[?CHANGE\]?\n\n  Say how it goes\.\n", shown)
        assert "╭" not in shown  # no box: Rich had no hand in it


def test_a_module_with_an_app_is_a_verb_with_verbs(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer(help="Evidence.")
    app.command("show")(lambda: output.write("shown\n"))
    app.command("verify")(lambda: output.write("verified\n"))
    play(lambda: None, app=app)
    assert main.run(["status", "verify"]) == 0
    assert capsys.readouterr().out == "verified\n"
    assert main.run(["status", "-h"]) == 0
    assert "╭" not in capsys.readouterr().out
    assert main.run(["status"]) == 2


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (["statsu"], "no such command 'statsu'", "did you mean 'status'?"),
        (["xyzzy"], "no such command 'xyzzy'", "'baton --help' lists the commands"),
        (["status"], "missing argument 'CHANGE'", "see 'baton status --help'"),
        (["status", "a", "--jsn"], "no such option: --jsn", "did you mean '--json'?"),
        (["status", "a", "b"], "got unexpected extra argument", "see 'baton status --help'"),
        (["status", "a", "--count", "x"], "invalid value for '--count': 'x' is not a valid int", "see 'baton "),
        (["--json", "status"], "no such option: --json", "options follow the command: baton status --json"),
        (["--nothing"], "no such option: --nothing", "see 'baton --help'"),
    ],
)
def test_wrong_usage_is_one_error_and_one_hint(
    words: list[str], error: str, hint: str, play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    def status(change: str, json_: bool = typer.Option(False, "--json"), count: int = 1) -> None: ...

    play(status)
    assert main.run(words) == 2
    shown = capsys.readouterr()
    if "--json" in words:
        told = json.loads(shown.out)
        assert told["schema"] == "baton.error/1"
        assert told["error"]["code"] == "usage"
        assert error in told["error"]["message"]
        assert hint in told["error"]["hint"]
    else:
        first, second = shown.err.splitlines()
        assert first.startswith(f"error: {error}")
        assert second.startswith(f"hint: {hint}")
        assert shown.out == ""


def test_a_refusal_is_two_lines_and_its_exit_code(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    play(raising(BatonError("some_code", "it is so", "do this", 1)))
    assert main.run(["status"]) == 1
    assert capsys.readouterr() == ("", "error: it is so\nhint: do this\n")


def test_a_refusal_as_json_is_one_line_on_standard_output(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    play(raising(BatonError("some_code", "it is\nso", "do this")))
    assert main.run(["status", "--json"]) == 1
    shown = capsys.readouterr()
    told = {"code": "some_code", "message": "it is\nso", "hint": "do this"}
    assert json.loads(shown.out) == {"schema": "baton.error/1", "error": told}
    assert shown.out.count("\n") == 1
    assert shown.err == ""


def test_an_untrusted_message_cannot_act_on_the_terminal(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    play(raising(BatonError("x", "a\x1b[2Jb\nerror: c\u202ed\x9b1m\udcff", "\x07")))
    main.run(["status"])
    assert capsys.readouterr().err == "error: a\\x1b[2Jb\\nerror: c\\u202ed\\x9b1m\\xff\nhint: \\x07\n"
    main.run(["status", "--json"])
    shown = capsys.readouterr().out
    assert not set(shown) & set("\x1b\u202e\x9b\x07")
    assert json.loads(shown)["error"]["message"] == "a\x1b[2Jb\nerror: c\u202ed\x9b1m\udcff"


@pytest.mark.parametrize("name", ["stat\x1b[2Jus", "st\udcffx"])
def test_an_unknown_verb_with_odd_bytes_is_shown_escaped(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([name]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_an_interrupt_is_one_line_and_130(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    play(raising(KeyboardInterrupt()))
    assert main.run(["status"]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


@pytest.mark.parametrize(("error", "code"), [(typer.Exit(4), 4), (typer.Abort(), 130), (EOFError(), 130)])
def test_typers_own_ends(error: Exception, code: int, play: Play) -> None:
    play(raising(error))
    assert main.run(["status"]) == code


def test_the_number_a_command_returns_is_the_exit_code(play: Play) -> None:
    play(lambda: 1)
    assert main.run(["status"]) == 1
    play(lambda: True)
    assert main.run(["status"]) == 0


def test_a_bug_leaves_a_private_log_and_no_traceback(
    play: Play, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    play(raising(ValueError("boom")))
    assert main.run(["status"]) == 3
    shown = capsys.readouterr()
    (log,) = (tmp_path / "baton/logs").iterdir()
    assert re.fullmatch(rf"bug-\d{{8}}T\d{{6}}-{os.getpid()}\.log", log.name)
    assert shown.err.splitlines()[0] == f"error: a bug in Baton (ValueError), details are in {log}"
    assert "Traceback" not in shown.err + shown.out
    assert "ValueError: boom" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EACCES, errno.EROFS, errno.EMFILE, errno.EIO])
def test_what_the_system_refuses_is_no_bug(number: int, play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    play(raising(OSError(number, os.strerror(number), "some/file")))
    assert main.run(["status"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == f"error: some/file cannot be read or written: {os.strerror(number)}"
    assert second.startswith("hint: ")
    told = of_system(OSError(number, "x"))
    assert told is not None
    assert not told.verdict


def test_a_file_that_is_not_there_is_a_bug(play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    play(raising(FileNotFoundError(errno.ENOENT, "No such file", "gone")))
    assert main.run(["status"]) == 3


def test_a_bug_log_holds_no_argument(play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def status(token: str = "") -> None:
        raise ValueError

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    play(status)
    assert main.run(["status", "--token", "s3cret"]) == 3
    (log,) = (tmp_path / "baton/logs").iterdir()
    assert "s3cret" not in log.read_text()


def test_a_bug_log_goes_elsewhere_if_it_has_to(
    play: Play, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    play(raising(ValueError("boom")))
    assert main.run(["status", "--json"]) == 3
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "bug"
    assert Path(error["message"].partition("details are in ")[2]).parent == tmp_path


def test_a_module_that_does_not_exist_is_a_bug_and_not_an_unknown_verb(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setitem(commands.VERBS, "status", commands.Verb("not_there", "", commands.LOOK))
    assert main.run(["status"]) == 3
    assert "ModuleNotFoundError" in capsys.readouterr().err


@pytest.mark.parametrize("locale", ["C", "en_US.ISO-8859-1", "C.UTF-8"])
def test_output_is_utf8_whatever_the_locale(locale: str) -> None:
    code = "run_with(lambda: output.emit({'a': 'é→'}, json_mode=False, text='é→\\udcff'))"
    done = child(code, LC_ALL=locale, PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == "é→\\udcff\n".encode()


def test_a_reader_that_is_gone_ends_it_quietly() -> None:
    read, written = os.pipe()
    os.close(read)
    try:
        for call in ("output.write('x' * 100000)", "print('x')", "None"):
            done = child(f"run_with(lambda: {call})", stdout=written)
            assert done.stderr == b"", call
            assert done.returncode in (0, 1), call
    finally:
        os.close(written)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_disk_is_said() -> None:
    with open("/dev/full", "w") as full:
        done = child("run_with(lambda: output.write('x' * 100000))", stdout=full)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: cannot write the answer: No space left")


def test_completion_knows_the_verbs() -> None:
    env = {"_BATON_COMPLETE": "complete_bash", "COMP_WORDS": "baton sta", "COMP_CWORD": "1"}
    done = child("run_with(lambda: None)", **env)
    assert b"status" in done.stdout


def test_the_table_names_modules_with_that_function_or_an_app() -> None:
    for verb in commands.VERBS:
        assert main.load(verb).name == verb


def test_escape_keeps_what_is_meant_to_be_read() -> None:
    assert output.escape("plain – ünï 日本 👩‍👩‍👧 ✅") == "plain – ünï 日本 👩‍👩‍👧 ✅"
    assert output.escape("a\tb\r\n") == "a\\tb\\r\\n"
    assert output.escape("\u200b\u2066\ufeff\u2028\u00ad") == "\\u200b\\u2066\\ufeff\\u2028\\xad"


def test_text_is_made_only_when_it_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    output.emit({"schema": "a/1", "b": ["é"]}, json_mode=True, text=lambda: pytest.fail("made"))
    assert capsys.readouterr().out == '{"schema":"a/1","b":["é"]}\n'
    output.emit({}, json_mode=False, text=lambda: "made")
    assert capsys.readouterr().out == "made\n"


def test_colour_wants_a_terminal_and_no_veto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen: Any = types.SimpleNamespace(isatty=lambda: True)
    assert output.colour(screen)
    assert not output.colour(types.SimpleNamespace(isatty=lambda: False))  # type: ignore[arg-type]
    monkeypatch.setenv("NO_COLOR", "1")
    assert not output.colour(screen)
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "dumb")
    assert not output.colour(screen)
