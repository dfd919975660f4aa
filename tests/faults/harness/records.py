"""The door of an audit's records: files that are none, and files that nobody could believe."""

import json
import os

from faults.harness import base
from faults.harness.registry import Case, Trial, fault

from privhelpers import own_model
from privhelpers.own_model import _files


def _rows(path):
    return path.read_bytes().splitlines(keepends=True)


def _spoiled(t: Trial, which: int):
    paths = [t.copy(path) for path in base.notes()]
    return paths, paths[which]


def _strict(data: bytes) -> list[dict] | None:
    """Return the rows of a file by the plainest reading there is, or None where a line is not one."""

    def pairs(items):
        if len({key for key, _ in items}) != len(items):
            raise ValueError("doubled")
        return dict(items)

    def refuse(word):
        raise ValueError(word)

    rows = []
    try:
        for line in data.decode("utf-8-sig").removesuffix("\n").split("\n"):
            rows.append(json.loads(line, object_pairs_hook=pairs, parse_constant=refuse))
            if not isinstance(rows[-1], dict) or not isinstance(rows[-1].get("text"), str):
                return None
    except (ValueError, RecursionError):
        return None
    return rows


@fault("bytes of the records changed at random")
def _(t: Trial) -> Case:
    _, path = _spoiled(t, 0)
    path.write_bytes(t.spoil(path.read_bytes()))
    rows = _strict(path.read_bytes())
    if rows is None:
        return Case(lambda: _files.read_records(path), watch=(path,))
    texts = [row["text"] for row in rows]
    return Case(lambda: [note.text for note in _files.read_records(path).notes], right=texts, watch=(path,))


@fault("bytes of the canaries changed at random")
def _(t: Trial) -> Case:
    _, path = _spoiled(t, 2)
    path.write_bytes(t.spoil(path.read_bytes()))
    rows = _strict(path.read_bytes())
    if rows is None:
        return Case(lambda: _files.read_canaries(path), watch=(path,))
    texts = [row["text"] for row in rows]
    return Case(lambda: [one.text for one in _files.read_canaries(path).canaries], right=texts, watch=(path,))


LINES = (
    *(b"\n", b"{}\n", b"[]\n", b"3\n", b"null\n", b'"x"\n', b"{\n", b'{"patient_id": "q"}\n', b'{"text": "x"}\n'),
    *(b'{"patient_id": 4, "text": "x"}\n', b'{"patient_id": "q", "text": 4}\n', b'{"patient_id": "q", "text": " "}\n'),
    *(b'{"patient_id": " ", "text": "x"}\n', b'{"patient_id": "q", "text": "\\u0000"}\n', b"\0\n", b"\xff\n"),
    *(b'{"patient_id": "q", "text": "\\ud800"}\n', b'{"patient_id": "q", "text": "x", "text": "y"}\n', b"{'a': 1}\n"),
    *(b'{"patient_id": "q", "text": "x", "n": NaN}\n', b'{"patient_id": "\\u200b", "text": "x"}\n', b"[" * 9999 + b"\n"),
    *(b'{"patient_id": "q", "text": "x", "identifiers": "y"}\n', b'{"patient_id": "q", "text": "' + b"x" * 10**6 + b'"}\n'),
    *(b'{"patient_id": "q", "text": "x", "note_id": 3}\n', b'{"patient_id": "q", "text": "x", "n": ' + b"9" * 5000 + b"}\n"),
)  # fmt: skip


@fault("a line that is no record")
def _(t: Trial) -> Case:
    _, path = _spoiled(t, 0)
    rows, at = _rows(path), t.below(111)
    line = LINES[t.below(len(LINES))]
    path.write_bytes(b"".join([*rows[:at], line, *rows[at:]]))
    return Case(lambda: _files.read_records(path), watch=(path,))


@fault("a file that is empty, short, a folder, a pipe or not there")
def _(t: Trial) -> Case:
    how, path = t.choose(("empty", "short", "folder", "pipe", "gone", "loop", "utf-16")), t.place / "r.jsonl"
    data = base.notes()[0].read_bytes()
    if how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "loop":
        path.symlink_to(path)
    elif how != "gone":
        path.write_bytes(
            {
                "empty": b"",
                "short": b"".join(_rows(base.notes()[0])[:60]),
                "utf-16": data.decode().encode("utf-16"),
            }[how]
        )
    return Case(lambda: _files.read_records(path))


@fault("a patient or a text in both files")
def _(t: Trial) -> Case:
    (members, others, _), at = [t.copy(path) for path in base.notes()], t.below(110)
    row = json.loads(_rows(members)[at])
    how = t.choose(("whole", "patient", "text", "case", "space", "width"))
    if how == "patient":
        row["text"] = "another text altogether"
    elif how == "text":
        row["patient_id"] = "new"
    elif how == "case":
        row = {"patient_id": row["patient_id"].upper(), "text": "another text"}
    elif how == "space":
        row = {"patient_id": f" {row['patient_id']}\u200b", "text": "another text"}
    elif how == "width":
        row = {"patient_id": "\uff4d" + row["patient_id"][1:], "text": "another text"}
    rows = _rows(others)
    where = t.below(len(rows))
    line = json.dumps(row).encode() + b"\n"
    others.write_bytes(b"".join([*rows[:where], line, *rows[where:]]))
    return Case(lambda: own_model.read_files(members, others), watch=(members, others))


@fault("canaries that no coin gave, too few, doubled or contradicted")
def _(t: Trial) -> Case:
    members, others, canaries = (t.copy(path) for path in base.notes())
    rows = [json.loads(line) for line in _rows(canaries)]
    how = t.choose(("all", "none", "few", "doubled", "among members", "held out", "text", "number"))
    at = t.below(len(rows))
    if how in ("all", "none"):
        rows = [row | {"inserted": how == "all"} for row in rows]
    elif how == "few":
        rows = rows[: t.below(20)]
    elif how == "doubled":
        rows.append({**rows[at], "text": rows[at]["text"].upper()})
    elif how in ("among members", "held out"):
        file = members if how == "among members" else others
        text = json.loads(_rows(file)[t.below(100)])["text"]
        rows[at] = {"text": text, "inserted": how == "held out"}
    else:
        rows[at]["inserted"] = "true" if how == "text" else 1
    canaries.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Case(lambda: own_model.read_files(members, others, canaries), watch=(canaries,))
