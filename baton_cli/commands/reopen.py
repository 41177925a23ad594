"""`baton reopen`."""

from __future__ import annotations

from baton_cli import cli


def reopen(
    ticket: cli.TicketArgument,
    why: cli.WhyOption = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Take a finished or skipped ticket back into the plan, and un-tick its boxes."""
    cli.decide("reopen", ticket, why, project, json)
