"""Write-back: one byte per box, in place, checked before and after, so that a user's editor loses nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from baton_cli import private
from baton_cli.core import tasks, writeback
from baton_cli.core.frontier import Status, TicketView
from baton_cli.core.tasks import Document, Ticket
from baton_cli.core.writeback import Edit
from baton_cli.errors import BatonError

TRIES = 3
BESIDE = ".baton-"  # how the name of a file begins that will be the plan


def due(views: Sequence[TicketView]) -> tuple[Ticket, ...]:
    """Tickets whose finished work is not ticked yet: just integrated, or un-ticked by hand since."""
    return tuple(
        view.planned.ticket
        for view in views
        if view.status in (Status.INTEGRATED, Status.ATTESTED)
        and view.completion is not None
        and view.completion.fingerprint == view.planned.ticket.fingerprint
        and not view.planned.ticket.done
        and "ambiguous" not in view.planned.flags
    )


def locate(document: Document, ticket: Ticket) -> Ticket | None:
    """The same ticket in a document that may have been edited since; None when gone or not to be told apart."""
    same = [other for other in document.tickets if other.fingerprint == ticket.fingerprint]
    if len(same) > 1:
        same = [other for other in same if other.id == ticket.id]
    if len(same) > 1:
        same = [other for other in same if other.position == ticket.position]
    return same[0] if len(same) == 1 else None


def write(path: Path, ticket: Ticket, *, done: bool = True) -> str | None:
    """Tick (or un-tick) all boxes of a ticket in the file. None when that is so afterwards, else why not.

    A tick that failed is no failure of the work: the next call tries again.
    """
    later = "; the next call ticks it" if done else ""
    try:
        for _ in range(TRIES):
            settled, reason = _once(path, ticket, done)
            if settled:
                return reason
    except OSError as error:
        return f"{path} could not be written ({error.strerror}){later}"
    except BatonError as error:
        return f"{error.message}{later}"
    return f"{path} is being edited{later}"


def _once(path: Path, ticket: Ticket, done: bool) -> tuple[bool, str | None]:
    data = path.read_bytes()
    document = tasks.parse(data)
    found = locate(document, ticket)
    if found is None:
        return (
            True,
            f"the line of {ticket.id or ticket.title!r} is gone or stands twice in {path.name}",
        )
    edits = writeback.edits(document, found, done)
    if not edits:
        return True, None
    if all(len(edit.old) == len(edit.new) for edit in edits):
        return _overwrite(path, data, edits), None
    return _replace(path, data, edits), None


def _overwrite(path: Path, data: bytes, edits: Sequence[Edit]) -> bool:
    wanted = data
    with path.open("r+b", buffering=0) as file:
        for edit in edits:
            file.seek(0)
            if file.read() != wanted:
                return False
            file.seek(edit.slot)
            file.write(edit.new)
            wanted = writeback.apply(wanted, [edit])
        os.fsync(file.fileno())
        opened = os.fstat(file.fileno())
    now = path.stat()
    if (now.st_ino, now.st_dev) == (opened.st_ino, opened.st_dev):
        current = path.read_bytes()
        if current == wanted:
            return True
        _restore(path, current, edits)
    return False


def _restore(path: Path, current: bytes, edits: Sequence[Edit]) -> None:
    """An editor rewrote the file under our hands: a byte of ours that is no longer in a box goes back."""
    with path.open("r+b", buffering=0) as file:
        for edit in edits:
            end = edit.slot + len(edit.new)
            if current[edit.slot : end] == edit.new and not writeback.is_slot(current, edit.slot):
                file.seek(edit.slot)
                file.write(edit.old)


def _replace(path: Path, data: bytes, edits: Sequence[Edit]) -> bool:
    """A box without room for a mark makes the file longer: write it beside and rename, keeping its mode."""
    real = path.resolve()
    private.remove_abandoned(real.parent, BESIDE)
    beside = real.parent / private.temporary_name(BESIDE)
    try:
        with beside.open("xb") as file:
            file.write(writeback.apply(data, edits))
            file.flush()
            os.fsync(file.fileno())
        beside.chmod(real.stat().st_mode & 0o7777)
        if real.read_bytes() != data:
            return False
        beside.replace(real)
    finally:
        beside.unlink(missing_ok=True)
    return True


def tick_all(
    path: Path, due_tickets: Sequence[Ticket], tell: Callable[[str], None], again: Sequence[Ticket] = ()
) -> tuple[str, ...]:
    """Tick every due ticket; what is to be said of it: why one could not be ticked, and which were finished long ago
    (those in `again`), so that somebody must have un-ticked them."""
    said = []
    for ticket in due_tickets:
        reason = write(path, ticket)
        if reason is None and ticket in again:
            name = ticket.id or ticket.title
            reason = (
                f"{name} was un-ticked, but it is finished: its box is ticked again (`baton reopen` has it done anew)"
            )
        if reason:
            tell(reason)
            said.append(reason)
    return tuple(said)
