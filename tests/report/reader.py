"""Read what a page contains."""

from collections import Counter
from html.parser import HTMLParser
from pathlib import Path


class Reader(HTMLParser):
    """Tags, ids and table cells of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.rows: list[list[str]] = []
        self._in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self._in_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


def page_in(folder: Path) -> str:
    return (folder / "report/index.html").read_text(encoding="utf-8")


def section_of(page: str, name: str) -> str:
    """Return the HTML of one section."""
    return page.split(f'<section id="{name}">')[1].split("</section>")[0]
