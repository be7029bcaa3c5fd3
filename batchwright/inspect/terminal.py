"""Text for a terminal: no control character reaches it, texts are cut to fit, and only terminals see colours."""

import math
import os
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

NARROWEST, WIDEST = 60, 120
_JOINERS = "\u200c\u200d"
"""Invisible, harmless, and needed to spell Persian, Hindi and emoji."""
_GAP = "  "


@dataclass(frozen=True)
class Terminal:
    """Where text is printed: how many columns there are, and whether it shows colours."""

    width: int = 100
    colour: bool = False

    @classmethod
    def of_stdout(cls) -> "Terminal":
        """Return this process's terminal, or 100 columns without colours if the output goes elsewhere."""
        if not sys.stdout.isatty():
            return cls()
        width = min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)
        return cls(width, colour="NO_COLOR" not in os.environ)

    def bold(self, text: str) -> str:
        """Emphasise a text."""
        return self._painted("1", text)

    def dim(self, text: str) -> str:
        """Make a text stand back."""
        return self._painted("2", text)

    def red(self, text: str) -> str:
        """Colour what is masked."""
        return self._painted("31", text)

    def green(self, text: str) -> str:
        """Colour what is left."""
        return self._painted("32", text)

    def _painted(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 0) -> list[str]:
        """Lay out rows below a header; the last ``texts`` columns share the space that the others leave.

        The widest of the others are cut if they leave less than a fifth of the width to each.
        """
        cells = [[plain(cell) for cell in row] for row in [header, *rows]]
        numbers = len(header) - texts
        widths = [max(span(row[column]) for row in cells) for column in range(numbers)]
        room = self.width - len(_GAP) * (len(header) - 1)
        widths = _narrowed(widths, room - self.width // 5 * texts)
        rights = [all(row[column][:1] in "+-.0123456789" for row in cells[1:]) for column in range(numbers)]
        left = room - sum(widths)
        lines = []
        for row in cells:
            padded = [
                _pad(cut(cell, width), width, right) for cell, width, right in zip(row, widths, rights, strict=False)
            ]
            padded += [_pad(cut(cell, left // texts), left // texts) for cell in row[numbers:]]
            lines.append(_GAP.join(padded).rstrip())
        return [self.dim(lines[0]), *lines[1:]]


def plain(text: str) -> str:
    """Return a text on one line; characters that could control a terminal are replaced."""
    return "".join(
        character if character.isprintable() or character in _JOINERS else "\ufffd"
        for character in " ".join(text.split())
    )


def number(value: float | None, signed: str = "") -> str:
    """Return a measure with three decimals, - if it is not known; ``signed`` is + if it is a difference."""
    return "-" if value is None or math.isnan(value) else f"{value:{signed}.3f}"


def span(text: str) -> int:
    """Return the columns that a text takes; those of East Asia are twice as wide."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def cut(text: str, width: int) -> str:
    """Return as much of a text as fits on one line of ``width`` columns."""
    text = plain(text)
    if span(text) <= width:
        return text
    text = text[:width]
    while text and span(text) > width - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def fold(text: str, width: int, most: int | None) -> list[str]:
    """Return a text's first ``most`` lines that are not empty, cut to ``width`` columns; if None, all, wrapped."""
    lines = [line.expandtabs(4).rstrip() for line in text.splitlines() if line.strip()]
    if most is None:
        return [part for line in lines for part in wrap(plain(line), width, initial_indent=_indent(line))]
    shown = [_indent(line) + cut(line, width - len(_indent(line)) - 2) for line in lines[:most]]
    return shown if len(lines) <= most else [*shown[:-1], f"{shown[-1].removesuffix('…')} …"]


def _narrowed(widths: list[int], room: int) -> list[int]:
    """Return ``widths``, the largest made equal and so small that all fit into ``room``."""
    most = next((most for most in range(room, 1, -1) if sum(min(width, most) for width in widths) <= room), 1)
    return [min(width, most) for width in widths]


def _pad(text: str, width: int, right: bool = False) -> str:
    space = " " * (width - span(text))
    return space + text if right else text + space


def _indent(line: str) -> str:
    return " " * min(len(line) - len(line.lstrip()), 24)
