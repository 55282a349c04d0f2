"""A sweep declared in a TOML file."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import Field

from polyarm.engine.run import DEFAULT_HORIZON
from polyarm.environments.instances import Instance
from polyarm.errors import Checked, InvalidInput
from polyarm.experiments.grid import Entry, make_grid
from polyarm.experiments.store import entry_key


class SweepDeclaration(Checked):
    """The grid: every explorer on every instance, once per group of settings, over seeds."""

    instances: list[str] = Field(min_length=1)
    explorers: list[str] = Field(min_length=1)
    settings: list[dict[str, Any]] = Field(default=[{}], min_length=1)
    seeds: int = 100
    first_seed: int = 0
    horizon: int = DEFAULT_HORIZON


def load_sweep(path: str | Path) -> list[Entry]:
    """Read a grid from a file; paths in it are relative to the file."""
    path = Path(path)
    try:
        declared = SweepDeclaration(**tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise InvalidInput(f"no such sweep file: {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from None
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    entries = make_grid(
        [_beside(path, name) for name in declared.instances],
        [_beside(path, name) for name in declared.explorers],
        declared.settings,
        seeds=declared.seeds,
        first_seed=declared.first_seed,
        horizon=declared.horizon,
    )
    _refuse_doubles(entries)
    return entries


def _refuse_doubles(entries: list[Entry]) -> None:
    """Raise if two entries would look the same in the table."""
    instances: dict[str, Instance] = {}
    keys: dict[str, Entry] = {}
    for entry in entries:
        if instances.setdefault(entry.instance.name, entry.instance) != entry.instance:
            raise InvalidInput(f"instances: two different ones are named {entry.instance.name!r}; rename one")
        double = keys.setdefault(entry_key(entry), entry)
        if double is not entry:
            raise InvalidInput(
                f"{entry.explorer} on {entry.instance.name} is in the grid twice with the same settings in force: "
                f"{dict(double.settings)} and {dict(entry.settings)}"
            )


def _beside(path: Path, name: str) -> str:
    """Return a name as it is, and a file relative to the folder of the sweep file."""
    is_file = name.endswith((".toml", ".py")) or ".toml:" in name
    return str(path.parent / name) if is_file else name
