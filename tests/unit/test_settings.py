"""Settings of explorers: presets, overrides, and refusals in words."""

import math
from typing import Any

import pytest

from contract.suitable import ALL_EXPLORERS, choices, suit, with_companions
from polyarm import InvalidInput, load_instance, make_explorer
from polyarm.rules.registry import EXPLORERS

#: Settings, as printed in the paper and as corrected.
IN_PRESETS = [
    ("policy", "optimistic", "empirical"),
    ("set", "scalar", "scalar"),
    ("alternatives", "neighbours", "vertices"),
    ("margin", "printed", "plus"),
    ("beta", "paper", "log"),
    ("assumed_reward_std", 1.0, None),
]
PAPER = {name: printed for name, printed, _ in IN_PRESETS}
CORRECTED = {name: corrected for name, _, corrected in IN_PRESETS}


def settings_of(explorer: str, **given: Any) -> dict[str, Any]:
    problem = suit(explorer, load_instance("setup1-easy")).problem
    return make_explorer(explorer, problem, seed=0, **given).settings


def refusal(explorer: str, **given: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        settings_of(explorer, **given)
    return str(caught.value)


@pytest.mark.parametrize("explorer", ALL_EXPLORERS)
def test_every_setting_in_force_is_recorded(explorer: str) -> None:
    assert set(settings_of(explorer)) == set(EXPLORERS[explorer].settings.model_fields)


@pytest.mark.parametrize("explorer", ALL_EXPLORERS)
def test_every_choice_is_recorded_as_given(explorer: str) -> None:
    for name, listed in choices(explorer).items():
        for choice in listed:
            assert settings_of(explorer, **with_companions(explorer, name, choice))[name] == choice


@pytest.mark.parametrize("explorer", ["lagex", "uniform"])
def test_corrected_is_the_default_preset(explorer: str) -> None:
    assert settings_of(explorer) == settings_of(explorer, preset="corrected")
    assert settings_of(explorer).items() >= {**CORRECTED, "preset": "corrected"}.items()


@pytest.mark.parametrize("explorer", ["lagex", "uniform"])
def test_the_paper_preset_is_the_paper_as_printed(explorer: str) -> None:
    assert settings_of(explorer, preset="paper").items() >= {**PAPER, "preset": "paper"}.items()


def test_the_game_of_lagex_depends_on_the_preset_too() -> None:
    assert settings_of("lagex")["gamma"] == "centroid"
    assert settings_of("lagex", preset="paper")["gamma"] == "slack"
    assert settings_of("lagex")["tracking"] == "c"
    assert settings_of("lagex")["step_size"] == pytest.approx(1 / math.sqrt(2))
    assert settings_of("lagex")["epsilon"] == 0.01


def test_a_setting_wins_over_its_preset() -> None:
    given = settings_of("lagex", preset="paper", beta="theory", assumed_reward_std=None)
    assert given.items() >= {**PAPER, "beta": "theory", "assumed_reward_std": None}.items()


def test_text_is_converted_as_on_the_command_line() -> None:
    assert settings_of("lagex", step_size="0.25")["step_size"] == 0.25


@pytest.mark.parametrize("explorer", ALL_EXPLORERS)
def test_an_unknown_setting_lists_the_known_ones(explorer: str) -> None:
    message = refusal(explorer, colour="red")
    assert f"explorer {explorer!r} has no setting 'colour'" in message
    assert ", ".join(sorted(EXPLORERS[explorer].settings.model_fields)) in message


@pytest.mark.parametrize("explorer", ALL_EXPLORERS)
def test_a_choice_that_does_not_exist_is_refused_with_the_list(explorer: str) -> None:
    for name, listed in choices(explorer).items():
        message = refusal(explorer, **{name: "no such choice"})
        assert message.startswith(f"{name}: ")
        assert "got 'no such choice'" in message
        for choice in listed:
            assert repr(choice) in message


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("assumed_reward_std", 0, "greater than 0"),
        ("assumed_reward_std", -1.0, "greater than 0"),
        ("assumed_reward_std", math.nan, "finite"),
        ("assumed_reward_std", "loud", "valid number"),
        ("step_size", 0.0, "greater than 0"),
        ("step_size", math.inf, "finite"),
        ("step_size", "nan", "finite"),
        ("epsilon", -0.5, "greater than 0"),
        ("epsilon", None, "valid number"),
        ("beta", None, "'paper', 'log' or 'theory'"),
        ("beta", 3, "'paper', 'log' or 'theory'"),
        ("preset", None, "'corrected' or 'paper'"),
    ],
)
def test_a_bad_value_is_named_with_what_was_expected(name: str, value: Any, expected: str) -> None:
    message = refusal("lagex", **{name: value})
    assert message.startswith(f"{name}: ")
    assert expected in message
    assert f"got {value!r}" in message


def test_an_unknown_explorer_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInput) as caught:
        make_explorer("lagx", load_instance("setup1-easy").problem)
    assert "unknown explorer 'lagx'" in str(caught.value)
    assert ", ".join(ALL_EXPLORERS) in str(caught.value)
    assert "Did you mean 'lagex'?" in str(caught.value)


# What the library gets wrong today.


def test_a_wrong_preset_is_one_complaint() -> None:
    assert len(refusal("lagex", preset="papre").splitlines()) == 1


@pytest.mark.parametrize("preset", [["paper"], {"paper": 1}])
def test_a_preset_of_the_wrong_type_is_refused(preset: Any) -> None:
    assert "preset" in refusal("lagex", preset=preset)


@pytest.mark.parametrize("name", [3, None, ["lagex"]])
def test_an_explorer_name_of_the_wrong_type_is_refused(name: Any) -> None:
    with pytest.raises(InvalidInput, match="explorer"):
        make_explorer(name, load_instance("setup1-easy").problem)


@pytest.mark.parametrize(
    ("settings", "idle"),
    [
        ({"thresholds": "stylised"}, "thresholds"),
        ({"lam": 3.0}, "lam"),
        ({"stopping": "certified", "thresholds": "stylised", "lam": 3.0}, "lam"),
        ({"stopping": "certified", "beta": "theory"}, "beta"),
        ({"exploration_set": "pessimistic"}, "exploration_set"),
    ],
)
def test_a_setting_that_changes_nothing_is_refused(settings: dict[str, Any], idle: str) -> None:
    assert f"{idle}={settings[idle]} changes nothing with" in refusal("lagex", **settings)


def test_settings_in_force_are_accepted_again() -> None:
    for given in ({}, {"stopping": "certified"}, {"preset": "paper"}, {"exploration": "anytime"}):
        settings = settings_of("lagex", **given)
        assert settings_of("lagex", **settings) == settings
