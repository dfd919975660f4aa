"""What copies of a chapter for other places have in common: they read the profile that they are made for."""

import re

from nbformat import NotebookNode

from bookmaker.runner import notebooks
from privhelpers.errors import DamagedArtifact

PROFILE = re.compile(r'^(profile: str = )"[^"]*"', re.MULTILINE)


def read_profile(notebook: NotebookNode, profile: str, name: str) -> None:
    """Make a notebook read and write the results of a profile, in place.

    Args:
        notebook: a chapter, or a copy of one.
        profile: as in `runs/<profile>/`.
        name: of the notebook, for the message.

    Raises:
        DamagedArtifact: its parameters name no profile.
    """
    for cell in notebooks.code_cells(notebook):
        if "parameters" in notebooks.tags(cell):
            cell.source, count = PROFILE.subn(rf'\g<1>"{profile}"', cell.source)
            if count:
                return
    raise DamagedArtifact(f'{name}: its parameters have no line that starts with `profile: str = "..."`')
