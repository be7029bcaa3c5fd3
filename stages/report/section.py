"""A section of the page, and the pieces of HTML that sections are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from stages.report.table import Table
from stages.report.templates import TEMPLATES

_MACROS: Any = TEMPLATES.get_template("macros.html.j2").module


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of the page. ``intro`` explains how to read it; ``parts`` appear one below the other."""

    id: str
    title: str
    intro: str
    parts: Sequence[Markup]


def show_table(table: Table, caption: str) -> Markup:
    """Return a table that scrolls sideways if it is too wide."""
    return Markup(_MACROS.show_table(table, caption))


def show_long_table(table: Table, caption: str) -> Markup:
    """Return a table that is folded if it has many rows."""
    return Markup(_MACROS.show_long_table(table, caption))


def show_chart(chart: Markup, caption: str = "") -> Markup:
    """Return a chart as a figure."""
    return Markup(_MACROS.show_chart(chart, caption))


def side_by_side(*parts: Markup) -> Markup:
    """Put charts and tables next to each other if there is room."""
    return Markup(_MACROS.show_side_by_side(parts))


def show_charts(charts: Mapping[str, Markup], heading: str = "") -> Markup:
    """Put charts next to each other, each under its title."""
    figures = side_by_side(*(show_chart(chart, title) for title, chart in charts.items()))
    return Markup("<h3>{}</h3>\n{}").format(heading, figures) if heading else figures
