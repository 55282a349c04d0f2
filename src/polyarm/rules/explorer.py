"""The record of an explorer, shipped or the user's own."""

import hashlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from polyarm.model import Model
from polyarm.stops.settings import CertifiedSettings


class Explorer(NamedTuple):
    """An explorer: its name, its settings and its functions.

    Args:
        name: Lowercase words joined by dashes.
        summary: A few words for lists.
        settings: The class of its settings, for `--set` and keywords.
        init: `init(settings, model)` makes the rule, a fresh state and scratch: a NamedTuple and two structs, each with
            a field `round`.
        allocate: For each class of rules, the function `allocate(rule, state, model, rng, work)` that writes
            `state.round.allocation`; the rest of the round is shared.
        choose: For classes of rules that do without the shared round, `choose(rule, state, model, rng, work)`, which
            returns the next arm.
        needs_known_rows: Whether it must be told the whole matrix.
        compiled: Whether `allocate` is for Numba; otherwise it runs as it is.
        source: The text of the file of a user's own explorer.
    """

    name: str
    summary: str
    settings: type[CertifiedSettings]
    init: Callable[[Any, Model], tuple[Any, Any, Any]]
    allocate: Mapping[Any, Callable[..., None]]
    choose: Mapping[Any, Callable[..., int]] = MappingProxyType({})
    needs_known_rows: bool = False
    compiled: bool = True
    source: str | None = None

    @property
    def source_hash(self) -> str | None:
        """The SHA-256 of `source`; None for an explorer that is shipped."""
        return None if self.source is None else hashlib.sha256(self.source.encode()).hexdigest()
