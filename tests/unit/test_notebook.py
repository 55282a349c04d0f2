"""What notebooks show: tables in which names stay text, figures, and data frames."""

from pathlib import Path

import pytest

from polyarm import Constraint, Problem, Session, make_certificate, make_explorer, simulate
from polyarm.engine.certificate import Certificate
from polyarm.errors import InvalidInput
from polyarm.tables import require_package

NASTY = "<b>&</b>"


@pytest.fixture(scope="module")
def stopped() -> Session:
    problem = Problem(
        arms=(NASTY, "b"), reward_std=0.1, delta=0.1, r=0.5, constraints=(Constraint(name="p<1", bound=1.0, std=0.1),)
    )
    session = make_explorer("certex", problem, seed=1)
    while not session.stopped:
        arm = session.ask()
        session.tell(arm, [0.9, 0.5][arm], [[0.4, 0.2][arm]])
    return session


def test_tables_show_names_as_text(stopped: Session) -> None:
    for shown in (stopped.problem, stopped.recommend(), make_certificate(stopped)):
        html = shown._repr_html_()
        assert NASTY not in html
        assert "&lt;b&gt;&amp;&lt;/b&gt;" in html
    assert "p&lt;1" in stopped.problem._repr_html_()
    assert "proved: the mix satisfies p&lt;1" in stopped.recommend()._repr_html_()


def test_a_certificate_of_infeasibility_names_the_conflict() -> None:
    price = Constraint(name="price", bound=-1.0, std=0.1)
    problem = Problem(arms=("a", "b"), reward_std=0.1, delta=0.1, r=0.5, constraints=(price,))
    session = make_explorer("certex", problem, seed=1)
    while not session.stopped:
        session.tell(session.ask(), 0.5, [1.0])
    html = make_certificate(session)._repr_html_()
    assert "INFEASIBLE" in html
    assert "no mix satisfies all of: price" in html


def test_assumptions_are_shown(stopped: Session) -> None:
    document = {**make_certificate(stopped).document, "study": {"assumptions": ["pigs fly"]}}
    assert "assumes: pigs fly" in Certificate(document)._repr_html_()


def test_a_recommendation_can_be_drawn(stopped: Session, tmp_path: Path) -> None:
    figure = stopped.recommend().plot(tmp_path / "mix.png")
    assert len(figure.axes) == 2
    assert (tmp_path / "mix.png").stat().st_size > 5_000
    widths = [bar.get_width() for bar in figure.axes[0].patches]  # type: ignore[attr-defined]
    assert widths == pytest.approx([100 * share for share in stopped.recommend().policy])
    with pytest.raises(InvalidInput, match="ending in"):
        stopped.recommend().plot(tmp_path / "mix.doc")


def test_a_simulation_can_be_drawn_and_is_a_frame(tmp_path: Path) -> None:
    result = simulate("setup1-easy", ["lagex", "uniform"], seeds=5)
    figure = result.plot(tmp_path / "runs.png")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "lagex, setup1-easy",
        "uniform, setup1-easy",
    ]
    assert (tmp_path / "runs.png").exists()
    steps = [run["steps"] for run in result.runs()]
    assert result.to_pandas()["steps"].tolist() == steps
    assert result.to_polars()["steps"].to_list() == steps
    assert "<td>lagex</td>" in result._repr_html_()


def test_a_package_that_is_missing_is_named() -> None:
    with pytest.raises(InvalidInput, match="pip install no_such_frames"):
        require_package("no_such_frames")
