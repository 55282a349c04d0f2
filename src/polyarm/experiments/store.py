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
from polyarm.experiments.results import describe_run, require_parquet, restore_run, run_schema, write_parquet

_LOG = logging.getLogger("polyarm")


#: The package, and its rooms that only show what was computed.
_ROOT = Path(__file__).parent.parent
_SHOWING = {"cli", "papers", "plotting.py"}


@cache
def code_version() -> str:
    """Name the code that computes runs: runs of other code are never mixed with ours."""
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


class PieceStore:
    """A folder of finished pieces. Use it inside `hold`, so that two sweeps never write to it at once."""

    def __init__(self, folder: Path) -> None:
        require_parquet()
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"cannot use the folder {folder}: {error}") from None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep other processes out until the block ends; the system lets go of it when a process is killed."""
        with (self.folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InvalidInput(
                    f"{self.folder} is in use by another run; wait for it to end, or choose another folder"
                ) from None
            yield

    def _path(self, key: str, seeds: range) -> Path:
        return self.folder / key / f"{seeds.start:09d}-{seeds.stop - 1:09d}.parquet"

    def write(self, key: str, seeds: range, runs: list[RunRecord]) -> None:
        """Keep a finished piece of the entry with this key."""
        path = self._path(key, seeds)
        path.parent.mkdir(exist_ok=True)
        write_parquet((describe_run(run) for run in runs), path, run_schema())

    def read(self, key: str, seeds: range) -> list[RunRecord] | None:
        """Return a finished piece, or None when there is none; a damaged one is told and counts as none."""
        from pyarrow import ArrowException, parquet  # noqa: PLC0415  (an optional dependency)

        path = self._path(key, seeds)
        if not path.exists():
            return None
        try:
            runs = [restore_run(row) for row in parquet.read_table(path, schema=run_schema()).to_pylist()]
        except (ArrowException, OSError) as error:
            _LOG.warning("%s is damaged and will be computed again: %s", path, error)
            return None
        if [run.seed for run in runs] != list(seeds):
            _LOG.warning("%s does not hold the seeds that its name says and will be computed again", path)
            return None
        return runs
