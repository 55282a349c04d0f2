"""What is to be computed: which figures, with how many seeds, and the grid that this takes."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyarm.environments.instances import Instance, load_instance
from polyarm.errors import InvalidInput
from polyarm.experiments.grid import Entry, check_count
from polyarm.papers.das_basu_2026.published import STOP, VIOLATIONS, load_published, published_median
from polyarm.papers.das_basu_2026.readings import (
    PRESETS,
    Reading,
    list_few_readings,
    list_readings,
    make_reading,
    preset_settings,
)
from polyarm.rules.explorer import Explorer
from polyarm.rules.registry import get_explorer
from polyarm.stops.settings import check_certifiable

#: The explorers in the order of the paper's figures.
EXPLORERS = ("lagex", "lats", "ctns", "cge", "ctns-wlag", "cge-wlag", "uniform", "ptns")
#: Which instance each figure is about.
STOPPING_FIGURES = {5: "setup1-hard", 6: "setup1-easy", 7: "imdb"}
VIOLATION_FIGURES = {8: "setup1-hard", 9: "setup1-easy", 10: "setup2-hard", 11: "setup2-easy", 12: "imdb"}
FIGURES = tuple(range(1, 13))
_DIGITS = 3
#: The tolerances of the comparison at equal guarantees: certified runs at r = 0.01 take millions of steps.
GUARANTEE_TOLERANCES = {"setup1-hard": 0.1, "setup1-easy": 0.1, "setup2-hard": 0.1, "setup2-easy": 0.1, "imdb": 0.3}
#: Certified runs are not cut at the paper's horizon.
_GUARANTEE_HORIZON = 3_000_000
_QUICK_GUARANTEE_HORIZON = 200_000
_GUARANTEE_PIECE = 5

#: The rows of that comparison for certex itself, and their settings.
CERTEX_ROWS: dict[str, dict[str, Any]] = {"certex, averaged": {}, "certex, pooled": {"certificate": "pooled"}}

QUICK_SEEDS = 50
FULL_SEEDS = 500

#: The purpose of a cell of the grid: see `declare`.
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Scope:
    """What one call of `polyarm paper` computes."""

    figures: tuple[int, ...]
    seeds: int
    presets: tuple[str, ...]
    explorers: tuple[str, ...]
    added: tuple[Instance, ...]
    readings: tuple[Reading, ...]
    reading_seeds: int
    guarantee_explorers: tuple[str, ...]
    guarantee_instances: tuple[str, ...]
    guarantee_seeds: int
    guarantee_horizon: int

    @property
    def benchmarks(self) -> list[str]:
        """The paper's instances that the figures need, in order."""
        needed = [{**STOPPING_FIGURES, **VIOLATION_FIGURES}[f] for f in self.figures if f >= 5]
        return list(dict.fromkeys(needed))

    @property
    def instances(self) -> list[Instance]:
        """All instances of sample complexity and violations: the paper's, and those that were added."""
        return [*map(load_instance, self.benchmarks), *self.added]

    @property
    def guaranteed(self) -> list[Instance]:
        """The instances of the comparison at equal guarantees, with the tolerances that it uses."""
        chosen = [name for name in self.benchmarks if name in self.guarantee_instances]
        shipped = [load_instance(name).with_problem(r=GUARANTEE_TOLERANCES[name]) for name in chosen]
        return [*shipped, *(instance for instance in self.added if why_not_certifiable(instance) is None)]


def why_not_certifiable(instance: Instance) -> str | None:
    """Say why nothing can be certified on an instance; None when it can. The paper's explorers need less."""
    try:
        check_certifiable(instance.problem)
    except InvalidInput as error:
        return str(error)
    return None


def make_scope(
    figures: str = "1-12",
    seeds: int | None = None,
    quick: bool = False,
    presets: Iterable[str] = PRESETS,
    add_explorers: Iterable[str] = (),
    add_instances: Iterable[Instance] = (),
) -> Scope:
    """Check what a user asked for; `quick` takes fewer seeds, few readings, and the fast half of the comparison."""
    added = tuple(add_instances)
    taken = set(GUARANTEE_TOLERANCES)
    for instance in added:
        if instance.name in taken:
            raise InvalidInput(f"instance {instance.name!r} exists already; give yours another name")
        if instance.optimum() is None:
            raise InvalidInput(f"instance {instance.name!r}: no mix satisfies its true constraints; correct A or b")
        taken.add(instance.name)
    seeds = check_count("seeds", seeds if seeds is not None else (QUICK_SEEDS if quick else FULL_SEEDS))
    own = _load_own(add_explorers)
    presets = tuple(presets)
    readings = list_few_readings() if quick else list_readings()
    if "paper" not in presets:
        readings = [make_reading(), *readings]  # else the preset is that reading
    return Scope(
        figures=parse_figures(figures),
        seeds=seeds,
        presets=presets,
        explorers=tuple(dict.fromkeys([*EXPLORERS, *own])),
        added=added,
        readings=tuple(readings),
        reading_seeds=min(seeds, 7 if quick else 50),
        guarantee_explorers=("lagex", "uniform", *own) if quick else tuple(dict.fromkeys([*EXPLORERS, *own])),
        guarantee_instances=("setup2-easy", "imdb") if quick else tuple(GUARANTEE_TOLERANCES),
        guarantee_seeds=min(seeds, 10 if quick else 50),
        guarantee_horizon=_QUICK_GUARANTEE_HORIZON if quick else _GUARANTEE_HORIZON,
    )


