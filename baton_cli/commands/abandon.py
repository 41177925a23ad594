"""`baton abandon`."""

from __future__ import annotations

from baton_cli import cli


def abandon(
    ticket: cli.TicketArgument,
    why: cli.WhyOption = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Give an assignment up. Its branch and worktree stay; the ticket is free again."""
    cli.decide("abandon", ticket, why, project, json)
