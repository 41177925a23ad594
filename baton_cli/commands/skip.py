"""`baton skip`."""

from __future__ import annotations

from baton_cli import cli


def skip(
    ticket: cli.TicketArgument,
    why: cli.WhyOption = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Leave a ticket out of the change: what waits for it goes on, its box stays as it is."""
    cli.decide("skip", ticket, why, project, json)
