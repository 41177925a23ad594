"""`baton abandon`."""

from __future__ import annotations

from baton_cli import cli


def abandon(
    ticket: cli.TicketArgument,
    why: cli.WhyOption = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Give an assignment up. Its branch and worktree stay; the ticket is free again, and a drive that runs hands it out
    anew at once (`pause` or `skip` before, if it should not)."""
    cli.decide("abandon", ticket, why, project, json)
