"""A change as it stands, and where each of its tickets is."""

from __future__ import annotations

from typing import NamedTuple

from baton_cli.context import Context
from baton_cli.core.facts import Completion, Revision
from baton_cli.core.frontier import TicketView, survey
from baton_cli.core.plan import Plan
from baton_cli.core.tasks import Document
from baton_cli.project import ChangeFolder
from baton_cli.store import assignments
from baton_cli.store import plans as store_plans


class Loaded(NamedTuple):
    """A change as it stands: its folder, its plan, and which stored ticket each key is.

    `unsure` are the stored tickets that an ambiguous one may be, `came` the facts that came with the repository while
    nothing is recorded here.
    """

    folder: ChangeFolder
    plan: Plan
    ticket_ids: dict[str, int]
    revision: Revision
    fates: tuple[str, ...] = ()
    unsure: frozenset[int] = frozenset()
    came: tuple[Completion, ...] = ()

    @property
    def change(self) -> str:
        """The change's id."""
        return self.plan.change


def views(context: Context, loaded: Loaded) -> tuple[TicketView, ...]:
    """Every ticket with its status, from the facts as they are now."""
    return survey(
        loaded.plan,
        loaded.ticket_ids,
        (*store_plans.completions(context.store, loaded.change), *loaded.came),
        assignments.of_change(context.store, loaded.change),
    )


def refreshed(loaded: Loaded, document: Document) -> Loaded:
    """The same plan with the boxes as they are in the file now (Baton's own ticks, a user's); a new text waits its turn."""
    if document.data == loaded.plan.document.data or document.digest != loaded.revision.digest:
        return loaded
    tickets = tuple(
        planned._replace(ticket=document.tickets[planned.ticket.position]) for planned in loaded.plan.tickets
    )
    return loaded._replace(plan=loaded.plan._replace(document=document, tickets=tickets))
