"""What a model does that follows skills/baton/SKILL.md to the letter, and what a worker does that follows its prompt.

Both are functions of the conversation alone, as a model is: every id, token and prompt is read from what DSH sends.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.dsh.model import Call, Exchange, Model, Reply

TASK = re.compile(r"run baton on (/\S+) (\S+)(?: as session (\S+))?")
LOST_SERVER = ("Connection closed", "Not connected")
STARTED = re.compile(r"started subagent (\S+)$")
NOTICE = re.compile(
    r"Background subagent (\S+) (finished and will do no further work|failed before it finished|was stopped before it"
    r" finished|ran out of room before it finished|declined the task|ended abnormally)"
)
TERMINALS = {
    "finished and will do no further work": "completed",
    "failed before it finished": "failed",
    "was stopped before it finished": "stopped",
    "ran out of room before it finished": "max_tokens",
    "declined the task": "refused",
    "ended abnormally": "lost",
}
HAND_OUTS = ("dispatch", "recover", "resolve_merge")


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@dataclass
class Turn:
    """One tool call of the conversation with its result, if it has one."""

    name: str
    arguments: dict[str, Any]
    result: str | None


@dataclass
class History:
    """The conversation as the main session remembers it."""

    task: tuple[str, str, str] | None = None  # project, change, session if the user named one
    headless: bool = False
    last: list[Turn] = field(default_factory=list)  # the calls of the last assistant message
    turns: list[Turn] = field(default_factory=list)
    notices: list[tuple[str, str]] = field(default_factory=list)  # since the last assistant message


def read(messages: Sequence[dict[str, Any]]) -> History:
    history = History()
    results = {m["tool_call_id"]: text_of(m) for m in messages if m["role"] == "tool"}
    for message in messages:
        if message["role"] == "assistant":
            history.notices = []
            calls = message.get("tool_calls") or ()
            history.last = [
                Turn(c["function"]["name"], json.loads(c["function"]["arguments"]), results.get(c["id"])) for c in calls
            ]
            history.turns += history.last
        elif message["role"] == "user":
            text = text_of(message)
            found = TASK.search(text)
            if found:
                history.task = (found[1], found[2], found[3] or "new")
                history.headless = "headless: " in text
                history.last = []  # a new request of the user begins anew
            history.notices += NOTICE.findall(text)
    return history


def answers(history: History) -> Iterator[dict[str, Any]]:
    for turn in history.turns:
        if turn.name == "mcp__baton__actions" and (turn.result or "").startswith("{"):
            yield json.loads(turn.result or "")


def handed_out(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [action for action in answer["actions"] if action["kind"] in HAND_OUTS]


def by_agent(history: History) -> dict[str, dict[str, Any]]:
    """agent id -> the action whose prompt it was started with."""
    by_prompt = {action["prompt"]: action for answer in answers(history) for action in handed_out(answer)}
    return {
        found[1]: by_prompt[turn.arguments["prompt"]]
        for turn in history.turns
        if turn.name == "subagent" and (found := STARTED.match(turn.result or ""))
    }


def call_actions(history: History) -> list[Call]:
    assert history.task is not None
    project, change, session = history.task
    session = [session, *(answer["session"] for answer in answers(history))][-1]
    arguments = {"project_path": project, "feature": change, "session_id": session}
    return [Call("mcp__baton__actions", arguments)]


def call_bind(action: dict[str, Any], agent: str) -> Call:
    arguments = {key: action[key] for key in ("assignment_id", "claim_token")} | {"agent_id": agent}
    return Call("mcp__baton__bind_agent", arguments)


def call_reconcile(action: dict[str, Any], terminal: str, agent: str | None = None) -> Call:
    arguments = {key: action[key] for key in ("assignment_id", "claim_token")} | {"agent_terminal": terminal}
    return Call("mcp__baton__reconcile", arguments | ({"agent_id": agent} if agent else {}))


def foreground_terminal(result: str) -> str:
    if not result.startswith("Error:"):
        return "completed"
    words = {"cancelled": "stopped", "token limit": "max_tokens", "declined": "refused", "abnormally": "lost"}
    return next((terminal for word, terminal in words.items() if word in result), "failed")


def main_session(exchange: Exchange) -> Reply:
    """The next step of the loop in the skill."""
    history = read(exchange.messages)
    if history.task is None:
        return "nothing to do"
    if history.notices:
        agents = by_agent(history)
        return [call_reconcile(agents[agent], TERMINALS[how], agent) for agent, how in history.notices]
    if not history.last:
        loaded = any(turn.name == "skill" for turn in history.turns)
        return begin(exchange, history) if loaded else [Call("skill", {"name": "baton"})]
    kind = history.last[0].name
    if kind in ("skill", "mcp__baton__why"):
        return begin(exchange, history)
    failed = [turn.result or "" for turn in history.last if (turn.result or "").startswith("Error:")]
    if any(word in result for result in failed for word in LOST_SERVER):
        return [Call(turn.name, turn.arguments) for turn in history.last]  # again, with the same arguments
    if kind == "mcp__baton__actions":
        return after_actions(history)
    if kind == "subagent":
        agents = by_agent(history)
        if history.headless:
            handed = handed_out(list(answers(history))[-1])
            return [
                call_reconcile(action, foreground_terminal(turn.result or ""))
                for action, turn in zip(handed, history.last, strict=True)
            ]
        started = [found[1] for turn in history.last if (found := STARTED.match(turn.result or ""))]
        return [call_bind(agents[agent], agent) for agent in started]
    if kind == "mcp__baton__bind_agent":
        return "Waiting for the subagents."
    return call_actions(history)


def begin(exchange: Exchange, history: History) -> Reply:
    if "mcp__baton__actions" in exchange.tools:
        return call_actions(history)
    asked = history.last[0].result if history.last and history.last[0].name == "mcp__baton__why" else None
    return f"ERROR {asked}" if asked else [Call("mcp__baton__why", {})]


def after_actions(history: History) -> Reply:
    result = history.last[0].result or ""
    if not result.startswith("{"):
        return f"ERROR {result}"
    answer = json.loads(result)
    if handed := handed_out(answer):
        how = {"run_in_background": False} if history.headless else {}
        return [
            Call("subagent", {"description": action["ticket"], "prompt": action["prompt"], **how}) for action in handed
        ]
    kinds = {action["kind"]: action for action in answer["actions"]}
    if "complete" in kinds:
        return f"COMPLETE {json.dumps(kinds['complete'])}"
    if "blocked" in kinds:
        return f"BLOCKED {json.dumps(answer['actions'])}"
    mine = [action["assignment_id"] for action in by_agent(history).values()]
    entries = kinds.get("wait", {}).get("in_flight", ())
    lost = [entry for entry in entries if "claim_token" in entry and entry["assignment_id"] not in mine]
    return [call_reconcile(entry, "lost") for entry in lost] or "Waiting for the subagents."


@dataclass(frozen=True)
class Job:
    """What a worker's prompt says."""

    prompt: str
    cwd: str
    ticket: str
    seal: str
    timeout_ms: int

    @property
    def merging(self) -> bool:
        return "A merge is in progress there" in self.prompt

    @property
    def again(self) -> bool:
        return "It is not accepted yet" in self.prompt


