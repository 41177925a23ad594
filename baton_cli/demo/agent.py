"""One scripted agent: the prompt on standard input, the edit in the current folder, a commit, the seal command.

A program of its own that knows nothing of Baton but the prompt; only the standard library is used. Its one argument is
the part it plays: `steady` works well; `hasty` does not look before its first try; `liar` says it is done with nothing
committed; `cut-off` commits and ends before it seals; `crash` is killed in the middle of its work.
What it says is one line of JSON: {"said", "seals": [{"head", "exit"}]}.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

GREETINGS = {
    "1.1": ("de", "Deutsch", "Grüß Gott!"),
    "1.2": ("es", "Español", "¡Hola, qué tal!"),
    "1.3": ("sv", "Svenska", "Hallå där!"),
    "1.4": ("ja", "Japanese", "こんにちは"),
    "1.5": ("cs", "Čeština", "Dobrý den!"),
}
OPTIONS = {
    "2.1": ("loud", 'echo "$words" | tr a-z A-Z\n'),
    "2.2": ("twice", 'echo "$words $words"\n'),
}
CONFLICT = re.compile(r"<<<<<<< [^\n]*\n(.*?)=======\n(.*?)>>>>>>> [^\n]*\n", re.S)
TICKET = re.compile(r"#(\d+\.\d+)")
LIST = re.compile(r'^options="(.*)"$', re.M)


def read(name: str) -> str:
    return Path(name).read_text(encoding="utf-8")


def write(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8", newline="\n")


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, encoding="utf-8", check=True)
    return done.stdout.strip()


def greet(ticket: str, look: bool) -> None:
    """Write the greeting; its key is the first letter of the language's name that is free (or just the first)."""
    file, language, words = GREETINGS[ticket]
    others = [path for path in Path("greetings").iterdir() if path.name != file]
    taken = {path.read_text(encoding="utf-8")[0] for path in others} if look else set()
    key = next(letter for letter in language.lower() if letter not in taken)
    write(f"greetings/{file}", f"{key}\n{words}\n")


def add_option(ticket: str) -> None:
    name, body = OPTIONS[ticket]
    write(f"options/{name}", body)
    write("hello.sh", LIST.sub(lambda found: f'options="{found[1]} {name}"', read("hello.sh")))


def list_languages() -> None:
    known = {file: language for file, language, _ in GREETINGS.values()}
    found = sorted(path.name for path in Path("greetings").iterdir())
    write("README", f"Says hello. Languages: {', '.join(known.get(name, 'English') for name in found)}.\n")


def resolve() -> None:
    """Keep what both sides mean: the options of either."""

    def both(found: re.Match[str]) -> str:
        ours, theirs = (LIST.search(side) for side in found.groups())
        words = [word for side in (ours, theirs) if side is not None for word in side[1].split()]
        return f'options="{" ".join(dict.fromkeys(words))}"\n'

    write("hello.sh", CONFLICT.sub(both, read("hello.sh")))


def work(ticket: str, look: bool) -> None:
    if ticket in GREETINGS:
        greet(ticket, look)
    elif ticket in OPTIONS:
        add_option(ticket)
    else:
        list_languages()


def commit(message: str) -> str:
    git("add", "--all")
    git("commit", "--quiet", "--message", message)
    return git("rev-parse", "HEAD")


def seal(prompt: str) -> int:
    """Run the line of the prompt that is the seal command, as a shell would."""
    line = next(line for line in prompt.split("\n") if " seal " in line and " --key " in line)
    return subprocess.run(["sh", "-c", line], stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode


def main() -> None:
    part, prompt = sys.argv[1], sys.stdin.buffer.read().decode("utf-8")
    ticket = TICKET.findall(prompt)[0]  # its own is the first that the prompt names
    seals: list[dict[str, object]] = []
    said = "All done, the tests pass."
    if part == "crash":
        write("greetings/de", "d\n")  # half a file, not committed
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
    if part != "liar":
        if "A merge is in progress" in prompt:
            resolve()
        else:
            work(ticket, look=part != "hasty")
        head = commit(f"Ticket {ticket}")
        for _ in range(2 if part != "cut-off" else 0):
            seals.append({"head": head, "exit": seal(prompt)})
            if seals[-1]["exit"] == 0:
                break
            work(ticket, look=True)
            head = commit(f"Ticket {ticket}, mended")
    sys.stdout.write(json.dumps({"said": said, "seals": seals}) + "\n")


if __name__ == "__main__":
    main()
