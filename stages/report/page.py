"""The frame around the sections."""

from collections.abc import Sequence

from markupsafe import Markup

from stages.report.section import Section
from stages.report.templates import TEMPLATES


def render(summary: Markup, sections: Sequence[Section]) -> str:
    """The page as HTML that needs no other file."""
    return TEMPLATES.get_template("template.html.j2").render(summary=summary, sections=sections)
