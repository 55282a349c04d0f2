"""A data set from end to end: films of IMDB

Which mix of films should a channel show, to please its viewers most, with no more than a given share of action and at
least given shares of drama and of family films? The instance is that of the paper: means and spreads of 600 user
ratings for each of 12 films. Ratings and the labels of genres are simulated from these numbers, as in the paper; an
explorer sees only noisy outcomes.

Top left, the problem: what is true (bars) and what the run has learnt (dots with intervals that all hold at once).
Top right, the answer: the certified mix and where the pulls went. Bottom left, the plan made before the first pull,
and where this run and others really stopped. Bottom middle, the run: it may stop when the statistic crosses the
threshold. Bottom right, the certificate: for each genre the share that the mix is proved to keep to, its estimate,
and the truth.

What to learn: the five steps (state the problem, plan, run, certify, look) and that a certificate is a document that
others can check: here it is written, read again and verified from its statistics alone.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from picture import EXPLORER_COLOURS, FAINT, GREY, list_words, main, plain_numbers, save_small

from polyarm import Constraint, Instance, load_instance, make_certificate, plan, verify_certificate
from polyarm.engine.certificate import Verification, read_certificate
from polyarm.engine.region import find_intervals
from polyarm.engine.run import Exploration, plan_run
from polyarm.engine.trace import explore_in_pieces
from polyarm.figures import COLOURS, new_figure, tidy
from polyarm.report.plots import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = ("imdb.png",)
SEED = 1
#: A tolerance in points of rating, out of 5, and others to compare the plan at.
R = 0.3
TOLERANCES, QUICK_TOLERANCES = (R, 0.2, 0.4, 0.5, 0.6), (R, 0.6)
#: Other runs, to see how far one may be from the forecast.
SEEDS, QUICK_SEEDS = 100, 4
HORIZON = 200_000
#: Rows of the instance in the user's words.
GENRES: tuple[tuple[str, Literal["<=", ">="]], ...] = (("action", "<="), ("drama", ">="), ("family", ">="))
#: Smaller shares of the mix are not told one by one.
LEAST_TOLD = 0.01
LETTERS = {"action": "A", "drama": "D", "family": "F"}
MIX, PULLS, THRESHOLD = EXPLORER_COLOURS["certex"], FAINT, COLOURS[1]


def state_problem() -> Instance:
    """Return the shipped instance with names for its rows, and `at least` written as such."""
    shipped = load_instance("imdb").with_problem(r=R)
    constraints = [
        Constraint(name=name, sense=sense, bound=abs(c.bound), std=c.std).model_dump()
        for (name, sense), c in zip(GENRES, shipped.problem.constraints, strict=True)
    ]
    named = Instance(
        shipped.name, shipped.source, shipped.problem.replace(constraints=constraints), shipped.mu, np.abs(shipped.A)
    )
    assert np.array_equal(named.true_rows, shipped.true_rows), "the same problem in other words"
    return named


@dataclass(frozen=True)
class Story:
    """All that happened."""

    instance: Instance
    planned: dict[str, Any]
    exploration: Exploration
    trace: Trace
    document: dict[str, Any]
    verification: Verification


def live_it(quick: bool) -> Story:
    """Plan, run, certify, and check the certificate as somebody else would: from its file."""
    instance = state_problem()
    tolerances, seeds = (QUICK_TOLERANCES, QUICK_SEEDS) if quick else (TOLERANCES, SEEDS)
    planned = plan(instance, r=tolerances, delta=instance.problem.delta, seeds=seeds)
    exploration = Exploration(*plan_run(instance, "certex", {}), SEED)
    trace = Trace()
    for _ in explore_in_pieces(exploration, HORIZON, trace):
        pass
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "imdb.json"
        make_certificate(exploration.session).write(file)
        document = read_certificate(file)
    return Story(instance, planned, exploration, trace, document, verify_certificate(document))


def draw_problem(axes: "Axes", story: Story) -> None:
    """Draw true and estimated ratings of the films, with their genres."""
    instance, session = story.instance, story.exploration.session
    places = np.arange(instance.problem.n_arms)
    learnt = find_intervals(session)
    axes.barh(places, instance.mu, height=0.7, color=FAINT, label="true mean")
    axes.errorbar(
        learnt.rewards, places, xerr=learnt.reward_widths, fmt="o", color=MIX, markersize=4, capsize=2, label="learnt"
    )
    labels = []
    for a, film in enumerate(instance.problem.arms):
        genres = [LETTERS[name] for (name, _), row in zip(GENRES, instance.A, strict=True) if row[a] > 0.0]
        labels.append(f"{film}  [{' '.join(genres)}]" if genres else film)
    axes.set_yticks(places, labels)
    axes.set_xlim(left=0.0)
    axes.set_xlabel("mean rating")
    axes.set_title("1  problem: films and their genres\n[A action, D drama, F family]", fontsize=11)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2)
    tidy(axes)


def draw_answer(axes: "Axes", story: Story) -> None:
    """Draw the certified mix, the true best one, and the share of pulls."""
    session = story.exploration.session
    best = story.instance.optimum()
    assert best is not None
    places = np.arange(session.problem.n_arms)
    pulls = session.round.estimates.pulls
    axes.barh(places - 0.2, 100 * session.recommend().policy, height=0.38, color=MIX, label="certified mix")
    axes.barh(places + 0.2, 100 * pulls / pulls.sum(), height=0.38, color=PULLS, label="share of pulls")
    inside = best.policy > 0.0
    marks: dict[str, Any] = {"color": COLOURS[3], "markeredgecolor": "black", "markersize": 12}
    axes.plot(100 * best.policy[inside], places[inside] - 0.2, "*", **marks, label="true best mix")
    axes.set_xlim(left=0.0)
    axes.set_xlabel("percent")
    axes.set_title(f"4  answer after {session.steps:,} pulls\n", fontsize=11)
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3)
    tidy(axes)


def draw_plan(axes: "Axes", story: Story) -> None:
    """Draw the forecast against r, and where the run stopped."""
    rows = sorted(story.planned["forecasts"], key=lambda row: row["r"])
    tolerances = [row["r"] for row in rows]
    axes.plot(tolerances, [row["proved"] for row in rows], "s--", color=COLOURS[4], label="forecast")
    low, middle, high = (story.planned["simulated"][f"{name}_stop"] for name in ("q25", "median", "q75"))
    label = f"{story.planned['simulated']['seeds']} runs, quartiles"
    axes.errorbar([R], [middle], [[middle - low], [high - middle]], fmt="_", color=GREY, lw=2, capsize=5, label=label)
    axes.plot(R, story.exploration.session.steps, "o", color=MIX, markersize=7, label="this run")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(tolerances, [f"{r:g}" for r in tolerances])
    axes.minorticks_off()
    axes.margins(y=0.15)
    axes.set_xlabel("tolerance r (points of rating)")
    axes.set_ylabel("pulls")
    axes.set_title("2  plan", fontsize=11)
    axes.legend(frameon=False, loc="lower left")
    tidy(axes)
    plain_numbers(axes.yaxis)


def draw_run(axes: "Axes", trace: Trace) -> None:
    """Draw the statistic and its threshold along the run."""
    axes.plot(trace.steps, trace.statistic, color=MIX, linewidth=2, label="statistic")
    axes.plot(trace.steps, trace.threshold, color=THRESHOLD, linestyle="--", linewidth=2, label="threshold")
    axes.set_xlim(0, 1.05 * trace.steps[-1])
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("pulls")
    axes.set_title("3  run", fontsize=11)
    axes.legend(frameon=False, loc="upper left")
    tidy(axes)


def draw_certificate(axes: "Axes", story: Story) -> None:
    """Draw, for each genre, the share that is proved, estimated, and true, and what the budget forbids."""
    policy = story.exploration.session.recommend().policy
    true_shares = story.instance.A @ policy
    for place, (row, true_share) in enumerate(zip(story.document["constraints"], true_shares, strict=True)):
        sign = 1.0 if row["sense"] == "<=" else -1.0
        estimate, proved = (100 * (row["bound"] - sign * row[key]) for key in ("slack", "slack_low"))
        bound = 100 * row["bound"]
        axes.fill_betweenx(
            [place - 0.4, place + 0.4],
            bound,
            bound + sign * 100,
            color="#f6dccb",
            linewidth=0.0,
            label="forbidden" if place == 0 else None,
        )
        axes.plot([estimate, proved], [place, place], color=MIX, linewidth=3)
        axes.plot(proved, place, "|", color=MIX, markersize=18, markeredgewidth=3, label="proved" * (place == 0))
        axes.plot(estimate, place, "o", color=MIX, markersize=7, label="estimate" * (place == 0))
        axes.plot(100 * true_share, place, "x", color="black", markersize=8, mew=2, label="truth" * (place == 0))
    words = {"<=": "at most", ">=": "at least"}
    labels = [f"{row['name']}\n{words[row['sense']]} {row['bound']:.0%}" for row in story.document["constraints"]]
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlim(0, 100 * max(0.6, true_shares.max() + 0.1))
    axes.set_xlabel("share of the mix (percent)")
    verdict = "verified" if story.verification.valid and story.verification.proved else "NOT verified"
    axes.set_title(f"5  certificate, {verdict}: confidence {story.document['confidence']:.0%}", fontsize=11)
    handles, names = axes.get_legend_handles_labels()
    kept = {name: handle for handle, name in zip(handles, names, strict=True) if name}
    axes.legend(
        kept.values(),
        kept.keys(),
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.2),
        ncols=4,
        columnspacing=1.0,
        handletextpad=0.4,
    )
    tidy(axes)


def draw(quick: bool, out: Path) -> list[str]:
    """Write the picture."""
    story = live_it(quick)
    figure = new_figure(12, 8.4)
    halves: Any = figure.subfigures(2, 1, height_ratios=[1.25, 1.0])  # an array, whatever the stubs say
    problem, answer = halves[0].subplots(1, 2, sharey=True)
    planned, run, certificate = halves[1].subplots(1, 3)
    draw_problem(problem, story)
    draw_answer(answer, story)
    problem.invert_yaxis()
    draw_plan(planned, story)
    draw_run(run, story.trace)
    draw_certificate(certificate, story)
    figure.suptitle(f"IMDB: {story.instance.problem.n_arms} films, r = {R:g} points of rating", fontsize=13)
    save_small(figure, out / NAMES[0])
    return describe(story)


def describe(story: Story) -> list[str]:
    """Say what was planned, found and proved, and what is true."""
    session, problem = story.exploration.session, story.instance.problem
    best, record = story.instance.optimum(), story.exploration.record()
    assert best is not None
    forecast, runs = story.planned["forecasts"][0]["proved"], story.planned["simulated"]
    shares = sorted(session.recommend().shares(problem).items(), key=lambda item: -item[1])
    mix = [f"{share:.0%} {film}" for film, share in shares if share >= LEAST_TOLD]
    rest = sum(share for _, share in shares if share < LEAST_TOLD)
    rows = story.document["constraints"]
    proved = [f"{row['name']} keeps {100 * row['slack_low']:.1f} points or more from its bound" for row in rows]
    value = float(story.instance.mu @ session.recommend().policy)
    return [
        f"Forecast for r = {R:g}: {forecast:,.0f} pulls; this run stopped after {session.steps:,}, the median of "
        f"{runs['seeds']} runs is {runs['median_stop']:,.0f}.",
        f"Certified mix: {list_words(mix)}"
        + (f"; films below {LEAST_TOLD:.0%} share {rest:.1%}" if rest >= 0.0005 else "")
        + ".",
        f"Proved with confidence {story.document['confidence']:.0%}: {list_words(proved)} (percentage points "
        f"of the mix), and the rating is within r of the best.",
        f"Verified from the file: {'valid' if story.verification.valid else 'NOT valid'}. In truth the mix is "
        f"{'feasible' if record.feasible else 'NOT feasible'} and earns {value:.2f} points, the best one "
        f"{best.value:.2f}.",
    ]


if __name__ == "__main__":
    main(draw)
