"""Commands that README and docs show."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def commands(language: str) -> set[str]:
    """Fenced code of one language: whole blocks of Python, or single lines of shell without comments."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    blocks = [block for file in files for block in re.findall(rf"```{language}\n(.*?)```", file.read_text(), re.DOTALL)]
    if language == "python":
        return set(blocks)
    lines = {re.sub(r"\s+#.*", "", line) for block in blocks for line in block.splitlines()}
    inline = {found for file in files for found in re.findall(r"`(cp profiles/[^`]*)`", file.read_text())}
    return {line for line in lines | inline if line}
