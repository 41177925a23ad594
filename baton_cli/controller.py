"""SessionController: the only scheduler. Each verb is a short list of stages; every face prints what it returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from baton_cli.context import Context
from baton_cli.core import actions as answers
from baton_cli.core.facts import Change
from baton_cli.core.frontier import FINISHED, TicketView, fresh_claims, progress
from baton_cli.core.lifecycle import Assignment, State, Terminal
from baton_cli.core.receipt import BATON, Authority
from baton_cli.core.tasks import Ticket
from baton_cli.errors import USAGE, BatonError
from baton_cli.flow import (
    baseline,
    claim,
    detached,
    emit,
    handout,
    integrate,
    load,
    mend,
    prepare,
    recover,
    seal,
    settle,
    tick,
)
from baton_cli.flow.integrate import Integrated
from baton_cli.flow.parts import checkout, detection, tickets, tokens
from baton_cli.flow.parts.tickets import Loaded
from baton_cli.store import assignments
from baton_cli.store import plans as store_plans

MAX_CAPACITY = 5


@dataclass
class Round:
    """One call of `actions`, as its stages pass it on."""

    name: str
    session: str
    capacity: int
    take_over: str | None
    loaded: Loaded
    change: Change
    setup: tuple[str, ...]
    notices: list[str] = field(default_factory=list)
    integrated: Integrated = field(default_factory=Integrated)
    stopped: BatonError | None = None
    unticked: tuple[Ticket, ...] = ()
    pending: list[dict[str, Any]] = field(default_factory=list)
    prepared: list[Assignment] = field(default_factory=list)


class SessionController:
    """The verbs of the protocol on one project. Values in, values out; the CLI, the adapter and `drive` only print them."""

    def __init__(self, context: Context) -> None:
        self.context = context

    # -- actions ------------------------------------------------------------------------------------------------

    def actions(
        self, change: str, session: str, capacity: int = MAX_CAPACITY, take_over: str | None = None
    ) -> dict[str, Any]:
        """What the session must do next, as `baton.actions/1`."""
        if not 1 <= capacity <= MAX_CAPACITY:
            raise BatonError(
                "bad_capacity", f"capacity {capacity} is not between 1 and {MAX_CAPACITY}", "leave it out for 5", USAGE
            )
        if not session.strip():
            raise BatonError(
                "bad_session", "the session id is empty", "pass `new` the first time, then the id of the answer", USAGE
            )
        claim.refuse_agents(self.context, session)
        session = tokens.new_session() if session == "new" else session
        self.context = self.context._replace(session=session)
        work = self._load(change, session, capacity, take_over)
        for stage in (self._recover, self._vouch, self._integrate, self._tidy, self._claim, self._prepare):
            stage(work)
        handed = self._hand_out(work)
        if (
            not handed
            and work.integrated.busy is not None
            and assignments.of_change(self.context.store, work.name, [State.SEALED])
        ):
            for stage in (self._integrate_waiting, self._tidy, self._claim, self._prepare):
                stage(work)
            handed = self._hand_out(work)
        return self._emit(work, handed)

    def _load(self, name: str, session: str, capacity: int, take_over: str | None) -> Round:
        """Parse tasks.md and record a new revision. A broken plan still lets interrupted integrations finish."""
        first = store_plans.get_change(self.context.store, name) is None
        try:
            loaded, change = self.begin(name)
        except BatonError:
            known = store_plans.get_change(self.context.store, name)
            if known is not None:
                recover.finish_merges(self.context, known)
            raise
        work = Round(name, session, capacity, take_over, loaded, change, detection.setup(self.context))
        if first and loaded.plan.guessed:
            work.notices.append("the checks are detected, not configured: see `baton plan`, fix them with `baton init`")
            red = baseline.baseline(self.context, change.base, loaded.plan.guessed, work.setup).red
            work.notices.extend(f"baseline_red: {line}" for line in red)
        work.notices.extend(loaded.fates)
        return work

    def begin(self, change: str) -> tuple[Loaded, Change]:
        """The plan, with its revision recorded, and the change's record, made when there is none."""
        loaded = load.load(self.context, change)
        known = store_plans.get_change(self.context.store, change)
        if known is not None:
            return loaded, recover.follow(self.context, known)
        started = recover.start(self.context, loaded)
        return load.load(self.context, change), started  # what was skipped in an earlier life is out of the way now

    def _recover(self, work: Round) -> None:
        """Put back what was moved away, finish what was interrupted, end what has no ticket any more, expire leases."""
        work.unticked = tick.due(self._views(work))
        work.notices.extend(mend.mend(self.context, work.name))
        work.stopped = recover.finish_merges(self.context, work.change)
        work.notices.extend(recover.supersede(self.context, work.loaded, self._views(work)))
        work.notices.extend(recover.lapse(self.context, work.name, work.take_over))

    def _vouch(self, work: Round) -> None:
        """An agent that ended well and could not seal: Baton runs the same checks itself."""
        for assignment in recover.vouchable(self.context, work.name):
            try:
                seal.seal(self.context, assignment.id, BATON)
            except BatonError as refusal:
                work.notices.append(f"{assignment.ticket}: {refusal.message}")

    def _integrate(self, work: Round) -> None:
        """Integrate what is sealed, if the lock is free."""
        work.integrated = integrate.integrate(self.context, work.name, work.setup, wait=False, wanted=self._wanted)
        work.stopped = work.integrated.stopped or work.stopped
        if work.stopped is not None:
            work.notices.append(f"nothing is integrated now: {work.stopped.message} ({work.stopped.hint})")

    def _integrate_waiting(self, work: Round) -> None:
        """The same with nothing else to do: wait for whoever holds the lock."""
        work.integrated = integrate.integrate(self.context, work.name, work.setup, wait=True, wanted=self._wanted)
        work.stopped = work.integrated.stopped or work.stopped

    def _tidy(self, work: Round) -> None:
        """Tick what is integrated; remove its worktrees."""
        due = tick.due(self._views(work))
        work.notices.extend(tick.tick_all(work.loaded.folder.tasks, due, self.context.progress, work.unticked))
        work.notices.extend(recover.clear_worktrees(self.context, work.name))

    def _claim(self, work: Round) -> None:
        """Claim what fits, unless the session's last answer may not have arrived, or the change is paused."""
        if work.change.paused is not None:
            return
        work.pending = handout.pending(self.context, work.name, work.session)
        if not work.pending:
            claim.claim(
                self.context,
                work.loaded.plan,
                work.loaded.ticket_ids,
                session=work.session,
                capacity=work.capacity,
                checkout=checkout.snapshot(self.context),
            )

    def _prepare(self, work: Round) -> None:
        """Worktree and packet for each claim of this session that was never handed out."""
        work.prepared = []
        if work.change.paused is not None or work.pending:
            return
        views = self._views(work)
        claims = fresh_claims(views, work.session)
        placed = prepare.place_all(self.context, work.change, claims)
        for held in claims:
            self.context.progress(f"preparing {held.ticket}")
            ready = prepare.prepare(self.context, work.change, work.loaded, held, views, work.setup, placed)
            if ready.state is State.CLAIMED:
                work.prepared.append(ready)
        given_up = [view.assignment for view in views if view.assignment and view.assignment.state is State.EXHAUSTED]
        for held in [*work.prepared, *given_up][:1]:  # where it is may be why nobody could finish it
            place = self.context.inside(self.context.worktree(held.worktree))
            work.notices.extend(baseline.surroundings(self.context.project, place))

    def _hand_out(self, work: Round) -> list[dict[str, Any]]:
        return work.pending or handout.hand_out(self.context, work.change, work.prepared, self._answer(work, []))

    def _emit(self, work: Round, handed: list[dict[str, Any]]) -> dict[str, Any]:
        """The answer, whatever it holds."""
        found = handed or emit.without_hand_outs(
            self.context, work.change, self._views(work), work.session, work.stopped
        )
        return self._answer(work, found)

    def _answer(self, work: Round, actions: list[dict[str, Any]]) -> dict[str, Any]:
        return answers.answer(
            project=str(self.context.project.root),
            change=work.name,
            session=work.session,
            revision=work.loaded.revision.number,
            progress=progress(self._views(work)),
            actions=actions,
            notices=list(dict.fromkeys(work.notices)),
        )

    def _views(self, work: Round) -> tuple[TicketView, ...]:
        work.loaded = tickets.refreshed(work.loaded, load.read_document(work.loaded.folder))
        return tickets.views(self.context, work.loaded)

    # -- bind, seal, reconcile ----------------------------------------------------------------------------------

    def bind(self, assignment_id: str, claim_token: str, agent: str) -> dict[str, Any]:
        """Record the agent of an attempt, as `baton.bind/1`."""
        assignment = settle.bind(self.context, assignment_id, claim_token, agent)
        return answers.settled("bind", assignment, "reconcile when the agent has ended", agent=agent)

    def renew(self, assignment_id: str, claim_token: str) -> dict[str, Any]:
        """The agent of an attempt lives: prolong its lease. Also tells where the assignment stands, as `baton.renew/1`."""
        assignment = settle.renew(self.context, assignment_id, claim_token)
        return answers.settled("renew", assignment, "reconcile when the agent has ended", detail=assignment.detail)

    def release(self, change: str, session: str) -> int:
        """A session is gone: what it had claimed goes back, as with `take_over`. How much stays, being sealed just now."""
        return recover.release(self.context, change, session)

    def seal(self, assignment_id: str, authority: Authority) -> dict[str, Any]:
        """Run the packet's checks and keep the receipt, as `baton.seal/1`."""
        sealed = seal.seal(self.context, assignment_id, authority)
        assignment = sealed.assignment
        extra = {"head": assignment.sealed_head, "receipt": assignment.receipt, "fresh": sealed.fresh}
        extra |= checkout.isolation(self.context, assignment)
        return answers.settled("seal", assignment, "end your turn: the session reconciles", **extra)

    def assignment_at(self, place: Path) -> str:
        """The assignment in whose worktree `place` is. Error: `not_in_worktree`."""
        return seal.assignment_at(self.context, place)

    def reconcile(
        self,
        assignment_id: str,
        claim_token: str,
        terminal: Terminal,
        agent: str | None = None,
        note: str | None = None,
        receipt: Path | None = None,
    ) -> dict[str, Any]:
        """Settle an attempt after its completion notice, as `baton.reconcile/1`."""
        if receipt is not None:
            detached.accept(self.context, settle.current(self.context, assignment_id, claim_token), receipt)
        assignment = settle.record_ending(self.context, assignment_id, claim_token, terminal, agent, note)
        self.context, notices = self.context._replace(session=assignment.attempt.session), list[str]()
        if assignment.state is State.SEALED:
            notices.extend(self._retire(assignment.change))
            done = integrate.integrate(
                self.context, assignment.change, detection.setup(self.context), wait=False, wanted=self._wanted
            )
            if done.stopped is not None:
                notices.append(done.stopped.message)
            assignment = assignments.get(self.context.store, assignment_id)
        if assignment.state is State.INTEGRATED:
            notices.extend(self.tick(assignment.change))
            notices.extend(recover.clear_worktrees(self.context, assignment.change))
            assignment = assignments.get(self.context.store, assignment_id)
        extra: dict[str, Any] = checkout.isolation(self.context, assignment)
        if notices:
            extra["notices"] = notices
        return answers.settled(
            "reconcile", assignment, "call actions with your session", detail=assignment.detail, **extra
        )

    def tick(self, change: str) -> tuple[str, ...]:
        """Tick what is finished and not ticked yet; why something could not be."""
        try:
            loaded = load.look(self.context, change)
        except BatonError as error:
            return (f"not ticked yet: {error.message}",)
        return tick.tick_all(loaded.folder.tasks, tick.due(tickets.views(self.context, loaded)), self.context.progress)

    def _retire(self, change: str) -> tuple[str, ...]:
        """Before an integration outside of `actions`: end what the plan, edited since, has no ticket for any more."""
        try:
            loaded = load.look(self.context, change)
        except BatonError:
            return ()  # the integration meets the same error and says it
        return recover.retire(self.context, loaded)

    def _wanted(self, change: str) -> frozenset[int]:
        """The tickets whose work may be integrated: in the plan as it is now, told apart, and not finished otherwise."""
        views = tickets.views(self.context, load.look(self.context, change))
        return frozenset(view.ticket_id for view in views if view.status not in FINISHED)
