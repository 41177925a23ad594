"""A live run over standard input and output, for tests/regression.sh. It is in tests/adapters/, out of the wheel's way."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[2])

if __name__ == "__main__":
    from tests.adapters.smoke import main

    sys.exit(main())
