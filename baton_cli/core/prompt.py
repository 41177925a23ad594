"""What a worker is told: enough by itself for an agent that has nothing else. Pure text of at most `PROMPT_LIMIT` characters,
as long as the paths in it are not so long that the ticket's text would be lost: a part of that always stays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from baton_cli.core import canonical
from baton_cli.core.listing import named

PROMPT_LIMIT = 900
LEAST = 40  # characters of the ticket's text that are told whatever else there is
TITLE_LIMIT = 80
CUT = "… (whole text in the packet)"


def shorten(text: str, limit: int, mark: str = "…") -> str:
    """`text` on one line in at most `limit` characters."""
    folded = " ".join(text.split())
    return folded if len(folded) <= limit else (folded[: max(0, limit - len(mark))].rstrip() + mark)[: max(0, limit)]


def seal_key(claim_token: str) -> str:
    """The key that lets a worker seal and nothing else: it cannot be turned back into the claim token."""
    return canonical.digest(b"baton.seal\0" + claim_token.encode())[:24]


def _room(lines: Iterable[str]) -> int:
    """How many characters these lines leave, each with its line end."""
    return PROMPT_LIMIT - sum(len(line) + 1 for line in lines)


def _compose(head: Sequence[str], text: str, tail: Sequence[str]) -> str:
    room = max(LEAST, _room((*head, *tail)) - 1)
    body = shorten(text, room, CUT if room > 3 * len(CUT) else "…")
    return "\n".join([*head, *([body] if body else []), *tail])


def _limit(seconds: int) -> str:
    return f"Give it {max(1, -(-seconds // 60))} min (DSH bash: timeoutMs {seconds * 1000})."


def _tail(seal_command: str, seconds: int, closing_check: bool) -> list[str]:
    lines = [
        "Commit on this branch. Never edit tasks.md, stash, push, switch branches or touch other worktrees.",
        "Last, run this until it prints `sealed`; only that counts. " + _limit(seconds),
        seal_command,
    ]
    if closing_check:
        lines.insert(1, "Nothing to change? Commit with --allow-empty and say what you checked.")
    return lines


def dispatch(
    *, key: str, text: str, cwd: str, packet: str, seal_command: str, seconds: int, closing_check: bool
) -> str:
    """The prompt of a new assignment. `seconds` is the time that the seal's checks may take together."""
    head = [f"Work only in {cwd} (cd there first).", f"Read the task packet: {packet}", f"Ticket {key}:"]
    return _compose(head, text, _tail(seal_command, seconds, closing_check))


def recover(
    *, key: str, text: str, cwd: str, packet: str, seal_command: str, seconds: int, closing_check: bool, why: str
) -> str:
    """The prompt of a later attempt: what an earlier one left is still there; `why` says what failed."""
    head = [
        f"Work only in {cwd} (cd there first). Earlier work is in it: keep it, see git log and git status.",
        f"Read the task packet: {packet}",
        f"Ticket {key}. It is not accepted yet: ",
    ]
    tail = _tail(seal_command, seconds, closing_check)
    # Both this and the ticket's text have to find room.
    room = _room((*head, *tail))
    head[-1] += shorten(why, min(260, 2 * room // 3, room - LEAST - 1))
    return _compose(head, text, tail)


def resolve_merge(
    *,
    key: str,
    text: str,
    cwd: str,
    packet: str,
    seal_command: str,
    seconds: int,
    files: Sequence[str],
    others: Sequence[str],
) -> str:
    """The prompt for a merge conflict that is in progress in the assignment's own worktree."""
    head = [
        f"Work only in {cwd} (cd there first). A merge is in progress there.",
        "Resolve the conflicts in {}: keep what both sides mean, then git add and git commit.",
        f"Packet: {packet}",
        f"Ticket {key}, in conflict with {{}}:" if others else f"Ticket {key}:",
    ]
    tail = _tail(seal_command, seconds, closing_check=False)
    room = _room((*head, *tail))
    third = min(room // 3, (room - LEAST - 1) // 2)  # files, other tickets and the ticket's text share what is left
    head[1] = head[1].format(shorten(named(files), min(160, third)))
    if others:
        head[3] = f"Ticket {key}, in conflict with {shorten(', '.join(others[:3]), min(120, third))}:"
    return _compose(head, text, tail)
