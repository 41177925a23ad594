"""`baton retry`."""

from __future__ import annotations

from baton_cli import cli


def retry(
    ticket: cli.TicketArgument,
    why: cli.WhyIfAny = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Hand a stuck ticket out again, under a new token and with a fresh count of attempts."""
    cli.decide("retry", ticket, why, project, json)
