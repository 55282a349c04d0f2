"""The record that makes an explorer, shipped or brought by the user."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from polyarm.explorers.certified_settings import CertifiedSettings
from polyarm.problem import Model


class Explorer(NamedTuple):
    """What there is to know of an explorer.

    `build(settings, model)` makes the rule, a fresh state and scratch: NamedTuples, state and scratch with a field
    `round`. `steps` has one step per kind of rule that it makes. `needs_known_rows`: it must be told the whole matrix.
    `compiled`: its steps are for Numba; otherwise they are run as they are. `source` is the text of the file that an
    explorer of the user's own came from.
    """

    name: str
    summary: str
    settings: type[CertifiedSettings]
    build: Callable[[Any, Model], tuple[Any, Any, Any]]
    steps: Mapping[Any, Callable[..., int]]
    needs_known_rows: bool = False
    compiled: bool = True
    source: str | None = None

    @property
    def source_hash(self) -> str | None:
        """The SHA-256 of `source`; None for an explorer that is shipped."""
        return None if self.source is None else hashlib.sha256(self.source.encode()).hexdigest()
