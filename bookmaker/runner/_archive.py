"""An archive of which every byte counts: the files in it decide all of them.

The files stand in the order of their names, not compressed, with one date, no comment and no extra field. An
archive is read by writing it anew from its files and comparing every byte, so that nothing can stand beside
them. Nothing is unpacked to the disk, and nothing can grow while it is read.
"""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping

from privhelpers.artifacts import NAME
from privhelpers.errors import DamagedArtifact, InvalidParameter

MOST, DIRECTORY = 64 << 20, 1 << 18  # bytes of an archive, and of its list of files
DATE, UNIX, PLAIN = (1980, 1, 1, 0, 0, 0), 3, stat.S_IFREG | 0o644
END, END_64 = struct.Struct("<4s4H2LH"), b"PK\x06\x07"  # the last record, and what stands before it in ZIP64
BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, ValueError, LookupError)
BROKEN += (NotImplementedError, RuntimeError)  # a compression or an encryption that zipfile does not know


def _check_name(name: str) -> None:
    if not all(NAME.fullmatch(part) for part in name.split("/")):
        raise DamagedArtifact(f"{ascii(name)[1:-1][:80]}: is no name of a file in a bundle")


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return the archive of some files, always the same for the same files.

    Raises:
        InvalidParameter: they are larger than a bundle may be.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            _check_name(name)
            entry = zipfile.ZipInfo(name, DATE)
            entry.create_system, entry.external_attr = UNIX, PLAIN << 16
            archive.writestr(entry, files[name])
    if buffer.tell() > MOST:
        raise InvalidParameter(f"a bundle of {buffer.tell():,} bytes: at most {MOST:,}; leave out the PDF")
    return buffer.getvalue()


def _entries(archive: zipfile.ZipFile, size: int) -> list[zipfile.ZipInfo]:
    """Return the list of files, refusing what is no plain file or would grow."""
    entries = archive.infolist()
    for entry in entries:
        _check_name(entry.filename)
        if entry.external_attr >> 16 != PLAIN or entry.is_dir():
            raise DamagedArtifact(f"{entry.filename}: is a link or no plain file")
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise DamagedArtifact(f"{entry.filename}: is compressed, which no file of a bundle is")
    if len({entry.filename for entry in entries}) < len(entries):
        raise DamagedArtifact("two of its files have one name")
    if sum(entry.file_size for entry in entries) > size:
        raise DamagedArtifact("its files overlap")
    return entries


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the files of an archive by name, after comparing every byte with the archive that they make.

    Raises:
        DamagedArtifact: it is none, or not the one that `pack` makes of its files.
    """
    if len(data) > MOST:
        raise DamagedArtifact(f"has {len(data):,} bytes, more than any bundle ({MOST:,})")
    # Before the list is read: its length is bounded, and no second end can lead to another one.
    mark, *_, listed, _, comment = END.unpack(data[-END.size :].rjust(END.size))
    if mark != b"PK\x05\x06" or comment or listed > DIRECTORY or data[-END.size - 20 :][:4] == END_64:
        raise DamagedArtifact("is no archive, was cut, or something stands after its end")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = {entry.filename: archive.read(entry) for entry in _entries(archive, len(data))}
    except BROKEN as error:
        raise DamagedArtifact(f"is damaged ({' '.join(ascii(str(error))[1:-1].split())[:120]})") from None
    if pack(files) != data:
        raise DamagedArtifact("holds bytes that belong to none of its files")
    return files
