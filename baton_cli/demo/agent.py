"""One scripted agent: the prompt on standard input, the edit in the current folder, a commit, now and then the seal.

A program of its own that knows nothing of Baton but what its prompt and environment say; only the standard library is
used. Its one argument is the folder of the line to the director: a report is a file there whose name goes through the
fifo `desk`; an answer comes through a fifo of the agent's own, which has a reader only as long as the agent lives.
When it begins it asks which part to play (`PARTS`), so that nothing happens before the director wants it.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys

GREETINGS = {
    "de": ("Deutsch", "Grüß Gott!"),
    "es": ("Español", "¡Hola, qué tal!"),
    "sv": ("Svenska", "Hallå där!"),
    "ja": ("Japanese", "こんにちは"),
    "fr": ("Français", "« Bonjour ! »"),
}
IN_README = ("de", "fr")
OPTIONS = {"loud": 'words="$words!!!"\n'}
TICKET = re.compile(r"Greet in \w+: `greetings/(\w+)`|Add the option `(\w+)`")
CONFLICT = re.compile(r"<<<<<<< [^\n]*\n(.*?)=======\n(.*?)>>>>>>> [^\n]*\n", re.S)
LIST = re.compile(r"^Languages: (.*)$", re.M)
PATIENCE = 120  # seconds until an agent that nobody answers ends by itself


def read(name: str) -> str:
    with open(name, encoding="utf-8") as file:
        return file.read()


def write(name: str, text: str) -> None:
    with open(name, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def git(*words: str, codes: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode not in codes:
        sys.exit(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout


def named(text: str) -> str | None:
    """The ticket whose title is in a text."""
    found = TICKET.search(text)
    return (found[1] or found[2]) if found else None


class Line:
    """The line to the director."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._reports = 0
        self.ear = os.path.join(folder, f"ear-{os.getpid()}")
        os.mkfifo(self.ear)
        self._ear = os.open(self.ear, os.O_RDWR)

    def tell(self, event: str, **more: object) -> None:
        self._reports += 1
        name = f"{os.getpid()}-{self._reports}"
        write(os.path.join(self._folder, name), json.dumps({"event": event, "ear": self.ear, **more}))
        desk = os.open(os.path.join(self._folder, "desk"), os.O_WRONLY | os.O_NONBLOCK)  # fails if nobody listens
        os.write(desk, f"{name}\n".encode())
        os.close(desk)

    def ask(self, event: str, **more: object) -> str:
        self.tell(event, **more)
        if not select.select([self._ear], [], [], PATIENCE)[0]:
            sys.exit("nobody answers")
        return os.read(self._ear, 64).decode()


class Agent:
    def __init__(self, ticket: str, prompt: str, line: Line) -> None:
        self.ticket = ticket
        self.prompt = prompt
        self.line = line
        self.head, self.loose = self.look()
        self.seals: list[tuple[str, int]] = []

    def look(self) -> tuple[str, dict[str, str]]:
        """HEAD, and the files that are not committed."""
        entries = git("status", "--porcelain=v2", "--branch", "--untracked-files=all").splitlines()
        head = next(entry.split()[2] for entry in entries if entry.startswith("# branch.oid "))
        names = [entry.split(" ")[-1] for entry in entries if entry[0] in "1?"]
        return head, {name: read(name) for name in names if os.path.exists(name)}

    def facts(self) -> dict[str, object]:
        seal = next(line for line in self.prompt.split("\n") if " seal " in line and " --key " in line)
        conflict = bool(CONFLICT.search(read("README")))
        place = {"place": os.getcwd(), "drive": os.getppid(), "seal": seal, "conflict": conflict}
        return {"ticket": self.ticket, "head": self.head, "loose": self.loose, "seals": self.seals, **place}

    def work(self, *, look: bool = True) -> None:
        """The ticket. A greeting's key is the first letter of the language's name that is free (or just the first)."""
        if self.ticket in OPTIONS:
            write(f"options/{self.ticket}", OPTIONS[self.ticket])
            write("hello.sh", read("hello.sh").replace('options="plain"', f'options="plain {self.ticket}"'))
        else:
            language, words = GREETINGS[self.ticket]
            others = [name for name in os.listdir("greetings") if name != self.ticket] if look else []
            taken = {read(f"greetings/{name}")[0] for name in others}
            key = next(letter for letter in language.lower() if letter not in taken)
            write(f"greetings/{self.ticket}", f"{key}\n{words}\n")
            if self.ticket in IN_README:
                write("README", LIST.sub(lambda found: f"{found[0]}, {language}", read("README")))

    def draft(self) -> None:
        """Half of the work, not committed."""
        write(f"greetings/{self.ticket}", f"{self.ticket[0]}\n")
        self.loose = {f"greetings/{self.ticket}": f"{self.ticket[0]}\n"}

    def resolve(self) -> None:
        """Keep what both sides mean: the languages of either."""

        def both(found: re.Match[str]) -> str:
            sides = [LIST.search(side) for side in found.groups()]
            names = [name for side in sides if side is not None for name in side[1].split(", ")]
            return f"Languages: {', '.join(dict.fromkeys(names))}\n"

        write("README", CONFLICT.sub(both, read("README")))

    def commit(self) -> None:
        git("add", "--all")
        git("commit", "--quiet", "--message", f"Work on {self.ticket}", codes=(0, 1))  # 1: it is all there already
        self.head, self.loose = git("rev-parse", "HEAD").strip(), {}

    def seal(self) -> None:
        """Run the line of the prompt that is the seal command, as a shell would."""
        command = str(self.facts()["seal"])
        done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
        self.seals.append((self.head, done.returncode))

    # -- the parts ----------------------------------------------------------------------------------------------

    def steady(self) -> None:
        """Good work, committed; the seal is left to Baton."""
        if self.facts()["conflict"]:
            self.resolve()
        else:
            self.work()
        self.commit()

    def hasty(self) -> None:
        """Does not look before its first try; seals, is refused, mends it and seals again."""
        self.work(look=False)
        self.commit()
        self.seal()
        if self.seals[-1][1]:
            self.work()
            self.commit()
            self.seal()

    def liar(self) -> None:
        """Nothing at all."""

    def crash(self) -> None:
        """Killed in the middle of its work."""
        self.draft()
        self.line.tell("end", **self.facts())
        os.kill(os.getpid(), signal.SIGKILL)

    def halfway(self) -> None:
        """Stops in the middle of its work, until somebody says something. Nobody will."""
        self.draft()
        self.line.ask("halfway", **self.facts())

    def committed(self) -> None:
        """Stops when all is done but the end."""
        self.steady()
        self.line.ask("halfway", **self.facts())


PARTS = {part.__name__: part for part in
         (Agent.steady, Agent.hasty, Agent.liar, Agent.crash, Agent.halfway, Agent.committed)}  # fmt: skip


def main() -> None:
    prompt = sys.stdin.buffer.read().decode("utf-8")
    ticket = named(prompt) or named(read(os.environ["BATON_PACKET"]))  # long paths leave a prompt no room for the text
    if ticket is None:
        sys.exit("this is none of my tickets")
    line = Line(sys.argv[1])
    agent = Agent(ticket, prompt, line)
    part = line.ask("begin", **agent.facts())
    PARTS[part](agent)
    said = "All done, the tests pass."
    line.tell("end", said=said, **agent.facts())
    sys.stdout.write(f"{said}\n")


if __name__ == "__main__":
    main()
