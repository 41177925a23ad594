"""One installation of DSH and one Python environment for all tests here; a new DSH home for each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.dsh import install
from tests.dsh.kit import Home, new_home

BATON_CACHE = os.environ.get("BATON_CACHE")  # read before the environment of the tests is emptied
PYTHON = os.environ.get("BATON_PYTHON") or os.path.realpath(sys.executable)


@pytest.fixture(scope="session")
def dsh() -> install.Dsh:
    if os.name == "nt":
        pytest.skip("the bundle is unverified on Windows")
    return install.installed()


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache in which the launcher finds its environment."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # of the whole run: the launcher makes it once
    cache = BATON_CACHE or str(base / "environments")
    done = subprocess.run(
        [PYTHON, ROOT / "baton", "--version"], capture_output=True, text=True, stdin=subprocess.DEVNULL,
        env={**os.environ, "BATON_CACHE": cache, "BATON_PYTHON": PYTHON},
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"no Python environment for Baton: {done.stderr.strip()}")
    return cache


@pytest.fixture
def make_home(dsh: install.Dsh, environments: str, tmp_path: Path) -> Callable[..., Home]:
    def make(name: str = "dsh", **env: str) -> Home:
        return new_home(dsh, tmp_path / name, **{"BATON_CACHE": environments, "BATON_PYTHON": PYTHON, **env})

    return make


@pytest.fixture
def linked(make_home: Callable[..., Home]) -> Callable[..., Home]:
    """`linked(profile, ...)`: a home in which this checkout is the bundle of that profile."""

    def make(profile: str, **env: str) -> Home:
        home = make_home(**env)
        home.plugin(profile, "add", str(ROOT))
        return home

    return make
