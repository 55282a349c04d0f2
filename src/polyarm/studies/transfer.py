"""Studies in files: trials as tables, and whole studies to move to another storage."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from polyarm.errors import InvalidInput
from polyarm.files import replaced
from polyarm.studies import events
from polyarm.studies.events import make_event, write_payload
from polyarm.studies.manage import check_name, load_study
from polyarm.studies.state import StudyState
from polyarm.studies.statement import Statement
from polyarm.studies.storage import open_storage, storage_url
from polyarm.studies.study import Study
from polyarm.studies.tell_file import name_columns

FORMAT = "polyarm-study-1"


def export_study(study: Study, path: str | Path) -> None:
    """Write a study to a file, which appears whole or not at all.

    Args:
        study: The study.
        path: The file to write. `.csv` and `.parquet` have one row per trial, with one column per unknown constraint;
            `.json` holds the whole study, log and all, for `import_study`.
    """
    target = Path(path)
    write = {".csv": _write_csv, ".parquet": _write_parquet, ".json": _write_json}.get(target.suffix.lower())
    if write is None:
        raise InvalidInput(f"{target}: expected a file that ends in .csv, .parquet or .json")
    write(study, target)


def trial_table(study: Study) -> tuple[list[str], Iterator[list[Any]]]:
    """Return the columns of the trials, with one per unknown constraint, and their rows."""
    columns = name_columns(study.problem, ("id", "arm", "state", "reward"), ("asked_at", "told_at"))
    return columns, ([({**row, **row["costs"]}).get(column) for column in columns] for row in study.trials())


def write_rows(path: str | Path, columns: list[str], rows: Iterable[list[Any]]) -> None:
    """Write a CSV file, which appears whole or not at all."""
    with replaced(path) as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _write_csv(study: Study, path: Path) -> None:
    write_rows(path, *trial_table(study))


def _write_parquet(study: Study, path: Path) -> None:
    try:
        import pyarrow as pa  # noqa: PLC0415  (an optional dependency)
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise InvalidInput("writing Parquet needs pyarrow: pip install 'polyarm[parquet]'") from None
    columns, rows = trial_table(study)
    types = {
        "id": pa.int64(),
        "arm": pa.string(),
        "state": pa.string(),
        "asked_at": pa.string(),
        "told_at": pa.string(),
    }
    schema = pa.schema([(name, types.get(name, pa.float64())) for name in columns])
    by_column = list(zip(*rows, strict=True)) or [()] * len(columns)
    table = pa.table(dict(zip(columns, by_column, strict=True)), schema=schema)
    with replaced(path) as file:
        parquet.write_table(table, file)


def _write_json(study: Study, path: Path) -> None:
    head = {"format": FORMAT, "name": study.name, "statement": study.stated}
    with replaced(path) as file:
        file.write(json.dumps(head, indent=1)[:-2].encode() + b',\n "events": [')
        between = b"\n  "
        for event in study.events():
            file.write(between + json.dumps([event.seq, event.at, event.kind, event.payload, event.digest]).encode())
            between = b",\n  "
        file.write(b"\n ]\n}\n")


def import_study(path: str | Path, storage: str | None = None, name: str | None = None) -> Study:
    """Import a study that `export_study` wrote.

    The log is checked and replayed before anything is stored.

    Args:
        path: The `.json` file.
        storage: `sqlite:///file.db` or `postgresql://user:password@host/database`; by default what the environment
            variable POLYARM_STORAGE names, or else `polyarm.db` in this folder.
        name: The name to give it in the storage; by default the one it had.
    """
    document = _read_document(Path(path))
    try:
        stated = document["statement"]
        statement = Statement(**stated)
        title = check_name(name or document["name"])
        first = document["events"][0]
        state = StudyState(statement.plan(), statement.seed, statement.breaker)
        if first[2] != events.CREATED or write_payload(first[3]) != write_payload(stated):
            raise InvalidInput(f"{path}: the log does not begin with the study's statement")
        with open_storage(storage_url(storage)).create(title, first[1], stated) as writer:
            for _, at, kind, payload, digest in document["events"]:
                event = make_event(state.digest, state.seq + 1, at, kind, payload)
                if event.digest != digest:
                    raise InvalidInput(f"{path}: event {event.seq}, or one before it, was changed after it was written")
                state.apply(writer.add(event))
            writer.add_snapshot(state.write())  # spares the next replay
    except (KeyError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{path}: not a complete study: {error!r}") from None
    return load_study(title, storage)


def _read_document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InvalidInput(f"{path}: not a JSON document: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidInput(f"{path}: not an exported study: expected format {FORMAT!r}")
    return document
