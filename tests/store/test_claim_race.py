"""32 processes claim at once: each ticket gets one owner, and nobody gets an error."""

from __future__ import annotations

import json
import os
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from baton_cli import project as projects
from baton_cli.config import Config
from baton_cli.context import Context
from baton_cli.core.lifecycle import Event, State
from baton_cli.flow import claim
from baton_cli.project import Project
from baton_cli.store import assignments, events
from baton_cli.store.db import open_store
from tests import figures
from tests.stand_ins import CHANGE, make_plan, record

CLAIMERS = 32
READY = 5
TEXT = "## 1. A\n" + "".join(f"- [ ] 1.{n} Task {n}\n" for n in range(1, READY + 1)) + "## 2. B\n- [ ] 2.1 Later\n"


def repeated(often: int, full: int) -> pytest.MarkDecorator:
    """So many rounds in every run, and so many more in the full one, which may take its time (seconds)."""
    slow = pytest.param(full, marks=[pytest.mark.full, pytest.mark.timeout(3600)])
    return pytest.mark.parametrize("rounds", [often, slow])


@pytest.fixture
def project(repository: Path) -> Project:
    (repository / "openspec" / "changes" / CHANGE).mkdir(parents=True)
    found = projects.find(repository)
    projects.prepare_state(found)
    return found


def begin(project: Project) -> dict[str, int]:
    """A fresh store with the plan in it; the ids of its tickets."""
    for name in ("queue.db", "queue.db-wal", "queue.db-shm"):
        (project.state / name).unlink(missing_ok=True)
    store = open_store(project.queue_db)
    ids = record(store, make_plan(TEXT))
    store.close()
    return ids


class Claimers:
    """32 processes that wait for a word, and then all claim at the same moment; again as often as they are told to."""

    def __init__(self, project: Project) -> None:
        self._ends: list[tuple[int, IO[bytes], IO[bytes]]] = []
        self._plan = make_plan(TEXT)
        for number in range(CLAIMERS):
            orders, told = os.pipe(), os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(orders[1])
                for _, theirs, _ in self._ends:
                    theirs.close()  # else they would not see the end of their orders
                self._serve(project, f"s-{number}", os.fdopen(orders[0], "rb"), told[1])
            os.close(orders[0])
            os.close(told[1])
            self._ends.append((pid, os.fdopen(orders[1], "wb", buffering=0), os.fdopen(told[0], "rb")))

    def _serve(self, project: Project, session: str, orders: IO[bytes], told: int) -> None:
        """The life of a claimer: until its orders end."""
        try:
            for line in orders:
                ids, capacity, parallel = json.loads(line)
                os.write(told, json.dumps(self._claim(project, session, ids, capacity, parallel)).encode() + b"\n")
        finally:
            os._exit(0)

    def _claim(self, project: Project, session: str, ids: dict[str, int], capacity: int, parallel: int) -> Any:
        try:
            store = open_store(project.queue_db)
            context = Context(project, Config(parallel=parallel), store, clock=lambda: 1000.0)
            got = claim.claim(context, self._plan, ids, session=session, capacity=capacity, checkout="")
            store.close()
            return [item.ticket for item in got]
        except BaseException:
            return traceback.format_exc()

    def at_once(self, ids: dict[str, int], capacity: int, parallel: int = 64) -> list[list[str]]:
        """The tickets that each got."""
        order = json.dumps([ids, capacity, parallel]).encode() + b"\n"
        for _, orders, _ in self._ends:
            orders.write(order)
        results = [json.loads(told.readline()) for _, _, told in self._ends]
        failed = [result for result in results if isinstance(result, str)]
        given = [ticket for result in results if isinstance(result, list) for ticket in result]
        figures.add("claim rounds", 1, int(bool(failed) or len(given) != len(set(given))))
        assert not failed, failed[0]
        return results

    def end(self) -> None:
        for pid, orders, told in self._ends:
            orders.close()
            told.close()
            os.waitpid(pid, 0)


@pytest.fixture
def claimers(project: Project) -> Iterator[Claimers]:
    made = Claimers(project)
    yield made
    made.end()


