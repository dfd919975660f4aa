"""The folder of a user's model, checked before anything is read and without torch."""

from pathlib import Path

from privhelpers.artifacts import is_there
from privhelpers.errors import MissingArtifact, UnsupportedModel
from privhelpers.validate import shown

CONFIG, ADAPTER = "config.json", "adapter_config.json"  # as `models._folder` calls them, which loads torch


def _named(place: str | Path) -> Path:
    """Return a folder by the name that messages show: that of `.` is empty."""
    try:
        return Path(place).resolve()
    except (OSError, RuntimeError, ValueError):  # no folder can be at such a place
        return Path(place)


def is_adapter(source: str | Path) -> bool:
    """Return whether a folder holds an adapter and no whole model."""
    folder = _named(source)
    return is_there(folder / ADAPTER) and not is_there(folder / CONFIG)


def find_model(source: str | Path, base: str | Path | None = None) -> tuple[Path, Path | None]:
    """Return the folder of a model, and that of the base where it holds an adapter alone.

    Raises:
        MissingArtifact: there is no such folder, or an adapter has no base.
        UnsupportedModel: a whole model has one.
    """
    folder = _named(source)
    told = f"model {shown(folder.name)}"
    if is_there(folder / CONFIG):
        if base is not None:
            raise UnsupportedModel(f"{told}: is whole, so it has no base; name none")
        return folder, None
    if not is_adapter(folder):
        raise MissingArtifact(f"{told}: no folder with a config.json at that place")
    if base is None:
        raise MissingArtifact(
            f"{told}: holds an adapter alone; name the folder of the model that it was trained on as base"
        )
    if not is_there((under := _named(base)) / CONFIG):
        raise MissingArtifact(f"base {shown(under.name)}: no folder with a config.json at that place")
    return folder, under
