"""Commands that README and docs show."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


class Section(NamedTuple):
    """A page's section: what stands below a heading, up to the next one."""

    page: str
    heading: str

    @property
    def text(self) -> str:
        """The section without its heading."""
        page = (ROOT / self.page).read_text(encoding="utf-8")
        heading = rf"^#+ {re.escape(self.heading)}\n"
        return re.split(r"^#+ ", re.split(heading, page, maxsplit=1, flags=re.MULTILINE)[1], flags=re.MULTILINE)[0]


README_WALK = Section("README.md", "Use your own pairs")
FIRST, CHANGE, LOOK, MORE, TRY, SHARE, UPGRADE = (
    Section("docs/your-data.md", heading)
    for heading in (
        "Three commands",
        "See what a change does",
        "Look into batches",
        "Where pairs come from",
        "Try other parameters",
        "Share batches and models",
        "A newer Batchwright",
    )
)
REPRODUCE, RESULTS = (Section("docs/results.md", heading) for heading in ("Reproduce the first run", "Look at results"))
SUBMIT, BUCKETS = (Section("docs/scale.md", heading) for heading in ("Submit", "Buckets"))
NIGHTLY, ROLL_BACK = (Section("docs/retrain.md", heading) for heading in ("Retrain every night", "Use and roll back"))
JUDGE = Section("docs/batches.md", "Let a judge decide")
WALKS = {README_WALK, FIRST, CHANGE, MORE, TRY, SHARE, UPGRADE, REPRODUCE, RESULTS, SUBMIT, BUCKETS, NIGHTLY, ROLL_BACK}
WALKS |= {JUDGE}
"""Sections whose lines of shell are steps, one after the other; tests of their own run their code."""


def commands(language: str) -> set[str]:
    """Fenced code of one language: whole blocks of Python, or single lines of shell without comments.

    Sections whose lines are steps are left out; they are for ``steps``.
    """
    left_out = "".join(walk.text for walk in WALKS)
    found = [block for page in PAGES for block in _blocks(page.read_text(encoding="utf-8"), language)]
    blocks = [block for block in found if block not in left_out]
    if language == "python":
        return set(blocks)
    return {line for block in blocks for line in _lines(block)}


def steps(section: Section) -> list[list[str]]:
    """Lines of shell, one list for each fenced block, in the section's order."""
    return [_lines(block) for block in _blocks(section.text, "sh")]


def code(section: Section) -> list[str]:
    """Blocks of Python, in the section's order."""
    return _blocks(section.text, "python")


def profiles_named() -> set[str]:
    """Profiles that pages tell the reader to run."""
    return {found for page in PAGES for found in re.findall(r"`dvc exp run -S profiles=(\w+)", page.read_text())}


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def _lines(block: str) -> list[str]:
    return [stripped for line in block.splitlines() if (stripped := re.sub(r"\s+#.*", "", line))]
