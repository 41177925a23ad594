"""What the command files share: their common options, and the controller of the project they speak of."""

from __future__ import annotations

import gc
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from baton_cli import context, invocation, output, repository
from baton_cli import project as projects
from baton_cli.context import Context
from baton_cli.core.listing import named
from baton_cli.errors import USAGE, BatonError
from baton_cli.project import Project

if TYPE_CHECKING:
    from baton_cli.controller import SessionController
    from baton_cli.finisher import Finisher
    from baton_cli.observer import Observer
    from baton_cli.operator import Operator

ProjectOption = Annotated[
    Path | None,
    typer.Option("--project", metavar="PATH", help="The project; by default found from the current folder."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]
TokenOption = Annotated[
    str, typer.Option("--token", metavar="TOKEN", help="The claim token; - reads it from standard input.")
]


def progress(json_mode: bool) -> Callable[[str], None]:
    """Tells of slow steps on standard error, on a terminal only."""
    if json_mode or not output.is_terminal(sys.stderr):
        return lambda _text: None
    return lambda text: output.write(f"baton: {output.escape(text)}\n", sys.stderr)


@contextmanager
def controller(
    path: Path | None, *, assignment: str | None = None, json_mode: bool = False
) -> Iterator[SessionController]:
    """The controller of the named project, else of the one an assignment id leads to, else of the current folder."""
    from baton_cli.controller import SessionController

    with context.opened(locate(path, assignment), create=True, progress=progress(json_mode)) as surroundings:
        yield SessionController(surroundings)


@contextmanager
def operator(path: Path | None, *, assignment: str | None = None) -> Iterator[Operator]:
    """The same for a person's decisions."""
    from baton_cli.operator import Operator

    with context.opened(locate(path, assignment), create=True) as surroundings:
        yield Operator(surroundings)


@contextmanager
def finisher(path: Path | None, *, json_mode: bool = False) -> Iterator[Finisher]:
    """The same for the end of a change."""
    from baton_cli.finisher import Finisher

    with context.opened(locate(path), create=True, progress=progress(json_mode)) as surroundings:
        yield Finisher(surroundings if json_mode else _typed(surroundings))


@contextmanager
def observer(path: Path | None, *, assignment: str | None = None, typed: bool = False) -> Iterator[Observer]:
    """The same for verbs that only look: nothing is created, and the protocol is not imported. `typed`: commands are shown
    as a person here would type them."""
    from baton_cli.observer import Observer

    gc.disable()  # a look makes values by the ten thousand, none of them in a circle: looking for circles costs a tenth
    try:
        with context.opened(locate(path, assignment), create=False) as surroundings:
            yield Observer(_typed(surroundings) if typed else surroundings)
    finally:
        gc.enable()


def _typed(surroundings: Context) -> Context:
    return surroundings._replace(command=invocation.typed(surroundings.command))


def stamp(project: Project) -> tuple[object, ...]:
    """Differs after every change that `status` could show. A few looks at the disk, no file is opened: which one holds
    the tasks of a change is not asked, so each of its folder counts."""
    changes = project.root / "openspec" / "changes"
    names = projects.changes(project)
    files = [project.queue_db, project.queue_db.with_name("queue.db-wal"), project.root / "baton.toml"]
    for name in names:
        with suppress(OSError):
            files += sorted(changes.joinpath(name).iterdir())
    return (names, *map(_stamp, files))


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        known = file.stat()
    except OSError:
        return None
    return known.st_mtime_ns, known.st_size, known.st_ino


def write_page(project: Project, out: Path | None, page: bytes) -> Path:
    """Write the board to `out`, or to its place in the state folder. Its absolute path. Error: page_unwritable."""
    path = project.board if out is None else out.absolute()
    try:
        if out is None:
            projects.write_board(project, page)
        else:
            path.write_bytes(page)
    except OSError as error:
        message = f"the board cannot be written to {str(path)!r}: {error.strerror or error}"
        raise BatonError("page_unwritable", message, "name another file with --out F") from None
    return path


def seal_packet(packet: Path, out: Path, now: float) -> dict[str, Any]:
    """Seal the checkout around the current folder for an exported packet: no project, no store."""
    from baton_cli.flow.detached import seal_packet

    return seal_packet(repository.checkout(Path.cwd()).top, packet, out, now)


def locate(path: Path | None, assignment: str | None = None) -> Project:
    """Which project is meant."""
    if path is not None or assignment is None:
        return projects.find(path)
    return projects.from_assignment(assignment)


def token(given: str) -> str:
    """A token as it was given, or the first line of standard input for `-`."""
    if given != "-":
        return given
    line = sys.stdin.readline().strip()
    if not line:
        raise BatonError("no_token", "there is no token on standard input", "write it there, on one line", USAGE)
    return line


def which_change(project: Project, named: str | None, *, archived: bool = False) -> str:
    """The change that was named, or the only one there is (`archived`: else the only one that OpenSpec has archived).
    Error: `which_change`."""
    if named is not None:
        return named
    changes = projects.changes(project)
    if not changes and archived:
        changes = tuple(dict.fromkeys(folder.name for folder in projects.archived(project)))
    if len(changes) == 1:
        return changes[0]
    raise _unclear(
        changes, f"name one of them, such as {shlex.quote(changes[0])}" if changes else "write one with OpenSpec"
    )


def _unclear(changes: Sequence[str], hint: str) -> BatonError:
    """Several changes, or none, where one was meant."""
    said = f"this project has {len(changes)} changes: {named(changes)}"
    return BatonError("which_change", said if changes else "there is no change in openspec/changes", hint, USAGE)


def change_of(surroundings: Context, ticket: str) -> str:
    """The change a ticket belongs to: the one in `change#1.2`, or the only one there is. Error: `which_change`."""
    change, separator, _ = ticket.rpartition("#")
    if separator:
        return change
    changes = projects.changes(surroundings.project)
    if ticket in changes:
        hint = f"name a ticket of it, such as {shlex.quote(f'{ticket}#1.2')}"
        raise BatonError("no_such_ticket", f"{ticket!r} is a change, not a ticket", hint, USAGE)
    if len(changes) == 1:
        return changes[0]
    names = " or ".join(shlex.quote(f"{change}#{ticket}") for change in changes[:3])
    raise _unclear(changes, f"name the ticket as {names}" if changes else "write one with OpenSpec")


ChangeArgument = Annotated[
    str | None, typer.Argument(help="The change's folder name; not needed when there is only one.")
]
TicketArgument = Annotated[str, typer.Argument(help="1.2, or change#1.2 when there are several changes.")]
# Its absence is refused in our own words, which say what to write: so Typer is not told that it must be there.
WhyOption = Annotated[
    str | None,
    typer.Option("--why", metavar="W", help="The reason; it is recorded with your name.  [required]"),
]
WhyIfAny = Annotated[
    str | None,
    typer.Option("--why", metavar="W", help="The reason, if you want to give one; it is recorded with your name."),
]


@contextmanager
def proof(path: Path | None, named: str) -> Iterator[tuple[Observer, str]]:
    """The observer, and the id of an assignment that is named by itself or by its ticket."""
    is_id = projects.names_assignment(named)
    with observer(path, assignment=named if is_id else None) as looks:
        yield looks, named if is_id else looks.assignment_of(change_of(looks.context, named), named)


def decide(decision: str, ticket: str, why: str | None, path: Path | None, json_mode: bool) -> None:
    """The body that all operator decisions share."""
    from baton_cli.flow import decide as decisions
    from baton_cli.flow import load
    from baton_cli.flow.parts import tickets

    reason = why if decision == "retry" else decisions.need_why(why)  # before anything is recorded
    with operator(path) as person:
        change = change_of(person.context, ticket)
        answer = person.decide(change, ticket, decision, reason)
        views = () if json_mode else tickets.views(person.context, load.look(person.context, change))
        said = list(decisions.outcome(person.context, views, answer["ticket"], decision)) if views else []
    if answer["notice"]:
        said.insert(1, f"notice: {answer['notice']}")
    output.emit(answer, json_mode=json_mode, text=lambda: "\n".join(map(output.escape, said)))
