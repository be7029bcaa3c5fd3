"""The page around the sections."""

from collections.abc import Sequence

from markupsafe import Markup

from stages.report.section import Section
from stages.report.templates import TEMPLATES


def render(summary: Markup, sections: Sequence[Section]) -> str:
    """Render the page as self-contained HTML."""
    return TEMPLATES.get_template("template.html.j2").render(summary=summary, sections=sections)
