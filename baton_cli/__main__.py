"""`python -m baton_cli`, and the file the launcher runs.

Run by its path, nothing has told Python where the package is: only then the folder that holds it goes to the front of
the path. (Started with `-I`, neither the current folder nor the package's own is on it: nothing can shadow a module.)
"""

from __future__ import annotations

import os
import sys

if not __package__:
    _package = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [os.path.dirname(_package), *(entry for entry in sys.path if entry != _package)]

try:
    from baton_cli.main import run
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] == "baton_cli":
        raise
    _made = os.environ.get("BATON_VENV")  # the launcher made it whole once: something has taken a part away since
    _fix = f"move {_made} away and start again" if _made else f"install it for {sys.executable}"
    sys.exit(f"error: the Python package {error.name} is missing; {_fix}")

if __name__ == "__main__":
    sys.exit(run())
