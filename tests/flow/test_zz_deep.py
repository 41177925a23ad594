import time
import pytest
from collections import Counter
from baton_cli.flow.parts import tokens
from tests.kit import make_world
from tests.flow.test_machine import Walk, PLAN, CONFIG, driven_to_the_end
from tests import invariants

@pytest.mark.parametrize("seed", range(100, 136))
def test_deep(tmp_path, seed, monkeypatch):
    marks = (f"{number:08x}" for number in range(1 << 20))
    monkeypatch.setattr(tokens, "new_mark", lambda: next(marks))
    walk = Walk(make_world(tmp_path / "p", PLAN, config=CONFIG, files={"shared": "0\n"}), seed)
    try:
        for _ in range(100):
            walk.step()
        driven_to_the_end(walk)
    except BaseException:
        print(f"seed {seed}:", *walk.log, walk.world.tasks.read_text(), sep="\n")
        raise
    with invariants._opened(walk.world) as c:
        names = Counter(r["name"] for r in c.execute("select name from events"))
        causes = Counter(r["cause"] for r in c.execute("select cause from events where name in ('abandoned','unknown','exhausted')"))
    print(f"seed {seed}: {len(walk.log)}", dict(names), dict(causes), dict(walk.refused))
