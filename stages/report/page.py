"""The page around the sections."""

from collections.abc import Sequence

from markupsafe import Markup

from stages.report.section import Section
from stages.report.templates import TEMPLATES


def render(summary: Markup, sections: Sequence[Section], reload: int | None = None) -> str:
    """Render the page as self-contained HTML; with ``reload`` it has no batches and loads itself anew, in seconds."""
    return TEMPLATES.get_template("template.html.j2").render(summary=summary, sections=sections, reload=reload)
