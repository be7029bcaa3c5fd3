"""Rows of TSV files."""

from collections.abc import Sequence
from pathlib import Path

from batchwright.core.files import read_tsv

Row = dict[str, str]
Lines = list[list[str]]
"""A table: its header, then its rows."""


def read_files(files: Sequence[Path]) -> list[Row]:
    """The rows of all files."""
    return [row for file in files for row in read_tsv(file, made_by=file.stem)]
