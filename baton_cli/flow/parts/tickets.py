"""A change as it stands, and where each of its tickets is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from baton_cli.context import Context
from baton_cli.core.facts import Completion, Revision
from baton_cli.core.frontier import TicketView, survey
from baton_cli.core.lifecycle import Assignment
from baton_cli.core.plan import Plan
from baton_cli.core.tasks import Document
from baton_cli.errors import BatonError
from baton_cli.flow.parts import attempts
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
    store = context.store
    return survey(
        loaded.plan,
        loaded.ticket_ids,
        (*store_plans.completions(store, loaded.change), *loaded.came),
        [attempts.with_history(store, held) for held in assignments.of_change(store, loaded.change)],
    )


def refreshed(loaded: Loaded, document: Document) -> Loaded:
    """The same plan with the boxes as they are in the file now (Baton's own ticks, a user's); a new text waits its turn."""
    if document.data == loaded.plan.document.data or document.digest != loaded.revision.digest:
        return loaded
    tickets = tuple(
        planned._replace(ticket=document.tickets[planned.ticket.position]) for planned in loaded.plan.tickets
    )
    return loaded._replace(plan=loaded.plan._replace(document=document, tickets=tickets))


def find(views: Sequence[TicketView], name: str) -> TicketView:
    """The ticket that `1.2` or `change#1.2` names now. Errors: `no_such_ticket`, `ambiguous_ticket`."""
    exact = [view for view in views if view.key == name]
    if exact:
        return exact[0]
    change, _, own = name.rpartition("#")
    wanted = own if views and change == views[0].key.rpartition("#")[0] else name
    same = [view for view in views if wanted in (view.planned.ticket.id, view.key.rpartition("#")[2])]
    if len(same) == 1:
        return same[0]
    if same:
        keys = ", ".join(view.key for view in same[:5])
        raise BatonError("ambiguous_ticket", f"{name!r} stands for several tickets", f"name one of {keys}")
    raise BatonError(
        "no_such_ticket", f"there is no ticket {name!r} in this change", "see `baton plan CHANGE` for the tickets"
    )


def assignment_of(view: TicketView) -> Assignment:
    """The assignment of a ticket. Error: `no_assignment`."""
    if view.assignment is None:
        raise BatonError(
            "no_assignment",
            f"nobody works on {view.key} (it is {view.status.value.replace('_', ' ')})",
            "see `baton status`",
        )
    return view.assignment
