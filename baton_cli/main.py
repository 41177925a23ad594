"""The console script: find the verb, run it, and turn whatever happens into an exit code and at most two lines."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from baton_cli import __version__, output
from baton_cli.commands import VERBS
from baton_cli.errors import BUG, INTERRUPTED, REFUSED, USAGE, BatonError, of_system

EXAMPLE = "Example: baton plan add-dark-mode, then baton status add-dark-mode"


def load(verb: str) -> Any:
    """The command object of a verb. Imports that verb's module and no other."""
    module = importlib.import_module(f"baton_cli.commands.{VERBS[verb].module}")
    sub = getattr(module, "app", None)
    if sub is None:
        sub = typer.Typer(add_completion=False)
        sub.command(verb)(getattr(module, verb))
    else:
        sub._add_completion = False  # completion is the whole program's, not a verb's
    command = typer.main.get_command(sub)
    command.name = verb
    return plain(command)


def plain(command: Any) -> Any:
    """Make the help of a command, and of those below it, the same in every Typer: no Rich (importing it costs more
    than the command), and arguments named as in the documents, `CHANGE` and `[CHANGE]`."""
    command.rich_markup_mode = None
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.metavar = (parameter.metavar or parameter.name).upper()
            parameter.make_metavar = partial(_metavar, parameter)
    for below in getattr(command, "commands", {}).values():
        plain(below)
    return command


def _metavar(parameter: Any, ctx: Any = None, *, usage: bool = False) -> str:  # noqa: ARG001  Typer passes it
    name: str = parameter.metavar + ("" if parameter.nargs == 1 else "...")
    return f"[{name}]" if usage and not parameter.required else name


class Verbs(TyperGroup):
    """All verbs, each imported only when it is called. Contexts are `Any`: their type is private to Typer."""

    def list_commands(self, _ctx: Any) -> list[str]:
        """Every verb, in the order of the table."""
        return list(VERBS)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or None."""
        if cmd_name in VERBS and cmd_name not in self.commands:
            self.commands[cmd_name] = load(cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Like Typer's, but an unknown verb gets our words and one suggestion."""
        if args[0] not in VERBS and not ctx.resilient_parsing:
            raise BatonError("usage", f"no such command '{args[0]}'", suggestion(args[0]), USAGE)
        return super().resolve_command(ctx, args)

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """The verbs under their headings, from the table: help needs no import either."""
        for group in dict.fromkeys(verb.group for verb in VERBS.values()):
            with formatter.section(group):
                rows = [(name, verb.help) for name, verb in VERBS.items() if verb.group == group]
                formatter.write_dl(rows, col_spacing=2 + len("reconcile") - max(len(name) for name, _ in rows))


def suggestion(word: str) -> str:
    """A hint for a verb that does not exist."""
    from difflib import get_close_matches

    close = get_close_matches(word, VERBS, n=1)
    return f"did you mean '{close[0]}'?" if close else "'baton --help' lists the commands"


def _version(wanted: bool) -> None:
    if wanted:
        output.write(f"baton {__version__}\n")
        raise typer.Exit


def _root(
    _: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version and exit."),
) -> None:
    """Carry an approved OpenSpec change to finished, verified, merged work."""


def build() -> Any:
    """The whole command line, with no verb imported yet."""
    app = typer.Typer(
        name="baton",
        cls=Verbs,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        epilog=EXAMPLE,
        context_settings={"help_option_names": ["-h", "--help"]},
        subcommand_metavar="COMMAND [ARGS]...",
    )
    app.callback()(_root)
    return typer.main.get_command(app)


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line (`sys.argv` by default) and return the exit code. No exception leaves it but SystemExit."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    json_mode = "--json" in arguments[: arguments.index("--") if "--" in arguments else None]
    try:
        try:
            code = _invoke(arguments)
            output.write("")  # a reader that is gone shows now, not in Python's last breath
            return code
        except BatonError as error:
            output.report(error, json_mode=json_mode)
            return error.exit_code
        except KeyboardInterrupt:
            output.report(BatonError("interrupted", "interrupted"), json_mode=json_mode)
            return INTERRUPTED
        except (output.ReaderGone, BrokenPipeError):
            raise
        except Exception as error:
            told = (of_system(error) if isinstance(error, OSError) else None) or _bug(error, arguments)
            output.report(told, json_mode=json_mode)
            return told.exit_code
    except (output.ReaderGone, BrokenPipeError):
        output.discard()
        return REFUSED
    except BatonError as error:  # not even the report could be written
        return error.exit_code


def _invoke(arguments: list[str]) -> int:
    """Run one command with Typer's own boundary left out, since it prints in its own words and its own colours."""
    command = build()
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    if "_BATON_COMPLETE" in os.environ:
        command.main(args=arguments, prog_name="baton")
    try:
        with command.make_context("baton", arguments or ["--help"]) as context:
            result = command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except (typer.Abort, EOFError):
        raise KeyboardInterrupt from None
    except Exception as error:
        if hasattr(error, "format_message"):  # Typer's usage errors; where their class lives differs by version
            _usage(error)
        raise
    return result if type(result) is int else 0


def _usage(error: Any) -> NoReturn:
    """Say a usage error of Typer's in our form: a small first letter, no full stop, one hint."""
    possible = getattr(error, "possibilities", None)
    if type(error).__name__ == "NoArgsIsHelpError":  # a group without its verb: its message is the whole help
        path = error.ctx.command_path
        names = " or ".join(error.ctx.command.list_commands(error.ctx))
        raise BatonError("usage", f"{path} needs a command: {names}", f"see '{path} --help'", USAGE) from error
    said: str = (error.message if possible else error.format_message()).strip().rstrip(".")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "baton"
    hint = f"did you mean '{sorted(possible)[0]}'?" if possible else f"see '{path} --help'"
    if type(error).__name__ == "NoSuchOption" and not possible:
        hint += "; a name that begins with - comes last, behind --"
    if path == "baton" and getattr(error, "option_name", "") in ("--json", "--project"):
        hint = f"options follow the command: baton status {error.option_name} ..."
    raise BatonError("usage", said[:1].lower() + said[1:], hint, USAGE) from error


def _bug(error: Exception, arguments: list[str]) -> BatonError:
    """Keep the traceback in a file of the user's and name it. Arguments stay out: they may hold a token."""
    import time
    import traceback

    verb = next((word for word in arguments if word in VERBS), "-")
    head = f"baton {__version__}, Python {sys.version.split()[0]}, {sys.platform}, verb {verb}\n"
    text = head + "".join(traceback.format_exception(error))
    name = f"bug-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"
    where = _keep(name, text.encode("utf-8", "backslashreplace"))
    message = f"a bug in Baton ({type(error).__name__}), details are in {where}"
    return BatonError("bug", message, "it is safe to run the command again; please report it with that file", BUG)


def _keep(name: str, data: bytes) -> str:
    """Write a private file under the user's state folder, or a temporary one; returns its path."""
    import tempfile

    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        state = os.path.expanduser(os.path.join("~", ".local", "state"))
    folder = os.path.join(state, "baton", "logs")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, f"{name}.log")
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        try:
            handle, path = tempfile.mkstemp(prefix=f"baton-{name}-", suffix=".log")
        except OSError:
            return "no file, since none can be written"
    with open(handle, "wb") as stream:
        stream.write(data)
    return path
