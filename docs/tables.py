"""``python -m docs.tables``: puts the results into README's tables, behind each ``<!-- results: FILE -->``."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
_TABLE = re.compile(r"<!-- results: (\S+) -->\n(?:\|.*\n)*")
_ORDER = ("BM25", "untrained", "random", "contextual")
_NAMES = {"ndcg@10": "nDCG@10", "mrr@10": "MRR@10", "recall@100": "Recall@100"}


def fill(text: str) -> str:
    """``text`` with every marked table made anew from its file; a table is left out where its file is not there."""
    return _TABLE.sub(lambda found: f"{found[0].splitlines()[0]}\n{_table(ROOT / found[1])}", text)


def _table(file: Path) -> str:
    if not file.is_file():
        return ""
    results = json.loads(file.read_text(encoding="utf-8"))
    columns = [(collection, measure) for collection in results for measure in next(iter(results[collection].values()))]
    systems = sorted(next(iter(results.values())), key=lambda name: [word in name for word in _ORDER], reverse=True)
    header = [f"{collection.replace('_', '-')} {_NAMES[measure]}" for collection, measure in columns]
    rows = [[name, *(f"{results[c][name][m]:.3f}".lstrip("0") for c, m in columns)] for name in systems]
    lines = [["", *header], ["---"] + ["--:"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    README.write_text(fill(README.read_text(encoding="utf-8")), encoding="utf-8")