def _load_own(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the added explorers; two files must not share one."""
    loaded: dict[str, Explorer] = {}
    for explorer in map(get_explorer, names):
        if loaded.setdefault(explorer.name, explorer).source != explorer.source:
            raise InvalidInput(f"two of the added files name their explorer {explorer.name!r}; rename one")
    return tuple(loaded)


def parse_figures(text: str) -> tuple[int, ...]:
    """Read figure numbers such as `1-12` or `4,8-10`."""
    chosen: set[int] = set()
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        ends = [low, high] if dash else [low, low]
        if not all(end.isdecimal() and len(end) <= _DIGITS for end in ends):
            raise InvalidInput(f"figures {text!r}: expected numbers such as 1-12 or 4,8-10")
        first, last = map(int, ends)
        if not FIGURES[0] <= first <= last <= FIGURES[-1]:
            raise InvalidInput(f"figures {text!r}: expected numbers from {FIGURES[0]} to {FIGURES[-1]}")
        chosen |= set(range(first, last + 1))
    return tuple(sorted(chosen))


def mu3_values() -> list[float]:
    """Return the values of mu_3 along Figure 4."""
    return [float(value) for value in load_published()["figure4"]["mu3"]]


def setup1(mu3: float) -> Instance:
    """Return Setup 1 with another mean of the third arm."""
    base = load_instance("setup1-hard")
    mu = np.array(base.mu)
    mu[2] = mu3
    return Instance(f"setup1, mu3={mu3:g}", base.source, base.problem, mu, base.A)


def declare(scope: Scope) -> dict[Key, Entry]:
    """Return every cell that the scope needs, by its purpose.

    ("preset", preset, instance, explorer): Figures 5 to 12. ("figure4", preset, mu3). ("reading", reading, instance,
    explorer). ("guarantee", row, instance): the comparison at equal guarantees.
    """
    return {
        **_declare_presets(scope),
        **_declare_figure4(scope),
        **_declare_readings(scope),
        **_declare_guarantees(scope),
    }


def _declare_presets(scope: Scope) -> dict[Key, Entry]:
    return {
        ("preset", preset, instance.name, explorer): Entry(
            instance, explorer, preset_settings(explorer, preset), scope.seeds
        )
        for preset in scope.presets
        for instance in scope.instances
        for explorer in scope.explorers
    }


def _declare_figure4(scope: Scope) -> dict[Key, Entry]:
    if 4 not in scope.figures:
        return {}
    return {
        ("figure4", preset, mu3): Entry(setup1(mu3), "lagex", {"preset": preset}, scope.seeds)
        for preset in scope.presets
        for mu3 in mu3_values()
    }


def is_published(instance: str, explorer: str) -> bool:
    """Whether any median of this explorer on this instance was published."""
    return any(published_median(measure, instance, explorer) is not None for measure in (STOP, VIOLATIONS))


def _declare_readings(scope: Scope) -> dict[Key, Entry]:
    return {
        ("reading", reading, name, explorer): Entry(
            load_instance(name), explorer, reading.settings(get_explorer(explorer)), scope.reading_seeds
        )
        for reading in scope.readings
        for name in scope.benchmarks
        for explorer in EXPLORERS
        if is_published(name, explorer)
    }


def _declare_guarantees(scope: Scope) -> dict[Key, Entry]:
    rows = {label: ("certex", settings) for label, settings in CERTEX_ROWS.items()}
    for name in scope.guarantee_explorers:
        if name != "certex":
            has_choice = "stopping" in get_explorer(name).settings.model_fields
            rows[name] = (name, {"stopping": "certified"} if has_choice else {})  # without a choice it is certified
    return {
        ("guarantee", label, instance.name): Entry(
            instance,
            explorer,
            settings,
            scope.guarantee_seeds,
            horizon=scope.guarantee_horizon,
            piece_size=_GUARANTEE_PIECE,
        )
        for instance in scope.guaranteed
        for label, (explorer, settings) in rows.items()
    }
