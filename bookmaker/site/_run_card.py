"""The page that says what made this copy of the book: parameters, versions and seconds of every run."""

from typing import Any

from bookmaker.runner import progress
from privhelpers.errors import DamagedArtifact
from privhelpers.text import in_words

NO_BREAK = "\u00a0"
INTRO = """# Run card

Every number in this copy of the book was made by the runs listed here.
Another profile, another seed or another version of a package gives other numbers.

"""


def _cell(value: Any) -> str:
    """Return a value as inline code that a Markdown table can hold; a list as its values."""
    if isinstance(value, list):
        return ", ".join(map(_cell, value)) or "none"
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f"`{shown.replace('|', '/').replace('`', chr(39))}`" if shown.strip() else "none"


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    rule = "| " + " | ".join("---" for _ in header) + " |"
    lines = [f"| {' | '.join(row)} |" for row in (header, *rows)]
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"


def duration(seconds: float) -> str:
    """Return seconds as words that do not break over a line."""
    return progress.duration(seconds).replace(" ", NO_BREAK)


def _cost(run: dict[str, Any]) -> tuple[str, ...]:
    """Return what a run took: time, processor time, memory, and what most of the time was spent on."""
    cpu, memory, activities = (run.get(name) for name in ("cpu_seconds", "peak_memory_mib", "activities"))
    longest = max(activities, key=activities.get) if activities else ""
    return (
        duration(run["seconds"]),
        duration(cpu) if cpu else "",
        f"{memory:,} MiB" if memory else "",
        f"{longest}, {duration(activities[longest])}" if longest else "",
    )


def _runs(runs: dict[str, Any]) -> str:
    rows = [
        (
            run["notebook"],
            in_words(run["model"]) if run["model"] else "",
            *_cost(run),
            str(len(run["artifacts"])),
        )
        for run in runs.values()
    ]
    header = ("notebook", "model", "time", "processor time", "memory", "most of the time", "files written")
    return _table(header, rows)


def _parameters(runs: dict[str, Any]) -> str:
    """Return one table per notebook; a value that differs between its runs is listed with each."""
    by_notebook: dict[str, list[dict[str, Any]]] = {}
    for run in runs.values():
        by_notebook.setdefault(run["notebook"], []).append(run["parameters"])
    parts = []
    for notebook, given in by_notebook.items():
        rows = []
        for name in given[0]:
            values = list(dict.fromkeys(_cell(parameters[name]) for parameters in given))
            rows.append((f"`{name}`", ", ".join(values)))
        parts.append(f"### {notebook}\n\n{_table(('parameter', 'value'), rows)}")
    return "\n".join(parts)


def run_card(manifest: dict[str, Any]) -> str:
    """Return the page `book/run_card.md` for the manifest of a profile.

    Raises:
        DamagedArtifact: the manifest lacks a part that the page shows.
    """
    try:
        runs = manifest["runs"]
        versions = [(name, _cell(version)) for name, version in manifest["versions"].items()]
        summary = (
            f"Profile **{manifest['profile']}**: {len(runs)} runs, "
            f"{duration(manifest['total_seconds'])} of computing; independent runs went side by side.\n"
        )
        sections = {
            "Runs": _runs(runs),
            "Versions": _table(("package", "version"), versions),
            "Parameters": _parameters(runs),
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise DamagedArtifact(f"manifest.json: lacks {error}; run `make book` again") from error
    return INTRO + summary + "".join(f"\n## {title}\n\n{text}" for title, text in sections.items())
