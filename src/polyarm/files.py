"""Files that appear whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from polyarm.errors import InvalidInput


@contextmanager
def replaced(path: str | Path) -> Iterator[IO[bytes]]:
    """Write a file beside its place and put it there when the block ends well; otherwise nothing is left behind."""
    target = Path(path)
    beside = target.with_name(f".{target.name}-{secrets.token_hex(6)}")
    try:
        with beside.open("xb") as file:  # not a temporary file: those nobody else may read
            yield file
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def check_place(path: str | Path, what: str = "") -> None:
    """Raise, before any work is done, when a file cannot be written there; `what` it is, for the message."""
    target = Path(path)
    name = f"{what} {target}".strip()
    if target.is_dir():
        raise InvalidInput(f"{name}: expected a file name, but this is a folder")
    if not target.resolve().parent.is_dir():
        raise InvalidInput(f"{name}: the folder {target.resolve().parent} does not exist")
