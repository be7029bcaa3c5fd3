"""Batches: a browser of their texts, masks and hardest negatives, and a map of the clusters they are made of."""

from collections.abc import Iterator

from markupsafe import Markup

from stages.report.browser.payload import pack
from stages.report.browser.read import Browser, read_browser
from stages.report.section import Section
from stages.report.sections.clusters import read_clusterings
from stages.report.templates import TEMPLATES

MOST_BATCHES = 2000
MOST_BYTES = 13_000_000
"""Of all data in the page."""
LENGTHS = (400, 200, 100)
"""Characters of a text: the first number with which the data is small enough."""


def section() -> Section:
    """Return the browser and the map, with as many batches and as much of their texts as the page can carry."""
    browser, data, length = _fit()
    shown = len(browser.rows)
    left_out = (
        "" if shown == browser.total else f" Of {browser.total:,} batches, the page has {shown:,}, evenly spaced."
    )
    if browser.shared:
        left_out += f" The {browser.shared:,} batches that small domains share are not on the page."
    drawn, every = len(browser.clusters["x"]), browser.clusters["all"]
    map_left_out = "" if drawn == every else f" Of {every:,} clusters, the map has {drawn:,}, evenly spaced."
    html = TEMPLATES.get_template("browser/browser.html.j2").render(data=data, map_left_out=map_left_out)
    return Section(
        id="batches",
        title="Batches",
        intro="The contextual batches, as training reads them. Point at a masked document, or at one of the hardest "
        f"negatives left, or move the focus there, to read it.{left_out} Texts are cut at {length} characters.",
        parts=[Markup(html)],
    )


def _fit() -> tuple[Browser, dict[str, str], int]:
    """Return the most that fits into the page, packed, and the length to which texts are cut."""
    clusterings = read_clusterings()
    for most in _halved(MOST_BATCHES):
        browser = read_browser(clusterings, most)
        data = {"batches": pack(browser.batches), "rows": pack(browser.rows), "clusters": pack(browser.clusters)}
        for length in LENGTHS:
            data["texts"] = pack(browser.texts.cut(length))
            if most == 1 or sum(map(len, data.values())) <= MOST_BYTES:
                return browser, data, length
    raise AssertionError("a single batch always fits")


def _halved(number: int) -> Iterator[int]:
    while number:
        yield number
        number //= 2
