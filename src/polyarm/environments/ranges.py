"""Ranges in a guess: an entry of mu or A that is a pair [low, high] in place of a number."""

import math
import re
from collections.abc import Iterator
from typing import Any

from polyarm.errors import InvalidInput

SCALED_MEANS = re.compile(r"mu_times_(\d+)")


def name_range(table: dict[str, Any]) -> str | None:
    """Return the first entry of an instance's table that is a range, in words; None when there is none.

    Also None if some entry is a list but not a pair: that is another mistake.
    """
    lists = list(_lists(table))
    if not lists or any(len(entry) != 2 for _, entry in lists):
        return None
    place, entry = lists[0]
    return f"{place} is a range, {entry!r}"


def split_ranges(table: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the table with every range replaced by its low end, and with every range replaced by its high end."""
    for place, entry in _lists(table):
        _require_range(place, entry)
    known = table.get("known")
    for i, row in enumerate(_rows(table)):
        if isinstance(known, list) and i < len(known) and known[i] is True:
            for entry in row:
                if isinstance(entry, list):
                    raise InvalidInput(f"A, row {i + 1}: expected numbers, as its costs are known, got {entry!r}")
    return _pick_ends(table, 0), _pick_ends(table, 1)


def _means_keys(table: dict[str, Any]) -> list[str]:
    return [key for key in table if key == "mu" or SCALED_MEANS.fullmatch(key)]


def _rows(table: dict[str, Any]) -> list[list[Any]]:
    """Return the rows of A that are lists; anything else is refused where numbers are read."""
    rows = table.get("A")
    return [row if isinstance(row, list) else [] for row in rows] if isinstance(rows, list) else []


def _lists(table: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield every entry of the means and costs that is a list, with its place in words."""
    for key in _means_keys(table):
        for a, entry in enumerate(table[key] if isinstance(table[key], list) else []):
            if isinstance(entry, list):
                yield f"{key}, entry {a + 1}", entry
    for i, row in enumerate(_rows(table)):
        for a, entry in enumerate(row):
            if isinstance(entry, list):
                yield f"A, row {i + 1}, entry {a + 1}", entry


def _require_range(place: str, entry: list[Any]) -> None:
    numbers = all(isinstance(end, int | float) and not isinstance(end, bool) and math.isfinite(end) for end in entry)
    if len(entry) != 2 or not numbers:
        raise InvalidInput(f"{place}: expected a number or a range [low, high] of two finite numbers, got {entry!r}")
    if entry[0] > entry[1]:
        raise InvalidInput(f"{place}: expected a range [low, high] with low <= high, got {entry!r}")


def _pick_ends(table: dict[str, Any], end: int) -> dict[str, Any]:
    def pick(entries: Any) -> Any:
        return [e[end] if isinstance(e, list) else e for e in entries] if isinstance(entries, list) else entries

    changed = {key: pick(table[key]) for key in _means_keys(table)}
    if isinstance(table.get("A"), list):
        changed["A"] = [pick(row) for row in table["A"]]
    return {**table, **changed}
