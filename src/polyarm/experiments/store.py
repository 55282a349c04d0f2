"""Finished pieces of a sweep on disk: each is one Parquet file that appears whole or not at all."""

import fcntl
import hashlib
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numba
import numpy as np

from polyarm import __version__
from polyarm.engine.run import RunRecord
from polyarm.errors import InvalidInput
from polyarm.experiments.grid import Entry
from polyarm.experiments.results import (
    describe_run,
    make_parquet,
    require_parquet,
    restore_run,
    run_schema,
    write_whole,
)

_LOG = logging.getLogger("polyarm")


#: The package, and its rooms that only show results.
_ROOT = Path(__file__).parent.parent
_SHOWING = {"cli", "papers", "report", "claims.py", "figures.py", "_html.py", "service", "studies"}


@cache
def code_version() -> str:
    """Name the code that computes runs: runs of different code are never mixed."""
    digest = hashlib.sha256()
    for path in sorted(path.relative_to(_ROOT) for path in _ROOT.rglob("*.py")):
        if path.parts[0] not in _SHOWING:
            digest.update(path.as_posix().encode())
            digest.update((_ROOT / path).read_bytes())
    return f"polyarm {__version__} {digest.hexdigest()[:16]}, numba {numba.__version__}, numpy {np.__version__}"


def entry_key(entry: Entry) -> str:
    """Name everything that the runs of an entry depend on, but for the seed."""
    instance, plan = entry.prepared
    identity = {
        "code": code_version(),
        "instance": instance.name,
        "problem": instance.problem.model_dump(mode="json"),
        "mu": instance.mu.tolist(),
        "A": instance.A.tolist(),
        "explorer": plan.explorer.name,
        "source": plan.explorer.source_hash,
        "settings": plan.recorded_settings(),
        "horizon": entry.horizon,
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:20]


@contextmanager
def hold_folder(folder: Path) -> Iterator[None]:
    """Keep other processes out of a folder until the block ends, or until this process is killed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise InvalidInput(f"cannot use the folder {folder}: {error}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(
                f"{folder} is in use by another run; wait for it to end, or choose another folder"
            ) from None
        yield


class PieceStore:
    """A folder of finished pieces, which the caller holds: one folder per key, one file per piece.

    A file is named by its seeds and by a hash of its content, so that damage is noticed.
    """

    def __init__(self, folder: Path) -> None:
        require_parquet()
        self.folder = folder

    def write(self, key: str, seeds: range, runs: list[RunRecord]) -> None:
        """Keep a finished piece of the entry with this key."""
        content = make_parquet((describe_run(run) for run in runs), run_schema())
        folder = self.folder / key
        folder.mkdir(exist_ok=True)
        write_whole(folder / f"{seeds.start:09d}-{seeds.stop - 1:09d}-{_hash(content)}.parquet", content)

    def read(self, key: str) -> dict[int, RunRecord]:
        """Return all finished runs of the entry with this key, by seed; a damaged piece is reported and left out."""
        from pyarrow import BufferReader, parquet  # noqa: PLC0415  (an optional dependency)

        runs: dict[int, RunRecord] = {}
        for path in sorted((self.folder / key).glob("*.parquet")):
            content = path.read_bytes()
            if not path.stem.endswith(_hash(content)):
                _LOG.warning("%s is damaged: its runs will be computed again", path)
                continue
            for row in parquet.read_table(BufferReader(content), schema=run_schema()).to_pylist():
                runs[row["seed"]] = restore_run(row)
        return runs


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
