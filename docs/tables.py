"""``python -m docs.tables``: puts figures into README and docs, behind each ``<!-- KIND: FILE... -->``."""

import csv
import json
import re
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from stages.report.experiments import summarise_runs

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_TABLE = re.compile(r"<!-- (results|batches|quality|runs|rows|tokens|scores): (.*) -->\n(?:\|.*\n)*")
_ORDER = ("BM25", "untrained", "random", "contextual")
_NAMES = {"ndcg@10": "nDCG@10", "mrr@10": "MRR@10", "recall@100": "Recall@100"}
_BATCHES = 20

Lines = list[list[str]]


def fill(text: str) -> str:
    """``text`` with every marked table made anew from its file; a table is left out where its file is not there."""
    return _TABLE.sub(lambda found: f"{found[0].splitlines()[0]}\n{_table(found[1], found[2].split())}", text)


def _table(kind: str, names: Sequence[str]) -> str:
    files = [ROOT / name for name in names]
    if not all(file.is_file() for file in files):
        return ""
    header, *rows = _KINDS[kind]([file.read_text(encoding="utf-8") for file in files])
    lines = [header, ["---"] + ["--:"] * (len(header) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _results(texts: Sequence[str]) -> Lines:
    """Systems of all files by collections and measures."""
    results: dict[str, dict[str, dict[str, float]]] = {}
    for text in texts:
        for collection, systems_of in json.loads(text).items():
            results.setdefault(collection, {}).update(systems_of)
    columns = [(collection, measure) for collection in results for measure in next(iter(results[collection].values()))]
    systems = sorted(next(iter(results.values())), key=lambda name: [word in name for word in _ORDER], reverse=True)
    header = [f"{collection.replace('_', '-')} {_NAMES[measure]}" for collection, measure in columns]
    return [["", *header], *([name, *(_short(results[c][name][m]) for c, m in columns)] for name in systems)]


def _batches(texts: Sequence[str]) -> Lines:
    """Methods by batch size: medians over data sets of ratios to the reference."""
    rows = _read(texts)
    by_key = {(row["data"], row["batch"], row["method"]): row for row in rows}
    sizes = list(dict.fromkeys(row["batch"] for row in rows))
    header = ["unmasked hardness; time, of the reference's", *(f"batches of {size}" for size in sizes)]
    lines = [header]
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = []
        for size in sizes:
            pairs = [
                (row, by_key[row["data"], size, "reference"])
                for row in rows
                if (row["batch"], row["method"]) == (size, method) and int(row["batches"]) >= _BATCHES
            ]
            harder, slower = (
                [float(row[name]) / float(reference[name]) for row, reference in pairs]
                for name in ("unmasked", "seconds")
            )
            spread = f"{statistics.median(harder):.2f} ({min(harder):.2f} to {max(harder):.2f})"
            cells.append(f"{spread}; {_short(statistics.median(slower))}")
        lines.append([method, *cells])
    return lines


def _quality(texts: Sequence[str]) -> Lines:
    """Settings by domains trained on, and epochs where they differ: nDCG@10 there and elsewhere, mean and spread."""
    rows = _read(texts)
    runs = list(dict.fromkeys((row["domains"], row["epochs"]) for row in rows))
    labels = [names if " " not in names else f"{len(names.split())} domains" for names, _ in runs]
    if len({epochs for _, epochs in runs}) > 1:
        labels = [f"{label}, {epochs} epochs" for label, (_, epochs) in zip(labels, runs, strict=True)]
    lines = [["", *(f"{label}, {where}" for label in labels for where in ("home", "elsewhere"))]]
    for setting in dict.fromkeys(row["setting"] for row in rows):
        own = [row for row in rows if row["setting"] == setting]
        cells = [
            _spread([float(row[f"ndcg@10 {where}"]) for row in own if (row["domains"], row["epochs"]) == run])
            for run in runs
            for where in ("home", "elsewhere")
        ]
        lines.append([setting, *cells])
    return lines


def _runs(texts: Sequence[str]) -> Lines:
    """Settings by measures, mean and spread over seeds, as the report shows them."""
    table = summarise_runs("", _read(texts)).table
    return [table.header, *table.rows]


def _rows(texts: Sequence[str]) -> Lines:
    """Every row of the file."""
    rows = _read(texts)
    return [list(rows[0]), *([_plain(cell) for cell in row.values()] for row in rows)]


def _tokens(texts: Sequence[str]) -> Lines:
    """Kinds of training by how documents are searched: nDCG@10, mean and spread over seeds, and search's cost."""
    rows = _read(texts)
    ways = [key for key in rows[0] if key.startswith("ndcg@10 ")]
    last = {"candidates 100": "candidates, 100", "imputed 100": "imputed, 100"}
    lines = [["nDCG@10 by tokens retrieved", *(way.removeprefix("ndcg@10 ") for way in ways), *last.values()]]
    for place in dict.fromkeys(row["collection"] for row in rows):
        for kind in dict.fromkeys(row["score"] for row in rows):
            found = [row for row in rows if (row["collection"], row["score"]) == (place, kind)]
            shown = [_spread([float(row[way]) for row in found]) for way in ways]
            candidates, imputed = (statistics.mean(float(row[key]) for row in found) for key in last)
            lines.append([f"{kind}, {place}", *shown, f"{candidates:,.0f}", _short(imputed)])
    return lines


def _scores(texts: Sequence[str]) -> Lines:
    """Ways to score by batch size: seconds and memory."""
    rows = _read(texts)
    sizes = list(dict.fromkeys(row["batch"] for row in rows))
    lines = [["processor time; peak memory", *(f"batches of {size}" for size in sizes)]]
    for way in dict.fromkeys(row["way"] for row in rows):
        found = {row["batch"]: f"{float(row['seconds']):.2f} s; {row['mib']} MiB" for row in rows if row["way"] == way}
        lines.append([way, *(found.get(size, "") for size in sizes)])
    return lines


def _read(texts: Sequence[str]) -> list[dict[str, str]]:
    return [row for text in texts for row in csv.DictReader(text.splitlines(), delimiter="\t")]


def _spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    return _short(statistics.mean(values)) + (f" ± {_short(statistics.stdev(values))}" if len(values) > 1 else "")


def _plain(cell: str) -> str:
    return str(round(float(cell), 4) + 0.0) if "." in cell else cell  # + 0.0: no -0.0


def _short(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


_KINDS: dict[str, Callable[[Sequence[str]], Lines]] = {
    "results": _results,
    "batches": _batches,
    "quality": _quality,
    "runs": _runs,
    "rows": _rows,
    "tokens": _tokens,
    "scores": _scores,
}


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")
