"""``python -m docs.tables``: fills the tables of all pages, each below its ``<!-- KIND: FILE... -->``.

``<!-- KIND: FILE...; COLUMN; COLUMN -->`` shows the first column and those that are named.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from batchwright.core.command import command
from docs.table_kinds import (
    Lines,
    batches_table,
    brings_table,
    gains_table,
    masked_ways_table,
    masks_table,
    rivals_table,
    rows_table,
    scale_table,
    scores_table,
    seen_table,
    ways_table,
)

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "experiments/README.md", *sorted((ROOT / "docs").glob("*.md"))]
KINDS: dict[str, Callable[[Sequence[Path]], Lines]] = {
    "gains": gains_table,
    "batches": batches_table,
    "rows": rows_table,
    "masks": masks_table,
    "rivals": rivals_table,
    "brings": brings_table,
    "masked ways": masked_ways_table,
    "scores": scores_table,
    "scale": scale_table,
}
OF_WAYS: dict[str, Callable[[Sequence[Path], Sequence[str]], Lines]] = {"ways": ways_table, "seen": seen_table}
"""Kinds of which a marker names rows, where others name columns."""
_TABLE = re.compile(rf"<!-- ({'|'.join([*KINDS, *OF_WAYS])}): (.*) -->\n(?:\|.*\n)*")


def main() -> str:
    """Fill the tables of all pages."""
    for page in PAGES:
        page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")
    return f"tables of {len(PAGES)} pages filled"


def fill(text: str, root: Path = ROOT) -> str:
    """``text`` with every marked table rebuilt from its files below ``root``, or left out if a file is missing."""
    return _TABLE.sub(lambda marker: f"{marker[0].splitlines()[0]}\n{_table(root, marker[1], marker[2])}", text)


def _table(root: Path, kind: str, shown: str) -> str:
    paths, *names = map(str.strip, shown.split(";"))
    files = [root / path for path in paths.split()]
    if not all(file.is_file() for file in files):
        return ""
    header, *rows = OF_WAYS[kind](files, names) if kind in OF_WAYS else _select(KINDS[kind](files), names)
    lines = [header, ["---"] + ["--:"] * (len(header) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _select(lines: Lines, columns: Sequence[str]) -> Lines:
    """The first column and those that are named, or all."""
    places = [0, *(lines[0].index(column) for column in columns or lines[0][1:])]
    return [[line[place] for place in places] for line in lines]


if __name__ == "__main__":
    command(
        "docs.tables",
        "Fills the tables of README, docs and experiments from the results.",
        "python -m docs.tables",
    )
