"""Does the best temperature follow from the number of documents?

``DATA`` are Parquet files of one domain each, as ``experiments.rivals`` reads them. ``formula`` is what
``temperature: auto`` makes of a set's ``documents``; the other columns are the best temperatures of ``WAYS``, from the
table ``TABLE``, which ``experiments.rivals.summary`` wrote.
"""

from pathlib import Path

from scipy.stats import spearmanr

from batchwright.core.command import run
from batchwright.core.files import read_tsv, write_tsv
from batchwright.training.losses import static_temperature
from experiments.rivals.arms import document_counts
from experiments.rivals.runs import Row
from experiments.rivals.sets import pairs_parser, read_set

WAYS = ("ours", "random, our loss", "random", "ours, InfoNCE")
EXAMPLE = "python -m experiments.rivals.temperatures pairs/medquad.parquet --output temperatures.tsv"


def main() -> str:
    """Write a row for each set, in the order of their documents."""
    parser = pairs_parser("experiments.rivals.temperatures", str(__doc__), EXAMPLE, searches=True)
    parser.add_argument("--table", type=Path, default=Path("experiments/rivals/static.tsv"))
    arguments = parser.parse_args()
    table = read_tsv(arguments.table, made_by="experiments.rivals.summary")
    best = {(row["set"], row["arm"]): float(row["temperature"]) for row in table}
    rows: list[Row] = []
    for file in arguments.data:
        pairs = read_set(file.stem, [file], arguments.vectors, seen=arguments.seen)
        (documents,) = document_counts(pairs.training).values()
        of_ways: Row = {way: best[pairs.name, way] for way in WAYS}
        rows.append({"set": pairs.name, "documents": documents, "formula": static_temperature([documents]), **of_ways})
    rows.sort(key=lambda row: int(row["documents"]))
    write_tsv(arguments.output, rows)
    told = ", ".join(f"{way} {_ranked(rows, way):.2f}" for way in WAYS)
    return f"{arguments.output}: rank correlation with documents {told}"


def _ranked(rows: list[Row], way: str) -> float:
    documents, best = ([row[name] for row in rows] for name in ("documents", way))
    return float(spearmanr(documents, best).statistic)


if __name__ == "__main__":
    run("temperatures", main)
