"""Before the first look nothing is known of the constraints, and so they are not to blame that there is no mix yet.

`recommend` said that no mix satisfied them, of outcomes that every mix satisfied.
"""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from polyarm import Constraint, NotYet, Problem, make_explorer
from polyarm.cli.main import app


def test_recommend_says_when_the_explorer_looks() -> None:
    price = Constraint(name="price", bound=1.0, std=0.3)
    problem = Problem(arms=("a", "b", "c"), reward_std=0.2, delta=0.05, r=0.1, constraints=(price,))
    session = make_explorer("certex", problem, seed=1)
    first = int(session.committed().sum())
    for told in range(first):
        with pytest.raises(NotYet) as refused:
            session.recommend()
        assert "no mix satisfies" not in str(refused.value)
        if told >= 3:  # one outcome of each arm
            assert f"first looks at the data after {first} pulls, and {told} were told" in str(refused.value)
        session.tell(session.ask(), 0.5, [0.95])
    assert session.recommend().steps == first


def test_a_replay_of_a_short_log_says_it_too(tmp_path: Path) -> None:
    (tmp_path / "problem.toml").write_text(
        'arms = ["a", "b", "c"]\nreward_std = 0.2\ndelta = 0.05\nr = 0.1\n'
        '[[constraints]]\nname = "price"\nbound = 1.0\nstd = 0.3\n'
    )
    (tmp_path / "log.csv").write_text("arm,reward,price\n" + "".join(f"{arm},0.5,0.95\n" for arm in "abcabc"))
    files = [str(tmp_path / name) for name in ("problem.toml", "log.csv")]
    shown = CliRunner().invoke(app, ["replay", *files, "--explorer", "certex"])
    assert shown.exit_code == 0
    assert "no mix, as the explorer first looks at the data after" in shown.output
    assert "no mix satisfies" not in shown.output
