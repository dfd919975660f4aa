"""The report of an audit as one page of HTML that needs nothing but itself.

Whatever is shown is escaped, control characters spelled out, and the page may load nothing and run nothing.
"""

import base64
import functools
import hashlib
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from privaudit._examine import Audit
from privaudit._wording import of_100, small
from privhelpers.text import inserted

# The page in Jinja's language, and its style, whose hash the page's own policy names. Whatever is inserted is
# escaped; no attribute holds text of a record or a model.
_PAGE, _STYLE = Path(__file__).with_name("report.html"), Path(__file__).with_name("report.css")
_LONGEST = 400  # characters of one piece of text that is shown
_SHOWN = 20  # strings, and texts, that are shown where somebody asks for them


def _written(audit: Audit) -> dict:
    """Return the members' strings that were found, and the start of what the model wrote."""
    strings = () if audit.disclosures is None else audit.disclosures.disclosed
    texts = [text[:_LONGEST] for text in dict.fromkeys(audit.texts)]
    return {"strings": strings[:_SHOWN], "texts": texts[:_SHOWN]}


def report_page(
    facts: Mapping, pictures: Mapping[str, bytes] | None = None, *, written: Audit | None = None
) -> str:
    """Return the report as one page of HTML that loads and runs nothing.

    Args:
        facts: from `report_facts`.
        pictures: SVG by caption, in the order of the page.
        written: the audit, if text that the model wrote is to stand in the page; such a page is as
            confidential as the records.
    """
    environment = Environment(
        autoescape=True,
        finalize=functools.partial(inserted, keep="\n"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(rate=lambda value: f"{value:.3f}", small=small, hundred=of_100)
    style = _STYLE.read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    drawn = {
        caption: Markup("data:image/svg+xml;base64," + base64.b64encode(svg).decode())
        for caption, svg in (pictures or {}).items()
    }
    page = environment.from_string(_PAGE.read_text(encoding="utf-8"))
    return page.render(
        r=facts,
        pictures=drawn,
        style=Markup(style),
        style_hash=digest,
        shown=written and _written(written),
    )
