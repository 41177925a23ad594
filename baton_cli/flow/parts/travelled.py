"""What a repository's own history says of a change: evidence that travels with every clone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from baton_cli.context import Context
from baton_cli.core import chain, names
from baton_cli.core.chain import Chain
from baton_cli.core.facts import Completion
from baton_cli.core.tasks import Document
from baton_cli.errors import BatonError
from baton_cli.git import history, repo
from baton_cli.project import Project

MENTION = "Baton-Change: "
REPLACED = "refs/replace/"


class History:
    """All that `tips` (commit ids) reach, asked of git once. `refs` are all refs there are."""

    def __init__(self, project: Project, refs: Mapping[str, str], tips: Collection[str]) -> None:
        oids = sorted(set(tips))
        self._told = history.mentioning(project.repository, oids, MENTION)
        self._graph = history.graph(project.repository, oids) if self._told else {}
        self._cut = history.cut_off(project.common_dir)
        self._replaced = {name.removeprefix(REPLACED) for name in refs if name.startswith(REPLACED)}

    @property
    def shallow(self) -> bool:
        """Whether commits are missing, as in a shallow clone."""
        return bool(self._cut)

    def chain(self, change: str, tips: Collection[str]) -> Chain:
        """The commits of a change that these of the tips reach."""
        oids = sorted(set(tips))
        return chain.follow(change, oids, self._graph, self._told, cut=self._cut, replaced=self._replaced)


class Asked(NamedTuple):
    """A ticket as its history is asked for."""

    ticket_id: int
    key: str
    fingerprint: str
    ticked: bool


def asked(document: Document, ticket_ids: Mapping[str, int]) -> tuple[Asked, ...]:
    """The tickets of a document; `ticket_ids` are by key, in its order."""
    return tuple(
        Asked(ticket_id, key, ticket.fingerprint, ticket.done)
        for ticket, (key, ticket_id) in zip(document.tickets, ticket_ids.items(), strict=True)
    )


class Travelled:
    """The facts about changes that this store never ran, as in a fresh clone or after its loss."""

    def __init__(self, context: Context) -> None:
        self._project = context.project
        self._prefix = context.config.branch_prefix

    def facts(self, change: str, tickets: Sequence[Asked], tip: str | None = None) -> tuple[Completion, ...]:
        """What finished which of the tickets, by what `tip` (a commit id) reaches; by default what is checked out and the
        integration branch. Nothing where git cannot be asked.

        A change may have the name and the words of one that is long archived: its history counts only when at least one
        ticket that it proves is ticked.
        """
        ticked = {ticket.key for ticket in tickets if ticket.ticked}
        if not ticked:
            return ()
        try:
            own = "refs/heads/" + names.integration_branch(self._prefix, change)
            tips = {tip} if tip is not None else {self._head, self._refs.get(own, self._head)}
            links = self._history.chain(change, tips).links
        except BatonError:
            return ()
        found = chain.endings(links, ((ticket.key, ticket.fingerprint) for ticket in tickets))
        if not any(key in ticked and link.evidence.decision != "skip" for key, link in found.items()):
            return ()
        return tuple(
            found[ticket.key].evidence.completion(ticket.ticket_id, found[ticket.key].oid)
            for ticket in tickets
            if ticket.key in found
        )

    @cached_property
    def _refs(self) -> dict[str, str]:
        return repo.refs(self._project.repository)

    @cached_property
    def _head(self) -> str:
        return repo.head(self._project.repository).oid

    @cached_property
    def _history(self) -> History:
        ours = f"refs/heads/{self._prefix}/"
        tips = {self._head, *(oid for name, oid in self._refs.items() if name.startswith(ours))}
        return History(self._project, self._refs, tips)
