"""The verbs, in the order and the groups in which help shows them.

A verb is one module here. It has one function of the verb's name, or, for a verb with verbs of its own, a Typer
`app`. The table lets `baton --help` answer without importing any of them, and a verb without importing the others.
"""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """Where a verb is and what it does."""

    module: str  # in this package
    help: str  # one line
    group: str  # heading it stands under


PLAN = "Plan"
PROTOCOL = "Protocol (called by the agent session, in this order)"
SERVE = "Serve"
LOOK = "Look"
DECIDE = "Decide (who and why are recorded, no work is deleted)"

VERBS: dict[str, Verb] = {
    "demo": Verb("demo", "Watch a whole change go from plan to merged work, in a throwaway project.", PLAN),
    "init": Verb("init", "Write baton.toml with the checks found in this project.", PLAN),
    "plan": Verb("plan", "Show a change as tickets, what they wait for and what proves them.", PLAN),
    "drive": Verb("drive", "Run a change to its end with a command as the agent.", PLAN),
    "land": Verb("land", "Bring a finished change to the branch it started from.", PLAN),
    "clean": Verb("clean", "Remove what integrated work no longer needs.", PLAN),
    "actions": Verb("actions", "Say what the session has to do next.", PROTOCOL),
    "bind": Verb("bind", "Record which agent works on an assignment.", PROTOCOL),
    "seal": Verb("seal", "Run the checks of an assignment and write its receipt.", PROTOCOL),
    "reconcile": Verb("reconcile", "Settle an attempt after its agent has ended.", PROTOCOL),
    "mcp": Verb("mcp", "Serve MCP clients: the protocol as tools.", SERVE),
    "status": Verb("status", "Show where a change stands and what needs a person.", LOOK),
    "explain": Verb("explain", "Say why a ticket is or is not ready, and what became of it.", LOOK),
    "board": Verb("board", "Write all changes as a Kanban board in one HTML file.", LOOK),
    "diff": Verb("diff", "Show what a ticket's worker has done.", LOOK),
    "log": Verb("log", "Show what happened, event by event.", LOOK),
    "audit": Verb("audit", "Prove from git alone that every ticked box has its evidence.", LOOK),
    "doctor": Verb("doctor", "Say what is wrong here and how to mend it.", LOOK),
    "receipt": Verb("receipt", "Show or verify the evidence of an assignment.", LOOK),
    "packet": Verb("packet", "Export a task packet, to seal on another machine.", LOOK),
    "done": Verb("done", "Attest that a ticket was done by hand.", DECIDE),
    "skip": Verb("skip", "Leave a ticket out of the change.", DECIDE),
    "reopen": Verb("reopen", "Take a done or skipped ticket back into the plan.", DECIDE),
    "retry": Verb("retry", "Hand a stuck ticket out again, with a fresh count of attempts.", DECIDE),
    "abandon": Verb("abandon", "Give an assignment up; its branch and worktree stay.", DECIDE),
    "pause": Verb("pause", "Hand nothing out any more; running work goes on.", DECIDE),
    "resume": Verb("resume", "Hand out again after a pause.", DECIDE),
}