def job_of(messages: Sequence[dict[str, Any]]) -> Job | None:
    """The job in the conversation, if this is a worker's."""
    for message in messages:
        text = text_of(message)
        if message["role"] == "user" and (
            place := re.search(r"^Work only in (.+?) \(cd there first\)", text, re.MULTILINE)
        ):
            ticket = re.search(r"^Ticket ([^\s:,]+?)[.,:]*(?:\s|$)", text, re.MULTILINE)
            seal = [line for line in text.split("\n") if " seal " in line and " --key " in line]
            limit = re.search(r"timeoutMs (\d+)", text)
            assert ticket is not None
            assert limit is not None
            assert len(seal) == 1, text
            return Job(text, place[1], ticket[1], seal[0], int(limit[1]))
    return None


def bash(job: Job, command: str) -> Call:
    """A worker's command, in its folder although DSH starts it elsewhere."""
    arguments = {"command": f"cd {shlex.quote(job.cwd)} && {command}", "description": "Work on the ticket"}
    return Call("bash", arguments | {"timeoutMs": job.timeout_ms})


def good_work(job: Job) -> list[str]:
    """One file of its own, committed, sealed."""
    name = job.ticket.rpartition("#")[2]
    return [
        f"echo done > {shlex.quote(name)}.txt && git add -A && git commit -qm {shlex.quote('work on ' + name)}",
        job.seal,
    ]


Work = Callable[[Job], list[str]]


@dataclass
class Script:
    """The whole model: the main session by the skill, the workers by `work`; knows when the session is at an end."""

    work: Work = good_work
    jobs: dict[str, Job] = field(default_factory=dict)  # DSH's session id of each child -> its job
    final: str | None = None
    parents: set[str] = field(default_factory=set)
    on_final: Callable[[], None] = lambda: None
    session: Callable[[Exchange], Reply] = main_session

    def __call__(self, exchange: Exchange) -> Reply:
        job = job_of(exchange.messages)
        if job is None:
            self.parents.add(exchange.session)
            reply = self.session(exchange)
            if isinstance(reply, str) and reply.split(" ")[0] in ("COMPLETE", "BLOCKED", "ERROR"):
                self.final = reply
                self.on_final()
            return reply
        self.jobs[exchange.session] = job
        steps = self.work(job)
        done = sum(message["role"] == "tool" for message in exchange.messages)
        if done < len(steps):
            return [bash(job, steps[done])]
        return "I am done."


def tool_results(model: Model, name: str) -> list[str]:
    """What DSH handed the model as the results of one tool, over all conversations, each once."""
    found: dict[str, str] = {}
    for exchange in model.asked:
        results = {m["tool_call_id"]: text_of(m) for m in exchange.messages if m["role"] == "tool"}
        for message in exchange.messages:
            for call in message.get("tool_calls") or ():
                if call["function"]["name"] == name and call["id"] in results:
                    found[call["id"]] = results[call["id"]]
    return list(found.values())
