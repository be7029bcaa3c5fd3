"""Answers as text for a terminal, which Rich lays out, or as JSON: no control character of the data reaches it."""

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

NARROWEST, WIDEST, ELSEWHERE = 60, 120, 100
"""Columns: of a terminal at least and at most, and of anything else, such as a file."""
_JOINERS = "\u200c\u200d"
"""Invisible, harmless, and needed to spell Persian, Hindi and emoji."""


def as_text(*parts: RenderableType) -> str:
    """Return ``parts`` one below the other, with colours if stdout is a terminal that shows them."""
    console = screen()
    with console.capture() as captured:
        console.print(Group(*parts))
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))


def screen() -> Console:
    """Return the terminal that stdout is, or a place of ``ELSEWHERE`` columns without colours."""
    console = Console(highlight=False, markup=False, emoji=False)
    console.width = min(max(console.width, NARROWEST), WIDEST) if console.is_terminal else ELSEWHERE
    return console


def as_json(answer: Any) -> str:
    """Return a dataclass, or a list of them, as JSON in ASCII: no control character is left in it, NaN is null."""
    values = [dataclasses.asdict(item) for item in answer] if isinstance(answer, list) else dataclasses.asdict(answer)
    return json.dumps(_without_nan(values), indent=2, allow_nan=False).replace("\x7f", "\\u007f")


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def plain(text: str) -> str:
    """Return a text on one line; characters that could control a terminal are replaced."""
    return "".join(
        character if character.isprintable() or character in _JOINERS else " " if character.isspace() else "\ufffd"
        for character in text
    )


def words(text: str) -> str:
    """Return a text as ``plain`` does, with one space between its words."""
    return " ".join(plain(text).split())


def line(*parts: str | tuple[str, str], wrap: bool = False) -> Text:
    """Return one line of texts and of (text, style); what does not fit is cut, or goes on in the next lines."""
    text = Text(no_wrap=not wrap, overflow=None if wrap else "ellipsis")
    for part in parts:
        content, style = (part, "") if isinstance(part, str) else part
        text.append(plain(content), style)
    return text


def heading(text: str) -> Text:
    """Return a line that stands out."""
    return line((text, "bold"))


def excerpt(text: str, most: int | None) -> Text:
    """Return a text's first ``most`` lines that are not empty, cut to the width; if None, all, wrapped."""
    lines = [" " * min(_indent(row), 24) + words(row) for row in text.splitlines() if row.strip()]
    more = " …" if most is not None and len(lines) > most else ""
    cut = most is not None
    return Text("\n".join(lines[:most]) + more, no_wrap=cut, overflow="ellipsis" if cut else None)


def _indent(row: str) -> int:
    expanded = row.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def labelled(label: str, text: Text) -> Table:
    """Return a text beside its label."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(width=11, style="dim")
    grid.add_column()
    grid.add_row(label, text)
    return grid


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Lay out rows below a header. If they are too wide, the widest columns are cut, but never those of numbers."""
    laid_out = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for number, title in enumerate(header):
        numeric = all(row[number][:1] in "+-.0123456789" for row in rows)
        laid_out.add_column(title, justify="right" if numeric else "left", no_wrap=numeric)
    for row in rows:
        laid_out.add_row(*(Text(words(cell), no_wrap=True, overflow="ellipsis") for cell in row))
    return laid_out


def measure(value: float | None, signed: str = "") -> str:
    """Return a measure with three decimals, - if it is not known; ``signed`` is + if it is a difference."""
    return "-" if value is None or math.isnan(value) else f"{value:{signed}.3f}"
