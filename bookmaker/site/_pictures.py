"""The scripts of a page's interactive pictures, from `book/_static/pictures`.

A chapter has an empty box, `<div class="picture" data-picture="roc">`, and `pictures/roc.js` fills it. The
scripts go below the text, in this order: only pages with a box load them, and the printed book finds them
with the page.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

BOX = re.compile(r'data-picture="([^"]*)"')
# d3 and Observable Plot draw, jStat has the distributions; pictures.js makes the fields and calls Plot, and
# privacy.js has the formulas that several pictures share.
LIBRARIES = (
    "vendor/d3.min.js",
    "vendor/plot.umd.min.js",
    "vendor/jstat.min.js",
    "pictures/pictures.js",
    "pictures/privacy.js",
)


def _add_scripts(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Add the scripts that the boxes of a page name."""
    names = BOX.findall(context.get("body", ""))
    for name in names:
        if not Path(app.srcdir, "book", "_static", "pictures", f"{name}.js").is_file():
            raise ExtensionError(
                f'{page}: data-picture="{name}", but book/_static/pictures/{name}.js does not exist'
            )
    if names:
        files = [*LIBRARIES, *(f"pictures/{name}.js" for name in names)]
        scripts = (f'<script src="{context["pathto"](f"_static/{file}", 1)}"></script>' for file in files)
        context["body"] += "\n".join(scripts)


def setup(app: Sphinx) -> None:
    """Register with Sphinx."""
    app.connect("html-page-context", _add_scripts)
