"""DSH homes with the bundle in them, and the two ways to run DSH: headless and web."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.dsh.install import Dsh

LIMIT = 140  # seconds for any one thing that DSH does


@dataclass
class Home:
    """A throwaway DSH_HOME, and the environment in which DSH runs there."""

    dsh: Dsh
    folder: Path
    env: dict[str, str]

    def run(self, *words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        process = subprocess.Popen(
            ["dsh", *words], cwd=cwd or self.folder, env={**self.env, **env}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            out, err = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err += f"\nended by the test after {LIMIT} s"
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def plugin(self, profile: str, *words: str) -> subprocess.CompletedProcess[str]:
        done = self.run("plugin", "--profile", profile, *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done

    def config(self, profile: str, text: str) -> None:
        """The user's own layer of a profile."""
        (self.folder / "profiles" / profile / "cordis.patch.yml").write_text(text)

    def headless(self, url: str, task: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run("--profile", "headless", task, cwd=cwd, DEEPSEEK_BASE_URL=url, **env)

    @contextlib.contextmanager
    def web(self, url: str, cwd: Path, **env: str) -> Iterator[Web]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        log = self.folder / f"web-{port}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["dsh", "web", "--no-open", "--port", str(port)], cwd=cwd, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                env={**self.env, "DEEPSEEK_BASE_URL": url, **env}, start_new_session=True,
            )  # fmt: skip
        web = Web(f"http://127.0.0.1:{port}", process, log)
        try:
            yield web
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@dataclass
class Web:
    """A running `dsh web`."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def session(self, cwd: Path) -> str:
        """A new session; waits for DSH to answer at all, and then for its interface, which comes a little later."""
        until = time.monotonic() + LIMIT
        while True:
            try:
                return str(find(self.call("session.create", cwd=str(cwd)), "sessionId"))
            except OSError as error:
                starting = not isinstance(error, urllib.error.HTTPError) or error.code == 404
                if not starting or self.process.poll() is not None or time.monotonic() > until:
                    raise AssertionError(f"{error}: {self.log.read_text(errors='replace')}") from error
                time.sleep(0.1)

    def call(self, method: str, **payload: Any) -> Any:
        body = {"type": "client-request", "rpcId": "test", "method": method, "payload": payload}
        request = urllib.request.Request(
            f"{self.url}/api/{method}", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return json.load(answer)

    def prompt(self, session: str, text: str) -> None:
        answer = self.call("session.prompt", sessionId=session, mode="queue", content=[{"type": "text", "text": text}])
        assert find(answer, "accepted") is True, answer

    def servers(self) -> list[int]:
        """The MCP server processes below this DSH."""
        shown = subprocess.run(
            ["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
        ).stdout
        rows = [line.split(None, 2) for line in shown.splitlines()]
        ours, found = {self.process.pid}, []  # a process is listed after the one that started it
        for pid, parent, args in sorted(rows, key=lambda row: int(row[0])):
            if int(parent) in ours:
                ours.add(int(pid))
                if "baton_cli" in args and args.rstrip().endswith("mcp"):
                    found.append(int(pid))
        return found


def find(value: Any, key: str) -> Any:
    """The first value under this key, however deep."""
    if isinstance(value, dict):
        if key in value:
            return value[key]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            found = find(item, key)
            if found is not None:
                return found
    return None


def new_home(dsh: Dsh, folder: Path, **env: str) -> Home:
    folder.mkdir(parents=True)
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("DSH_", "DEEPSEEK_", "PYTHON", "npm_"))
    }
    return Home(dsh, folder, {
        **kept,
        "PATH": os.pathsep.join([dsh.path, os.environ["PATH"]]),
        "DSH_HOME": str(folder),
        "DSH_TELEMETRY_DISABLED": "1",
        "DEEPSEEK_API_KEY": "x",
        **env,
    })  # fmt: skip


def packed(dsh: Dsh, folder: Path) -> Path:
    """The bundle as `npm pack` makes it."""
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["npm", "pack", "--ignore-scripts", "--json", "--pack-destination", str(folder), str(ROOT)],
        capture_output=True, text=True, cwd=folder, stdin=subprocess.DEVNULL,
        env={**os.environ, "PATH": os.pathsep.join([dsh.path, os.environ["PATH"]])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.tgz"))


def without(program: str, folder: Path, path: str) -> str:
    """A PATH that has everything but one program (and those whose names begin with it)."""
    folder.mkdir(parents=True)
    for place in path.split(os.pathsep):
        with contextlib.suppress(OSError):
            for item in sorted(os.listdir(place)):
                link = folder / item
                if not item.startswith(program) and not os.path.lexists(link):
                    link.symlink_to(os.path.join(place, item))
    return str(folder)
