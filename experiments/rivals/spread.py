"""Why does the best temperature of static models follow from the number of documents, and not that of others?

``DATA`` are Parquet files of one domain each, as ``experiments.rivals`` reads them. A model of each kind in ``TABLES``
that has ``ARM`` on a set trains at its best ``temperature`` there. ``spread`` is the standard deviation of the cosines
of a test query and documents that do not answer it, at the ``start``, after a ``quarter`` and a ``half`` of the
training, and at its ``end``: a temperature divides cosines, so what it does depends on how far they lie apart.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch import nn

from batchwright.core.command import run
from batchwright.core.files import read_tsv, write_tsv
from experiments.rivals.arms import document_counts
from experiments.rivals.compare import texts_of, train_arm
from experiments.rivals.encoders import Kind, build
from experiments.rivals.orders import steps
from experiments.rivals.runs import Row, Run
from experiments.rivals.sets import PairSet, pairs_parser, read_set
from experiments.rivals.training import Settings, embed

TABLES = ("experiments/rivals/static.tsv", "experiments/rivals/transformer.tsv")
ARM, QUERIES, POINTS, SEED = "random, our loss", 400, 4, 1
EXAMPLE = "python -m experiments.rivals.spread pairs/nl2bash.parquet pairs/scitldr.parquet --output spread.tsv"


def main() -> str:
    """Measure all sets; the table is written anew after each."""
    arguments = pairs_parser("experiments.rivals.spread", str(__doc__), EXAMPLE).parse_args()
    best = [row for table in TABLES for row in read_tsv(Path(table), made_by="experiments.rivals.summary")]
    rows: list[Row] = []
    for file in arguments.data:
        pairs = read_set(file.stem, [file], arguments.vectors)
        of_set = [row for row in best if (row["set"], row["arm"]) == (file.stem, ARM)]
        for row in of_set:
            settings = Settings(float(row["temperature"]), float(row["learning_rate"]))
            rows.append(_measure(pairs, "static" if row["kind"] == "static" else "transformer", settings, row))
            print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
        rows.sort(key=lambda row: (row["kind"], row["documents"]))
        write_tsv(arguments.output, rows)
    return f"{arguments.output}: rank correlation of the temperature with {', '.join(_ranked(rows))}"


def spread(queries: NDArray[np.float32], documents: NDArray[np.float32], relevant: list[list[int]]) -> float:
    """The mean over queries ``(Q, d)`` of the deviation of their cosines with documents ``(N, d)`` of others."""
    scores = queries @ documents.T
    for row, own in zip(scores, relevant, strict=True):
        row[own] = np.nan
    return float(np.nanstd(scores, axis=1).mean())


def _measure(pairs: PairSet, kind: Kind, settings: Settings, best: dict[str, str]) -> Row:
    texts, epochs = texts_of(pairs, kind), int(best["epochs"])
    asked = pairs.held_out.places(dev=False)[:QUERIES]
    relevant = [pairs.held_out.relevant[place] for place in asked]

    def look(model: nn.Module) -> NDArray[np.float32]:
        queries, documents = embed(model, texts.held_out[0][asked]), embed(model, texts.held_out[1])
        return np.array([spread(queries, documents, relevant)], np.float32)

    start = look(build(kind, SEED, texts.tokens))
    curve, _ = train_arm(pairs, Run(pairs.name, ARM, kind, epochs, settings, SEED), look, POINTS)
    (documents,) = document_counts(pairs.training).values()
    row: Row = {"kind": kind, "set": pairs.name, "documents": documents, "steps": steps(pairs.training, epochs)}
    row["temperature"] = settings.temperature
    measured = {"start": start, "quarter": curve.scores[0], "half": curve.scores[1], "end": curve.scores[-1]}
    return row | {name: round(float(value[0]), 3) for name, value in measured.items()}


def _ranked(rows: list[Row]) -> Iterator[str]:
    """Yield what the temperature goes with, and what it divided by the spread does, by kind of model."""
    for kind in sorted({str(row["kind"]) for row in rows}):
        of_kind = [row for row in rows if row["kind"] == kind]
        temperature, documents, half = (
            np.array([float(row[name]) for row in of_kind]) for name in ("temperature", "documents", "half")
        )
        for name, one, other in (
            ("documents", temperature, documents),
            ("spread", temperature, half),
            ("documents, divided by the spread", temperature / half, documents),
        ):
            yield f"{name} ({kind}) {spearmanr(one, other).statistic:.2f}"


if __name__ == "__main__":
    run("spread", main)
