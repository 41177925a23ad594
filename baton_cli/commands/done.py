"""`baton done`."""

from __future__ import annotations

from baton_cli import cli


def done(
    ticket: cli.TicketArgument,
    why: cli.WhyOption = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Attest that a ticket was done by hand: it counts as finished and its box is ticked."""
    cli.decide("done", ticket, why, project, json)
