"""Tables that users bring, CSV or Parquet, read row by row; and the packages of data frames that they may have."""

import csv
import math
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from polyarm.errors import InvalidInput


def read_table(
    path: str | Path, what: str, columns: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[Sequence[Any]]:
    """Yield these columns of a `.csv` or `.parquet` file, in this order; `what` names the file in messages.

    Cells of a CSV file are text. After `columns` come the `optional` ones, None where the file lacks them. Other
    columns are ignored.
    """
    file = Path(path)
    if not file.is_file():
        raise InvalidInput(f"no such {what}: {file}")
    kind = file.suffix.lower()
    if kind == ".csv":
        return _read_csv(file, columns, optional)
    if kind == ".parquet":
        return _read_parquet(file, columns, optional)
    raise InvalidInput(f"{file}: expected a {what} that ends in .csv or .parquet")


def require_package(name: str) -> Any:
    """Return a package of data frames, or say how to get it."""
    try:
        return import_module(name)
    except ImportError:
        raise InvalidInput(f"a {name} frame needs {name}: pip install {name}") from None


def read_number(where: str, value: Any) -> float:
    """Return a cell as a finite number, or raise."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput(f"{where}: expected a finite number, got {value!r}")
    return number


def _require_columns(file: Path, found: Sequence[str], columns: Sequence[str]) -> None:
    for name in columns:
        if found.count(name) != 1:
            problem = "no column" if name not in found else "more than one column"
            raise InvalidInput(f"{file}: {problem} {name!r}; needed: {list(columns)}, found: {list(found)}")


def _read_csv(file: Path, columns: Sequence[str], optional: Sequence[str]) -> Iterator[Sequence[Any]]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream, skipinitialspace=True, strict=True)
            header = next(reader, [])
            _require_columns(file, header, columns)
            positions = [header.index(name) if name in header else None for name in (*columns, *optional)]
            for number, cells in enumerate(filter(None, reader), start=1):
                if len(cells) != len(header):
                    raise InvalidInput(
                        f"{file}, row {number}: expected {len(header)} values, as in the header, got {len(cells)}"
                    )
                yield [None if i is None else cells[i] for i in positions]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"cannot read {file}: {error}") from None


def _read_parquet(file: Path, columns: Sequence[str], optional: Sequence[str]) -> Iterator[Sequence[Any]]:
    try:
        import pyarrow as pa  # noqa: PLC0415  (an optional dependency)
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise InvalidInput(f"{file}: reading Parquet needs pyarrow: pip install 'polyarm[parquet]'") from None
    try:
        with parquet.ParquetFile(file) as content:
            _require_columns(file, content.schema_arrow.names, columns)
            there = [name for name in (*columns, *optional) if name in content.schema_arrow.names]
            for batch in content.iter_batches(columns=there):
                cells = {name: batch.column(name).to_pylist() for name in there}
                missing = [None] * batch.num_rows
                yield from zip(*(cells.get(name, missing) for name in (*columns, *optional)), strict=True)
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput(f"cannot read {file}: {error}") from None
