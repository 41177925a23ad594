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

from baton_cli.main import run

if __name__ == "__main__":
    sys.exit(run())
