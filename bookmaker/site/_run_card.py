"""The page that says what made this copy of the book: parameters, versions and seconds of every run."""

from typing import Any

from bookmaker.site._markdown import code, table, words
from privaudit import console
from privhelpers import __version__
from privhelpers.text import in_words

TITLE = "PrivAI-Leak: teaching, measuring and auditing the privacy of language models"
NO_BREAK = "\u00a0"
INTRO = """# Run card

Every number in this copy of the book was made by the runs listed here.
Another profile, another seed or another version of a package gives other numbers.

"""


def _value(value: Any) -> str:
    """Return a value as inline code; a list as its values."""
    if isinstance(value, list):
        return ", ".join(map(_value, value)) or "none"
    return code(f"{value:g}" if isinstance(value, float) else str(value))


def duration(seconds: float) -> str:
    """Return seconds as words that do not break over a line."""
    return console.duration(seconds).replace(" ", NO_BREAK)


def _runs(runs: dict[str, Any]) -> str:
    rows = [
        (
            words(run["notebook"]),
            words(in_words(run["model"])) if run["model"] else "",
            *(duration(run[kind]) for kind in ("seconds", "cpu_seconds")),
            f"{run['peak_memory_mib']:,}{NO_BREAK}MiB",
            str(len(run["artifacts"])),
        )
        for run in runs.values()
    ]
    header = ("notebook", "model", "time", "processor time", "memory", "files written")
    return table(header, rows)


def _parameters(runs: dict[str, Any]) -> str:
    """Return one table per notebook; a value that differs between its runs is listed with each."""
    by_notebook: dict[str, list[dict[str, Any]]] = {}
    for run in runs.values():
        by_notebook.setdefault(run["notebook"], []).append(run["parameters"])
    parts = []
    for notebook, given in by_notebook.items():
        rows = []
        for name in given[0]:
            values = list(dict.fromkeys(_value(parameters[name]) for parameters in given))
            rows.append((code(name), ", ".join(values)))
        parts.append(f"### {words(notebook)}\n\n{table(('parameter', 'value'), rows)}")
    return "\n".join(parts)


def _kept(runs: dict[str, Any]) -> str:
    """Return what the card says about runs that are kept ones, if there are any."""
    taken = [run for run in runs.values() if "kept" in run]
    named = {words(" ".join(filter(None, (r["notebook"], r["model"])))): r["kept"] for r in taken}
    if not named:
        return ""
    source = next(iter(named.values()))
    made = ", ".join(words(source[name]) for name in ("commit", "machine"))
    return (
        f"\nShown from kept runs of profile **{words(source['profile'])}** ({made}), with the seconds that "
        f"they took there: {', '.join(named)}.\n"
    )


def _citation(manifest: dict[str, Any], digest: str) -> str:
    """Return how to cite the runs: by the day of the first and the hash of the manifest that names all."""
    live = [run for run in manifest["runs"].values() if "kept" not in run]
    day = words(min(run["started"] for run in live)[:10])
    return f"""The PrivAI-Leak authors, *{TITLE}*, version {__version__}.
Run of profile {words(manifest["profile"])}, {day}; its manifest has the SHA-256 `{digest}`.

```{{code-block}} text
:class: wraps
@software{{privai-leak,
  author  = {{{{The PrivAI-Leak authors}}}},
  title   = {{{TITLE}}},
  version = {{{__version__}}},
  date    = {{{day}}},
  note    = {{Run with the manifest of SHA-256 {digest}}}
}}
```

The manifest, `manifest.json`, holds the parameters, the versions and the hash of every file of the run.
"""


def run_card(manifest: dict[str, Any], digest: str) -> str:
    """Return the page `book/run_card.md` for the manifest of a profile.

    Args:
        manifest: as `published.manifest` reads it.
        digest: the SHA-256 of its file, with which the runs are cited.
    """
    runs = manifest["runs"]
    live = sum("kept" not in run for run in runs.values())
    summary = (
        f"Profile **{words(manifest['profile'])}**: {live} runs, "
        f"{duration(manifest['total_seconds'])} of computing; independent runs went side by side.\n"
    )
    versions = [(words(name), _value(version)) for name, version in manifest["versions"].items()]
    sections = {
        "Cite this run": _citation(manifest, digest),
        "Runs": _runs(runs),
        "Versions": table(("package", "version"), versions),
        "Parameters": _parameters(runs),
    }
    summary += _kept(runs)
    return INTRO + summary + "".join(f"\n## {title}\n\n{text}" for title, text in sections.items())