def check_owners(project: Project, results: list[list[str]], tickets: list[str]) -> None:
    """Each ticket was given once, to a claimer that the store names, with a token, branch and worktree of its own."""
    assert Counter(ticket for result in results for ticket in result) == Counter(tickets)
    store = open_store(project.queue_db)
    held = assignments.every_open(store)
    assert sorted(item.ticket for item in held) == sorted(tickets)
    for item in held:
        assert item.ticket in results[int(item.attempt.session.removeprefix("s-"))]
        assert item.state is State.CLAIMED
    for values in ("id", "branch", "worktree"):
        assert len({getattr(item, values) for item in held}) == len(held)
    assert len({item.attempt.claim_token for item in held}) == len(held)
    store.close()


READY_KEYS = [f"{CHANGE}#1.{n}" for n in range(1, READY + 1)]


@repeated(5, full=200)
def test_five_ready_tickets_get_five_owners(project: Project, claimers: Claimers, rounds: int) -> None:
    for _ in range(rounds):
        ids = begin(project)
        results = claimers.at_once(ids, capacity=1)
        check_owners(project, results, READY_KEYS)
        assert sorted(map(len, results)) == [0] * (CLAIMERS - READY) + [1] * READY
        store = open_store(project.queue_db)
        assert [item.name for item in events.history(store)] == ["claimed"] * READY
        store.close()


@repeated(2, full=50)
def test_claimers_with_more_capacity_share_no_ticket_either(project: Project, claimers: Claimers, rounds: int) -> None:
    for _ in range(rounds):
        ids = begin(project)
        check_owners(project, claimers.at_once(ids, capacity=5), READY_KEYS)


@repeated(2, full=50)
def test_the_projects_limit_holds_for_all_together(project: Project, claimers: Claimers, rounds: int) -> None:
    for _ in range(rounds):
        ids = begin(project)
        results = claimers.at_once(ids, capacity=5, parallel=3)
        check_owners(project, results, READY_KEYS[:3])


@repeated(2, full=50)
def test_an_orphan_is_taken_over_once(project: Project, claimers: Claimers, rounds: int) -> None:
    for _ in range(rounds):
        ids = begin(project)
        store = open_store(project.queue_db)
        context = Context(project, Config(), store, clock=lambda: 1.0)
        first = claim.claim(context, make_plan(TEXT), ids, session="s-0", capacity=5, checkout="")
        with store.transaction():
            for item in first[:2]:
                assignments.move(store, item, Event.NO_RECEIPT, 2.0)
        store.close()
        results = claimers.at_once(ids, capacity=1)
        given = Counter(ticket for result in results for ticket in result)
        assert given, "whoever holds the lock of an orphan has room for it"
        assert set(given) <= set(READY_KEYS[:2])  # a claimer that finds the orphan's lock held goes on without it
        assert all(count == 1 for count in given.values())
        store = open_store(project.queue_db)
        for item in first[:2]:
            tries = assignments.attempts(store, item.id)
            assert len(tries) == 1 + given[item.ticket]
            assert len({one.claim_token for one in tries}) == len(tries)
        store.close()


def test_only_the_orphans_that_can_be_taken_are_locked(project: Project) -> None:
    """A claimer without room for them would keep them from all others at that moment."""
    ids, plan = begin(project), make_plan(TEXT)
    store = open_store(project.queue_db)
    context = Context(project, Config(), store, clock=lambda: 1.0)
    first = claim.claim(context, plan, ids, session="s-0", capacity=5, checkout="")
    with store.transaction():
        for item in first[:3]:
            assignments.move(store, item, Event.NO_RECEIPT, 2.0)
    assert claim.claim(context, plan, ids, session="s-0", capacity=2, checkout="") == ()
    assert not [*(project.state / "locks").glob("*")]
    (taken,) = claim.claim(context, plan, ids, session="s-1", capacity=1, checkout="")
    assert [path.stem for path in (project.state / "locks").glob("*")] == [taken.id]
    store.close()
