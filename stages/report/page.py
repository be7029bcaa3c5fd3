"""The page: its sections one below the other, and the pieces of HTML that sections are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from stages.report.table import Table

TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
UNFOLDED_ROWS = 12
"""A long table has more rows than this."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of the page. ``intro`` explains how to read it; ``parts`` appear one below the other."""

    id: str
    title: str
    intro: str
    parts: Sequence[Markup]


def render(summary: Markup, sections: Sequence[Section]) -> str:
    """Render the page as self-contained HTML."""
    return TEMPLATES.get_template("page.html.j2").render(summary=summary, sections=sections)


def show_table(table: Table, caption: str) -> Markup:
    """Return a table that becomes a list if it is too wide for the screen."""
    return Markup(TEMPLATES.get_template("table.html.j2").render(table=table, caption=caption))


def show_long_table(table: Table, caption: str) -> Markup:
    """Return a table that is folded if it is long."""
    shown = show_table(table, caption)
    if len(table.rows) <= UNFOLDED_ROWS:
        return shown
    return Markup("<details><summary>{} ({})</summary>\n{}\n</details>").format(caption, len(table.rows), shown)


def show_chart(chart: Markup, caption: str = "") -> Markup:
    """Return a chart as a figure."""
    title = Markup("<figcaption>{}</figcaption>").format(caption) if caption else ""
    return Markup("<figure>{}{}</figure>").format(title, chart)


def show_charts(charts: Mapping[str, Markup], heading: str = "") -> Markup:
    """Put charts next to each other, each under its title."""
    figures = side_by_side(*(show_chart(chart, title) for title, chart in charts.items()))
    return Markup("<h3>{}</h3>\n{}").format(heading, figures) if heading else figures


def side_by_side(*parts: Markup) -> Markup:
    """Put charts and tables next to each other if there is room."""
    return Markup('<div class="charts">\n{}\n</div>').format(Markup("\n").join(parts))
