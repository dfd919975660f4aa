"""Records that csv, pandas, JSON, and Parquet wrote are read back as they were, or refused by type."""

import csv
import io
import json

import pandas as pd
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tables import parquet

from privaudit.records import read_records
from privhelpers.errors import BadRecords
from privhelpers.text import normalize

PIECES = [*"\"'\\,;\t|\n\r[]{}", "\r\n", "e\u0301", "患者", "\u200b", "\ufeff", "\x00", "\x0b", "\u2028"]
PIECES += ["NA", "0", "007", "1.0", "sep=;", "=1+1", "p3"]
WILD = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=8).map("".join)
PLAIN = st.text("abcdef", min_size=8, max_size=20)
QUOTING = st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-8", "cp1252", "utf-16"])


def bytes_of(frame, kind, divider, quoting, ends, encoding):
    """Return the bytes of a file of some kind, or an error if its encoding lacks a character."""
    if kind == "parquet":
        return parquet(frame)
    if kind == "jsonl":
        text = ends.join([json.dumps(row, ensure_ascii=False) for row in frame.to_dict("records")])
    elif kind == "csv":
        out = io.StringIO(newline="")
        writer = csv.writer(out, delimiter=divider, quoting=quoting, lineterminator=ends)
        writer.writerows([frame.columns, *frame.itertuples(index=False)])
        text = out.getvalue()
    else:
        text = frame.to_csv(sep=divider, quoting=quoting, lineterminator=ends)
    return text.encode(encoding)


def is_other_utf8(data):
    """Say whether bytes of cp1252 are UTF-8, and say something else."""
    try:
        return data.decode("utf-8") != data.decode("cp1252")
    except UnicodeDecodeError:
        return False


@settings(max_examples=3000, deadline=None)
@given(
    kind=st.sampled_from(["csv", "tsv", "jsonl", "parquet"]),
    form=st.tuples(st.sampled_from(list(",;\t|")), QUOTING, st.sampled_from(["\n", "\r\n"]), ENCODINGS),
    name=st.sampled_from(["p{}", "{:03d}", "{}", "P-{}-x", "{}.5", "id {}"]),
    texts=st.lists(WILD | PLAIN, min_size=1, max_size=6),
)
def test_records_are_read_as_they_were_written_or_refused(tmp_path_factory, kind, form, name, texts):
    notes = [texts[n % len(texts)] if n < 30 else f"note {n}" for n in range(60)]
    frame = pd.DataFrame({"patient_id": [name.format(n) for n in range(60)], "text": notes})
    _, quoting, ends, encoding = form
    # Python's csv quotes no lone \r, so one at the end of an unquoted line is part of the line's end.
    unquoted = kind in ("csv", "tsv") and quoting == csv.QUOTE_MINIMAL and ends == "\n"
    assume(not (unquoted and any(text.endswith("\r") for text in texts)))
    path = tmp_path_factory.getbasetemp() / f"intake.{kind}"
    try:
        path.write_bytes(bytes_of(frame, kind, *form))
        # Some words of cp1252 are other words of UTF-8, which is tried first.
        assume(kind == "parquet" or encoding != "cp1252" or not is_other_utf8(path.read_bytes()))
        read = [(note.patient, note.text) for note in read_records(path).notes]
    except UnicodeEncodeError:
        return
    except BadRecords:
        usual = kind == "parquet" or encoding.startswith("utf-8")
        assert not usual or not all(text.isascii() and text.isalpha() and len(text) > 4 for text in texts)
    else:
        assert read == [(normalize(one), text) for one, text in zip(frame.patient_id, notes, strict=True)]
