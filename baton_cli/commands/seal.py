"""`baton seal`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from baton_cli import cli, output
from baton_cli.core.receipt import Authority
from baton_cli.errors import USAGE, BatonError


def seal(
    assignment: Annotated[
        str | None,
        typer.Argument(help="The assignment, or (for --operator) its ticket; not needed inside its worktree."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="K", help="The seal key of the prompt; - reads it from standard input."),
    ] = None,
    operator: Annotated[bool, typer.Option("--operator", help="Seal as a person, without the key.")] = False,
    why: Annotated[str | None, typer.Option("--why", metavar="W", help="An operator's reason.")] = None,
    packet: Annotated[
        Path | None, typer.Option("--packet", metavar="FILE", help="Seal the checkout here for this exported packet.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where --packet writes the receipt.")
    ] = None,
    project: cli.ProjectOption = None,
    json: cli.JsonOption = False,
) -> None:
    """Run the assignment's checks at its committed head and write the receipt. Only this counts as success."""
    if [packet is not None and out is not None, operator, key is not None].count(True) != 1 or (packet is None) != (
        out is None
    ):
        how = "copy the seal command of the prompt; on another machine: --packet FILE --out FILE"
        raise BatonError("usage", "seal needs --key, or --operator, or --packet with --out", how, USAGE)
    if operator and not (why and why.strip()):
        raise BatonError("no_reason", "an operator's seal needs a reason", "add --why 'the reason'", USAGE)
    answer: dict[str, Any]
    if packet is not None and out is not None:
        answer = cli.seal_packet(packet, out, time.time())
    else:
        authority = Authority("operator", why=why) if operator else Authority("key", key=cli.token(key or ""))
        if operator and assignment:
            with cli.proof(project, assignment) as (_, named):
                assignment = named
        with cli.controller(project, assignment=assignment, json_mode=json) as controls:
            answer = controls.seal(assignment or controls.assignment_at(Path.cwd()), authority)
    said = f"sealed {answer['ticket']} at {str(answer['head'])[:12]}"
    if operator:
        said += "\nnext: the next session or drive merges it"
    output.emit(answer, json_mode=json, text=said)
