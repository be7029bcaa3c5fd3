"""The table of rules for false negatives."""

from collections.abc import Sequence
from pathlib import Path

from docs.rows import Lines, Row, read_files
from stages.report.table import share

RULES = {
    "own - .05": "f(q, d') >= f(q, d) - .05",
    "own - .05, and the median own score": "the same, and f(q, d') at least the domain's median own score",
    "own - .05, and d' near d or q' near q: .8": "the same, and d' near d or q' near q (cosine .8)",
    "likeness .8": "likeness .8",
    "auto": "`likeness: auto`",
}
"""The rules that the page shows, and what it calls them."""
KNOWN = ("banking77", "perspectrum", "cranfield", "vaswani")
READ = ("squad", "medquad", "nl2bash", "tldr_pages", "torch")


def masks_table(files: Sequence[Path]) -> Lines:
    """One row per rule: precision and recall where the truth is known, and verdicts of masked cells read by eye."""
    found = {(row["set"], row["rule"]): row for row in read_files(files)}
    lines = [["", *(f"{name}, precision, recall" for name in KNOWN), "read: right, partly, wrong"]]
    for rule, label in RULES.items():
        known = [_both(found[name, rule]) for name in KNOWN]
        verdicts = [sum(int(found[name, rule][verdict]) for name in READ) for verdict in ("yes", "partly", "no")]
        lines.append([label, *known, ", ".join(map(str, verdicts))])
    return lines


def _both(row: Row) -> str:
    return f"{share(float(row['precision']))}, {share(float(row['recall']))}"
