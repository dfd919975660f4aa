"""What was worked out from a text by today's code, kept beside a site for the next build of it.

memo = Memo(site / ".memo" / "tables.json", code=[Path(__file__)])
table = memo.of(html, clean)         # worked out once for each text
memo.write()                         # what this build asked for; the rest is forgotten
"""

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from privhelpers.artifacts import check_seal, parse_json, sha256_of, to_json, write_sealed
from privhelpers.errors import DamagedArtifact

FOLDER = ".memo"  # in the folder of a site
TOOLS = ("beautifulsoup4", "tinycss2")  # that read pages and tables


class Memo:
    """Answers by the SHA-256 of what they were worked out from; a file that changed by hand is not read.

    Args:
        file: where the answers lie, made if needed.
        code: the files that work them out; answers of other code are not read.
    """

    def __init__(self, file: Path, code: Iterable[Path]) -> None:
        """Read what an earlier build left."""
        tools = [f"{tool} {metadata.version(tool)}" for tool in TOOLS]
        self._file, self._code = file, [*tools, *(sha256_of(path) for path in sorted(code))]
        self._old: dict[str, Any] = {}
        self._asked: dict[str, Any] = {}
        with suppress(OSError, DamagedArtifact, KeyError, TypeError):
            check_seal(file, file.name)
            known = parse_json(file.read_bytes(), file.name)
            if known["code"] == self._code:
                self._old = dict(known["answers"])

    def of(self, text: str, work: Callable[[str], Any]) -> Any:
        """Return what `work` makes of a text, as JSON holds it; what raises is asked again every time."""
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        if key not in self._asked:
            self._asked[key] = self._old[key] if key in self._old else work(text)
        return self._asked[key]

    def write(self) -> None:
        """Keep the answers that were asked for."""
        if self._asked.keys() != self._old.keys():
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_sealed(self._file, to_json({"code": self._code, "answers": self._asked}))
