"""Addresses of storages: what they may be, and how they are shown without their passwords."""

import os
import re

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from polyarm.errors import InvalidInput

_EXPECTED = "expected sqlite:///file.db or postgresql://user:password@host/database"


def parse_address(text: str) -> URL:
    """Return an address, of SQLite with the whole path of its file, or raise."""
    try:
        url = make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        # Where it went wrong is not known, so all that could be a password goes.
        shown = re.sub(r".*@", "***@", text, flags=re.DOTALL) if isinstance(text, str) else text
        raise InvalidInput(f"storage: {_EXPECTED}, got {shown!r}") from None
    if "@" in (url.host or ""):
        raise InvalidInput(f"storage: {_EXPECTED}; an @ in a user or password is written %40")
    kind = url.get_backend_name()
    if kind not in {"sqlite", "postgresql"}:
        raise InvalidInput(f"storage: {_EXPECTED}, got {show_address(url)!r}")
    if kind == "sqlite":
        if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
            raise InvalidInput(
                f"storage: {_EXPECTED}, got {show_address(url)!r}: a study outlives its process; for one that need "
                "not, use make_explorer"
            )
        url = url.set(database=os.path.abspath(url.database))  # the folder that the process works in may change
    return url


def show_address(url: URL) -> str:
    """Return an address for people: without its password."""
    hidden = {key: "hidden" for key in url.query if "pass" in key.lower()}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)
