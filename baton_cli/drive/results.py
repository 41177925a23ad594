"""What became of each agent run. Some of it only the next call of `actions` decides: what it seals and integrates itself."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any

from baton_cli.controller import SessionController
from baton_cli.core.lifecycle import Terminal
from baton_cli.drive.board import Board, Tell, described
from baton_cli.drive.child import Child
from baton_cli.errors import BatonError

Action = Mapping[str, Any]
AT_WORK = "; at work since: "  # before the names in a leak
ENDED = {  # why an assignment was ended while an agent was at work on it
    "abandoned": "a person gave it up",
    "ticket_removed": "its ticket was removed from the plan",
    "ticket_external": "its box was ticked by hand",
    "ticket_attested": "a person declared it done",
    "ticket_skipped": "a person skipped it",
}
UNSEALED = ("no_receipt", "left_unsealed")
OF_DRIVE = "drive-"  # how the sessions of drives begin


class Results:
    """Tells each result once, when it is certain."""

    def __init__(self, board: Board, tell: Tell, note: Callable[[str], None]) -> None:
        self.open: dict[str, tuple[Child, str]] = {}
        self.merged: set[str] = set()  # merge commits that were there before, or that were told
        self._board, self._tell, self._note = board, tell, note
        self._leaks = {""}

    def add(self, child: Child, terminal: Terminal, why: str, settled: Mapping[str, Any]) -> None:
        """An agent has ended and was reconciled."""
        state = str(settled["state"])
        if state == "sealed" or (state == "unknown" and terminal is Terminal.COMPLETED):
            self.defer(child, str(settled.get("detail") or ""))
        else:
            known = settled.get("detail") or ENDED.get(str(settled.get("reason")), "")
            detail = (why or known) if state == "unknown" else known
            if state == "integrated":
                self._board.integrated()
            self._close(child, state, detail)
        leak = str(settled.get("isolation") or "")
        if leak.partition(AT_WORK)[0] not in self._leaks:  # the next agents see the same checkout
            self._note(leak)
            self._leaks.add(leak.partition(AT_WORK)[0])

    def defer(self, child: Child, detail: str = "") -> None:
        """What becomes of it is not decided yet, or (its reconciliation was interrupted) known to the store alone."""
        self.open[child.assignment] = child, detail

    def settle(
        self, controls: SessionController, handed: Sequence[Action], notices: Sequence[str], *, last: bool = False
    ) -> None:
        """After a call of `actions`: what it decided. With `last`, what is still open is told as it stands."""
        for assignment, (child, known) in list(self.open.items()):
            again = next((action for action in handed if action["assignment_id"] == assignment), None)
            if again is not None:
                state, detail = _refused(controls, again, notices, known)
            else:
                state, detail = _look(controls, child.action)
            if state != "sealed" or last:
                del self.open[assignment]
                self._close(child, state, detail)

    def tell_merged(self, found: Mapping[str, Mapping[str, Any]], ours: Container[str]) -> None:
        """What was integrated without an agent of ours, by merge commit: an interrupted drive had left it sealed, say."""
        for commit, ticket in found.items():
            if commit not in self.merged and ticket["key"] not in ours:
                self._tell({"event": "merged", "ticket": ticket["key"], "title": ticket["title"]})
        self.merged |= set(found)

    def _close(self, child: Child, state: str, detail: str | None) -> None:
        self._board.decided(child)
        self._tell(
            {
                "event": "ended",
                **described(child.action),
                "agent": child.agent,
                "state": state,
                "detail": detail or "",
                "seconds": child.seconds,
                "log": str(child.log),
            }
        )


def _look(controls: SessionController, action: Action) -> tuple[str, str]:
    try:
        found = controls.renew(action["assignment_id"], action["claim_token"])
    except BatonError as error:
        return "unknown", error.message
    return str(found["state"]), str(found["detail"] or "")


def _refused(controls: SessionController, again: Action, notices: Sequence[str], known: str) -> tuple[str, str]:
    """State and detail of what is handed out again in the same answer."""
    reason = str(again.get("reason", ""))
    if again["kind"] == "resolve_merge" or reason == "conflict":
        files = ", ".join(again.get("files", ()))  # none: something in its worktree kept the merge from beginning
        return "conflicted", f"it conflicts in {files}" if files else _look(controls, again)[1]
    head = f"{again['ticket']}: "
    detail = next((notice.removeprefix(head) for notice in notices if notice.startswith(head)), "")
    if reason == "gate_failed":  # which check it was, and its log, is kept with the assignment
        return "rejected", detail or _look(controls, again)[1] or "the checks are red on the merged tree"
    return "unknown", detail or (known if reason in UNSEALED and known else reason.replace("_", " "))


def waiting_for(answer: Mapping[str, Any]) -> str:
    """Whom we wait for when nothing of ours runs."""
    items = [item for action in answer["actions"] for item in action.get("in_flight", ())]

    def entries() -> Iterator[str]:
        for item in items:
            if isinstance(item, str):
                yield item
            else:
                who = item.get("agent") or (f"session {item['session']}" if item.get("session") else "")
                yield f"{item['ticket']} ({item['state']}{', ' if who else ''}{who or ''})"

    reason = next((action["reason"] for action in answer["actions"] if action["kind"] == "wait"), "")
    held = ", ".join(entries())
    ours = [item for item in items if not isinstance(item, str) and item["ticket"].startswith(f"{answer['change']}#")]
    sessions = [str(item["session"]) for item in ours if item.get("session")]
    session = next((one for one in sessions if not one.startswith(OF_DRIVE)), None)  # a drive that lives shares nothing
    way = f" (--session {session} goes on as that session, --no-wait ends here)" if session else ""
    return f"waiting: {reason}" + (f": {held}" if held else "") + way
