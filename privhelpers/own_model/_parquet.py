"""A Parquet file of records, decoded in a process of its own with bounds on memory and time.

Kilobytes of it can ask for terabytes: pages are compressed, one text of a dictionary stands for any number
of rows, and what the file says of its own size need not be true. So it is decoded where a flood ends one
process alone.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from privhelpers.errors import BadRecords
from privhelpers.own_model._rows import MOST_ROWS, stamps

_ROWS = 100  # that are held at once
_AIM, _MOST = 2**22, 2**26  # bytes of them, by what the file says and by what they are


class Decoded:
    """What the confined process holds: an open file, and how far it was read."""

    def __init__(self, path: Path, expected: tuple[int, ...] = ()) -> None:
        """Read what the file says of itself.

        Args:
            path: of the file.
            expected: its `stamps`, where another one must not be read in its place.

        Raises:
            BadRecords: it is no Parquet file, or another one, or says that it has too many rows.
        """
        pa.set_memory_pool(pa.system_memory_pool())  # the others reserve more addresses than they use
        pa.set_cpu_count(1)
        try:
            file = pa.OSFile(str(path))
            if expected and stamps(os.fstat(file.fileno())) != expected:
                raise BadRecords("changed while it was read; copy it, and name the copy")
            self._file = pq.ParquetFile(file, buffer_size=2**20)
            self.columns = list(self._file.schema_arrow.names)
            if (rows := self._file.metadata.num_rows) > MOST_ROWS:  # refused before half a minute of them
                raise BadRecords(f"{rows:,} rows, more than {MOST_ROWS:,}; draw patients by lot")
        except BadRecords:
            raise
        except Exception as error:  # a stranger's file can fail with any error
            raise _broken(error) from None
        self._batches: Iterator[pa.RecordBatch] | None = None

    def names(self) -> list[str]:
        """Return the names of its columns."""
        return self.columns

    def rows(self, wanted: list[str]) -> list[dict]:
        """Return the next rows, of some columns; none after the last one.

        Raises:
            BadRecords: they cannot be decoded, or are too many bytes.
        """
        try:
            if self._batches is None:
                self._batches = self._file.iter_batches(self._at_once(), columns=wanted, use_threads=False)
            batch = next(self._batches, None)
            if batch is None:
                return []
            if batch.nbytes > _MOST:
                raise BadRecords(
                    f"{batch.num_rows} rows of {batch.nbytes:,} bytes; {_MOST:,} at most are read at once: "
                    "split their texts, or save it as JSONL"
                )
            return batch.to_pylist()
        except (BadRecords, MemoryError):
            raise
        except Exception as error:
            raise _broken(error) from None

    def _at_once(self) -> int:
        about = self._file.metadata
        size = sum(about.row_group(n).total_byte_size for n in range(about.num_row_groups))
        return max(1, min(_ROWS, _AIM * about.num_rows // max(1, size)))


def _broken(error: Exception) -> BadRecords:
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return BadRecords(f"cannot be read as Parquet ({ascii(line)[1:150]}); save it again")
