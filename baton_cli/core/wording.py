"""What a task's wording says about it: for a person, a closing check, or about the change's own folder. All heuristics.

They are kept narrow, measured on real task lists: a false "manual" blocks a ticket until a person answers, so a task
that merely speaks of pushing or archiving as a feature must never match.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from baton_cli.core.patterns import late

_CODE = late(r"`[^`]*`")
_MOST = 2000  # characters of a text that are looked at
_MARKED = late(r"[(（]\s*(?:manual|human|人工|手动)\s*[)）]", re.I)
_SOUNDS_MANUAL = late(r"\A\W*(?:manual(?:ly)?\b(?!\s+page)|手动|人工)|[(（\[]manual\b", re.I)

_CLOSING = re.compile(
    r"[\W_]*(?:\[[^\]]{0,40}\][\W_]*)?(?:(?:verify|validate|run|test|check|confirm|commit)\b|验证|测试)", re.I
)

# A list marker, quote, fence, heading, table or comment: where the sentence of the task line cannot go on.
_NOT_PROSE = re.compile(r"\s*(?:[-*+>#|]|```|~~~|<!--|\d{1,9}[.)]\s|$)")

# Steps that only make sense once the change is complete. Each must be the whole step, or go on with a harmless tail.
_TAIL = r"(?=\s*(?:$|[.,:;(—–-]|(?:with|via|using|after|once|when|and|then|for|to|against|by running|on top)\b))"
_WHOLE = r"(?=\s*(?:$|[.,:;(—–]|-\s|(?:with|via|using|after|once|and|then|by running)\b))"
_THE = r"(?:(?:the|this|our|your|all|completed|finished|openspec|opsx|active|whole|entire)\s+)*"
_WHERE = (
    r"(?:github|gitlab|gitea|forgejo|origin|remote|upstream|main|master|trunk|ci|(?:feature|remote|this|the)\s+branch)"
)
_OUTWARD = late(
    r"(?:archive(?:\s+it)?" + r"(?=\s*(?:$|[.;]|(?:with|via|using)\s+[`/]*openspec|(?:with|via|using)\s+[`/]*opsx))"
    rf"|archive\s+{_THE}(?:change|proposal)(?:\s+`[^`]+`|\s+[a-z0-9]+(?:-[a-z0-9]+)+)?{_WHOLE}"
    r"|(?:run\s+)?`(?:npx\s+)?(?:openspec\s+archive\b|/opsx:archive\b|/openspec[:-]archive)[^`]*`"
    r"(?=\s*(?:$|[.,;(—–]|(?:to|and|after|once|then|when)\b))"
    r"|(?:run\s+)?(?:npx\s+)?(?:openspec\s+archive|/opsx:archive|/openspec[:-]archive(?:-change)?)"
    r"(?:\s+(?:--?[a-z][\w-]*|<[^>]+>|[a-z0-9]+(?:-[a-z0-9]+)+))*(?=\s*(?:$|[.;(—–]))"
    rf"|(?:git\s+)?push(?:\s+(?:the|this|all|your|our|feature|working|topic))*"
    rf"(?:\s+(?:branch|branches|commits?|changes|tags?|work|everything))?(?:\s+(?:up\s+)?to\s+(?:the\s+)?{_WHERE})?"
    r"(?:\s+to\s+(?:the\s+)?branch\s+`[^`]*`)?"
    r"(?=\s*(?:$|[.,;(—–]|(?:and|then|so|once|after|when)\b))"
    r"|`git\s+push\b[^`]*`(?=\s*(?:$|[.,;(—–]|(?:and|then|once|after|when|to)\b))"
    r"|(?:open|create|raise|submit|file|send|draft|merge|land)(?:\s+up)?"
    rf"(?:\s+(?:a|an|the|draft|new|final|github|gitlab|this|one|single))*\s+(?:prs?|pull\s+requests?|merge\s+requests?|mrs?)\b{_TAIL}"
    rf"|move\s+{_THE}change(?:'s)?(?:\s+(?:directory|folder))?\s+(?:in)?to\s+`?(?:openspec/)?(?:changes/)?archive\b"
    r"|归档(?:此|本|该|这个|本次)?(?:变更|提案|change)|推送(?:到|至|代码|分支)"
    r"|(?:创建|提交|发起)(?:一个)?\s*(?:pr\b|pull request|拉取请求|合并请求))",
    re.I,
)
# The words such a task can begin with: spares nearly all others the long pattern.
_MAY_BE_OUTWARD = re.compile(
    r"[*\s]*(?:`|/|archive|run|npx|openspec|git|push|open|create|raise|submit|file|send|draft|merge|land|move|commit|after"
    r"|once|when|upon|on\b|归档|推送|创建|提交|发起)",
    re.I,
)
_WHEN = late(r"(?:after|once|when|upon|on)\b[^,.;:]{1,80},\s*", re.I)
_FILLER = late(
    r"(?:git\s+)?commit(?:\s+(?:the|all|your|these|remaining))*(?:\s+(?:changes|work|atomically|everything))?", re.I
)
_NEXT = late(r"\s*(?:,\s*(?:and\s+)?(?:then\s+)?|;\s*|\band\s+(?:then\s+)?|&\s*|\bthen\s+)", re.I)

_EDIT = (
    r"(?:(?:update|edit|amend|revise|rewrite|extend|modif[yi]|change|replace|rename|move|delete|remove|write|tick|mark|add"
    r"|append|record|document|note)(?:e?s)?|fill\s+in|check\s+off)"
)
_OWN_FILE = r"(?:tasks|proposal|design)\.md"


def sentence(text: str, body: str) -> str:
    """The task line together with the lines that merely wrap it."""
    if not body or _NOT_PROSE.match(body):
        return text
    lines = [text]
    for line in body.split("\n"):
        if _NOT_PROSE.match(line):
            break
        lines.append(line.strip())
    return " ".join(lines)


def marked_manual(text: str) -> bool:
    """Is the task marked `(manual)` or `(human)`? Not in a code span, where it is what the task is about."""
    return ("(" in text or "（" in text) and bool(_MARKED.search(text)) and bool(_MARKED.search(_CODE.sub("", text)))


def without_marks(text: str) -> str:
    """The text without such a mark, which may stand behind `(after ...)`."""
    return _MARKED.sub("", text).rstrip() if "(" in text or "（" in text else text


def outward(title: str) -> bool:
    """Does the task only archive the change, push, or open (or merge) a pull request?

    It does if its first step does, a leading "after ...," and a commit aside; what then follows hangs on that step.
    """
    if not _MAY_BE_OUTWARD.match(title):
        return False
    rest = title[:_MOST].lower().replace("*", "").strip()
    rest = rest[found.end() :] if (found := _WHEN.match(rest)) else rest
    if _OUTWARD.match(rest):
        return True
    filler = _FILLER.match(rest)
    if filler is None:
        return False
    step = _NEXT.match(rest, filler.end())
    return step is not None and _OUTWARD.match(rest[step.end() :]) is not None


def sounds_manual(title: str) -> bool:
    """Does it read as if a person had to do it, though it is not marked so?"""
    if "anual" not in title and "手动" not in title and "人工" not in title:
        return False
    return _SOUNDS_MANUAL.search(_CODE.sub("", title)) is not None


def closing(title: str) -> bool:
    """Does the title begin like a check of what came before (Verify, Run, Test, Commit ...)?"""
    return _CLOSING.match(title[:100]) is not None


def change_folder_edits(change: str) -> Callable[[str], bool]:
    """Says of a text whether it asks to edit the change's own folder, which workers may not; more than naming it."""
    folder = f"openspec/changes/{change}/"
    files = rf"(?:{re.escape(folder)}[^\s`]*|(?:this|the)\s+change['’]s\s+`?{_OWN_FILE}|(?<![\w/<>{{}}.-]){_OWN_FILE})"

    asks = late(
        rf"^\W*{_EDIT}\s+(?:the\s+|this\s+)?`?{files}|\b{_EDIT}\b[^.;`(]*\s(?:in|to|into|from|of)\s+(?:the\s+)?`?{files}",
        re.I,
    )

    def edits(text: str) -> bool:
        # most texts name none of these, and looking for plain text is ten times cheaper
        named = "tasks.md" in text or "design.md" in text or "proposal.md" in text or folder in text
        return named and asks.search(text[:_MOST]) is not None

    return edits
