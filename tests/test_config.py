"""baton.toml: what it may say, and how it says no."""

from __future__ import annotations

from pathlib import Path

import pytest

from baton_cli.config import Config, load, load_verify, parse
from baton_cli.errors import BatonError


def refused(text: str) -> BatonError:
    with pytest.raises(BatonError) as caught:
        parse(text, "baton.toml")
    error = caught.value
    assert error.code == "bad_config"
    assert error.message.startswith("baton.toml: ")
    assert "\n" not in error.message
    assert "\n" not in error.hint
    assert error.hint
    return error


def test_no_file_gives_the_documented_defaults(tmp_path: Path) -> None:
    assert load(tmp_path) == Config(
        verify=None, verify_timeout=1800, worktree_root=None, copy=(), link=(), setup=None, integrate_verify="all",
        within_section="parallel", closing_check=True, parallel=5, lease=7200, attempts=3, protect=(),
        branch_prefix="baton", accept_detached=False,
    )  # fmt: skip


def test_every_key_is_read() -> None:
    config = parse(
        """
        [verify]
        commands = ["pytest -q", "ruff check"]
        timeout = "10m"
        [worktree]
        root = "../trees"
        copy = [".env"]
        link = ["node_modules"]
        setup = ["npm ci"]
        [integrate]
        verify = "ticket"
        [plan]
        within_section = "sequential"
        closing_check = false
        [limits]
        parallel = 8
        lease = "1h30m"
        attempts = 2
        [protect]
        paths = [".github/**"]
        [branches]
        prefix = "team/baton"
        [seal]
        accept_detached = true
        """,
        "baton.toml",
    )
    assert config == Config(
        verify=("pytest -q", "ruff check"), verify_timeout=600, worktree_root="../trees", copy=(".env",),
        link=("node_modules",), setup=("npm ci",), integrate_verify="ticket", within_section="sequential",
        closing_check=False, parallel=8, lease=5400, attempts=2, protect=(".github/**",), branch_prefix="team/baton",
        accept_detached=True,
    )  # fmt: skip


def test_one_command_may_stand_without_brackets() -> None:
    assert parse('[verify]\ncommands = "make test"', "baton.toml").verify == ("make test",)


def test_an_empty_list_is_not_the_same_as_no_list() -> None:
    config = parse("[verify]\ncommands = []\n[worktree]\nsetup = []", "baton.toml")
    assert (config.verify, config.setup) == ((), ())


@pytest.mark.parametrize(
    ("written", "seconds"), [("90", 90), ('"90s"', 90), ('"30m"', 1800), ('"2h"', 7200), ('"1h 5s"', 3605)]
)
def test_times_are_seconds_or_have_a_unit(written: str, seconds: int) -> None:
    assert parse(f"[limits]\nlease = {written}", "baton.toml").lease == seconds


@pytest.mark.parametrize(
    "written", ["0", "-1", '"0s"', '"soon"', '""', '"5"', "1.5", "true", "[1]", "999999999999999999999"]
)
def test_a_time_that_is_none_is_refused(written: str) -> None:
    assert "'limits.lease'" in refused(f"[limits]\nlease = {written}").message


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[verfy]\ncommands = []", "unknown section 'verfy'", "did you mean 'verify'?"),
        ("[verify]\ncomands = []", "unknown key 'verify.comands'", "did you mean 'commands'?"),
        ("timeout = 3", "unknown key 'timeout'", "known here: verify, worktree"),
        ("[limits]\nzzz = 3", "unknown key 'limits.zzz'", "known here: parallel, lease, attempts"),
        ('verify = "pytest"', "'verify' must be a section", "write it as [verify]"),
    ],
)
def test_unknown_names_are_errors_that_help(text: str, message: str, hint: str) -> None:
    error = refused(text)
    assert message in error.message
    assert error.hint.startswith(hint)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[verify]\ncommands = [1]", "must be text, not a number"),
        ('[verify]\ncommands = ["pytest", " "]', "must not be empty"),
        ('[verify]\ncommands = "a\\u0000b"', "NUL"),
        ("[verify]\ncommands = 2020-01-01", "must be a list of texts, not a date or time"),
        ('[plan]\nclosing_check = "no"', "must be true or false, not text"),
        ('[plan]\nwithin_section = "serial"', "is 'serial'"),
        ("[integrate]\nverify = []", "is []"),
        ("[limits]\nparallel = 0", "is 0"),
        ("[limits]\nparallel = 65", "is 65"),
        ("[limits]\nparallel = true", "must be a whole number, not true or false"),
        ("[limits]\nattempts = 0", "is 0"),
        ('[worktree]\ncopy = ["../secret"]', "leads out of the project"),
        ('[worktree]\nlink = ["/etc"]', "leads out of the project"),
        ('[protect]\npaths = ["a/../../b"]', "leads out of the project"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_its_key(text: str, problem: str) -> None:
    key = text.split("]")[0][1:] + "." + text.split("\n")[1].split(" ")[0]
    message = refused(text).message
    assert f"'{key}'" in message
    assert problem in message


@pytest.mark.parametrize(
    "prefix",
    [
        "a b",
        "a..b",
        ".a",
        "a/.b",
        "a.lock",
        "a/",
        "/a",
        "a//b",
        "-a",
        "a~b",
        "a:b",
        "a@{b",
        "@",
        "a\\\\b",
        "a.",
        "a*",
        "é\\u0007",
    ],
)
def test_a_prefix_that_git_would_refuse_is_refused(prefix: str) -> None:
    assert "'branches.prefix'" in refused(f'[branches]\nprefix = "{prefix}"').message


def test_a_syntax_error_names_its_line() -> None:
    assert "line 3" in refused('[verify]\ncommands = ["a"]\ntimeout = = 3').message


def test_a_hostile_key_stays_on_one_line_and_shows_its_escapes() -> None:
    assert "\\n\\x1b[31m" in refused('"a\\n\\u001b[31m" = 1').message


def test_a_file_that_is_no_text_is_refused_with_the_offset(tmp_path: Path) -> None:
    (tmp_path / "baton.toml").write_bytes(b"[verify]\n# \xff")
    with pytest.raises(BatonError, match="byte 11") as caught:
        load(tmp_path)
    assert caught.value.code == "bad_config"


def test_a_folder_in_the_files_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "baton.toml").mkdir()
    with pytest.raises(BatonError) as caught:
        load(tmp_path)
    assert caught.value.code == "bad_config"


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "baton.toml").write_bytes(b"\xef\xbb\xbf[limits]\nparallel = 2\r\n")
    assert load(tmp_path).parallel == 2


def test_a_change_may_set_checks_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "baton.toml"
    assert load_verify(file) is None
    file.write_text('[verify]\ncommands = ["go test ./..."]\n')
    assert load_verify(file) == load_verify(tmp_path) == (("go test ./...",), None)
    file.write_text("[verify]\ntimeout = 60\n")
    assert load_verify(file) == (None, 60)
    file.write_text("[limits]\nparallel = 2\n")
    with pytest.raises(BatonError, match="unknown section 'limits'"):
        load_verify(file)
